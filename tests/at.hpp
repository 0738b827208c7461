// Trainings of one parameter that goes through placements before the loss is made of it, some of them At: for tests of
// threads and of MPI.
#pragma once
#include <limits>

#include <doctest/doctest.h>

#include <parallel/model/optimizer.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

#include "program.hpp"

namespace at_some {

using namespace parallel;
using namespace parallel::internals;

inline constexpr Axis some{"some"}, other{"other"};
inline constexpr int extent = 12;  // which two, three and four ranks divide

inline const Placement at_rest[] = {Invariant, Split<0>, Split<1>, At<0>, At<1>, At<-1>, At<0, 1>, At<1, -1>};
inline const Placement on_the_way[] = {Invariant, Broadcast, Partial, Split<0>, Split<1>,
                                       At<0>,     At<1>,     At<-1>,  At<0, 1>, At<1, -1>};

inline bool moves(Placement from, Placement to) {
  const bool by_name = from == Broadcast && to == Invariant;
  return !(from == to) && !by_name && collective(from, to) != Collective::never;
}

/// The parameter lies as the first placement of `some` says, and all the way as the one of `other`.
class Course {
 public:
  explicit Course(const std::vector<Placement>& placements, Placement beside = Invariant) {
    trace_.training = true;
    const int c = declare(operation::input, Role::input, Kind::data, "c", Invariant, Invariant),
              w = declare(operation::parameter, Role::parameter, Kind::parameter, "w", placements[0], beside);
    int value = w;
    for (const Placement& p : placements) value = enter(value, some, p);
    if (placements.back() == Broadcast) value = enter(value, some, Partial);
    value = enter(enter(value, some, Invariant), other, Invariant);
    const int loss =
        apply(operation::sum, {apply(operation::multiply, {apply(operation::square, {value}), c})}, 1.0 / 64);
    trace_.output(trace_.graph.name({}, {"loss"}), loss);
    Differentiation backward(trace_);
    backward.run(loss, 1);
    building::optimize<AdamW>(trace_, backward);
    graph = fuse(std::move(trace_.graph));
  }
  Graph graph;

 private:
  int declare(const Operation& how, Role role, Kind kind, const char* name, Placement on_some, Placement on_other) {
    Member member;
    member.role = role;
    member.path = trace_.graph.name({}, {name});
    member.initializer = normal(1);
    member.type = {DType::f64, {}};
    for (int d = 0; d < 2; ++d) member.type.layout.dims.push_back(Dim(extent));
    member.type.layout = member.type.layout.with(&some, on_some).with(&other, on_other);
    return trace_.declare(how, member, kind, role == Role::parameter);
  }
  int enter(int value, const Axis& axis, Placement to) {
    return trace_.enter(value, trace_.graph.values[value].type.layout.with(&axis, to));
  }
  int apply(const Operation& op, const List<int, max_operands>& operands, double number = 0) {
    Arguments a;
    for (const int o : operands) {
      a.types.push_back(trace_.graph.values[o].type);
      a.kinds.push_back(trace_.graph.values[o].kind);
    }
    const Inference inferred = infer(op, a);
    REQUIRE(!inferred.refusal);
    return parallel::internals::apply(trace_, op, operands, inferred, {}, {}, number, 0);
  }

  Trace trace_{};
};

/// What two steps leave: losses, norms, and behind them the rank's part of the parameter, elsewhere NaN.
template <Communicator World>
std::vector<double> trained(const Plan& plan, World& world) {
  Parameters parameters(plan, world.rank(), 1);
  Trainer<World, CpuDouble> trainer(plan, world, parameters, {.weight_decay = 0.1, .clip_norm = 0.5}, 1);
  std::vector<double> c(extent * extent), result, whole(c.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2 * random_uniform(3, 1, i) - 1;
  trainer.executor().input(0, c);
  for (int step = 0; step < 2; ++step) {
    const StepResult r = trainer.step(1e-2);
    result.insert(result.end(), {r.loss, r.gradient_norm});
  }
  trainer.executor().get("w", whole);
  result.insert(result.end(), whole.begin(), whole.end());
  return result;
}
/// The same of one rank alone.
inline std::vector<double> alone(const Graph& graph) {
  const OwnedPlan plan = derive(Graph(graph), Mesh{some = 1}, {}, {});
  std::vector<double> result;
  run_threads(1, [&](Threads& world) { result = trained(plan, world); });
  return result;
}
/// How far a rank's numbers are from those of one rank at most, and how many of the parameter's it has.
struct Compared {
  double worst = 0;
  std::size_t held = 0;
};
inline Compared compared(const std::vector<double>& many, const std::vector<double>& one) {
  Compared c;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (i >= 4 && std::isnan(many[i])) continue;
    c.worst = std::max(c.worst, std::abs(many[i] - one[i]));
    c.held += i >= 4 ? 1 : 0;
  }
  return c;
}

inline std::string text_of(const std::vector<Placement>& all) {
  std::string words;
  for (const Placement& p : all) words += " " + text(p);
  return words;
}
/// f(placements) for every way over two moves of which some placement is At.
template <class F>
void each_way(F f) {
  for (const Placement& rest : at_rest)
    for (const Placement& first : on_the_way)
      for (const Placement& second : on_the_way) {
        const bool at =
            rest.kind == PlacementKind::at || first.kind == PlacementKind::at || second.kind == PlacementKind::at;
        if (at && moves(rest, first) && moves(first, second)) f(std::vector{rest, first, second});
      }
}

}  // namespace at_some
