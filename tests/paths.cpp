// A member's path has any length, and so has the name of a run's number: in the compiler, at start-up, in objects, in
// every text. What has room for so many characters only abbreviates visibly, or refuses.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/history.hpp>
#include <parallel/object/find_object.hpp>
#include <parallel/run/parameters.hpp>
#include <parallel/run/plan_facts.hpp>
#include <parallel/run/scalars.hpp>

#include "../tools/planner/json.hpp"
#include "../tools/planner/lock.hpp"
#include "../tools/planner/tree.hpp"
#include "long_paths.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using long_paths::Step;

namespace {

inline constexpr Mesh four{data = 2, tensor = 2};
constexpr auto& compiled = plan<Step, four>;

/// Of all members, as they stand in a graph.
std::vector<std::string> paths_of(const GraphView& g) {
  std::vector<std::string> all;
  for (const Member& m : g.members) all.emplace_back(g.path(m));
  return all;
}
/// Of the model's parameters, of the one input, and of AdamW's state, which is there in the order of the updates.
std::vector<std::string> expected() {
  std::vector<std::string> all = long_paths::paths();
  all.emplace_back("input.0");
  for (const std::string& path : long_paths::paths())
    for (const char* of : {".mean", ".variance"}) all.push_back(path + of);
  return all;
}
std::vector<std::int64_t> words_of(const GraphView& g) {
  const auto words = object::written<Step>(g);
  return {words.begin(), words.end()};
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string in_layers(std::string path) {
  if (const auto star = path.find('*'); star != std::string::npos) path.replace(star, 1, "0-1");
  return path;
}

}  // namespace

TEST_CASE("the lengths that are tested, and what the first two share") {
  const std::vector<std::string> paths = long_paths::paths();
  CHECK(paths[0].size() == 64);
  CHECK(paths[1].size() == 65);
  CHECK(paths[2].size() == 200);
  CHECK(paths[3].size() == 1011);
  CHECK(paths[0].substr(0, 63) == paths[1].substr(0, 63));
}

TEST_CASE("paths are whole in the compiler, at start-up and in an object") {
  CHECK(paths_of(compiled.graph) == expected());
  CHECK(paths_of(derive<Step>(four)->graph) == expected());
  const Graph built = build<Step>();
  CHECK(paths_of(built) == expected());
  CHECK(paths_of(Graph(built)) == expected());
  for (const Member& m : compiled.graph.members) CHECK(*(compiled.graph.path(m).data() + m.path.size) == 0);

  const auto carried = object::Reader(words_of(compiled.graph)).program();
  CHECK(paths_of(carried->graph) == expected());
  Mesh own;
  for (int i = 0; i < four.count; ++i)
    own.axes[own.count++] = Extent(carried->axis(four.axes[i].axis->text()), four.axes[i].size);
  const OwnedPlan read = object::derive(*carried, own);
  CHECK(paths_of(read->graph) == expected());
  CHECK(text(*read) == text(compiled));
  CHECK(planner::json(*read, "").dump() == planner::json(compiled, "").dump());
}

TEST_CASE("paths are whole in a plan's text, its tree, JSON and lock") {
  const std::string said = text(compiled), tree = planner::tree(compiled),
                    lock = planner::written({planner::lock_of(compiled, "")});
  std::vector<std::string> in_json;
  const planner::Json json = planner::json(compiled, "");
  for (const auto& m : json["members"]) in_json.push_back(m["path"]);
  CHECK(in_json == expected());
  for (const std::string& path : long_paths::paths()) {
    CHECK(has(said, " " + in_layers(path) + ", long_paths.hpp:"));
    CHECK(has(tree, path));
    CHECK(has(lock, "\nparameter  " + path + " "));
    CHECK(planner::members_named(compiled.graph, path).members.size() == 3);  // with its state
  }
}

TEST_CASE("paths are whole in what ranks agree on, in parameters and in what is said of them") {
  const std::string fact = fact_of(compiled).text();
  for (const std::string& path : expected()) CHECK(has(fact, "\n" + path + " f32 "));
  CHECK(Parameters::names(compiled) == long_paths::paths());

  const OwnedPlan alone = derive<Step>(Mesh{});
  Parameters parameters(alone, 0, 1);
  for (std::size_t i = 0; i < 4; ++i)
    parameters.set(alone, 0, long_paths::paths()[i], std::vector<float>(i < 3 ? 16 : 32, static_cast<float>(i)));
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<float> got(i < 3 ? 16 : 32);
    parameters.get(alone, 0, long_paths::paths()[i], got);
    CHECK(std::count(got.begin(), got.end(), static_cast<float>(i)) == static_cast<int>(got.size()));
  }
  const std::string cut = long_paths::paths()[0].substr(0, 63);
  std::string known;
  for (const std::string& path : long_paths::paths()) known += (known.empty() ? "" : ", ") + path;
  CHECK_THROWS_WITH_AS(parameters.set(alone, 0, cut, std::vector<float>(16)),
                       ("the model has no parameter " + cut + "; it has " + known).c_str(), Misuse);
  CHECK_THROWS_WITH_AS(derive<Step>(Mesh{tensor = 3}), doctest::Contains((" (" + long_paths::paths()[0] + ")").c_str()),
                       MeshRefused);
}

