// What an object carries of a program: read back, it plans field by field as the compiler did; damaged in any way, it
// is refused in words.
#include <random>

#include <doctest/doctest.h>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>
#include <parallel/object/find_object.hpp>

#include "../tools/planner/dot.hpp"
#include "../tools/planner/json.hpp"
#include "../tools/planner/lock.hpp"
#include "../tools/planner/tree.hpp"
#include "models.hpp"
#include "pipeline_models.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

using Model = models::Gpt<float, models::multiples_of(4)>;
using Step = Training<Model, AdamW, Model::Tokens, Model::Tokens>;
using Micro = Accumulate<2, Step>;
using Staged =
    Accumulate<4, Training<pipelines::Gpt<float>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;
using Again = AllStored<Accumulate<4, Training<pipelines::Gpt<float, pipelines::layers / stage, pipelines::context,
                                                              Recompute<2, Repeat::collectives>>,
                                               AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>,
                        Stored<data>>;
using Chunks = Pipelined<schedules::interleaved<2>, Staged>;
using Apart = Pipelined<schedules::zero_bubble_h1, Staged>;
inline constexpr Schedule mine{"mine", 1, false, false,
                               [](int, int, int micro_batches, int) { return schedules::in_turn(micro_batches, 0); }};
inline constexpr Schedule other_gpipe{
    "gpipe", 1, false, false, [](int, int, int micro_batches, int) { return schedules::in_turn(micro_batches, 0); }};

template <class Program>
std::vector<std::int64_t> words_of() {
  return {std::begin(object::program<Program>.words), std::end(object::program<Program>.words)};
}
Mesh of_its_axes(const object::Carried& program, const Mesh& mesh) {
  Mesh own;
  for (int i = 0; i < mesh.count; ++i)
    own.axes[own.count++] = Extent(program.axis(mesh.axes[i].axis->text()), mesh.axes[i].size);
  own.here = mesh.here;
  return own;
}

template <class Program, Mesh mesh>
void same() {
  constexpr auto& compiled = plan<Program, mesh>;
  const auto words = words_of<Program>();
  const auto carried = object::Reader(words).program();
  const OwnedPlan read = object::derive(*carried, of_its_axes(*carried, mesh));
  CHECK(planner::json(*read, "").dump(1) == planner::json(compiled, "").dump(1));
  CHECK(planner::tree(*read) == planner::tree(compiled));
  REQUIRE(read->storage.size() == compiled.storage.size());
  for (std::size_t v = 0; v < compiled.storage.size(); ++v) {
    const bool alike = read->storage[v] == compiled.storage[v];
    CHECK(alike);
  }
  CHECK(std::equal(read->packing.begin(), read->packing.end(), compiled.packing.begin(), compiled.packing.end()));
}

/// Words whose lengths and checksums are right again, wherever they have been cut.
void seal(std::vector<std::int64_t>& words) {
  const auto size = static_cast<std::int64_t>(words.size());
  words[3] = size;
  words[5] = std::min(words[5], size);
  const std::span<const std::int64_t> all = words;
  const auto end = static_cast<std::size_t>(words[5]);
  words[4] = object::checksum(all.first(end).subspan(object::header));
  words[6] = object::checksum(all.subspan(end));
}
std::string bytes_of(const std::vector<std::int64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), 8 * words.size()};
}

/// Does with a file what tools/plan does. Says whether a plan came out; what is thrown must be a refusal in words.
bool planned(const std::string& file, int ranks, int on_stage = 0) {
  try {
    const object::Found found = object::find(file);
    for (const auto& program : found.programs) {
      Mesh mesh;
      for (const Axis& a : program->axes)
        if (mesh.count < 3) mesh.axes[mesh.count++] = Extent(&a, ranks);
      if (program->graph.stages != nullptr) mesh.here = on_stage % mesh.extent(program->graph.stages);
      const OwnedPlan plan = object::derive(*program, mesh);
      const std::string all =
          planner::tree(*plan) + planner::written({planner::lock_of(*plan, program->name)}) + totals(*plan) +
          planner::dot(*plan) +
          planner::json(*plan, program->name).dump(-1, ' ', false, planner::Json::error_handler_t::replace);
      CHECK(!all.empty());
    }
    return !found.programs.empty();
  } catch (const object::Damaged& refused) {
    CHECK(*refused.what() != 0);
  } catch (const MeshRefused& refused) {
    CHECK(*refused.what() != 0);
  } catch (const std::invalid_argument& refused) {  // a schedule
    CHECK(*refused.what() != 0);
  }
  return false;
}

}  // namespace

