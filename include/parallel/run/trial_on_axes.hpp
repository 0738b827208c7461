// One operation tried on several axes at once: every way to lay its operands out by rows of its table, nested in every
// order.
#pragma once
#include <algorithm>
#include <vector>

#include <parallel/run/trial.hpp>

namespace parallel::internals {

class TrialOnAxes {
 public:
  /// What was counted.
  struct Counts {
    int derived = 0, refused = 0, nested = 0;
  };

  /// `trial` has its truths.
  TrialOnAxes(const Trial& trial, const Mesh& mesh, double tolerance)
      : trial_(trial), mesh_(mesh), tolerance_(tolerance) {
    for (int i = 0; i < mesh.count; ++i) axes_.push_back(mesh.axes[i].axis);
    for (const Type& t : trial.plain().types) choices_.push_back(layouts(t));
  }

  /// Calls `wrong(operands, words)` where the rule takes operands that lie so and what comes out is wrong; and
  /// `missed(operands)`, unless it is nullptr, where it refuses what every row allows and what comes out is right.
  /// Looks at every combination, or at `most` of them that are drawn.
  template <class Wrong, class Missed>
  Counts run(std::size_t most, Wrong wrong, Missed missed) {
    std::size_t all = 1;
    for (const auto& c : choices_) all = all > 100'000'000 / c.size() ? 100'000'000 : all * c.size();
    const std::size_t times = std::min(all, most);
    for (std::size_t k = 0; k < times; ++k) {
      std::size_t which = times == all ? k : below(all);
      Arguments lying = trial_.plain();
      for (std::size_t i = choices_.size(); i-- > 0; which /= choices_[i].size())
        lying.types[static_cast<int>(i)].layout = choices_[i][which % choices_[i].size()];
      judge(lying, wrong, missed);
    }
    return counts_;
  }
  /// The same of so many, each made of a row for every axis and a nesting.
  template <class Wrong, class Missed>
  Counts sample(int times, Wrong wrong, Missed missed) {
    for (int i = 0; i < times; ++i) {
      Arguments lying = trial_.plain();
      for (const Axis* axis : axes_) {
        const Signature& row = trial_.rows()[static_cast<int>(below(static_cast<std::size_t>(trial_.rows().size())))];
        for (int o = 0; o < lying.types.size(); ++o) {
          Layout& layout = lying.types[o].layout;
          const Placement p = row.operands[o];
          if (!p.split())
            layout = layout.with(axis, p);
          else
            layout.dims[p.dim] = nested(layout.dims[p.dim], axis, static_cast<int>(below(3)));
        }
      }
      judge(lying, wrong, missed);
    }
    return counts_;
  }

 private:
  /// A dimension that an axis splits, too: within the first `at` axes that split it, around the others.
  static Dim nested(const Dim& dim, const Axis* axis, int at) {
    Dim result(dim.size);
    for (int i = 0; i <= dim.count; ++i) {
      if (i == std::min(at, dim.count)) result = result / *axis;
      if (i < dim.count) result = result / *dim.axes[i];
    }
    return result;
  }
  /// Every layout of an operand: Broadcast, Partial (where it has no whole numbers) or split on each axis.
  std::vector<Layout> layouts(const Type& type) const {
    std::vector<Layout> all{type.layout};
    for (const Axis* axis : axes_) {
      std::vector<Layout> more;
      for (const Layout& l : all) {
        more.push_back(l.with(axis, Broadcast));
        if (type.dtype != DType::i32) more.push_back(l.with(axis, Partial));
        for (int d = 0; d < l.rank(); ++d)  // within what splits the dimension already, around it, or between
          for (int at = 0; at <= l.dims[d].count; ++at) {
            more.push_back(l);
            more.back().dims[d] = nested(l.dims[d], axis, at);
          }
      }
      all = more;
    }
    return all;
  }
  /// The row that the operands have on one axis.
  const Signature* row_on(const Arguments& lying, const Axis* axis) const {
    for (const Signature& row : trial_.rows()) {
      bool same = !row.by_name;
      for (int i = 0; i < lying.types.size(); ++i) same = same && row.operands[i] == lying.types[i].layout.on(axis);
      if (same) return &row;
    }
    return nullptr;
  }

  template <class Wrong, class Missed>
  void judge(const Arguments& lying, Wrong& wrong, Missed& missed) {
    std::vector<const Signature*> rows;
    for (const Axis* axis : axes_) {
      rows.push_back(row_on(lying, axis));
      if (rows.back() == nullptr) return;  // one axis alone
    }
    for (const Type& t : lying.types)
      if (!divides(t.layout, mesh_)) return;
    const Inference inferred = infer(trial_.operation(), lying);
    if (!inferred.refusal) {
      if (!Trial::divided(lying, inferred, mesh_)) return;
      if (const auto words = trial_.fault(lying, inferred, mesh_, tolerance_)) wrong(lying, *words);
      ++counts_.derived;
      return;
    }
    ++counts_.refused;
    for (const Type& t : lying.types)
      for (const Dim& d : t.layout.dims)
        if (d.count > 1) {
          ++counts_.nested;
          break;
        }
    if constexpr (!std::is_null_pointer_v<Missed>)
      if (sound_by_hand(lying, rows)) missed(lying);
  }
  /// Whether one nesting of the results that the rows ask for is right.
  bool sound_by_hand(const Arguments& lying, const std::vector<const Signature*>& rows) const {
    Inference by_hand = trial_.whole();
    for (int i = 0; i < lying.types.size(); ++i) by_hand.to[i] = lying.types[i].layout;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      order.push_back(i);
      if (rows[i]->communicates) by_hand.exchanging.push_back(axes_[i]);
    }
    do {
      Inference one = by_hand;
      for (int r = 0; r < one.results.size(); ++r)
        for (const std::size_t i : order)
          one.results[r].layout = one.results[r].layout.with(axes_[i], rows[i]->results[r]);
      if (Trial::divided(lying, one, mesh_) && !trial_.fault(lying, one, mesh_, tolerance_)) return true;
    } while (std::next_permutation(order.begin(), order.end()));
    return false;
  }
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(random_uniform(23, 0, drawn_++) * static_cast<double>(n)) % n;
  }

  const Trial& trial_;
  Mesh mesh_;
  double tolerance_;
  std::vector<const Axis*> axes_{};
  std::vector<std::vector<Layout>> choices_{};
  Counts counts_{};
  std::uint64_t drawn_ = 0;
};

}  // namespace parallel::internals
