// The memory of a rank over a step, by use and by member: at every event the kinds add up to what lives, the most of
// it is the peak, and what an event touches lies in what lives then. On every program, mesh and stage, and in runs whose
// kernels note where they read and write.
#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/question/moment.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/parameters.hpp>

#include "every_program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

/// What an event reads or writes; of a loop that begins or ends, what it hands on.
template <class F>
void each_touched(const Plan& plan, const Event& e, F f) {
  const GraphView& g = plan.graph;
  if (e.kind == EventKind::begin) {
    for (const Carry& c : g.carries)
      if (c.region == g.node(e.node).region) f(c.initial), f(c.inside);
  } else if (e.kind != EventKind::end) {
    each_node(g, e, [&](int n) {
      for (const int o : g.node(n).operands) f(o);
      for (int r = 0; r < g.node(n).results; ++r) f(g.node(n).result + r);
    });
  }
}

struct Checker {
  const Plan& plan;
  Vector<Moment> all = moments(plan);
  Vector<Allocation> living = allocations(plan), on_its_host = allocations(plan, true);

  std::int64_t at_rest_by_members(Role role) const {
    std::int64_t bytes = 0;
    for (const Member& m : plan.graph.members)
      if (m.role == role && !on_host(m.type.layout) &&
          plan.storage[static_cast<std::size_t>(m.value)].block != MemoryBlock::none)
        bytes += aligned(local_bytes(m.type, plan.mesh));
    return bytes;
  }
  bool lives(int value, int event) const {
    const Storage& s = plan.storage[static_cast<std::size_t>(value)];
    if (s.block != MemoryBlock::arena && s.block != MemoryBlock::host_arena) return true;
    const std::int64_t end = s.offset + local_bytes(plan.graph.value(value).type, plan.mesh);
    for (const Allocation& a : s.block == MemoryBlock::arena ? living : on_its_host)
      if (a.first <= event && event <= a.last && a.offset <= s.offset && end <= a.offset + a.bytes) return true;
    return false;
  }
  void sums() const {
    REQUIRE(all.size() == static_cast<int>(plan.events.size()) + 1);
    std::int64_t most = 0, fullest_bytes = 0;
    for (const Moment& m : all) {
      CAPTURE(m.event);
      std::int64_t by_use[uses]{}, in_arena = 0, highest = 0;
      for (const Allocation& a : living)
        if (a.first <= m.event && m.event <= a.last) {
          by_use[static_cast<int>(a.use)] += a.bytes;
          in_arena += a.bytes;
          highest = std::max(highest, a.offset + a.bytes);
        }
      by_use[static_cast<int>(Use::parameters)] += at_rest_by_members(Role::parameter);
      by_use[static_cast<int>(Use::optimizer_state)] += at_rest_by_members(Role::state);
      by_use[static_cast<int>(Use::inputs)] += at_rest_by_members(Role::input);
      std::int64_t together = plan.memory.blocks[static_cast<int>(MemoryBlock::scalars)];
      for (int u = 0; u < uses; ++u) {
        CHECK(m.by_use[u] == by_use[u]);
        together += by_use[u];
      }
      CHECK(m.bytes() == together);
      CHECK(m.gaps() == highest - in_arena);
      CHECK(m.gaps() >= 0);
      CHECK(m.with_gaps() == plan.peak_memory() - plan.memory.arena + highest);
      const Moment one = moment(plan, living, m.event);
      CHECK(one.with_gaps() == m.with_gaps());
      std::int64_t charged_by_use[uses]{};
      for (const Charge& c : charges(plan, living, m.event)) {
        CHECK(c.bytes >= 0);
        charged_by_use[static_cast<int>(c.use)] += c.bytes;
      }
      for (int u = 0; u < uses; ++u) CHECK(charged_by_use[u] == m.by_use[u]);
      CHECK(scratch(plan, m.event) <= plan.scratch().bytes());
      most = std::max(most, m.with_gaps());
      fullest_bytes = std::max(fullest_bytes, m.bytes());
    }
    CHECK(most == plan.peak_memory());
    CHECK(fullest(plan).bytes() == fullest_bytes);
    std::int64_t of_phases = at_rest(plan).bytes();
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
      of_phases = std::max(of_phases, fullest(plan, phase).bytes());
    CHECK(std::max(of_phases, all.back().bytes()) == fullest_bytes);
  }
  /// Nothing that lives at one time shares room, and every event finds in it what it reads and writes.
  void places() const {
    for (const Moment& m : all) {
      CAPTURE(m.event);
      for (const Vector<Allocation>* memory : {&living, &on_its_host})
        for (const Allocation& a : *memory)
          for (const Allocation& b : *memory)
            if (&a < &b && a.first <= m.event && m.event <= a.last && b.first <= m.event && m.event <= b.last)
              CHECK((a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset));
      if (m.event < static_cast<int>(plan.events.size()))
        each_touched(plan, plan.events[static_cast<std::size_t>(m.event)],
                     [&](int value) { CHECK(lives(value, m.event)); });
      else
        for (const Output& o : plan.graph.outputs) CHECK(lives(o.value, m.event));
    }
  }
};

