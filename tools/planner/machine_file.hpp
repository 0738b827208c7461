// Descriptions of machines in JSON: what tools/machine writes and other tools read. All figures in seconds, bytes/s,
// FLOP/s and elements/s.
//
//     {"name": "desk", "launch": 2e-8, "overlaps": false,
//      "rates": [{"ranks": 1, "products": {"f32": 9e10}, "memory_bandwidth": 2e10, ...},
//                {"ranks": 2, ..., "link": {"latency": 1e-7, "bandwidth": 5e9}}],
//      "links": {"data": {"latency": 1e-5, "bandwidth": 1e9}}}
//
// Optional: `links`, `attention_block`, `processors`, `write_allocates`, `host_bandwidth`, and of rates `attention`,
// `scores`, `functions`, `cache_bytes` with `cache_bandwidth`, and of one rank `link`. What they mean stands at the
// members of Machine and Rates.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <parallel/cost/published_machines.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;
using Json = nlohmann::ordered_json;

/// A description that cannot be used: which field of which file, what is wrong, what would be right.
struct MachineRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

namespace machine_file {
/// A JSON object under its path ("rates[1].link"), for sentences.
class Reader {
 public:
  Reader(const Json& json, std::string path, const std::vector<std::string>& known)
      : json_(json), path_(std::move(path)) {
    if (!json.is_object()) refuse(path_, "is no object; write {...}");
    for (const auto& [key, value] : json.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        refuse(under(key), "is unknown; known here: " + listed(known));
  }
  bool has(const std::string& key) const { return json_.contains(key); }
  const Json& at(const std::string& key) const {
    if (!has(key)) refuse(under(key), "is missing");
    return json_[key];
  }
  /// A number of some unit, above 0, or where `zero` not below it.
  double number(const std::string& key, const char* unit, bool zero = false) const {
    const Json& value = at(key);
    if (!value.is_number()) refuse(under(key), "is " + value.dump() + "; give a number: " + unit);
    const auto n = value.get<double>();
    if (!std::isfinite(n) || n < 0 || (n == 0 && !zero))
      refuse(under(key), "is " + value.dump() + "; give " + unit + (zero ? ", not below 0" : ", above 0"));
    return n;
  }
  int count(const std::string& key, const char* unit) const {
    const double n = number(key, unit);
    if (n != std::floor(n) || n > 1 << 20)
      refuse(under(key), "is " + at(key).dump() + "; give a whole number of " + unit);
    return static_cast<int>(n);
  }
  bool flag(const std::string& key) const {
    if (!at(key).is_boolean()) refuse(under(key), "is " + at(key).dump() + "; say true or false");
    return at(key).get<bool>();
  }
  std::string under(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  static std::string listed(const std::vector<std::string>& words) {
    std::string result;
    for (const std::string& word : words) result += (result.empty() ? "" : ", ") + word;
    return result;
  }
  [[noreturn]] static void refuse(const std::string& path, const std::string& what) {
    throw MachineRefused((path.empty() ? "the description" : path) + " " + what);
  }

 private:
  const Json& json_;
  std::string path_;
};

inline Link link(const Json& json, const std::string& path) {
  const Reader reader(json, path, {"latency", "bandwidth"});
  return {reader.number("latency", "seconds", true), reader.number("bandwidth", "bytes/s")};
}
/// {"f32": ..., "f64": ...}
inline void by_dtype(const Reader& outer, const std::string& key, const char* unit, double (&rates)[dtypes]) {
  const Reader reader(outer.at(key), outer.under(key), {"f32", "f64", "bf16", "f16", "i32"});
  for (int d = 0; d < dtypes; ++d)
    if (const std::string name(name_of(static_cast<DType>(d))); reader.has(name)) rates[d] = reader.number(name, unit);
}
inline Rates rates(const Json& json, const std::string& path, bool only) {
  const Reader reader(json, path,
                      {"ranks", "products", "attention", "scores", "functions", "memory_bandwidth", "cache_bytes",
                       "cache_bandwidth", "link"});
  Rates r;
  r.ranks = reader.count("ranks", "ranks");
  by_dtype(reader, "products", "FLOP/s", r.products);
  if (reader.at("products").empty()) Reader::refuse(reader.under("products"), "has no rate; give one for f32 at least");
  if (reader.has("attention")) by_dtype(reader, "attention", "FLOP/s", r.attention);
  if (reader.has("scores")) by_dtype(reader, "scores", "scores/s", r.scores);
  if (reader.has("functions")) by_dtype(reader, "functions", "elements/s", r.functions);
  r.memory_bandwidth = reader.number("memory_bandwidth", "bytes/s");
  if (reader.has("cache_bytes") || reader.has("cache_bandwidth")) {
    r.cache_bytes = reader.number("cache_bytes", "bytes");
    r.cache_bandwidth = reader.number("cache_bandwidth", "bytes/s");
  }
  if (reader.has("link") || r.ranks > 1 || only) r.link = link(reader.at("link"), reader.under("link"));
  return r;
}

inline Json to_json(const Link& l) { return {{"latency", l.latency}, {"bandwidth", l.bandwidth}}; }
inline void put(Json& json, const char* key, const double (&rates)[dtypes]) {
  for (int d = 0; d < dtypes; ++d)
    if (rates[d] > 0) json[key][std::string(name_of(static_cast<DType>(d)))] = rates[d];
}
}  // namespace machine_file

/// Throws MachineRefused.
inline Machine machine_from_json(const Json& json) {
  using machine_file::Reader;
  const Reader reader(json, "",
                      {"name", "launch", "attention_block", "processors", "write_allocates", "host_bandwidth",
                       "overlaps", "rates", "links"});
  Machine m;
  if (!reader.at("name").is_string()) Reader::refuse("name", "is no text");
  const auto name = json["name"].get<std::string>();
  if (name.size() > 63 || name.find('\0') != std::string::npos)
    Reader::refuse("name", "has more than 63 characters, or a zero; give another");
  m.name = std::string_view(name);
  m.launch = reader.number("launch", "seconds", true);
  m.overlaps = reader.flag("overlaps");
  if (reader.has("write_allocates")) m.write_allocates = reader.flag("write_allocates");
  if (reader.has("host_bandwidth")) m.host_bandwidth = reader.number("host_bandwidth", "bytes/s");
  if (reader.has("attention_block")) m.attention_block = reader.count("attention_block", "queries");
  if (reader.has("processors")) m.processors = reader.count("processors", "processors");
  const Json& rates = reader.at("rates");
  if (!rates.is_array() || rates.empty() || rates.size() > static_cast<std::size_t>(max_rates))
    Reader::refuse("rates",
                   "is no list of 1 to " + std::to_string(max_rates) + " rows; give one for each number of busy ranks");
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const std::string path = "rates[" + std::to_string(i) + "]";
    m.rates.push_back(machine_file::rates(rates[i], path, rates.size() == 1));
    if (i > 0 && m.rates[static_cast<int>(i) - 1].ranks >= m.rates[static_cast<int>(i)].ranks)
      Reader::refuse(path + ".ranks", "is not above that of the row before; sort the rows");
  }
  if (reader.has("links")) {
    if (!json["links"].is_object() || json["links"].size() > static_cast<std::size_t>(max_axes))
      Reader::refuse("links", "is no object of at most " + std::to_string(max_axes) + " axes; write {\"data\": {...}}");
    for (const auto& [axis, value] : json["links"].items()) {
      if (axis.empty() || axis.size() > 63 || axis.find('\0') != std::string::npos)
        Reader::refuse("links." + axis, "is no axis that can be named here; give it a name of 1 to 63 characters");
      m.links.push_back({std::string_view(axis), machine_file::link(value, "links." + axis)});
    }
  }
  return m;
}

inline Json machine_to_json(const Machine& m) {
  Json json{{"name", std::string(m.name.view())},
            {"launch", m.launch},
            {"overlaps", m.overlaps},
            {"write_allocates", m.write_allocates}};
  if (m.attention_block > 0) json["attention_block"] = m.attention_block;
  if (m.processors > 0) json["processors"] = m.processors;
  if (m.host_bandwidth > 0) json["host_bandwidth"] = m.host_bandwidth;
  json["rates"] = Json::array();
  for (const Rates& r : m.rates) {
    Json row{{"ranks", r.ranks}};
    machine_file::put(row, "products", r.products);
    machine_file::put(row, "attention", r.attention);
    machine_file::put(row, "scores", r.scores);
    machine_file::put(row, "functions", r.functions);
    row["memory_bandwidth"] = r.memory_bandwidth;
    if (r.cache_bytes > 0) {
      row["cache_bytes"] = r.cache_bytes;
      row["cache_bandwidth"] = r.cache_bandwidth;
    }
    if (r.link.bandwidth > 0) row["link"] = machine_file::to_json(r.link);
    json["rates"].push_back(row);
  }
  for (const Machine::AxisLink& l : m.links) json["links"][std::string(l.axis.view())] = machine_file::to_json(l.link);
  return json;
}

/// "a100", or the path of a description. Throws MachineRefused.
inline Machine machine_named_or_file(const std::string& which) {
  if (const Machine* m = published_machine(which)) return *m;
  if (std::error_code error; std::filesystem::is_directory(which, error))
    throw MachineRefused("'" + which + "' is a folder; name a machine, or a file that tools/machine wrote");
  std::ifstream file(which);
  if (!file) {
    std::string names;
    for (const Machine* m : machines::published) names += (names.empty() ? "" : ", ") + std::string(m->name.view());
    throw MachineRefused("there is no machine and no file '" + which + "'; machines: " + names +
                         "; tools/machine describes this one");
  }
  try {
    return machine_from_json(Json::parse(file));
  } catch (const Json::exception& error) {
    throw MachineRefused(which + ": this is no JSON: " + error.what());
  } catch (const MachineRefused& error) {
    throw MachineRefused(which + ": " + error.what());
  }
}
/// Says on the standard error where more ranks, of so many threads each, are priced than are busy at once in any row of
/// rates.
inline void tell_of_ranks(const Machine& machine, int ranks, int threads) {
  const int described = machine.rates[machine.rates.size() - 1].ranks;
  if ((machine.rates.size() == 1 && threads == 1) || ranks <= described) return;
  std::cerr << "tools/plan: " << printable(machine.name.view()) << " is described with up to " << described
            << (described == 1 ? " busy rank" : " busy ranks")
            << (threads > 1 ? " of " + std::to_string(threads) + " threads" : "") << "; " << ranks
            << " are priced at the rates of those, as if each " << (threads > 1 ? "thread " : "")
            << "had a core; describe as many with tools/machine\n";
}

}  // namespace planner
