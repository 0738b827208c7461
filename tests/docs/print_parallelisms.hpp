// The tables, plans and pictures of docs/parallelism, from the rungs of the ladder (ladder.hpp).
#pragma once
#include <parallel/cost/published_machines.hpp>
#include <parallel/cost/simulate.hpp>

#include "../../tools/planner/picture.hpp"
#include "blocks.hpp"
#include "ladder.hpp"

namespace parallelisms {
using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

inline std::string size(double bytes) { return printing::bytes(bytes); }
inline std::string size(std::int64_t bytes) { return size(static_cast<double>(bytes)); }

/// The plans of all stages of a program, and the largest of a figure among them.
template <class Step>
std::vector<OwnedPlan> stages_of(const Mesh& mesh) {
  std::vector<OwnedPlan> plans;
  for (int s = 0; s < mesh.extent(&stage); ++s) plans.push_back(derive<Step>(mesh.on_stage(s)));
  return plans;
}
template <class F>
auto most(const std::vector<OwnedPlan>& plans, F figure) {
  auto n = figure(*plans[0]);
  for (const OwnedPlan& plan : plans) n = std::max(n, figure(*plan));
  return n;
}
/// "4, 3, 2, 1": a figure of each stage.
template <class F>
std::string each(const std::vector<OwnedPlan>& plans, F figure) {
  std::string words;
  for (const OwnedPlan& plan : plans) words += (words.empty() ? "" : ", ") + figure(*plan);
  return words;
}
template <class Step>
Timing timing(int stages, int micro_batches = Step::micro_batches) {
  return timed(*schedule_of<Step>(), stages, micro_batches);
}
inline std::string percent(double share) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.3g %%", 100 * share);
  return buffer;
}

// All rungs beside each other
// -----------------------------------------------------------------------------------------------------------

/// `Whole`: the same model on one rank.
template <class Step, class Whole = one_rank::Step>
void print_rung(const char* name, const Mesh& mesh) {
  const std::vector<OwnedPlan> plans = stages_of<Step>(mesh);
  static const double whole = derive<Whole>(Mesh{})->flops();
  std::printf("| %s | %s | %s | %s | %lld | %s | %s | %s | %s |\n", name, text(mesh).c_str(),
              percent(most(plans, [](const Plan& p) { return p.flops(); }) / whole).c_str(),
              size(most(plans, [](const Plan& p) { return p.sent(); })).c_str(),
              static_cast<long long>(most(plans, [](const Plan& p) { return p.calls(); })),
              size(most(plans, [](const Plan& p) { return p.memory.of(Use::parameters); })).c_str(),
              size(most(plans, [](const Plan& p) { return p.memory.of(Use::activations); })).c_str(),
              size(most(plans, [](const Plan& p) { return p.peak_memory(); })).c_str(),
              percent(timing<Step>(mesh.extent(&stage)).bubble()).c_str());
}
inline void print_rungs() {
  blocks::begin("parallelisms");
  std::puts(
      "| rung | mesh | work | sent | calls | parameters | activations | peak memory | waits |\n|---|---|---|---|---|---|---|---|---|");
  print_rung<one_rank::Step>("one rank", one_rank::mesh);
  print_rung<inter_layer::Step>("[inter-layer](inter-layer.md)", inter_layer::mesh);
  print_rung<pipelined::Step>("[pipeline](pipeline.md)", pipelined::mesh);
  print_rung<data_parallel::Step>("[data](data.md)", data_parallel::mesh);
  print_rung<tensor_parallel::Step>("[tensor](tensor.md)", tensor_parallel::mesh);
  print_rung<sequence_parallel::Step>("[sequence](sequence.md)", sequence_parallel::mesh);
  print_rung<hybrid::Step>("[hybrid](hybrid.md)", hybrid::mesh);
  print_rung<stored_split::Step>("[data, stored split](zero.md)", stored_split::mesh);
  print_rung<served::Step>("[a parameter server](servers.md)", served::mesh);
  using Attends = context_parallel::Step;
  print_rung<Attends, Attends>("with attention, one rank", Mesh{});
  print_rung<Attends, Attends>("[context](context.md)", context_parallel::mesh);
  print_rung<in_two_dimensions::Step>("[two dimensions](grids.md)", in_two_dimensions::mesh);
  print_rung<in_three_dimensions::Step>("[three dimensions](grids.md)", in_three_dimensions::mesh);
  print_rung<served_ahead::Step>("[a server that is not waited for](servers.md)", served_ahead::mesh);
}