TEST_CASE("numbers of a run are told apart by their whole names") {
  const OwnedPlan plan = derive<long_paths::OwnStep>(Mesh{});
  std::vector<std::string> names;
  for (const Name& name : plan->graph.scalars) names.emplace_back(plan->graph.text(name));
  REQUIRE(names ==
          std::vector<std::string>{"clip_norm", "learning_rate_of_gains", "learning_rate_of_gains_that_are_long"});
  const auto carried = object::Reader(std::vector<std::int64_t>(std::begin(object::program<long_paths::OwnStep>.words),
                                                                std::end(object::program<long_paths::OwnStep>.words)))
                           .program();
  const GraphView read = carried->graph;
  CHECK(read.text(read.scalars[2]) == names[2]);
}

// Of a finding, which is a template argument, the member has 127 characters; longer paths are visibly abbreviated.
constexpr Finding of_64 = compiled.backward.is(all_reduce(data), all_reduce(data), all_reduce(data));
constexpr Finding of_200 = compiled.backward.is(all_reduce(data));
TEST_CASE("a finding names its member whole, or both ends of it") {
  CHECK(of_64.member.view() == long_paths::paths()[0]);
  const std::string whole = long_paths::paths()[2], said(of_200.member.view());
  CHECK(said == whole.substr(0, 41) + "..." + whole.substr(200 - 83));
}

TEST_CASE("an abbreviation has the beginning, the end, and points between") {
  CHECK(abbreviated<8>("1234567").view() == "1234567");
  CHECK(abbreviated<8>("12345678").view() == "1...678");
  CHECK(abbreviated<14>("ab\u00e4efghijklmnop").view() == "ab...jklmnop");  // the third byte would be half a character
  CHECK(abbreviated<8>("abcdefghijk\u00e4p").view() == "a...\u00e4p");
  CHECK(abbreviated<8>("abcdefghij\u00e4kp").view() == "a...kp");
  CHECK_THROWS_AS(Text<4>("1234"), std::length_error);
  CHECK(Text<4>("123").view() == "123");
  CHECK_THROWS_AS(Text<4>("12").append("34"), std::length_error);
}

TEST_CASE("the history of a rank names what moved by both ends of its path") {
  History history;
  const std::vector<std::string> paths = long_paths::paths();
  for (const std::string& path : {paths[0], paths[1], std::string(39, 'x')}) {
    Exchange exchange{.kind = Collective::all_reduce, .count = 1};
    exchange.label = path.c_str();
    history.start(exchange, 2);
  }
  const std::string lines = history.text("rank 0");
  CHECK(has(lines, "(" + paths[0].substr(0, 12) + "..." + paths[0].substr(64 - 24) + ")"));
  CHECK(has(lines, "(" + paths[1].substr(0, 12) + "..." + paths[1].substr(65 - 24) + ")"));
  CHECK(has(lines, "(" + std::string(39, 'x') + ")"));
}

