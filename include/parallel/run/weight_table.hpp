// Which tensors of a file are which parameters of a program, and in which types elements lie in files.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <parallel/file/file_dtype.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/arrangement.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

/// A parameter by its path, the tensors of the file that it is, and how it lies in them. In a name {} is the number of
/// a layer; where none is said, all layers are one tensor, the first dimension of it.
struct WeightRow {
  std::string member;              ///< "blocks.*.attention.q"
  std::vector<std::string> names;  ///< one, or several among which the pattern cuts the parameter
  std::string pattern{};           ///< "in heads size -> (heads size) in", as Arrangement says; none: alike
};

/// Which tensors of a file are which parameters.
struct WeightTable {
  std::vector<WeightRow> rows{};
  /// Names, each with the tensor that it says again: where the file has it, it must be the same, and it is not written.
  std::vector<std::pair<std::string, std::string>> tied{};
  std::vector<std::string> ignored{};  ///< what files have beside, which is neither read nor written

  /// The same for a model that is a member of another, "model".
  WeightTable below(const std::string& path) const {
    WeightTable all = *this;
    for (WeightRow& row : all.rows) row.member = path + "." + row.member;
    return all;
  }
};

/// The table of a file whose tensors are called as the program's parameters are, and lie as they do: those of all
/// layers are one, as checkpoints have them.
inline WeightTable member_names(const Plan& plan) {
  WeightTable table;
  for (const Member& m : plan.graph.members)
    if (const std::string path(plan.graph.path(m)); m.role == Role::parameter) table.rows.push_back({path, {path}});
  return table;
}

namespace weights {
inline constexpr std::string_view layer_number = "{}";

inline bool numbered(const std::string& name) { return name.find(layer_number) != std::string::npos; }
inline std::string of_layer(std::string name, std::int64_t number) {
  if (const std::size_t at = name.find(layer_number); at != std::string::npos)
    name.replace(at, layer_number.size(), std::to_string(number));
  return name;
}
/// Whether a name is this one, of any layer.
inline bool matches(std::string_view name, std::string_view pattern) {
  const std::size_t at = pattern.find(layer_number);
  if (at == std::string_view::npos) return name == pattern;
  const std::string_view behind = pattern.substr(at + layer_number.size());
  if (name.size() <= at + behind.size() || !name.starts_with(pattern.substr(0, at)) || !name.ends_with(behind))
    return false;
  name = name.substr(at, name.size() - at - behind.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// A row for a program: what it is for, how it lies, and its tensors layer by layer.
struct Bound {
  std::string member;
  Type type{};
  Arrangement how;
  std::int64_t tensors_a_layer = 1;
  std::vector<std::string> names{};
};

/// The table for an executor's program. Throws Misuse where they are not for each other.
template <class Running>
std::vector<Bound> bound(const Running& executor, const WeightTable& table) {
  std::vector<Bound> all;
  const GraphView& g = executor.plan().graph;
  for (const Member& m : g.members) {
    if (m.role != Role::parameter) continue;
    const std::string path(g.path(m));
    const auto row =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const auto& r) { return r.member == path; });
    if (row == table.rows.end()) {
      std::string stray;
      for (const WeightRow& r : table.rows)
        if (stray.empty() && std::none_of(g.members.begin(), g.members.end(), [&](const Member& other) {
              return other.role == Role::parameter && g.path(other) == r.member;
            }))
          stray = "; it has one for " + r.member + ", which is none";
      throw Misuse("the table of weights has no row for the parameter " + path + stray + "; give it one");
    }
    if (std::find_if(row + 1, table.rows.end(), [&](const auto& r) { return r.member == path; }) != table.rows.end())
      throw Misuse("the table of weights has two rows for the parameter " + path + "; leave one");
    const bool apart = !row->names.empty() && numbered(row->names[0]);
    for (const std::string& name : row->names)
      if (numbered(name) != apart || (apart && m.layers == 0))
        throw Misuse("the row of " + path + " names " + name + "; " +
                     (m.layers == 0 ? "a parameter that is no layer's has no {} in its name"
                                    : "all names of a row have {}, or none"));
    std::vector<std::int64_t> shape = shape_of(m.type.layout);
    if (m.layers > 0) shape.erase(shape.begin());
    const auto tensors = static_cast<std::int64_t>(row->names.size());
    Bound p{path, m.type, Arrangement(row->pattern, shape, m.layers, apart, tensors), tensors, {}};
    for (std::int64_t l = 0; l < (apart ? m.layers : 1); ++l)
      for (const std::string& name : row->names) p.names.push_back(of_layer(name, l));
    all.push_back(std::move(p));
  }
  for (const WeightRow& row : table.rows)
    if (std::none_of(all.begin(), all.end(), [&](const Bound& p) { return p.member == row.member; }))
      throw Misuse("the table of weights has a row for " + row.member + ", but the program no such parameter; it has " +
                   (all.empty() ? "none" : all[0].member + " and others"));
  return all;
}

/// An element as a file or a program has it, as the other has it.
template <class To, class From>
To converted(const std::byte* at) {
  From from;
  std::memcpy(&from, at, sizeof from);
  if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>)
    return static_cast<To>(from);
  else
    return static_cast<To>(static_cast<float>(from));
}
/// f(T()), for the element type of a file.
template <class F>
bool of_reals(FileDType dtype, F f) {
  switch (dtype) {
    case FileDType::F32: return f(float()), true;
    case FileDType::F64: return f(double()), true;
    case FileDType::BF16: return f(bfloat16()), true;
    case FileDType::F16: return f(float16()), true;
    default: return false;
  }
}

}  // namespace weights

}  // namespace parallel::internals

namespace parallel {
using internals::member_names;
using internals::WeightRow;
using internals::WeightTable;
}  // namespace parallel