// Pictures and plans
// --------------------------------------------------------------------------------------------------------------------

/// How members lie, one picture below the other.
inline void print_members(const std::string& name, const Plan& plan, std::initializer_list<std::string_view> paths) {
  std::string words;
  for (const std::string_view path : paths)
    for (const Member& m : plan.graph.members)
      if (m.role != Role::state && plan.graph.path(m) == path)
        words += (words.empty() ? "" : "\n") + std::string(path) + "  " + planner::picture(m.type, plan.mesh);
  blocks::print_block(name, words);
}
inline void print_plans() {
  const auto on = [](const OwnedPlan& plan) -> const Plan& { return *plan; };
  const std::vector<OwnedPlan> inter = stages_of<inter_layer::Step>(inter_layer::mesh),
                               pipe = stages_of<pipelined::Step>(pipelined::mesh);
  blocks::print_block("ladder inter-layer order",
                      ladder::order(*schedule_of<inter_layer::Step>(), 4, inter_layer::Step::micro_batches));
  print_members("ladder inter-layer members", *inter[0], {"in", "blocks.*.up"});
  blocks::print_collectives("ladder inter-layer", *inter[1]);
  blocks::print_block("ladder pipeline order",
                      ladder::order(*schedule_of<pipelined::Step>(), 4, pipelined::Step::micro_batches));
  blocks::print_block("ladder pipeline gpipe", ladder::order(*schedule_of<beside_the_ladder::Later>(), 4,
                                                             beside_the_ladder::Later::micro_batches));
  blocks::print_collectives("ladder pipeline", *pipe[1]);

  const OwnedPlan data_plan = derive<data_parallel::Step>(data_parallel::mesh),
                  tensor_plan = derive<tensor_parallel::Step>(tensor_parallel::mesh),
                  sequence_plan = derive<sequence_parallel::Step>(sequence_parallel::mesh),
                  accumulated = derive<beside_the_ladder::Accumulated>(data_parallel::mesh);
  print_members("ladder data members", on(data_plan), {"input.0", "blocks.*.up"});
  blocks::print_collectives("ladder data", data_plan);
  blocks::print_collectives("ladder data accumulated", accumulated);
  print_members("ladder tensor members", tensor_plan, {"blocks.*.up", "blocks.*.down", "blocks.*.gain"});
  blocks::print_collectives("ladder tensor", tensor_plan, true);
  print_members("ladder sequence members", sequence_plan, {"input.0"});
  blocks::print_collectives("ladder sequence", sequence_plan);

  const std::vector<OwnedPlan> both = stages_of<hybrid::Step>(hybrid::mesh);
  print_members("ladder hybrid members", *both[0], {"blocks.*.up"});
  blocks::print_collectives("ladder hybrid", *both[0]);
}

// Costs
// ---------------------------------------------------------------------------------------------------------------------------------