// What a program remembers without parameters is told apart by a number.
template <int... i>
constexpr auto remembered(std::integer_sequence<int, i...>, Distributed auto x, Distributed auto position) {
  ((static_cast<void>(i), static_cast<void>(remember<0, 4>(x, position))), ...);
  return x;
}
struct Memories {
  constexpr auto operator()(Distributed auto x, Distributed auto position) const {
    return remembered(std::make_integer_sequence<int, 101>{}, x, position);
  }
};
TEST_CASE("a hundred and one memories have names of their own") {
  const Graph built = build<Evaluation<Memories, Tensor<float, Shape<2, 3>>, Tensor<int, Shape<>>>>();
  std::vector<std::string> names = paths_of(built), wanted{"input.0", "input.1", "memory"};
  for (int i = 2; i <= 101; ++i) wanted.push_back("memory" + std::to_string(i));
  CHECK(names == wanted);
}

inline constexpr Axis long_axis{
    "an_axis_that_is_called_by_a_sentence_which_is_longer_than_any_line_that_a_plan_prints_so_that_it_would_be_cut_if_"
    "there_were_no_room_for_it_and_the_line_would_not_end"};
struct OnLongAxis {
  Parameter<float, Shape<16>> gain{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(x * square(gain)); }
};
TEST_CASE("an axis is named whole") {
  const OwnedPlan plan =
      derive<Training<OnLongAxis, AdamW, Tensor<float, Shape<8 / long_axis, 16>>>>(Mesh{long_axis = 2});
  CHECK(has(text(*plan), "computed 2 times on " + std::string(long_axis.text()) + "\n"));
}

TEST_CASE("an object's names have up to 65,535 characters") {
  const std::string long_name(300, 'x');
  const Operation named{.name = long_name};
  Graph graph = build<Step>();
  graph.members[0].path = graph.name({}, {std::string(65'535, 'x')});
  for (Node& n : graph.nodes)
    if (n.operation == &operation::square) n.operation = &named;
  const auto carried = object::Reader(words_of(graph)).program();
  CHECK(carried->graph.members[0].path.size == 65'535);
  CHECK(std::any_of(carried->operations.begin(), carried->operations.end(),
                    [&](const Operation& o) { return o.name == long_name; }));
  graph.members[0].path = graph.name({}, {std::string(65'536, 'x')});
  CHECK_THROWS_WITH_AS(object::Reader(words_of(graph)).program(), "a name has more than 65,535 characters",
                       object::Damaged);
}

struct OfManyBatches {
  Parameter<float, Shape<4>> gain{ones};
  constexpr auto operator()(Distributed auto x) const { return mean(x * square(gain)); }
};
using Batches = Accumulate<32'000, Training<OfManyBatches, AdamW, Tensor<float, Shape<32'000, 4>>>>;

TEST_CASE("an object has up to 32,000 layers or micro-batches, and never another number in their place") {
  const auto words = object::written<Batches>(build<Batches>());
  int most = 0;
  const auto carried = object::Reader({words.begin(), words.end()}).program();
  for (const Region& r : carried->graph.regions) most = std::max(most, r.count);
  CHECK(most == 32'000);
  const auto refused = [](const Graph& graph) {
    CHECK_THROWS_WITH_AS(object::Reader(words_of(graph)).program(), "it has more than 32,000 layers, or micro-batches",
                         object::Damaged);
  };
  for (const int count : {32'001, 65'534, 65'535, 65'536, 65'537, 131'073}) {
    Graph graph = build<Step>();
    graph.members[0].layers = count;
    refused(graph);
    graph = build<Step>();
    graph.values[0].stack = count;
    refused(graph);
  }
}
