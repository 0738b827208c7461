// A matrix product in panels: some of what is added up at a time, so that no rank has room for all that is gathered.
#pragma once
#include <utility>

#include <parallel/operation/add.hpp>
#include <parallel/operation/beside.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/slice.hpp>
#include <parallel/operation/to.hpp>

namespace parallel {
namespace internals {
/// Brought together along a dimension, on those of its axes, the innermost first, that split not the other's, too.
template <int dim, Dim other, int axis, Distributed X>
constexpr auto brought_together(const X& x, Here here) {
  if constexpr (axis < 0 || X::kind == Kind::refused)
    return x;
  else if constexpr (other.split_by(X::type.layout.dims[dim].axes[axis]))
    return brought_together<dim, other, axis - 1>(x, here);
  else
    return brought_together<dim, other, axis - 1>(
        recompute(to<OnAxis<X::type.layout.dims[dim].axes[axis], Broadcast>>(x, here)), here);
}
/// On the axes of another, where it is whole, each rank uses it for itself: then what is made of it is, too, and of the
/// panels' gradients one sum over the ranks is completed and not one a panel.
template <class Other, int axis = 0, Distributed X>
constexpr auto used_by_each(const X& x, Here here) {
  constexpr AxisList axes = [] {
    AxisList all;
    Other::type.layout.collect(all);
    return all;
  }();
  if constexpr (axis >= axes.size() || X::kind == Kind::refused)
    return x;
  else if constexpr (X::type.layout.on(axes[axis]) == Invariant)
    return used_by_each<Other, axis + 1>(to<OnAxis<axes[axis], Broadcast>>(x, here), here);
  else
    return used_by_each<Other, axis + 1>(x, here);
}
/// A dimension as panels behind each other, every `panels`-th element in one: each rank has as many of each panel,
/// however many ranks there are.
template <int dim, int panels, Distributed X, int... d>
constexpr auto in_panels(const X& x, Here here, std::integer_sequence<int, d...>) {
  constexpr auto& dims = X::type.layout.dims;
  return reshape<(d == dim       ? dims[d].size / panels
                  : d == dim + 1 ? panels
                                 : dims[d < dim ? d : d - 1].size)...>(x, here);
}
/// One of them, brought together where the other operand is not split as it is. The backward pass makes it again.
template <int dim, Dim other, int panel, Distributed X>
constexpr auto panel_of(const X& all, Here here) {
  const auto one = recompute(slice<dim + 1, panel, panel + 1>(all, here));
  constexpr int rank = X::type.layout.rank() - 1;
  const auto own = recompute(spelling::without_dimension<dim + 1>(one, here, std::make_integer_sequence<int, rank>{}));
  return brought_together<dim, other, X::type.layout.dims[dim].count - 1>(own, here);
}
/// x[..., k / panels, panels] and w[k / panels, panels, n...].
template <int panels, Distributed X, Distributed W>
struct Panels {
  const X& x;
  const W& w;
  Here here;
  static constexpr int of_k = X::type.layout.rank() - 2;

  template <int panel>
  constexpr auto left() const {
    return panel_of<of_k, W::type.layout.dims[0], panel>(x, here);
  }
  template <int panel>
  constexpr auto right() const {
    return panel_of<0, X::type.layout.dims[of_k], panel>(w, here);
  }
  /// `added` to what is before it: the sum of the products of a panel and all behind it.
  template <int panel>
  constexpr auto sum(const auto& added, const auto& of_x, const auto& of_w, const auto&... last) const {
    if constexpr (panel + 1 == panels) {
      return added(matmul(of_x, beside(of_w, here, last...), here));
    } else {
      const auto next_of_x = left<panel + 1>();
      const auto next_of_w = right<panel + 1>();
      const auto so_far = added(matmul(of_x, beside(of_w, here, next_of_x, next_of_w, last...), here));
      return sum<panel + 1>([&](const auto& product) { return add(so_far, product, here); }, next_of_x, next_of_w, of_x,
                            of_w);
    }
  }
  constexpr auto sum() const {
    const auto of_x = left<0>();
    const auto of_w = right<0>();
    return sum<0>([](const auto& product) { return product; }, of_x, of_w);
  }
};
template <int panels, Distributed X, Distributed W>
constexpr auto sum_of_panels(const X& x, const W& w, Here here) {
  return Panels<panels, X, W>{x, w, here}.sum();
}
/// x and w as they enter.
template <int panels, Distributed X, Distributed W>
constexpr auto matmul_of_panels(const X& x, const W& w, Here here) {
  constexpr int left = X::type.layout.rank(), right = W::type.layout.rank();
  return sum_of_panels<panels>(in_panels<left - 1, panels>(x, here, std::make_integer_sequence<int, left + 1>{}),
                               in_panels<0, panels>(w, here, std::make_integer_sequence<int, right + 1>{}), here);
}
}  // namespace internals

/// matmul(x, w) of x[..., k] and w[k, n...], whose k are split by other axes, in so many panels, which divide k: of
/// each x and w are gathered, multiplied and added up, and gathered again by the backward pass (SUMMA: van de Geijn and
/// Watts, 1997). So a rank has room for a panel, and the next comes under the current product. An axis that splits k of
/// both is not gathered: the result is then a pending sum.
template <int panels, Distributed X, Distributed W>
constexpr auto matmul_in_panels(const X& x, const W& w, Here here = {}) {
  constexpr auto &left = X::type.layout.dims, &right = W::type.layout.dims;
  if constexpr (X::kind == Kind::refused || W::kind == Kind::refused || left.size() == 0 || right.size() == 0)
    return matmul(x, w, here);
  else if constexpr (left[left.size() - 1].size != right[0].size)
    return matmul(x, w, here);
  else if constexpr (panels < 1 || right[0].size % panels != 0)
    return internals::mistaken<Reason::panels, X, panels>();
  else
    return internals::matmul_of_panels<panels>(internals::used_by_each<W>(x, here), internals::used_by_each<X>(w, here),
                                               here);
}

}  // namespace parallel