/// Rung 3 by a schedule: how long its stages wait, and what they hold.
template <class Step>
void print_schedule() {
  const std::vector<OwnedPlan> plans = stages_of<Step>(pipelined::mesh);
  const auto activations = [](const Plan& p) { return size(p.memory.of(Use::activations)); };
  std::printf("| `%s%s` | %s | %s | %s | %s |\n", std::string(schedule_of<Step>()->name).c_str(),
              schedule_of<Step>()->chunks > 1 ? "<2>" : "", percent(timing<Step>(4).bubble_over_ideal()).c_str(),
              each(plans, activations).c_str(),
              size(most(plans, [](const Plan& p) { return p.peak_memory(); })).c_str(),
              size(most(plans, [](const Plan& p) { return p.sent(); })).c_str());
}
inline void print_schedules() {
  using namespace beside_the_ladder;
  blocks::begin("ladder schedules");
  std::puts(
      "| schedule | waits, of the time that it works | activations of stages 0, 1, 2, 3 | most memory | most sent |\n|---|---|---|---|---|");
  print_schedule<By<schedules::naive>>();
  print_schedule<By<schedules::gpipe>>();
  print_schedule<By<schedules::one_forward_one_backward>>();
  print_schedule<By<schedules::interleaved<2>>>();
  print_schedule<By<schedules::zero_bubble_h1>>();
  print_schedule<By<schedules::zero_bubble_h2>>();
  print_schedule<By<schedules::pipedream>>();
}
inline void print_bubbles() {
  blocks::begin("ladder bubbles");
  std::puts("| micro-batches | 1 | 2 | 4 | 8 | 16 | 32 |\n|---|---|---|---|---|---|---|");
  for (const int stages : {2, 4, 8}) {
    std::printf("| %d stages |", stages);
    for (const int m : {1, 2, 4, 8, 16, 32})
      std::printf(" %s |", percent(timing<pipelined::Step>(stages, m).bubble()).c_str());
    std::puts("");
  }
}

inline void print_storage(const char* name, const Plan& once, const Plan& four) {
  std::printf("| %s | %s | %s | %s | %s | %s | %s |\n", name, size(once.memory.of(Use::parameters)).c_str(),
              size(once.memory.of(Use::gradients)).c_str(), size(once.memory.of(Use::optimizer_state)).c_str(),
              size(once.peak_memory()).c_str(), size(once.sent(data)).c_str(), size(four.sent(data)).c_str());
}
template <class... Annotation>
void print_storage(const char* name) {
  using beside_the_ladder::Accumulated;
  print_storage(name, derive<AllStored<data_parallel::Step, Annotation...>>(data_parallel::mesh),
                derive<AllStored<Accumulated, Annotation...>>(data_parallel::mesh));
}
inline void print_stored() {
  blocks::begin("ladder stored");
  std::puts(
      "| rung 4, all stored | parameters | gradients | optimizer state | peak memory | sent | in four micro-batches |\n|---|---|---|---|---|---|---|");
  print_storage("whole");
  print_storage<Stored<data, Zero::states>>("`Stored<data, Zero::states>`");
  print_storage<Stored<data, Zero::gradients>>("`Stored<data, Zero::gradients>`");
  print_storage<Stored<data>>("`Stored<data>`");
  print_storage<Stored<data, Gathered::per_pass>>("`Stored<data, Gathered::per_pass>`");
  print_storage<Stored<data, Gathered::per_step>>("`Stored<data, Gathered::per_step>`");
  blocks::print_collectives("ladder zero", derive<beside_the_ladder::Sharded>(data_parallel::mesh));
}

