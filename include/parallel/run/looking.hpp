// A step that is looked into: what is watched (watching.hpp), and the first numbers that are not finite (finite.hpp).
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/finite.hpp>
#include <parallel/run/instruction.hpp>
#include <parallel/run/position.hpp>
#include <parallel/run/watching.hpp>

namespace parallel::internals {

/// Whether this process was asked to look at numbers as steps compute them, and so into its steps (PARALLEL_WATCH,
/// PARALLEL_CHECK).
inline bool looks_at_numbers() { return !looked_for().check.empty() && looked_for().check != "inputs"; }
inline bool looks_into_steps() { return !looked_for().watch.empty() || looks_at_numbers(); }

/// Looks at the values of one program on one rank, around each node that is computed and each exchange.
class Looking {
 public:
  /// `program`: what it is, for sentences. `others`: another program trains the parameters, and shows them.
  Looking(const Plan& plan, int rank, int ranks, bool others, const std::string& program)
      : plan_(plan), g_(plan.graph), rank_(rank), started_in_(plan.graph.nodes.size()) {
    if (!looked_for().watch.empty()) watching_.emplace(plan, rank, ranks, !others, others, program);
    if (looks_at_numbers()) finite_.emplace(plan, rank, program);
  }

  /// Whether the nodes of a fusion are computed each by itself, which on the CPU gives the same bits.
  bool apart(const Event& e) const {
    bool any = finite_.has_value();
    if (watching_) each_node(g_, e, [&](int n) { any = any || watching_->looks_at(n); });
    return any;
  }

  /// Before and behind a step; `read(value)` gives what lies where a value is, where the host can read it. `gathered`
  /// brings each rank's text to all.
  template <class Read>
  void begin(std::int64_t step, double loss_scale, Read read) {
    if (finite_) {
      finite_->begin_step(step, loss_scale);
      for (const Member& m : g_.members)
        if (has_part(plan_, m.value, rank_)) finite_->member(m, read(m.value));
    }
    if (watching_) watching_->look(When::begin, -1, -1, read);
  }
  template <class Read, class Gathered>
  void end(std::int64_t step, Read read, Gathered gathered) {
    if (watching_) watching_->look(When::end, -1, -1, read);
    if (watching_) watching_->tell(step, gathered(watching_->taken(), "what is watched"));
    if (finite_) FiniteCheck::tell(gathered(finite_->found(), "whether numbers are finite"));
  }

  /// Around what is computed: launch by launch. `position`: of the loops; `run(launch)` computes one, `read(value)` is
  /// as in begin, `readable(value, view)` the same of what a call reads or writes.
  template <class Read, class Readable, class Run>
  void compute(const auto& instruction, const Position& position, Read read, Readable readable, Run run) {
    int node = instruction.node;
    for (const Launch& launch : instruction.launches) {
      if (launch.calls.size() == 1) {
        const Around around{node, iteration_of(node, position), launch.calls[0]};
        before(around, read, readable);
        run(launch);
        after(around, readable);
      } else {
        each_of(node, launch, [&](int n) {
          if (watching_) watching_->look(When::before, n, iteration_of(n, position).layer, read);
        });
        run(launch);
      }
      each_of(node, launch, [&](int n) { node = g_.node(n).then; });
    }
  }
  /// Around the start and the wait of an exchange, which may stand in different iterations.
  template <class Read, class Readable, class Happen>
  void exchange(bool starts, bool ends, const auto& instruction, const Position& position, Read read, Readable readable,
                Happen happen) {
    const int node = instruction.node;
    Iteration& began = started_in_[static_cast<std::size_t>(node)];
    if (starts) began = iteration_of(node, position);
    const Around around{node, began, instruction.calls[0]};
    if (starts) before(around, read, readable);
    happen();
    if (ends) after(around, readable);
  }

 private:
  using When = Watching::When;
  struct Iteration {
    int layer = -1;  ///< -1: outside of layers
    int micro_batch = 0;
  };
  struct Around {
    int node;
    Iteration in;
    const Call& call;
  };

  template <class Read, class Readable>
  void before(const Around& a, Read read, Readable readable) {
    if (watching_) watching_->look(When::before, a.node, a.in.layer, read);
    if (finite_)
      finite_->before(a.node, [&](int o) { return readable(g_.node(a.node).operands[o], a.call.operands[o]); });
  }
  template <class Readable>
  void after(const Around& a, Readable readable) {
    const int first = g_.node(a.node).result;
    if (watching_)
      watching_->look(When::after, a.node, a.in.layer,
                      [&](int value) { return readable(value, a.call.results[value - first]); });
    if (finite_)
      finite_->after(a.node, a.in.layer, a.in.micro_batch,
                     [&](int r) { return readable(first + r, a.call.results[r]); });
  }
  Iteration iteration_of(int node, const Position& position) const {
    Iteration in;
    for (int r = g_.node(node).region; r > 0; r = g_.region(r).parent) {
      const Region& region = g_.region(r);
      if (region.kind == RegionKind::layers && in.layer < 0)
        in.layer = position.index(region.loop) * region.blocks + position.layers_before(region.staged ? r : -1);
      if (region.kind == RegionKind::micro_batches) in.micro_batch = position.index(region.loop);
    }
    return in;
  }
  /// The nodes that one launch computes.
  template <class F>
  void each_of(int node, const Launch& launch, F f) const {
    for (std::size_t i = 0; i < launch.calls.size(); ++i) {
      const int then = g_.node(node).then;
      f(node);
      node = then;
    }
  }

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  std::optional<Watching> watching_{};
  std::optional<FiniteCheck> finite_{};
  std::vector<Iteration> started_in_;  // per node
};

}  // namespace parallel::internals