TEST_CASE("a program that was read plans as the compiler did") {
  same<Step, Mesh{data = 2, tensor = 2}>();
  same<Step, Mesh{tensor = 4}>();
  same<Micro, Mesh{data = 2, sequence = 2}>();
  CHECK(object::Reader(words_of<Micro>())
            .program()
            ->name.ends_with(", AdamW>>(i32[2, 4/data, 4/sequence], i32[2, 4/data, 4/sequence])"));
}

TEST_CASE("a pipeline that was read plans as the compiler did") {
  same<Staged, Mesh{stage = 4, tensor = 2}>();
  same<Staged, Mesh{stage = 2, data = 2}.on_stage(1)>();
  same<Chunks, Mesh{stage = 2}.on_stage(1)>();
  same<Apart, Mesh{stage = 2}>();
  same<Balanced<Staged>, Mesh{stage = 3}.on_stage(1)>();
  CHECK(object::Reader(words_of<Balanced<Staged>>()).program()->name.starts_with("Balanced<Accumulate<4, "));
  CHECK(object::Reader(words_of<Chunks>())
            .program()
            ->name.starts_with("Pipelined<interleaved<2>, Accumulate<4, Training<"));
}

TEST_CASE("a schedule of the user's own is known by its name only") {
  for (const auto& words : {words_of<Pipelined<mine, Staged>>(), words_of<Pipelined<other_gpipe, Staged>>()}) {
    const auto carried = object::Reader(words).program();
    CHECK_THROWS_WITH_AS(
        object::derive(*carried, Mesh{}),
        doctest::Contains(
            "is a function of its own, which no file carries; only the library's are known here: naive, gpipe, "),
        object::ForeignSchedule);
  }
}

TEST_CASE("the compiler's meshes are carried with their program") {
  const auto& words = object::mesh<Step, Mesh{data = 2, tensor = 2}>.words;
  const object::CarriedMesh mesh = object::Reader(words).mesh();
  CHECK(mesh.program == object::program<Step>.words[4]);
  CHECK(mesh.axes == std::vector<std::pair<std::string, int>>{{"data", 2}, {"tensor", 2}});
  CHECK(mesh.here == 0);
  CHECK(object::Reader(object::mesh<Staged, Mesh{stage = 2, data = 2}.on_stage(1)>.words).mesh().here == 1);
}

TEST_CASE("files") {
  const std::string program = bytes_of(words_of<Step>());
  CHECK(planned("some bytes before " + program + " and behind", 2));
  CHECK(object::find(program + program).programs.size() == 1);
  const auto& mesh = object::mesh<Step, Mesh{data = 2, tensor = 2}>.words;
  const std::string planned_for = bytes_of({std::begin(mesh), std::end(mesh)});
  CHECK(object::find(planned_for + program + planned_for).meshes.size() == 1);
  CHECK(object::find("").programs.empty());
  CHECK(object::find(std::string(1000, 'p')).programs.empty());
  for (std::size_t n = 16; n < program.size(); n += 1 + n / 7) CHECK_FALSE(planned(program.substr(0, n), 2));
}

TEST_CASE("a text that has the magic words in it is passed over, a damaged header is not") {
  const std::string program = bytes_of(words_of<Step>());
  CHECK(object::find("parallel:program, says a text that goes on for a while").programs.empty());
  CHECK(object::find(std::string("parallel:program") + std::string(100, '\0')).programs.empty());
  CHECK(object::find("parallel:program" + program).programs.size() == 1);
  for (std::size_t word = 2; word < object::header; ++word)
    for (int bit = 0; bit < 64; ++bit) {
      std::vector<std::int64_t> words = words_of<Step>();
      words[word] ^= static_cast<std::int64_t>(std::uint64_t{1} << bit);
      CHECK_THROWS_AS(object::find(bytes_of(words)), object::Damaged);
    }
}