/// What goes through the link of rank 0, and of the others the one that has most.
template <class Step>
void print_links(const char* name) {
  std::printf("| %s |", name);
  for (const int ranks : {4, 16, 64}) {
    const OwnedPlan plan = derive<Step>(Mesh{data = ranks});
    const Traffic server = plan->link(data, 0);
    double most = 0;
    for (int r = 1; r < ranks; ++r) most = std::max(most, plan->link(data, r).sent + plan->link(data, r).received);
    std::printf(" %s | %s |", size(server.sent + server.received).c_str(), size(most).c_str());
  }
  std::puts("");
}
/// Layers of which it shows where their parameters lie.
struct LargeModel {
  struct Block {
    Parameter<float, Shape<1024, 4096>> up{normal(0.02)};
    Parameter<float, Shape<4096, 1024>> down{normal(0.02)};
    constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
  };
  Layers<8, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
};
template <class Optimizer, class... Word>
void print_waiting(const char* name) {
  using Rows = Tensor<float, Shape<65536 / data, 1024>>;
  const OwnedPlan plan = derive<AllStored<Training<LargeModel, Optimizer, Rows, Rows>, Word...>>(Mesh{data = 4});
  const Simulation step = simulate(*plan, machines::dgx_a100);
  double waits = 0;
  for (const double seconds : step.exposed) waits += seconds;
  std::printf("| %s | %.0f ms | %.0f ms | %s | %s | %s |\n", name, 1e3 * step.seconds, 1e3 * waits,
              size(plan->link(data, 0).sent).c_str(), size(plan->memory.of(Use::optimizer_state)).c_str(),
              size(plan->peak_memory()).c_str());
}
inline void print_stale() {
  blocks::print_collectives("ladder stale", beside_the_ladder::a_step_ahead::ahead, true);
  blocks::begin("ladder stale");
  std::puts(
      "| | step | of it waiting | out of the server's link | optimizer state of the server | its peak memory |\n|---|---|---|---|---|---|");
  print_waiting<AdamW, Stored<data, At<0>>>("`AdamW`, `Stored<data, At<0>>`");
  print_waiting<Stale<1, AdamW>, Stored<data, At<0>>>("`Stale<1, AdamW>`, `Stored<data, At<0>>`");
  print_waiting<AdamW, Stored<data, At<0>, Zero::states>>("`AdamW`, `Stored<data, At<0>, Zero::states>`");
  print_waiting<Stale<1, AdamW>, Stored<data, At<0>, Zero::states>>(
      "`Stale<1, AdamW>`, `Stored<data, At<0>, Zero::states>`");
  print_waiting<Stale<2, AdamW>, Stored<data, At<0>, Zero::states>>(
      "`Stale<2, AdamW>`, `Stored<data, At<0>, Zero::states>`");
  print_waiting<AdamW, Stored<data, Zero::states>>("`AdamW`, `Stored<data, Zero::states>`");
  print_waiting<Stale<1, AdamW>, Stored<data, Zero::states>>("`Stale<1, AdamW>`, `Stored<data, Zero::states>`");
}
/// Rung 4 for so many examples that 64 ranks divide them.
template <class Model, class... Word>
using ForMany =
    AllStored<Training<Model, AdamW, Tensor<float, Shape<64 / data, 8, 16>>, Tensor<float, Shape<64 / data, 8, 16>>>,
              Word...>;
inline void print_servers() {
  using data_parallel::Model;
  blocks::print_collectives("ladder servers", derive<served::Step>(served::mesh), true);
  blocks::begin("ladder servers links");
  std::puts(
      "| | rank 0 of 4 | most of the others | rank 0 of 16 | most of the others | rank 0 of 64 | most of the others |\n|---|---|---|---|---|---|---|");
  print_links<ForMany<Model>>("all-reduced, rung 4");
  print_links<ForMany<Model, Stored<data>>>("`Stored<data>`");
  print_links<ForMany<Model, Stored<data, At<0>>>>("`Stored<data, At<0>>`");
  print_links<ForMany<Model, Stored<data, At<0>, Gathered::per_pass>>>("`Stored<data, At<0>, Gathered::per_pass>`");
  print_links<ForMany<beside_the_ladder::SpreadModel>>("four servers, a matrix of each layer at one");
}

/// What a rank sends of queries, keys, values, the result and their gradients: what is not the loss.
inline std::string sent_of_attention(const Communication& phase) {
  return size(phase.sent() - phase.sent(all_reduce(sequence)));
}
template <class Step>
void print_volume(const char* name) {
  std::printf("| %s |", name);
  for (const int n : {2, 4, 8}) {
    const OwnedPlan p = derive<Step>(Mesh{sequence = n});
    std::printf(" %s | %s |", sent_of_attention(p->forward).c_str(), sent_of_attention(p->backward).c_str());
  }
  std::puts("");
}
template <class Step>
void print_peak(const char* name) {
  std::printf("| %s |", name);
  for (const int n : {1, 2, 4, 8}) {
    const OwnedPlan p = derive<Step>(Mesh{sequence = n});
    std::printf(" %s |", size(p->peak_memory()).c_str());
  }
  std::puts("");
}
inline void print_context() {
  using beside_the_ladder::Attending;
  const OwnedPlan plan = derive<context_parallel::Step>(context_parallel::mesh);
  print_members("ladder context members", plan, {"input.0"});
  blocks::print_collectives("ladder context", plan);
  blocks::begin("context volumes");
  std::puts(
      "| a rank sends | 2 ranks, forward | backward | 4 ranks, forward | backward | 8 ranks, forward | backward |\n|---|---|---|---|---|---|---|");
  print_volume<Attending<Context::gathered>>("`Context::gathered`");
  print_volume<Attending<Context::ring>>("`Context::ring`");
  print_volume<Attending<Context::ulysses>>("`Context::ulysses`");
  print_volume<Attending<Context::ring, 1>>("`Context::ring`, one key head");
  blocks::begin("context memory");
  std::puts("| peak memory | 1 rank | 2 ranks | 4 ranks | 8 ranks |\n|---|---|---|---|---|");
  print_peak<Attending<Context::gathered>>("`Context::gathered`");
  print_peak<Attending<Context::ring>>("`Context::ring`");
  print_peak<Attending<Context::ulysses>>("`Context::ulysses`");
}

