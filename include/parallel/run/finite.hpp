// A mode, asked for by PARALLEL_CHECK: operations are computed one by one, and the first whose result is no finite
// number ends the run, named with its line.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <parallel/communicator/failure.hpp>
#include <parallel/meta/library.hpp>
#include <parallel/run/statistics.hpp>

namespace parallel::internals {

/// What of a view is no finite number, and between what the others lie.
struct Finiteness {
  std::int64_t elements = 0, nans = 0, infinities = 0;
  std::int64_t first = -1;  ///< in the whole, the first that is not finite
  double least = std::numeric_limits<double>::infinity(), most = -least;
};

/// From now on executors check their numbers, as PARALLEL_CHECK says: "finite", "nan" (infinities are meant), "inputs"
/// (those alone, whether ranks are given them alike, before every step, as the others do, too), or "" for nothing.
/// Before ranks begin.
PARALLEL_INLINE void check_numbers(std::string what);

class FiniteCheck {
 public:
  /// Throws Failure(usage) where PARALLEL_CHECK is neither.
  FiniteCheck(const Plan& plan, int rank, std::string program);

  /// Before a step's first event: what lies in a member, which the host can read.
  void begin_step(std::int64_t step, double loss_scale);
  void member(const Member& m, const View& view);
  /// Around one operation, or an exchange, whose operands and results the host can read.
  template <class Reader>
  void before(int node, const Reader& operand) {
    if (!first_.empty()) return;
    std::vector<Finiteness>& operands = operands_[node];
    operands.clear();
    const Node& n = g_.node(node);
    for (int o = 0; o < n.operands.size(); ++o) operands.push_back(look(g_.value(n.operands[o]).type, operand(o)));
  }
  template <class Reader>
  void after(int node, int layer, int micro_batch, const Reader& result) {
    ++events_;
    if (!first_.empty()) return;
    const Node& n = g_.node(node);
    for (int r = 0; r < n.results && first_.empty(); ++r) {
      const Type& type = g_.value(n.result + r).type;
      note(node, layer, micro_batch, type, look(type, result(r)));
    }
  }
  /// What this rank has found, for all ranks; empty: nothing.
  const std::string& found() const { return first_; }
  /// Throws Failure on every rank where any has found something: of all the first in the order of the plan.
  static void tell(const std::vector<std::string>& found);

 private:
  Finiteness look(const Type& type, const View& view) const;
  void note(int node, int layer, int micro_batch, const Type& type, const Finiteness& result);
  bool refuses(const Finiteness& f) const { return f.nans > 0 || (!only_nans_ && f.infinities > 0); }
  std::string place(const Type& type, const Finiteness& f) const;
  std::string path_of(const Member& m, int layer, std::int64_t first) const;

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  std::string program_;
  bool only_nans_ = false, scaled_ = false;
  std::int64_t step_ = 0, events_ = 0;
  std::map<int, std::vector<Finiteness>> operands_{};  // by node: an exchange is waited for behind other operations
  std::string first_{};
};

}  // namespace parallel::internals

namespace parallel {
using internals::check_numbers;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/finite.ipp>
#endif
