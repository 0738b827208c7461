// Descriptions of machines: what is written is read again, and every fault is named with its place.
#include "../tools/planner/machine_file.hpp"

#include <cstdio>
#include <filesystem>
#include <functional>

#include <doctest/doctest.h>

using namespace planner;

namespace {

Json good() {
  return Json::parse(R"({
    "name": "desk", "launch": 2e-8, "overlaps": false, "write_allocates": true, "attention_block": 64, "processors": 108, "host_bandwidth": 4e10,
    "rates": [
      {"ranks": 1, "products": {"f32": 9e10, "f64": 4e10}, "memory_bandwidth": 2e10},
      {"ranks": 2, "products": {"f32": 8e10}, "attention": {"f32": 7e10}, "scores": {"f32": 1e9}, "functions": {"f32": 2e9},
       "memory_bandwidth": 1e10, "cache_bytes": 1e6, "cache_bandwidth": 9e10, "link": {"latency": 1e-7, "bandwidth": 5e9}}],
    "links": {"data": {"latency": 0, "bandwidth": 1e9}}})");
}
/// The sentence with which a description is refused after `change`.
std::string sentence_of_refusal(const std::function<void(Json&)>& change) {
  Json json = good();
  change(json);
  try {
    machine_from_json(json);
  } catch (const MachineRefused& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a description is read, and written as it was") {
  const Machine m = machine_from_json(good());
  CHECK(m.name.view() == "desk");
  CHECK(m.launch == 2e-8);
  CHECK(m.write_allocates);
  CHECK(m.host_bandwidth == 4e10);
  CHECK(!m.overlaps);
  CHECK(m.attention_block == 64);
  CHECK(m.processors == 108);
  REQUIRE(m.rates.size() == 2);
  CHECK(m.with(1).products[static_cast<int>(DType::f64)] == 4e10);
  CHECK(m.with(2).link == Link{1e-7, 5e9});
  CHECK(m.with(2).scores[static_cast<int>(DType::f32)] == 1e9);
  CHECK(m.link({&axes::data}, 2) == Link{0, 1e9});
  CHECK(m.link({&axes::tensor}, 2) == Link{1e-7, 5e9});
  CHECK(machine_from_json(machine_to_json(m)) == m);
  for (const Machine* published : machines::published)
    CHECK(machine_from_json(machine_to_json(*published)) == *published);
}

TEST_CASE("faults are named with their place") {
  CHECK(sentence_of_refusal([](Json&) {}) == "accepted");
  CHECK(sentence_of_refusal([](Json& j) { j = 3; }) == "the description is no object; write {...}");
  CHECK(sentence_of_refusal([](Json& j) { j.erase("name"); }) == "name is missing");
  CHECK(sentence_of_refusal([](Json& j) { j["name"] = 3; }) == "name is no text");
  CHECK(
      sentence_of_refusal([](Json& j) { j["lunch"] = 3; }) ==
      "lunch is unknown; known here: name, launch, attention_block, processors, write_allocates, host_bandwidth, overlaps, rates, links");
  CHECK(sentence_of_refusal([](Json& j) { j["launch"] = -1; }) == "launch is -1; give seconds, not below 0");
  CHECK(sentence_of_refusal([](Json& j) { j["overlaps"] = 1; }) == "overlaps is 1; say true or false");
  CHECK(sentence_of_refusal([](Json& j) { j["attention_block"] = 1.5; }) ==
        "attention_block is 1.5; give a whole number of queries");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"] = Json::array(); }) ==
        "rates is no list of 1 to 8 rows; give one for each number of busy ranks");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0].erase("memory_bandwidth"); }) ==
        "rates[0].memory_bandwidth is missing");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0]["memory_bandwidth"] = 0; }) ==
        "rates[0].memory_bandwidth is 0; give bytes/s, above 0");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0]["memory_bandwidth"] = "fast"; }) ==
        "rates[0].memory_bandwidth is \"fast\"; give a number: bytes/s");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0]["products"]["f8"] = 1; }) ==
        "rates[0].products.f8 is unknown; known here: f32, f64, bf16, f16, i32");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0]["products"]["f32"] = -1; }) ==
        "rates[0].products.f32 is -1; give FLOP/s, above 0");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][0]["products"] = Json::object(); }) ==
        "rates[0].products has no rate; give one for f32 at least");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][1]["ranks"] = 1; }) ==
        "rates[1].ranks is not above that of the row before; sort the rows");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][1].erase("link"); }) == "rates[1].link is missing");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"][1].erase("cache_bytes"); }) == "rates[1].cache_bytes is missing");
  CHECK(sentence_of_refusal([](Json& j) { j["rates"].erase(1); }) ==
        "rates[0].link is missing");  // it serves any number of ranks
  CHECK(sentence_of_refusal([](Json& j) { j["links"]["data"]["bandwidth"] = 0; }) ==
        "links.data.bandwidth is 0; give bytes/s, above 0");
  const std::string endless(64, 'a');
  CHECK(sentence_of_refusal([&](Json& j) { j["name"] = endless.substr(1); }) == "accepted");
  for (const std::string& name : {endless, std::string("a\0b", 3)})
    CHECK(sentence_of_refusal([&](Json& j) { j["name"] = name; }) ==
          "name has more than 63 characters, or a zero; give another");
  CHECK(sentence_of_refusal([&](Json& j) { j["links"][endless] = 0; }).starts_with("links." + endless + " is no axis"));
}

TEST_CASE("a machine is named, or a file") {
  CHECK(machine_named_or_file("h100") == machines::h100);
  CHECK_THROWS_WITH_AS(
      machine_named_or_file("abacus"),
      "there is no machine and no file 'abacus'; machines: a100, dgx-a100, h100, dgx-h100; tools/machine describes this one",
      MachineRefused);
  const std::string path = std::filesystem::temp_directory_path() / "parallel-machine.json";
  std::ofstream(path) << good().dump();
  CHECK(machine_named_or_file(path) == machine_from_json(good()));
  std::ofstream(path) << "{";
  CHECK_THROWS_AS(machine_named_or_file(path), MachineRefused);
  std::ofstream(path) << "{}";
  CHECK_THROWS_WITH_AS(machine_named_or_file(path), (path + ": name is missing").c_str(), MachineRefused);
  std::filesystem::remove(path);
}