/// The same rung on one, two, four and eight ranks.
template <class Step>
void print_ranks(const char* name, const Axis& axis) {
  blocks::begin(name);
  std::puts("| ranks | sent | calls | parameters | activations | peak memory |\n|---|---|---|---|---|---|");
  for (const int n : {1, 2, 4, 8}) {
    const OwnedPlan p = derive<Step>(Mesh{axis = n});
    std::printf("| %d | %s | %lld | %s | %s | %s |\n", n, size(p->sent()).c_str(), static_cast<long long>(p->calls()),
                size(p->memory.of(Use::parameters)).c_str(), size(p->memory.of(Use::activations)).c_str(),
                size(p->peak_memory()).c_str());
  }
}

/// Eight ranks in every way that rung 7 can take them.
inline void print_meshes() {
  blocks::begin("ladder meshes");
  std::puts(
      "| stage | data | tensor | sent on stage | on data | on tensor | calls | parameters | activations | peak memory | waits |\n|---|---|---|---|---|---|---|---|---|---|---|");
  for (const int s : {1, 2, 4, 8})
    for (const int d : {1, 2, 4}) {
      if (8 % (s * d) != 0) continue;
      const Mesh mesh{stage = s, data = d, tensor = 8 / s / d};
      const std::vector<OwnedPlan> plans = stages_of<hybrid::Step>(mesh);
      const auto sent = [&](const Axis& axis) {
        return mesh.extent(&axis) > 1 ? size(most(plans, [&](const Plan& p) { return p.sent(axis); })) : "-";
      };
      std::printf("| %d | %d | %d | %s | %s | %s | %lld | %s | %s | %s | %s |\n", s, d, 8 / s / d, sent(stage).c_str(),
                  sent(data).c_str(), sent(tensor).c_str(),
                  static_cast<long long>(most(plans, [](const Plan& p) { return p.calls(); })),
                  size(most(plans, [](const Plan& p) { return p.memory.of(Use::parameters); })).c_str(),
                  size(most(plans, [](const Plan& p) { return p.memory.of(Use::activations); })).c_str(),
                  size(most(plans, [](const Plan& p) { return p.peak_memory(); })).c_str(),
                  percent(timing<hybrid::Step>(s).bubble()).c_str());
    }
}

template <class Step>
void print_cut(const char* name) {
  const std::vector<OwnedPlan> plans = stages_of<Step>(hybrid::mesh);
  const auto sent = [&](const Axis& axis) { return size(most(plans, [&](const Plan& p) { return p.sent(axis); })); };
  std::printf("| %s | %s | %s |\n", name, sent(stage).c_str(), sent(tensor).c_str());
}
inline void print_cuts() {
  blocks::begin("ladder cuts");
  std::puts("| rung 7 | sent on stage | on tensor |\n|---|---|---|");
  print_cut<hybrid::Step>("as it is");
  print_cut<beside_the_ladder::Scattered>("its cut scattered");
}

inline void print() {
  print_rungs();
  print_plans();
  print_schedules();
  print_bubbles();
  print_stored();
  print_servers();
  print_stale();
  print_ranks<data_parallel::Step>("ladder data ranks", data);
  print_ranks<tensor_parallel::Step>("ladder tensor ranks", tensor);
  print_ranks<sequence_parallel::Step>("ladder sequence ranks", tensor);
  print_context();
  print_ranks<context_parallel::Step>("ladder context ranks", sequence);
  print_meshes();
  print_cuts();
}
}  // namespace parallelisms