TEST_CASE("a name is the same from every compiler") {
  // g++
  for (
      const char* spelled :
      {"W<{anonymous}::Q, <unnamed>::E::b, my::{anonymous}::N<int, P<Q> > >",
       "W<(anonymous namespace)::Q, (anonymous namespace)::E::b, my::(anonymous namespace)::N<int, P<Q>>>",  // clang
       "W<_GLOBAL__N__6c1b_7_a_cu_main::Q, _GLOBAL__N__6c1b_7_a_cu_main::E::b, my::_GLOBAL__N__6c1b_7_a_cu_main::N<int, P<Q> > >"})
    CHECK(object::portable(spelled) == "W<{anonymous}::Q, {anonymous}::E::b, my::{anonymous}::N<int, P<Q>>>");
  for (const char* spelled :
       {"Llama<parallel::models::LlamaSizes{parallel::Dim{16, {(& axes::tensor)}, 1}, 32}, float>",
        "Llama<{{16, {&tensor, nullptr}, 1}, 32}, float>"})
    CHECK(object::portable(spelled) == "Llama<{...}, float>");
  CHECK(object::portable("W<{unclosed") == "W<{...}");
}

TEST_CASE("what is damaged is refused") {
  std::mt19937_64 engine(1);
  const auto random = [&](std::size_t below) { return static_cast<std::size_t>(engine() % below); };
  const std::int64_t odd[] = {-1,
                              0,
                              1,
                              2,
                              3,
                              7,
                              8,
                              16,
                              255,
                              4096,
                              20'000,
                              1 << 20,
                              std::int64_t{1} << 44,
                              std::numeric_limits<std::int64_t>::max(),
                              std::numeric_limits<std::int64_t>::min()};
  int came_out = 0;
  for (const std::vector<std::int64_t>& whole : {words_of<Step>(), words_of<Micro>(), words_of<Staged>(),
                                                 words_of<Again>(), words_of<Chunks>(), words_of<Apart>()})
    for (int i = 0; i < 1000; ++i) {
      std::vector<std::int64_t> words = whole;
      for (std::size_t k = 1 + random(3); k > 0; --k) {
        const std::size_t at = object::header + random(words.size() - object::header);
        switch (random(6)) {
          case 0: words[at] = odd[random(std::size(odd))]; break;
          case 1: words[at] = static_cast<std::int64_t>(static_cast<std::uint64_t>(words[at]) + 1); break;
          case 2: words[at] = static_cast<std::int64_t>(static_cast<std::uint64_t>(words[at]) - 1); break;
          case 3: words[at] = words[object::header + random(words.size() - object::header)]; break;
          case 4: words.erase(words.begin() + static_cast<std::ptrdiff_t>(at)); break;
          default: words[at] ^= std::int64_t{1} << random(63); break;
        }
      }
      seal(words);
      came_out += planned(bytes_of(words), static_cast<int>(1 + random(4)), static_cast<int>(random(4)));
    }
  CHECK(came_out > 50);  // or the damage would only have been seen by the first check
}