/// What is charged to a member over a step, and the phases, as constants.
struct Model {
  Parameter<float, Shape<16, 64 / tensor>> up{normal(0.3)};
  Parameter<float, Shape<64 / tensor, 16>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(gelu(matmul(x, up)), down))); }
};
using Step = Training<Model, AdamW, Tensor<float, Shape<32 / data, 16>>>;
constexpr auto& model = plan<Step, Mesh{data = 2, tensor = 2}>;
constexpr std::int64_t most_with_gaps(const Plan& p) {
  std::int64_t most = 0;
  for (const Moment& m : moments(p)) most = m.with_gaps() > most ? m.with_gaps() : most;
  return most;
}
static_assert(most_with_gaps(model) == model.peak_memory());
static_assert(fullest(model).bytes() <= model.peak_memory());
static_assert(fullest(model, Phase::forward).of(Use::gradients) == 0);
static_assert(fullest(model, Phase::optimizer).of(Use::gradients) == 2 * 16 * 32 * 4);
static_assert(at_rest(model).of(Use::parameters) == 2 * 16 * 32 * 4);
static_assert(at_rest(model).of(Use::optimizer_state) == 2 * 2 * 16 * 32 * 4);
static_assert(at_rest(model).of(Use::inputs) == 16 * 16 * 4);
// one parameter and its two states, and nothing that was made of it; at the end the loss is
static_assert(charged(model, "down", 0) == 3 * 16 * 32 * 4);
static_assert(charged(model, "down", static_cast<int>(model.events.size())) == 3 * 16 * 32 * 4 + alignment);
static_assert(charged(model, "up", fullest(model, Phase::optimizer).event) >= 4 * 16 * 32 * 4);

/// Gathered where they are used, parameters are parameters in use, not something that is computed.
using Stored3 = AllStored<Step, Stored<data>>;
constexpr auto& stored_model = plan<Stored3, Mesh{data = 2, tensor = 2}>;
static_assert(at_rest(stored_model).of(Use::parameters) == 16 * 32 * 4);
static_assert(fullest(stored_model, Phase::forward).of(Use::parameters_in_use) >= 16 * 32 * 4);

/// The CPU, whose kernels note what they read and write.
struct Noted {
  const Operation* operation = nullptr;
  List<View, max_node_operands> operands{};
  List<View, max_results> results{};
};
class Noting : public Cpu {
 public:
  Kernel kernel(const Operation& operation, Call& call) const {
    const Kernel found = Cpu::kernel(operation, call);
    if (found == nullptr) return nullptr;
    call.context = &contexts_->emplace_back(Context{found, {}, call.context, all.get()});
    return [](const Call& c) {
      const auto& kept = *static_cast<const Context*>(c.context);
      kept.noted->push_back({c.operation, c.operands, c.results});
      Call inner = c;
      inner.context = kept.context;
      kept.kernel(inner);
    };
  }
  FusedKernel fused(std::span<Call> calls) const {
    const FusedKernel found = Cpu::fused(calls);
    if (!found) return {};
    calls[0].context = &contexts_->emplace_back(Context{nullptr, found, calls[0].context, all.get()});
    return {[](std::span<const Call> together) {
      const auto& kept = *static_cast<const Context*>(together[0].context);
      for (const Call& c : together) kept.noted->push_back({c.operation, c.operands, c.results});
      std::vector<Call> inner(together.begin(), together.end());
      inner[0].context = kept.context;
      kept.fused.compute(inner);
    }};
  }
  std::shared_ptr<std::vector<Noted>> all = std::make_shared<std::vector<Noted>>();

 private:
  struct Context {
    Kernel kernel;
    FusedKernel fused;
    void* context;
    std::vector<Noted>* noted;
  };
  std::shared_ptr<std::deque<Context>> contexts_ = std::make_shared<std::deque<Context>>();
};

/// What kernels of one step have noted, beside the plan.
struct NotedStep {
  const Plan& plan;
  const std::vector<Noted>& noted;
  int unmatched = 0, outside = 0, in_arena = 0, above = 0;
  std::int64_t most = 0;  ///< bytes of the arena that were written before and are read later, at one time

