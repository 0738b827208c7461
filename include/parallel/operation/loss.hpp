// Losses beside the cross entropy of targets that are classes. Each but the means is a loss for every element or
// position: mean(huber_loss(x, y)).
#pragma once
#include <parallel/operation/log_softmax.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
/// (x, g): g times x, not below minus the first number nor above it
inline constexpr Operation huber_derivative{.name = "huber_gradient", .element_by_element = 3};
/// x^2 / 2 up to the first number, and a line that goes on from there.
inline constexpr Operation huber = function_of_one("huber", unary_gradient<huber_derivative>, Rate::memory);

// logits   targets   loss
// S        S         S
/// (logits, targets, g): g (sigmoid(logits) - targets)
inline constexpr Operation binary_cross_entropy_derivative{
    .name = "binary_cross_entropy_gradient", .element_by_element = 7, .rate = Rate::functions};
PARALLEL_AHEAD constexpr void binary_cross_entropy_gradient(Gradient& g) {
  if (g.wants(0))
    give_repeated(
        g, 0,
        g.emit(binary_cross_entropy_derivative, {g.operand(0), g.operand(1), g.cotangent()}, {repeated_type(g, 0)}));
  if (!g.wants(1)) return;
  const Type type = repeated_type(g, 1);  // -g logits
  give_repeated(g, 1, g.emit(scale, {g.emit(multiply, {g.cotangent(), g.operand(0)}, {type})}, {type}, {}, -1));
}
inline constexpr Operation binary_cross_entropy{.name = "binary_cross_entropy",
                                                .shape = all_broadcast,
                                                .signatures = nonlinear_table,
                                                .element_by_element = 3,
                                                .gradient = binary_cross_entropy_gradient,
                                                .rate = Rate::functions};
}  // namespace operation

namespace internals {
/// Whether a loss of elements can be taken of two tensors; where it cannot, asking is the one error.
template <class X, class Y>
constexpr bool accept_elements() {
  constexpr Refusal refusal = [] {
    const Layout &x = X::type.layout, &y = Y::type.layout;
    if (X::kind == Kind::refused || Y::kind == Kind::refused || x.rank() == 0 || y.rank() == 0) return Refusal{};
    if (x.rank() != y.rank()) return Refusal{Reason::loss_shapes, {x.dims[0].size, y.dims[0].size}};
    for (int d = 0; d < x.rank(); ++d)
      if (x.dims[d].size != y.dims[d].size) return Refusal{Reason::loss_shapes, {x.dims[d].size, y.dims[d].size}};
    return Refusal{};
  }();
  using accepted [[maybe_unused]] =
      typename Refused<refusal.reason, nullptr, refusal.figures[0], refusal.figures[1]>::type;
  return !refusal;
}
template <class X>
using Unlost = typename Symbolic<X, Kind::refused>::type;
}  // namespace internals

/// (x - y)^2 / 2 where x and y are not farther apart than `delta`, else delta (|x - y| - delta / 2), for every element
/// (Huber, 1964).
template <Distributed X, Distributed Y>
constexpr auto huber_loss(const X& x, const Y& y, double delta = 1, Here here = {}) {
  if constexpr (!internals::accept_elements<X, Y>())
    return internals::Unlost<X>{};
  else
    return Apply<operation::huber>{delta}(here, subtract(x, y, here));
}
/// -t log sigmoid(z) - (1 - t) log(1 - sigmoid(z)) for every element, of logits z and targets t from 0 to 1, without
/// overflow however large the logits are. (PyTorch: binary_cross_entropy_with_logits.)
template <Distributed L, Distributed T>
constexpr auto binary_cross_entropy(const L& logits, const T& targets, Here here = {}) {
  if constexpr (!internals::accept_elements<L, T>())
    return internals::Unlost<L>{};
  else
    return Apply<operation::binary_cross_entropy>{}(here, logits, targets);
}
/// -sum over classes of p log softmax(logits) for every position: logits[..., V], probabilities[..., V]. Where targets
/// are classes, it is `cross_entropy`.
template <Distributed L, Distributed P>
constexpr auto soft_cross_entropy(const L& logits, const P& probabilities, Here here = {}) {
  if constexpr (!internals::accept_elements<L, P>()) {
    return internals::Unlost<L>{};
  } else {
    constexpr int last = L::type.layout.rank() - 1;
    return scale(sum<last>(multiply(probabilities, log_softmax<last>(logits, here), here), here), -1, here);
  }
}
/// The mean of (x - y)^2 over all elements.
template <Distributed X, Distributed Y>
constexpr auto mean_squared_error(const X& x, const Y& y, Here here = {}) {
  if constexpr (!internals::accept_elements<X, Y>())
    return internals::Unlost<X>{};
  else
    return mean(square(subtract(x, y, here), here), here);
}
/// The mean of |x - y| over all elements.
template <Distributed X, Distributed Y>
constexpr auto mean_absolute_error(const X& x, const Y& y, Here here = {}) {
  if constexpr (!internals::accept_elements<X, Y>())
    return internals::Unlost<X>{};
  else
    return mean(abs(subtract(x, y, here), here), here);
}

}  // namespace parallel