TEST_CASE("a damaged pipeline is refused") {
  const std::vector<std::int64_t> whole = words_of<Staged>();
  std::int64_t begin = 0;  // of its schedule's name
  std::memcpy(&begin, "one_forw", 8);
  const auto name = std::find(whole.begin(), whole.end(), begin);
  REQUIRE(name != whole.end());
  const auto at = static_cast<std::size_t>(name - whole.begin());
  const auto said = [&](std::size_t word, std::int64_t becomes) -> std::string {
    std::vector<std::int64_t> words = whole;
    words[word] = becomes;
    seal(words);
    try {
      object::Reader(words).program();
    } catch (const object::Damaged& damaged) {
      return damaged.what();
    }
    return "";
  };
  CHECK(said(at, begin + 1) == "there is no such schedule");
  CHECK(said(at, whole[at]) == "");

  const auto with = [](auto damage) -> std::string {
    Graph graph = build<Staged>();
    Schedule schedule = *graph.schedule;
    graph.schedule = &schedule;
    damage(graph, schedule);
    const Vector<std::int64_t> words = object::written<Staged>(graph);
    try {
      object::Reader({words.data(), static_cast<std::size_t>(words.size())}).program();
    } catch (const object::Damaged& damaged) {
      return damaged.what();
    }
    return "";
  };
  CHECK(with([](Graph&, Schedule&) {}) == "");
  for (const int bad : {0, 65, 65'537})
    CHECK(with([&](Graph&, Schedule& s) { s.chunks = bad; }) == "a number is out of range");
  CHECK(with([](Graph&, Schedule& s) { s.chunks = 2; }) == "its stages have other chunks than their schedule");
  CHECK(with([](Graph& g, Schedule& s) { g.chunks = s.chunks = 2; }) == "an edge has other chunks than its stages");
  CHECK(with([](Graph& g, Schedule&) { g.schedule = nullptr; }) == "");  // as if none were said
  CHECK(with([](Graph& g, Schedule&) { g.stages = nullptr; }) == "there are no stages");
  for (const int bad : {-2, 65'533, 65'534, 1 << 30}) {
    CHECK(with([&](Graph& g, Schedule&) { g.commit = bad; }) == "an index leads nowhere");
    CHECK(with([&](Graph& g, Schedule&) { g.nodes[3].origin = bad; }) == "an index leads nowhere");
    CHECK(with([&](Graph& g, Schedule&) { g.members[0].of = bad; }) == "an index leads nowhere");
    CHECK(with([&](Graph& g, Schedule&) { g.regions[1].parent = bad; }) == "an index leads nowhere");
    CHECK(with([&](Graph& g, Schedule&) { g.order[0] = bad; }) == "an index leads nowhere");
    CHECK(with([&](Graph& g, Schedule&) { g.origins[0].operands[0] = bad; }) == "an index leads nowhere");
  }
  for (const int bad : {0, -1, -5})
    CHECK(with([&](Graph& g, Schedule&) { g.regions[1].count = bad; }) == "a number is out of range");
  for (const int bad : {32'001, 65'535, 1 << 30})
    CHECK(with([&](Graph& g, Schedule&) { g.regions[1].count = bad; }) ==
          "it has more than 32,000 layers, or micro-batches");
}

TEST_CASE("an extent of 0 is refused") {  // slices are counted by dividing by extents
  const std::vector<std::int64_t> whole =
      words_of<Evaluation<models::Mlp<double, 1, 771>, Tensor<double, Shape<3, 771>>>>();
  int extents = 0;
  for (std::size_t at = 4 * object::header; at < 4 * whole.size(); ++at) {
    if ((whole[at / 4] >> (16 * (at % 4)) & 0xffff) != 771 + 1) continue;
    std::vector<std::int64_t> words = whole;
    words[at / 4] -= std::int64_t{771} << (16 * (at % 4));
    seal(words);
    try {
      const auto read = object::Reader(words).program();  // the word is none of an extent
      for (const Value& v : read->graph.values)
        for (const Dim& d : v.type.layout.dims) CHECK(d.size > 0);
    } catch (const object::Damaged& damaged) {
      CHECK(std::string(damaged.what()) == "a dimension is out of range");
      ++extents;
    }
  }
  CHECK(extents > 5);
}

struct Linear {
  Parameter<float, Shape<16, 32>> w;
  Parameter<float, Shape<32>> b;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w) + b)); }
};
TEST_CASE("what the passes rely on of a product and of what is fused with it") {
  // a product, forward with its bias, and backward with its bias's gradient
  const auto said = [](Phase phase, auto damage) -> std::string {
    Graph graph = build<Training<Linear, Sgd, Tensor<float, Shape<8 / data, 16>>>>();
    int damaged = 0;
    for (Node& n : graph.nodes)
      if (n.operation == &operation::matmul && n.phase == phase && n.then >= 0) {
        damage(n);
        ++damaged;
      }
    REQUIRE(damaged == 1);
    try {
      object::check_graph(graph);
    } catch (const object::Damaged& refused) {
      return refused.what();
    }
    CHECK(predict(graph, Mesh{data = 1}, machines::h100).seconds > 0);
    return "";
  };
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    CHECK(said(phase, [](Node&) {}) == "");
    for (const int i : {0, 3})  // a product of the user's own may have any attributes: it is priced without tiles
      for (const std::int64_t other : {-1, 3, 100'000'000})
        CHECK(said(phase, [&](Node& n) { n.ints[i] = other; }) == "");
    CHECK(said(phase, [](Node& n) { n.then = -2; }) == "an index leads nowhere");
    CHECK(said(phase, [](Node& n) { n.then = 1'000'000; }) == "an index leads nowhere");
    for (const int other : {0, 1, 2}) CHECK(said(phase, [&](Node& n) { n.then = other; }) == "a fusion is none");
    for (const Operation* changed : {&operation::adamw, &operation::copy, &operation::move})
      CHECK(said(phase, [&](Node& n) { n.operation = changed; }) == "a fusion is none");
  }
}

