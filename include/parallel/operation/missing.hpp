// What looks natural on a tensor and does not exist: each is one refusal instead of a compiler's search through
// overloads.
#pragma once
#include <cstddef>
#include <type_traits>

#include <parallel/operation/called.hpp>
#include <parallel/operation/windows.hpp>

namespace parallel::internals {

/// What an operation gives that is called otherwise than its entry says.
template <class Called, Distributed X>
constexpr auto called_otherwise() {
  using refused [[maybe_unused]] =
      typename std::conditional_t<X::kind == Kind::refused, std::type_identity<void>,
                                  refused::other_arguments<Called, figure::dimensions<X::type.layout.rank()>>>::type;
  return typename Symbolic<X, Kind::refused>::type{};
}

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

/// A tensor that is given to what does not exist. A function of one's own with such a name goes before that, since its
/// operands need no conversion.
struct Stranger {
  template <Distributed X>
  constexpr Stranger(const X&) {
    static_cast<void>(mistaken<Reason::no_operation, X>());
  }
};
template <auto...>
struct Missing {
  using type = Traced<float, Kind::refused, Shape<>>;
};
/// A tensor that is given to an operation otherwise than its entry says: the operation itself goes before this.
template <class Called>
struct Otherwise {
  template <Distributed X>
  constexpr Otherwise(const X&) {
    static_cast<void>(called_otherwise<Called, X>());
  }
};
// With what is no tensor: a model that is not called, a vector of numbers. An operator of one's own, which takes a
// tensor without a conversion, goes before that.
struct AnyTensor {
  template <Distributed X>
  constexpr AnyTensor(const X&) {}
};
template <class X>
concept NoTensor = std::is_class_v<X> && !Distributed<X> && !std::is_convertible_v<X&, double>;
template <class Other>
constexpr auto no_operand() {
  static_assert(sizeof(Other) == 0,
                "parallel: an operand is no tensor; call a model, net(x) - y, and let a program take numbers as an "
                "input, or as a constant, which is one number");
  return typename NoResult<Other>::type{};
}
#define PARALLEL_MISSING(operation)                                   \
  template <NoTensor Other>                                           \
  constexpr auto operator operation(const Other&, const AnyTensor&) { \
    return no_operand<Other>();                                       \
  }                                                                   \
  template <NoTensor Other>                                           \
  constexpr auto operator operation(const AnyTensor&, const Other&) { \
    return no_operand<Other>();                                       \
  }
PARALLEL_MISSING(+)
PARALLEL_MISSING(-)
PARALLEL_MISSING(*)
PARALLEL_MISSING(/)
#undef PARALLEL_MISSING

// Some write dimensions in <>.
#define PARALLEL_MISSING(function)                \
  template <auto... numbers>                      \
  constexpr auto function(const Stranger&, ...) { \
    return typename Missing<numbers...>::type();  \
  }
PARALLEL_MISSING(fabs)
PARALLEL_MISSING(tan)
PARALLEL_MISSING(asin)
PARALLEL_MISSING(acos)
PARALLEL_MISSING(atan)
PARALLEL_MISSING(sinh)
PARALLEL_MISSING(cosh)
PARALLEL_MISSING(erf)
PARALLEL_MISSING(erfc)
PARALLEL_MISSING(log1p)
PARALLEL_MISSING(log2)
PARALLEL_MISSING(log10)
PARALLEL_MISSING(expm1)
PARALLEL_MISSING(exp2)
PARALLEL_MISSING(rsqrt)
PARALLEL_MISSING(floor)
PARALLEL_MISSING(ceil)
PARALLEL_MISSING(round)
PARALLEL_MISSING(conv1d)
PARALLEL_MISSING(conv2d)
PARALLEL_MISSING(conv3d)
PARALLEL_MISSING(linear)
PARALLEL_MISSING(permute)
PARALLEL_MISSING(swapaxes)
PARALLEL_MISSING(moveaxis)
PARALLEL_MISSING(flatten)
PARALLEL_MISSING(ravel)
PARALLEL_MISSING(squeeze)
PARALLEL_MISSING(unsqueeze)
PARALLEL_MISSING(expand_dims)
PARALLEL_MISSING(expand)
PARALLEL_MISSING(broadcast_to)
PARALLEL_MISSING(repeat)
PARALLEL_MISSING(tile)
PARALLEL_MISSING(flip)
PARALLEL_MISSING(roll)
PARALLEL_MISSING(cat)
PARALLEL_MISSING(concat)
PARALLEL_MISSING(stack)
PARALLEL_MISSING(hstack)
PARALLEL_MISSING(vstack)
PARALLEL_MISSING(split)
PARALLEL_MISSING(narrow)
PARALLEL_MISSING(select)
PARALLEL_MISSING(index_select)
PARALLEL_MISSING(masked_fill)
PARALLEL_MISSING(masked_select)
PARALLEL_MISSING(tril)
PARALLEL_MISSING(triu)
PARALLEL_MISSING(pad)
PARALLEL_MISSING(mm)
PARALLEL_MISSING(bmm)
PARALLEL_MISSING(mv)
PARALLEL_MISSING(dot)
PARALLEL_MISSING(outer)
PARALLEL_MISSING(tensordot)
PARALLEL_MISSING(amax)
PARALLEL_MISSING(amin)
PARALLEL_MISSING(prod)
PARALLEL_MISSING(cumsum)
PARALLEL_MISSING(cumprod)
PARALLEL_MISSING(var)
PARALLEL_MISSING(norm)
PARALLEL_MISSING(logsumexp)
PARALLEL_MISSING(sort)
PARALLEL_MISSING(argsort)
PARALLEL_MISSING(clip)
PARALLEL_MISSING(leaky_relu)
PARALLEL_MISSING(elu)
PARALLEL_MISSING(selu)
PARALLEL_MISSING(relu6)
PARALLEL_MISSING(swish)
PARALLEL_MISSING(mish)
PARALLEL_MISSING(hardtanh)
PARALLEL_MISSING(log_sigmoid)
PARALLEL_MISSING(zeros_like)
PARALLEL_MISSING(ones_like)
PARALLEL_MISSING(full_like)
PARALLEL_MISSING(one_hot)
PARALLEL_MISSING(mse_loss)
PARALLEL_MISSING(l1_loss)
PARALLEL_MISSING(smooth_l1_loss)
PARALLEL_MISSING(nll_loss)
PARALLEL_MISSING(max_pool2d)
PARALLEL_MISSING(avg_pool2d)
PARALLEL_MISSING(group_norm)
PARALLEL_MISSING(detach)
PARALLEL_MISSING(stop_gradient)
PARALLEL_MISSING(repeat_interleave)
PARALLEL_MISSING(scaled_dot_product_attention)
PARALLEL_MISSING(take_along_axis)
PARALLEL_MISSING(chunk)
PARALLEL_MISSING(unbind)
PARALLEL_MISSING(nonzero)
PARALLEL_MISSING(kl_div)
PARALLEL_MISSING(cosine_similarity)
PARALLEL_MISSING(interpolate)
PARALLEL_MISSING(remainder)
PARALLEL_MISSING(addmm)
PARALLEL_MISSING(logaddexp)
PARALLEL_MISSING(conv_transpose2d)
PARALLEL_MISSING(apply_rotary_emb)
#undef PARALLEL_MISSING
#define PARALLEL_MISSING(function)                    \
  template <Distributed X, class... More>             \
  constexpr auto function(const X&, const More&...) { \
    return mistaken<Reason::no_operation, X>();       \
  }
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

// With the dimension, and otherwise.
#define PARALLEL_DIMENSION(function)                                         \
  template <auto first, auto... more>                                        \
  constexpr auto function(const Otherwise<figure::called::function>&, ...) { \
    return typename Missing<first, more...>::type();                         \
  }
PARALLEL_DIMENSION(sum)
PARALLEL_DIMENSION(mean)
PARALLEL_DIMENSION(max)
PARALLEL_DIMENSION(min)
// So, and without the dimension along which they go.
#define PARALLEL_ALONG(function)                      \
  PARALLEL_DIMENSION(function)                        \
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
#undef PARALLEL_DIMENSION

// With other arguments than they take: what converts to their own goes before an ellipsis.
#define PARALLEL_OTHERWISE(function, words)                                  \
  template <words numbers>                                                   \
  constexpr auto function(const Otherwise<figure::called::function>&, ...) { \
    return typename Missing<numbers...>::type();                             \
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
PARALLEL_OTHERWISE(embedding, int...)
PARALLEL_OTHERWISE(rotary, int...)
#if __cpp_nontype_template_args >= 201911L
PARALLEL_OTHERWISE(dropout, double...)
#else
PARALLEL_OTHERWISE(dropout, int...)
#endif
PARALLEL_OTHERWISE(reshape, auto...)
PARALLEL_OTHERWISE(transpose, auto...)
PARALLEL_OTHERWISE(relu, auto...)
PARALLEL_OTHERWISE(gelu, auto...)
PARALLEL_OTHERWISE(sigmoid, auto...)
PARALLEL_OTHERWISE(silu, auto...)
PARALLEL_OTHERWISE(softplus, auto...)
PARALLEL_OTHERWISE(square, auto...)
PARALLEL_OTHERWISE(tanh, auto...)
PARALLEL_OTHERWISE(sqrt, auto...)
PARALLEL_OTHERWISE(exp, auto...)
PARALLEL_OTHERWISE(log, auto...)
PARALLEL_OTHERWISE(batched_matmul, auto...)
PARALLEL_OTHERWISE(document_attention, auto...)
PARALLEL_OTHERWISE(attention_from, auto...)
PARALLEL_OTHERWISE(remember, auto...)
PARALLEL_OTHERWISE(sample, auto...)
PARALLEL_OTHERWISE(pow, auto...)
PARALLEL_OTHERWISE(maximum, auto...)
PARALLEL_OTHERWISE(minimum, auto...)
PARALLEL_OTHERWISE(abs, auto...)
PARALLEL_OTHERWISE(cos, auto...)
PARALLEL_OTHERWISE(sin, auto...)
PARALLEL_OTHERWISE(sign, auto...)
PARALLEL_OTHERWISE(reciprocal, auto...)
PARALLEL_OTHERWISE(gelu_erf, auto...)
PARALLEL_OTHERWISE(masked_attention, int...)
PARALLEL_OTHERWISE(cast, auto...)
#undef PARALLEL_OTHERWISE
// A context stands behind whether it is causal.
#define PARALLEL_WITHOUT_CAUSAL(function)                                                         \
  template <auto context, Distributed Q, class... More>                                           \
  requires(std::is_enum_v<decltype(context)>) constexpr auto function(const Q&, const More&...) { \
    return called_otherwise<figure::called::function, Q>();                                       \
  }
PARALLEL_WITHOUT_CAUSAL(attention)
PARALLEL_WITHOUT_CAUSAL(masked_attention)
#undef PARALLEL_WITHOUT_CAUSAL
template <Distributed X, class... More>
constexpr auto einsum(const char*, const X&, const More&...) {
  return called_otherwise<figure::called::einsum, X>();
}
template <const Axis&... axes, Distributed X, class... More>
requires(sizeof...(axes) > 0) constexpr auto to(const X&, const More&...) {
  return mistaken<Reason::no_placement, X>();
}
template <const Axis& axis, Placement placement, Distributed X>
constexpr auto to(const X&, Here = {}) {
  return mistaken<Reason::no_placement, X>();
}
template <class S, Placement... placements, Distributed X>
requires(sizeof...(placements) > 0) constexpr auto to(const X&, Here = {}) {
  return mistaken<Reason::no_placement, X>();
}
template <Placement... placements, Distributed X, class... More>
requires(sizeof...(placements) + sizeof...(More) > 0) constexpr auto to(const X&, const More&...) {
  return mistaken<Reason::no_placement, X>();
}

// Of one tensor alone an ellipsis is as good as nothing, and to clang 16 a pack is, too.
#define PARALLEL_POOL(function)                                                          \
  template <HeightWidth... numbers, Distributed X, class... More>                        \
  requires(sizeof...(numbers) == 0 || sizeof...(numbers) > 3 ||                          \
           (sizeof...(More) > 0 && !(std::is_same_v<More, Here> || ...))) constexpr auto \
  function(const X&, const More&...) {                                                   \
    return called_otherwise<figure::called::function, X>();                              \
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
  /// No function, either.
  template <class... A>
  constexpr auto detach(const A&...) const {
    return typename NoMethod<sizeof...(A), Reason::no_operation>::type{};
  }
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
