// Whole tensors into a rank's part of them and out of it, run by run: elements that lie side by side in both.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include <parallel/plan/check.hpp>
#include <parallel/plan/taking_part.hpp>
#include <parallel/run/numbers.hpp>
#include <parallel/run/ordered_whole.hpp>
#include <parallel/run/provenance.hpp>

namespace parallel::internals {

/// Where a rank's part of a tensor whose dimensions are split one by one lies in the whole.
class BoxInWhole {
 public:
  BoxInWhole(const Plan& plan, const Layout& layout, int rank) {
    std::int64_t step = 1;
    for (int d = layout.rank() - 1; d >= 0; --d) {
      const Dim& dim = layout.dims[d];
      const std::int64_t size = local(dim, plan.mesh), chunks = chunks_of(plan.graph, dim, plan.mesh);
      add(size / chunks, step);
      add(chunks, dim.size / chunks * step);  // the chunks of a stage's layers are not neighbours
      begin_ += offset(dim, plan.mesh, rank) / chunks * step;
      step *= dim.size;
    }
    for (const Step& s : steps_) elements_ *= s.count;
  }
  std::int64_t elements() const { return elements_; }
  /// f(position in the part, index in the whole, length) for the runs of elements [first, last) of the part.
  template <class F>
  void each_run(std::int64_t first, std::int64_t last, F f) const {
    const std::int64_t length = steps_[0].count;
    std::int64_t at[max_rank + 2]{}, index = begin_;
    std::int64_t row_of = first / length;
    for (int k = 1; k < steps_.size(); ++k) {
      at[k] = row_of % steps_[k].count;
      row_of /= steps_[k].count;
      index += at[k] * steps_[k].apart;
    }
    for (std::int64_t row = first - first % length; row < last; row += length) {
      const std::int64_t from = std::max(row, first), to = std::min(row + length, last);
      f(from, index + from - row, to - from);
      for (int k = 1; k < steps_.size(); ++k) {
        index += steps_[k].apart;
        if (++at[k] < steps_[k].count) break;
        index -= at[k] * steps_[k].apart;
        at[k] = 0;
      }
    }
  }

 private:
  struct Step {
    std::int64_t count = 1, apart = 1;
  };
  /// One more dimension around those before; what lies side by side is one.
  void add(std::int64_t count, std::int64_t apart) {
    Step& inner = steps_[steps_.size() - 1];
    if (count > 1 && apart == inner.count * inner.apart)
      inner.count *= count;
    else if (count > 1)
      steps_.push_back({count, apart});
  }

  List<Step, max_rank + 2> steps_{Step{}};  // the innermost first
  std::int64_t begin_ = 0, elements_ = 1;
};

/// A walk over a rank's part of a tensor in runs: f(position in the part, index in the full tensor, length), all
/// counted in elements. Of a flat view it is a share of what the other axes leave; what pads it is no element.
template <class F>
void each_run(const Plan& plan, const Layout& layout, int rank, F f) {
  const LocalPart part = local_part(layout, plan.mesh, rank);
  Layout unshared = layout;
  for (const Placed& p : layout.others)
    if (p.placement.flat) unshared = unshared.with(p.axis, Invariant);
  const auto walk = [&](const auto& box) {
    if (part.flat_from < 0) return box.each_run(0, box.elements(), f);
    const std::int64_t share = part.size[part.flat_from] * part.each, own = part.own * part.each;
    std::int64_t first = part.before * part.each, before = 0;  // of a view, and of this rank's share of it
    for (; own > 0 && first < box.elements(); first += part.flat * part.each, before += share)
      box.each_run(first, first + own, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
        f(before + position - first, index, length);
      });
  };
  stands_in_order(layout, plan.mesh) ? walk(OrderedInWhole(plan, unshared, rank))
                                     : walk(BoxInWhole(plan, unshared, rank));
}