/// What is said of a graph that is damaged so.
template <class F>
std::string said_of(Graph graph, F damage) {
  damage(graph);
  try {
    object::check_graph(graph);
  } catch (const object::Damaged& damaged) {
    return damaged.what();
  }
  return "";
}
TEST_CASE("what is needed beside nodes exists") {
  const Graph whole = build<Staged>();
  const auto said = [&](auto damage) { return said_of(whole, damage); };
  REQUIRE((!whole.carries.empty() && !whole.stacks.empty() && !whole.outputs.empty()));
  CHECK(said([](Graph&) {}) == "");
  const std::string nowhere = "an index leads nowhere";
  CHECK(said([](Graph& g) { g.carries[0].initial = -1; }) == nowhere);
  CHECK(said([](Graph& g) { g.carries[0].returned = -1; }) == nowhere);
  CHECK(said([](Graph& g) { g.stacks[0].inside = -1; }) == nowhere);
  CHECK(said([](Graph& g) { g.outputs[0].value = -1; }) == nowhere);
  CHECK(said([](Graph& g) { g.order.erase(g.order.size() / 2); }) != "");  // what others read
}

TEST_CASE("what the passes rely on of a pipeline") {
  const Graph whole = build<Staged>();
  const auto said = [&](auto damage) { return said_of(whole, damage); };
  const auto region = [](Graph& g, RegionKind kind, bool reversed = false) -> Region& {
    for (Region& r : g.regions)
      if (r.kind == kind && r.reversed == reversed) return r;
    return g.regions[0];
  };
  const auto edge = [](Graph& g, int along, Collective collective) -> Transition& {
    for (Node& n : g.nodes)
      if (n.transition.along == along && n.transition.collective == collective) return n.transition;
    return g.nodes[0].transition;
  };
  const auto move = [](Graph& g, bool staged, bool along) -> Node& {
    for (Node& n : g.nodes)
      if (!n.transition.axes.empty() && n.transition.axes.contains(g.stages) == staged &&
          (n.transition.along != 0) == along)
        return n;
    return g.nodes[0];
  };
  CHECK(said([](Graph&) {}) == "");
  CHECK(said([](Graph& g) { g.stages = nullptr; }) == "there are no stages");
  CHECK(said([&](Graph& g) { region(g, RegionKind::micro_batches).kind = RegionKind::layers; }) ==
        "layers on stages stand outside the loop over micro-batches");
  CHECK(said([&](Graph& g) { region(g, RegionKind::layers).kind = RegionKind::micro_batches; }) ==
        "stages do not share one loop over micro-batches");
  CHECK(said([&](Graph& g) { region(g, RegionKind::micro_batches).staged = true; }) ==
        "layers on stages stand outside the loop over micro-batches");
  CHECK(said([&](Graph& g) { region(g, RegionKind::layers, true).reversed = false; }) ==
        "there are two loops over stages");
  CHECK(said([&](Graph& g) {
          for (Stack& s : g.stacks) g.values[s.outside].type.layout.dims[0].count = 0;
          for (Member& m : g.members) m.type = g.values[m.value].type;
        }) == "layers on stages are not shared out");
  CHECK(said([&](Graph& g) { move(g, false, false).transition.along = 1; }) == "an edge between stages is none");
  CHECK(said([&](Graph& g) { edge(g, 1, Collective::send).collective = Collective::all_reduce; }) ==
        "an edge between stages is none");
  CHECK(said([&](Graph& g) { edge(g, 1, Collective::send).axes = {&tensor}; }) == "an edge between stages is none");
  CHECK(said([&](Graph& g) { move(g, true, true).operands.push_back(0); }) == "an edge between stages is none");
  CHECK(said([&](Graph& g) { edge(g, -1, Collective::send).along = 1; }) ==
        "an edge between stages stands there twice");
  CHECK(said([&](Graph& g) { edge(g, 1, Collective::receive).along = 0; }) == "an edge between stages has one end");
  CHECK(said([&](Graph& g) { move(g, true, false).transition.among = At<1>; }) == "a move is made among no ranks");
  CHECK(said([&](Graph& g) { move(g, true, false).transition.among = Split<0>; }) == "a move is made among no ranks");
  CHECK(said([&](Graph& g) { move(g, false, false).transition.among = At<0>; }) == "a move is made among no ranks");
  CHECK(said([&](Graph& g) { g.chunks = 500; }) == "its stages have too many chunks");
}