  void check() {
    // each call is the next node of the step that has a kernel
    std::vector<std::pair<int, int>> nodes;  // event, node
    each_event(plan, [&](const Event& e) {
      if (e.kind == EventKind::compute)
        each_node(plan.graph, e, [&](int n) { nodes.emplace_back(static_cast<int>(&e - plan.events.data()), n); });
    });
    std::vector<std::pair<int, int>> of_call;
    std::size_t at = 0;
    for (const Noted& n : noted) {
      while (at < nodes.size() && plan.graph.node(nodes[at].second).operation != n.operation) ++at;
      if (at == nodes.size()) {
        unmatched += 1;
        return;
      }
      of_call.push_back(nodes[at++]);
    }
    const std::byte* base = nullptr;
    for (std::size_t c = 0; c < noted.size(); ++c) {
      const Node& node = plan.graph.node(of_call[c].second);
      const Storage& s = plan.storage[static_cast<std::size_t>(int{node.result})];
      if (s.block != MemoryBlock::arena || s.stride != 0 || s.lane != 0) continue;
      const std::byte* const here = static_cast<const std::byte*>(noted[c].results[0].data) - s.offset;
      if (base == nullptr) base = here;
      unmatched += base != here;
    }
    const Vector<Allocation> living = allocations(plan);
    const Vector<Moment> all = moments(plan);
    const auto arena = static_cast<std::size_t>(plan.memory.arena);
    std::vector<int> touched(arena, -1);  // per byte, the call that touched it last
    std::vector<std::int64_t> alive(noted.size() + 1, 0);
    for (std::size_t c = 0; c < noted.size(); ++c) {
      const int event = of_call[c].first;
      const auto look = [&](const View& v, bool reads) {
        const std::int64_t from = static_cast<const std::byte*>(v.data) - base,
                           end = from + static_cast<std::int64_t>(v.bytes());
        if (from < 0 || from >= plan.memory.arena) return;
        ++in_arena;
        bool found = false;
        for (const Allocation& a : living)
          found = found || (a.first <= event && event <= a.last && a.offset <= from && end <= a.offset + a.bytes);
        outside += !found;
        for (std::int64_t b = from; b < end && b < plan.memory.arena; ++b) {
          int& last = touched[static_cast<std::size_t>(b)];
          if (reads && last >= 0) {  // behind that call until behind this one
            alive[static_cast<std::size_t>(last) + 1] += 1;
            alive[c + 1] -= 1;
          }
          last = static_cast<int>(c);
        }
      };
      for (const View& v : noted[c].operands) look(v, true);
      for (const View& v : noted[c].results) look(v, false);
    }
    std::int64_t now = 0;
    for (std::size_t c = 0; c < noted.size(); ++c) {
      now += alive[c];
      most = std::max(most, now);
      above += now > all[of_call[c].first].living;
    }
  }
};

}  // namespace

TEST_CASE("what the kernels of a step read and write lies in what lives then") {
  int runs = 0;
  const auto run = [&](const char* name, const Graph& graph, const Mesh& mesh) {
    std::mutex lock;
    run_threads(mesh.ranks(), [&](Threads& world) {
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      Parameters parameters(plan, world.rank(), 1);
      const Noting device;
      Executor<Threads, Noting> executor(plan, world, parameters, device);
      int i = 0;
      for (const Member& m : plan->graph.members)
        if (m.role == Role::input) {
          const View v = executor.input(i++);
          if (v.data != nullptr) std::fill_n(v.as<std::byte>(), v.bytes(), std::byte{0});
        }
      for (const char* scalar : {"seed", "step", "temperature", "learning_rate"})
        if (executor.reads(scalar)) executor.scalar(scalar, 1);
      executor.run();
      NotedStep step{*plan, *device.all};
      step.check();
      const std::lock_guard hold(lock);
      CAPTURE(name);
      CHECK(device.all->size() > 0);
      CHECK(step.unmatched == 0);
      CHECK(step.outside == 0);
      CHECK(step.in_arena > 0);
      // exchanges, and loops that hand on, write what no kernel notes
      if (mesh.ranks() == 1 && graph.regions.size() == 1) {
        CHECK(step.above == 0);
        CHECK(2 * step.most > plan->memory.arena);
      }
      ++runs;
    });
  };
  run("model", build<Step>(), Mesh{});
  run("model", build<Step>(), Mesh{data = 2, tensor = 2});
  run("nested", build<every::NestedStep<every::Statements::nested>>(), Mesh{});
  run("stored", build<Stored3>(), Mesh{data = 2, tensor = 2});
  run("gpt", build<Training<every::Gpt, AdamW, every::Gpt::Tokens, every::Gpt::Tokens>>(), Mesh{data = 2});
  run("llama", build<Accumulate<2, Training<parallel::models::Llama<every::llama>, AdamW, every::Text, every::Text>>>(),
      Mesh{data = 2, tensor = 2});
  run("computed again", build<Training<every::Outside<Recompute<2, Repeat::collectives>>, Sgd, every::X>>(),
      Mesh{data = 2});
  CHECK(runs == 1 + 4 + 1 + 4 + 2 + 4 + 2);
}

TEST_CASE("at every event of every program the kinds add up to what lives") {
  int plans = 0;
  every::program([&]<class Program>(const char* name) {
    CAPTURE(name);
    for (const Mesh& mesh :
         {Mesh{}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}, Mesh{data = 4}, Mesh{stage = 2},
          Mesh{data = 2, stage = 2}, Mesh{tensor = 2, stage = 2}, Mesh{sequence = 4}, Mesh{data = 2, sequence = 2}})
      for (int k = 0; k < mesh.extent(&stage); ++k) try {
          const OwnedPlan p = derive<Program>(mesh.on_stage(k));
          const std::string on = text(mesh);
          CAPTURE(on);
          CAPTURE(k);
          const Checker checker{*p};
          checker.sums();
          checker.places();
          ++plans;
        } catch (const MeshRefused&) {
        }
  });
  CHECK(plans >= 50);
}