namespace piecewise {
/// f(bytes), a constant, for elements of a type: they are moved as they are.
template <class F>
void by_bytes(DType dtype, F f) {
  switch (bytes_of(dtype)) {
    case 2: return f(std::integral_constant<std::int64_t, 2>());
    case 4: return f(std::integral_constant<std::int64_t, 4>());
    default: return f(std::integral_constant<std::int64_t, 8>());
  }
}
/// n elements, so many bytes apart.
template <std::int64_t bytes>
void move(std::byte* to, std::int64_t to_apart, const std::byte* from, std::int64_t from_apart, std::int64_t n) {
  if (from_apart == bytes && to_apart == bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
  } else {
    for (std::int64_t i = 0; i < n; ++i, to += to_apart, from += from_apart) std::memcpy(to, from, bytes);
  }
}
/// The elements of a matrix, one behind the other.
inline std::vector<std::byte> row_by_row(const HandedOver& matrix) {
  std::vector<std::byte> rows(matrix.size * static_cast<std::size_t>(bytes_of(matrix.dtype)));
  by_bytes(matrix.dtype, [&]<std::int64_t bytes>(std::integral_constant<std::int64_t, bytes>) {
    std::byte* to = rows.data();
    matrix.each_piece(0, static_cast<std::int64_t>(matrix.size), [&](auto first, auto apart, auto n) {
      move<bytes>(to, bytes, static_cast<const std::byte*>(matrix.data) + first * bytes, apart * bytes, n);
      to += n * bytes;
    });
  });
  return rows;
}
/// f(position in a rank's part, first in the whole's memory, how far apart there, how many), for the pieces that lie
/// evenly in both.
template <class F>
void each_piece(const Plan& plan, const Layout& layout, int rank, const HandedOver& all, F f) {
  each_run(plan, layout, rank, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
    all.each_piece(index, length, [&](std::int64_t first, std::int64_t apart, std::int64_t n) {
      f(position, first, apart, n);
      position += n;
    });
  });
}
}  // namespace piecewise

/// Writes a rank's part out of the whole; what is made is made of the part alone.
inline void write_part(const Plan& plan, const Layout& layout, int rank, const HandedOver& all, std::byte* part) {
  if (all.make != nullptr) {
    each_run(plan, layout, rank, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
      all.make(all.data, index, length, part + position * bytes_of(all.dtype));
    });
    return;
  }
  const std::byte* const from = static_cast<const std::byte*>(all.data);
  piecewise::by_bytes(all.dtype, [&]<std::int64_t bytes>(std::integral_constant<std::int64_t, bytes>) {
    piecewise::each_piece(plan, layout, rank, all, [&](auto position, auto first, auto apart, auto n) {
      piecewise::move<bytes>(part + position * bytes, bytes, from + first * bytes, apart * bytes, n);
    });
  });
}
/// Writes a rank's part into the whole, which can be written.
inline void read_part(const Plan& plan, const Layout& layout, int rank, const std::byte* part, const HandedOver& all) {
  std::byte* const to = static_cast<std::byte*>(const_cast<void*>(all.data));
  piecewise::by_bytes(all.dtype, [&]<std::int64_t bytes>(std::integral_constant<std::int64_t, bytes>) {
    piecewise::each_piece(plan, layout, rank, all, [&](auto position, auto first, auto apart, auto n) {
      piecewise::move<bytes>(to + first * bytes, apart * bytes, part + position * bytes, bytes, n);
    });
  });
}

/// Whether every rank has the whole of a member of a program without a pipeline.
inline bool held_by_all(const Plan& plan, const Member& m) {
  const auto at_some = [&](const Placed& p) {  // of a flat split padding may fill a part up to the size of the whole
    return (p.placement.kind == PlacementKind::at || p.placement.flat) && plan.mesh.extent(p.axis) > 1;
  };
  const Layout& layout = m.type.layout;
  return local_elements(layout, plan.mesh) == layout.elements() &&
         std::none_of(layout.others.begin(), layout.others.end(), at_some);
}
/// Whether this rank writes its part of a member: of ranks that have the same it is the first.
inline bool writes(const Plan& plan, const Member& m, int rank) {
  if (!has_part(plan, m.value, rank)) return false;
  const Layout& layout = m.type.layout;
  for (int i = 0; i < plan.mesh.count; ++i) {
    const Axis* const axis = plan.mesh.axes[i].axis;
    const Placement on = layout.on(axis);
    const int coordinate = plan.mesh.coordinate(rank, axis);
    if (on.split()) continue;
    if (coordinate != first_holder(on, plan.mesh.extent(axis))) return false;
  }
  return true;
}
/// The extents of a whole tensor.
inline std::vector<std::int64_t> shape_of(const Layout& layout) {
  std::vector<std::int64_t> shape;
  for (const Dim& d : layout.dims) shape.push_back(d.size);
  return shape;
}
/// What ranks compare of a rank's part of a member: a hash where every rank has the whole; where each has a part, or
/// some have nothing (null), that it was set; in a pipeline, where a stage sets what it has, 0.
inline std::uint64_t hash_of_part(const Plan& plan, const Member& m, const std::byte* part) {
  if (plan.graph.stages != nullptr && plan.mesh.extent(plan.graph.stages) > 1) return 0;
  if (part == nullptr || !held_by_all(plan, m)) return SetWhole::in_parts;
  return hash_of_numbers({part, static_cast<std::size_t>(local_bytes(m.type, plan.mesh))});
}
/// Writes a rank's part of a member. Returns what ranks compare of it.
inline std::uint64_t set_part(const Plan& plan, const Member& m, int rank, const HandedOver& all, std::byte* part) {
  write_part(plan, m.type.layout, rank, all, part);
  return hash_of_part(plan, m, part);
}

}  // namespace parallel::internals
