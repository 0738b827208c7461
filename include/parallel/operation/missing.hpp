// What looks natural on a tensor and does not exist: each is one refusal instead of a compiler's search through
// overloads.
#pragma once
#include <cstddef>
#include <type_traits>

#include <parallel/operation/windows.hpp>

namespace parallel::internals {

// A result is another value, mostly of another type.
#define PARALLEL_MISSING(assignment)                          \
  template <Distributed X, class Y>                           \
  constexpr auto& operator assignment(X& x, const Y&) {       \
    static_cast<void>(mistaken<Reason::rebound, X>());        \
    if (x.program() != nullptr) x.program()->mistaken = true; \
    return x;                                                 \
  }
PARALLEL_MISSING(+=)
PARALLEL_MISSING(-=)
PARALLEL_MISSING(*=)
PARALLEL_MISSING(/=)
#undef PARALLEL_MISSING

template <Distributed X>
constexpr auto& operator++(X& x) {
  return x += 1;
}
template <Distributed X>
constexpr auto& operator++(X& x, int) {
  return x += 1;
}

// A function of one's own with such a name goes before these: it has no pack.
#define PARALLEL_MISSING(function)                    \
  template <Distributed X, class... More>             \
  constexpr auto function(const X&, const More&...) { \
    return mistaken<Reason::no_operation, X>();       \
  }
PARALLEL_MISSING(fabs)
PARALLEL_MISSING(tan)
PARALLEL_MISSING(erf)
PARALLEL_MISSING(log1p)
PARALLEL_MISSING(expm1)
PARALLEL_MISSING(floor)
PARALLEL_MISSING(ceil)
PARALLEL_MISSING(round)
PARALLEL_MISSING(conv1d)
PARALLEL_MISSING(conv2d)
PARALLEL_MISSING(linear)
PARALLEL_MISSING(permute)
PARALLEL_MISSING(flatten)
PARALLEL_MISSING(squeeze)
PARALLEL_MISSING(unsqueeze)
PARALLEL_MISSING(cat)
PARALLEL_MISSING(stack)
PARALLEL_MISSING(mm)
PARALLEL_MISSING(bmm)
PARALLEL_MISSING(dot)
PARALLEL_MISSING(var)
PARALLEL_MISSING(norm)
PARALLEL_MISSING(leaky_relu)
PARALLEL_MISSING(elu)
PARALLEL_MISSING(zeros_like)
PARALLEL_MISSING(ones_like)
PARALLEL_MISSING(one_hot)
PARALLEL_MISSING(mse_loss)
PARALLEL_MISSING(nll_loss)
PARALLEL_MISSING(detach)
PARALLEL_MISSING(stop_gradient)
PARALLEL_MISSING(operator%)
PARALLEL_MISSING(operator^)
PARALLEL_MISSING(operator|)
#undef PARALLEL_MISSING
template <Distributed X, class Y>
constexpr auto operator&(const X&, const Y&) {  // no pack, of which one operand is an address
  return mistaken<Reason::no_operation, X>();
}
template <Distributed X>
constexpr auto operator~(const X&) {
  return mistaken<Reason::no_operation, X>();
}

// With more than they take: others name the larger of two values so, or the dimension.
#define PARALLEL_AND_MORE(function, reason)                          \
  template <Distributed X, class Second, class... More>              \
  constexpr auto function(const X&, const Second&, const More&...) { \
    return mistaken<Reason::reason, X>();                            \
  }
PARALLEL_AND_MORE(max, larger_of_two)
PARALLEL_AND_MORE(min, larger_of_two)
PARALLEL_AND_MORE(fmax, larger_of_two)
PARALLEL_AND_MORE(fmin, larger_of_two)
PARALLEL_AND_MORE(sum, no_dimension)
PARALLEL_AND_MORE(mean, no_dimension)
#undef PARALLEL_AND_MORE

// Without the dimension along which they go.
#define PARALLEL_ALONG(function)                      \
  template <Distributed X, class... More>             \
  constexpr auto function(const X&, const More&...) { \
    return mistaken<Reason::no_dimension, X>();       \
  }
PARALLEL_ALONG(softmax)
PARALLEL_ALONG(log_softmax)
PARALLEL_ALONG(cumulative_sum)
PARALLEL_ALONG(argmax)
PARALLEL_ALONG(argmin)
PARALLEL_ALONG(top_k)
PARALLEL_ALONG(concatenate)
PARALLEL_ALONG(gather)
PARALLEL_ALONG(scatter_add)
PARALLEL_ALONG(slice)
PARALLEL_ALONG(take)
#undef PARALLEL_ALONG

// With other arguments than they take: what converts to their own goes before an ellipsis.
#define PARALLEL_OTHERWISE(function, words)        \
  template <words, Distributed X>                  \
  constexpr auto function(const X&, ...) {         \
    return mistaken<Reason::other_arguments, X>(); \
  }
PARALLEL_OTHERWISE(convolution, HeightWidth...)
PARALLEL_OTHERWISE(transposed_convolution, HeightWidth...)
PARALLEL_OTHERWISE(batch_norm, int...)
PARALLEL_OTHERWISE(layer_norm, int...)
PARALLEL_OTHERWISE(rms_norm, int...)
PARALLEL_OTHERWISE(attention, int...)
PARALLEL_OTHERWISE(matmul, int...)
PARALLEL_OTHERWISE(cross_entropy, std::int64_t...)
PARALLEL_OTHERWISE(mean_cross_entropy, std::int64_t...)
PARALLEL_OTHERWISE(soft_cross_entropy, int...)
PARALLEL_OTHERWISE(binary_cross_entropy, int...)
PARALLEL_OTHERWISE(huber_loss, int...)
PARALLEL_OTHERWISE(mean_squared_error, int...)
PARALLEL_OTHERWISE(mean_absolute_error, int...)
PARALLEL_OTHERWISE(clamp, int...)
PARALLEL_OTHERWISE(where, int...)
#if __cpp_nontype_template_args >= 201911L
PARALLEL_OTHERWISE(dropout, double...)
#else
PARALLEL_OTHERWISE(dropout, int...)
#endif
#undef PARALLEL_OTHERWISE
#define PARALLEL_EXTENTS(function)                                  \
  template <Distributed X, class First, class... More>              \
  constexpr auto function(const X&, const First&, const More&...) { \
    return mistaken<Reason::other_arguments, X>();                  \
  }
PARALLEL_EXTENTS(reshape)
PARALLEL_EXTENTS(transpose)
PARALLEL_EXTENTS(relu)
PARALLEL_EXTENTS(gelu)
PARALLEL_EXTENTS(sigmoid)
PARALLEL_EXTENTS(silu)
PARALLEL_EXTENTS(softplus)
PARALLEL_EXTENTS(square)
#undef PARALLEL_EXTENTS
template <Distributed X, class... More>
constexpr auto einsum(const char*, const X&, const More&...) {
  return mistaken<Reason::other_arguments, X>();
}
template <const Axis&... axes, Distributed X>
requires(sizeof...(axes) > 0) constexpr auto to(const X&, Here = {}) { return mistaken<Reason::no_placement, X>(); }

// Of one tensor alone an ellipsis is as good as nothing, a pack is not.
#define PARALLEL_POOL(function)                           \
  template <HeightWidth..., Distributed X, class... More> \
  constexpr auto function(const X&, const More&...) {     \
    return mistaken<Reason::other_arguments, X>();        \
  }
PARALLEL_POOL(max_pool)
PARALLEL_POOL(average_pool)
#undef PARALLEL_POOL

/// Prints a tensor, which has no numbers yet: refused.
template <class Stream, Distributed X>
requires requires(Stream& stream) { stream.rdbuf(); }
constexpr Stream& operator<<(Stream& stream, const X&) {
  static_cast<void>(mistaken<Reason::no_number, X>());
  return stream;
}

/// What a method of a tensor gives: asking is the error.
template <int arguments, Reason reason = Reason::no_method>
struct NoMethod {
  using refused = typename Refused<reason, nullptr, arguments>::type;
  using type = Traced<float, Kind::refused, Shape<>>;
};
/// What are functions here and members elsewhere. No template, so that a tensor's type costs nothing more.
struct Methods {
#define PARALLEL_METHOD(name)                       \
  template <class... A>                             \
  constexpr auto name(const A&...) const {          \
    return typename NoMethod<sizeof...(A)>::type{}; \
  }
  PARALLEL_METHOD(abs)
  PARALLEL_METHOD(add)
  PARALLEL_METHOD(argmax)
  PARALLEL_METHOD(array)
  PARALLEL_METHOD(astype)
  PARALLEL_METHOD(at)
  PARALLEL_METHOD(block)
  PARALLEL_METHOD(cast)
  PARALLEL_METHOD(clamp)
  PARALLEL_METHOD(col)
  PARALLEL_METHOD(cols)
  PARALLEL_METHOD(colwise)
  PARALLEL_METHOD(contiguous)
  PARALLEL_METHOD(cos)
  PARALLEL_METHOD(cwiseAbs)
  PARALLEL_METHOD(cwiseProduct)
  PARALLEL_METHOD(cwiseQuotient)
  PARALLEL_METHOD(detach)
  PARALLEL_METHOD(dim)
  PARALLEL_METHOD(div)
  PARALLEL_METHOD(dot)
  PARALLEL_METHOD(eval)
  PARALLEL_METHOD(exp)
  PARALLEL_METHOD(expand)
  PARALLEL_METHOD(flatten)
  PARALLEL_METHOD(log)
  PARALLEL_METHOD(matmul)
  PARALLEL_METHOD(max)
  PARALLEL_METHOD(maxCoeff)
  PARALLEL_METHOD(mean)
  PARALLEL_METHOD(min)
  PARALLEL_METHOD(minCoeff)
  PARALLEL_METHOD(mul)
  PARALLEL_METHOD(norm)
  PARALLEL_METHOD(numel)
  PARALLEL_METHOD(permute)
  PARALLEL_METHOD(pow)
  PARALLEL_METHOD(relu)
  PARALLEL_METHOD(repeat)
  PARALLEL_METHOD(reshape)
  PARALLEL_METHOD(row)
  PARALLEL_METHOD(rows)
  PARALLEL_METHOD(rowwise)
  PARALLEL_METHOD(sigmoid)
  PARALLEL_METHOD(sin)
  PARALLEL_METHOD(size)
  PARALLEL_METHOD(softmax)
  PARALLEL_METHOD(sqrt)
  PARALLEL_METHOD(square)
  PARALLEL_METHOD(squaredNorm)
  PARALLEL_METHOD(squeeze)
  PARALLEL_METHOD(sub)
  PARALLEL_METHOD(sum)
  PARALLEL_METHOD(t)
  PARALLEL_METHOD(tanh)
  PARALLEL_METHOD(to)
  PARALLEL_METHOD(transpose)
  PARALLEL_METHOD(unaryExpr)
  PARALLEL_METHOD(unsqueeze)
  PARALLEL_METHOD(var)
  PARALLEL_METHOD(view)
#undef PARALLEL_METHOD
#define PARALLEL_NUMBERS(name)                                         \
  template <class... A>                                                \
  constexpr auto name(const A&...) const {                             \
    return typename NoMethod<sizeof...(A), Reason::no_number>::type{}; \
  }
  PARALLEL_NUMBERS(backward)
  PARALLEL_NUMBERS(cpu)
  PARALLEL_NUMBERS(data)
  PARALLEL_NUMBERS(item)
  PARALLEL_NUMBERS(numpy)
  PARALLEL_NUMBERS(tolist)
#undef PARALLEL_NUMBERS
  /// `x(0, 1)`
  template <class... Index>
  requires(sizeof...(Index) > 0 && (std::is_integral_v<Index> && ...)) constexpr auto operator()(Index...) const {
    return typename NoMethod<sizeof...(Index), Reason::no_subscript>::type{};
  }
  // a pointer, so that a loop over a tensor has no second error
#define PARALLEL_ITERATION(name)                                                                \
  template <class... A>                                                                         \
  constexpr auto name(const A&...) const {                                                      \
    const typename NoMethod<sizeof...(A), Reason::no_subscript>::type* const nowhere = nullptr; \
    return nowhere;                                                                             \
  }
  PARALLEL_ITERATION(begin)
  PARALLEL_ITERATION(end)
#undef PARALLEL_ITERATION
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) constexpr explicit operator Number() const {
    using refused [[maybe_unused]] = typename NoMethod<std::is_same_v<Number, bool>, Reason::no_number>::refused;
    return {};
  }
};

}  // namespace parallel::internals
