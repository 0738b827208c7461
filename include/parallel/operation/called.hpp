// How each operation is called: what is said where it is given other arguments.
#pragma once
#include <parallel/algebra/refusal.hpp>

namespace parallel {

// How operations are called: with other arguments each says so itself, behind the sentence of the reason.
#define PARALLEL_CALLED(operation, call)                                                                           \
  namespace figure::called {                                                                                       \
  struct operation;                                                                                                \
  }                                                                                                                \
  template <class... Figures>                                                                                      \
  struct refused::other_arguments<figure::called::operation, Figures...> {                                         \
    static_assert(sizeof...(Figures) > 99,                                                                         \
                  "parallel: an operation is called with other arguments; extents, strides, windows, letters and " \
                  "numbers of classes stand in <>, tensors and other numbers in (), in the order of "              \
                  "docs/operations.md: write " call);                                                              \
    using type = void;                                                                                             \
  };
PARALLEL_CALLED(convolution, "convolution<1, 1>(x, weight), with its stride and padding, without a bias or groups")
PARALLEL_CALLED(transposed_convolution, "transposed_convolution<2, 1>(x, weight), with its stride and padding")
PARALLEL_CALLED(max_pool, "max_pool<2>(x), with its window")
PARALLEL_CALLED(average_pool, "average_pool<2>(x), with its window")
PARALLEL_CALLED(batch_norm,
                "batch_norm(x, gain, shift), or with what was learnt batch_norm(x, gain, shift, mean, variance)")
PARALLEL_CALLED(layer_norm, "layer_norm(x, gain, shift) or layer_norm(x, gain), whose gain and shift are Parameters")
PARALLEL_CALLED(rms_norm, "rms_norm(x, gain), whose gain is a Parameter")
PARALLEL_CALLED(
    attention,
    "attention(q, k, v), which is causal, attention<false>(q, k, v), along a split sequence attention<true, "
    "Context::ring>(q, k, v), or with a mask masked_attention(q, k, v, seen)")
PARALLEL_CALLED(matmul, "matmul(x, w), of two tensors; a transposed one is matmul(x, transpose(w))")
PARALLEL_CALLED(cross_entropy, "cross_entropy(logits, target), whose targets are classes in a tensor of int")
PARALLEL_CALLED(mean_cross_entropy, "mean_cross_entropy(logits, target), whose targets are classes in a tensor of int")
PARALLEL_CALLED(soft_cross_entropy, "soft_cross_entropy(logits, probabilities)")
PARALLEL_CALLED(binary_cross_entropy, "binary_cross_entropy(logits, targets)")
PARALLEL_CALLED(huber_loss, "huber_loss(x, y, 1.0), of two tensors")
PARALLEL_CALLED(mean_squared_error, "mean_squared_error(x, y), of two tensors")
PARALLEL_CALLED(mean_absolute_error, "mean_absolute_error(x, y), of two tensors")
PARALLEL_CALLED(clamp, "clamp(x, -1.0, 1.0), with both bounds")
PARALLEL_CALLED(where, "where(x > 0, x, y), of a mask and two tensors; a number is constant<float, Shape<>>(0)")
PARALLEL_CALLED(dropout, "dropout(x, 0.1), with the probability, which is a number")
PARALLEL_CALLED(reshape, "reshape<16, 2>(x)")
PARALLEL_CALLED(transpose, "transpose(x), or with the order of its dimensions transpose<1, 0, 2>(x)")
PARALLEL_CALLED(einsum, "einsum<\"bi,ij->bj\">(x, w)")
PARALLEL_CALLED(relu, "relu(x), which is a new tensor")
PARALLEL_CALLED(gelu, "gelu(x), the approximation by tanh, or gelu_erf(x), the exact one")
PARALLEL_CALLED(sigmoid, "sigmoid(x)")
PARALLEL_CALLED(silu, "silu(x)")
PARALLEL_CALLED(softplus, "softplus(x)")
PARALLEL_CALLED(tanh, "tanh(x)")
PARALLEL_CALLED(sqrt, "sqrt(x), or for another power pow(x, 0.25)")
PARALLEL_CALLED(exp, "exp(x)")
PARALLEL_CALLED(log, "log(x), to the base e")
PARALLEL_CALLED(square, "square(x), or for another power pow(x, 3)")
PARALLEL_CALLED(sum,
                "sum<1>(x), along dimension 1, which the result has not, or sum(x); reshape<8, 1>(sum<1>(x)) keeps it")
PARALLEL_CALLED(
    mean, "mean<1>(x), along dimension 1, which the result has not, or mean(x); reshape<8, 1>(mean<1>(x)) keeps it")
PARALLEL_CALLED(max, "max<1>(x), along dimension 1, which the result has not; reshape<8, 1>(max<1>(x)) keeps it")
PARALLEL_CALLED(min, "min<1>(x), along dimension 1, which the result has not; reshape<8, 1>(min<1>(x)) keeps it")
PARALLEL_CALLED(softmax, "softmax<1>(x)")
PARALLEL_CALLED(log_softmax, "log_softmax<1>(x)")
PARALLEL_CALLED(cumulative_sum, "cumulative_sum<1>(x)")
PARALLEL_CALLED(argmax, "argmax<1>(x)")
PARALLEL_CALLED(argmin, "argmin<1>(x)")
PARALLEL_CALLED(top_k, "top_k<1, 5>(x), the five largest along dimension 1")
PARALLEL_CALLED(concatenate, "concatenate<1>(x, y), of two or more tensors along dimension 1")
PARALLEL_CALLED(
    gather, "gather<0>(x, index), whose positions along dimension 0 are a tensor of int; one alone is take<0, 3>(x)")
PARALLEL_CALLED(scatter_add, "scatter_add<0>(x, index, source), of three tensors")
PARALLEL_CALLED(slice, "slice<0, 2, 5>(x), from 2 to before 5 along dimension 0")
PARALLEL_CALLED(take, "take<0, 3>(x), position 3 of dimension 0")
PARALLEL_CALLED(embedding, "embedding(index, table), of a tensor of int and a Parameter")
PARALLEL_CALLED(rotary, "rotary(x), rotary(x, position) or rotary(x, position, 10000.0)")
PARALLEL_CALLED(
    batched_matmul,
    "batched_matmul(x, y), of two tensors whose first dimensions are alike; with one matrix for all it is matmul(x, w)")
PARALLEL_CALLED(
    masked_attention,
    "masked_attention(q, k, v, seen), whose mask seen[batch, keys] is a tensor of int, 0 where nobody looks, or "
    "along a split sequence masked_attention<false, Context::ring>(q, k, v, seen)")
PARALLEL_CALLED(document_attention,
                "document_attention(q, k, v, documents), whose documents[batch, sequence] are a tensor of int")
PARALLEL_CALLED(attention_from,
                "attention_from(q, k, v, position), whose position is a tensor of int without dimensions")
PARALLEL_CALLED(
    remember,
    "remember<1, 64>(x, position), along dimension 1, which has room for 64, at a tensor of int without dimensions")
PARALLEL_CALLED(sample, "sample(logits); the temperature is a number of the run, executor.scalar(\"temperature\", 0.8)")
PARALLEL_CALLED(cast, "cast<float>(x), with the element type")
PARALLEL_CALLED(pow, "pow(x, 3), pow(x, y) or pow(2, y), of tensors and one number")
PARALLEL_CALLED(maximum, "maximum(x, y), of two tensors, or of a tensor and a number")
PARALLEL_CALLED(minimum, "minimum(x, y), of two tensors, or of a tensor and a number")
PARALLEL_CALLED(abs, "abs(x)")
PARALLEL_CALLED(cos, "cos(x)")
PARALLEL_CALLED(sin, "sin(x)")
PARALLEL_CALLED(sign, "sign(x)")
PARALLEL_CALLED(reciprocal, "reciprocal(x)")
PARALLEL_CALLED(gelu_erf, "gelu_erf(x), the exact one")
#undef PARALLEL_CALLED

}  // namespace parallel
