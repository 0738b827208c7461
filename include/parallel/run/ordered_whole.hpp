// Where a rank's part of a tensor lies in the whole if dimensions stand in an order.
#pragma once
#include <algorithm>
#include <cstdint>

#include <parallel/plan/check.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel::internals {

inline bool stands_in_order(const Layout& layout, const Mesh& mesh) {
  return std::any_of(layout.dims.begin(), layout.dims.end(),
                     [&](const Dim& d) { return standing(d, mesh).order != Order::contiguous; });
}

/// As BoxInWhole, of dimensions that may stand in an order, whether its axis splits them, or others, or none.
class OrderedInWhole {
 public:
  OrderedInWhole(const Plan& plan, const Layout& layout, int rank) {
    std::int64_t step = 1;
    for (int d = layout.rank() - 1; d >= 0; --d) {
      const Dim& dim = layout.dims[d];
      const std::int64_t size = local(dim, plan.mesh), chunks = chunks_of(plan.graph, dim, plan.mesh);
      along_.push_back({size / chunks, step, offset(dim, plan.mesh, rank) / chunks, standing(dim, plan.mesh)});
      if (chunks > 1)  // of a stage's layers, which are not neighbours
        along_.push_back({chunks, dim.size / chunks * step, 0, {Order::contiguous, chunks, 1}});
      step *= dim.size;
      elements_ *= size;
    }
    while (within_ < along_.size() - 1 && along_[within_].run(0) == along_[within_].stands.size)
      row_ *= along_[within_++].size;
  }
  std::int64_t elements() const { return elements_; }
  /// f(position in the part, index in the whole, length) for the runs of elements [first, last) of the part.
  template <class F>
  void each_run(std::int64_t first, std::int64_t last, F f) const {
    for (std::int64_t position = first, length = 0; position < last; position += length) {
      std::int64_t rest = position, index = 0;
      for (const Along& a : along_) {
        index += a.stands.element(a.from + rest % a.size) * a.step;
        rest /= a.size;
      }
      const Along& broken = along_[within_];
      length = std::min(broken.run(position / row_ % broken.size) * row_ - position % row_, last - position);
      f(position, index, length);
    }
  }

 private:
  struct Along {
    std::int64_t size = 1, step = 1, from = 0;
    Standing stands{};
    /// How many from the i-th on lie beside each other in the whole, too.
    std::int64_t run(std::int64_t i) const { return std::min(stands.run(from + i), size - i); }
  };
  List<Along, 2 * max_rank> along_{};  // the innermost first
  int within_ = 0;                     ///< how many of them are whole, and one run
  std::int64_t row_ = 1, elements_ = 1;
};

}  // namespace parallel::internals
