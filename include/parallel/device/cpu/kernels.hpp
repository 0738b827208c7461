// Which kernel of the CPU computes an operation.
#pragma once
#include <parallel/device/cpu/attention.hpp>
#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/cross_entropy.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/embedding.hpp>
#include <parallel/device/cpu/fused.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/movement.hpp>
#include <parallel/device/cpu/norm.hpp>
#include <parallel/device/cpu/optimizer.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/cpu/reduce.hpp>
#include <parallel/device/cpu/rotary.hpp>
#include <parallel/device/cpu/sample.hpp>
#include <parallel/device/cpu/softmax.hpp>
#include <parallel/device/cpu/source.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/multiply.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/remember.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/rotary.hpp>
#include <parallel/operation/sample.hpp>
#include <parallel/operation/scale.hpp>
#include <parallel/operation/slice.hpp>
#include <parallel/operation/softmax.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/transpose.hpp>
#include <parallel/operation/unary.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/operation/where.hpp>

namespace parallel::internals::cpu {

// clang-format off
template <class T>
std::span<const KernelRow> Table<T>::kernels() {
  if constexpr (std::is_same_v<T, int>) {  // whole numbers are moved and chosen
    static constexpr KernelRow all[]{
      {&operation::add,                         add<int>},
      {&operation::subtract,                    subtract<int>},
      {&operation::multiply,                    multiply<int>},
      {&operation::where,                       where<int>,                      0},
      {&operation::drawn,                       drawn},
      {&operation::copy,                        copy<int>},
      {&operation::reshape,                     copy<int>},
      {&operation::cast,                        cast<int>},
      {&operation::transpose,                   transpose<int>},
      {&operation::slice,                       slice<int>},
      {&operation::concatenate,                 concatenate<int>},
      {&operation::constant,                    constant<int>},
      {&operation::iota,                        iota<int>},
    };
    return all;
  } else if constexpr (std::is_same_v<T, Scalars>) {  // what the optimizer decides by: doubles, whatever the type of the gradients
    static constexpr KernelRow all[]{
      {&operation::square_sum,                  square_sum},
      {&operation::add_scalars,                 add<double>},
      {&operation::clip,                        clip},
      {&operation::digit_histogram,             digit_histogram},
      {&operation::narrow,                      narrow},
      {&operation::draw,                        draw},
    };
    return all;
  } else {
    static constexpr KernelRow all[]{
      // operation                              kernel                          operand of whole numbers: indices, a
      // mask
      {&operation::add,                         add<T>},
      {&operation::subtract,                    subtract<T>},
      {&operation::multiply,                    multiply<T>},
      {&operation::divide,                      divide<T>},
      {&operation::accumulate,                  accumulate<T>},
      {&operation::where,                       where<T>,                       0},
      {&operation::masked,                      masked<T>,                      0},
      {&operation::scale,                       scale<T>},
      {&operation::square,                      square<T>},
      {&operation::sqrt,                        sqrt<T>},
      {&operation::exp,                         exp<T>},
      {&operation::log,                         log<T>},
      {&operation::tanh,                        tanh<T>},
      {&operation::sigmoid,                     sigmoid<T>},
      {&operation::relu,                        relu<T>},
      {&operation::relu_derivative,             relu_gradient<T>},
      {&operation::gelu,                        gelu<T>},
      {&operation::gelu_derivative,             gelu_gradient<T>},
      {&operation::gelu_erf,                    gelu_erf<T>},
      {&operation::gelu_erf_derivative,         gelu_erf_gradient<T>},
      {&operation::silu,                        silu<T>},
      {&operation::silu_derivative,             silu_gradient<T>},

      {&operation::matmul,                      matmul<T>},
      {&operation::rotary,                      rotary<T>},
      {&operation::attention,                   attention<T>},
      {&operation::attention_derivative,        attention_gradient<T>},

      {&operation::sum,                         sum<T>},
      {&operation::sum_to,                      sum_to<T>},
      {&operation::expand,                      expand<T>},
      {&operation::local_max,                   local_max<T>},
      {&operation::count_maxima,                count_maxima<T>},
      {&operation::max_derivative,              max_gradient<T>},

      {&operation::sum_of_exponentials,         sum_of_exponentials<T>},
      {&operation::normalized_exponential,      normalized_exponential<T>},
      {&operation::row_product,                 row_product<T>},
      {&operation::softmax_derivative,          softmax_gradient<T>},
      {&operation::class_maximum,               class_maximum<T>},
      {&operation::class_exponentials,          class_exponentials<T>},
      {&operation::rescaled_exponentials,       rescaled_exponentials<T>},
      {&operation::class_mean,                  class_mean<T>},
      {&operation::count_targets,               count_targets<T>,               0},
      {&operation::pick,                        pick<T>,                        1},
      {&operation::negative_log_likelihood,     negative_log_likelihood<T>},
      {&operation::cross_entropy_derivative,    cross_entropy_gradient<T>,      1},

      {&operation::norm_rows,                   norm_rows<T>},
      {&operation::norm_rows_derivative,        norm_rows_gradient<T>},
      {&operation::row_mean,                    row_mean<T>},
      {&operation::row_variance,                row_variance<T>},
      {&operation::normalize,                   normalize<T>},
      {&operation::norm_products,               norm_products<T>},
      {&operation::norm_derivative,             norm_gradient<T>},
      {&operation::norm_parameter_derivative,   norm_parameter_gradient<T>},

      {&operation::embedding,                   embedding<T>,                   0},
      {&operation::embedding_derivative,        embedding_gradient<T>,          0},
      {&operation::copy,                        copy<T>},
      {&operation::stash,                       copy<T>},
      {&operation::reshape,                     copy<T>},
      {&operation::bucket,                      bucket<T>},
      {&operation::maximum_of,                  copy<T>},
      {&operation::cast,                        cast<T>},
      {&operation::rounded,                     rounded<T>},
      {&operation::transpose,                   transpose<T>},
      {&operation::slice,                       slice<T>},
      {&operation::pad,                         pad<T>},
      {&operation::write,                       write<T>},
      {&operation::concatenate,                 concatenate<T>},
      {&operation::constant,                    constant<T>},
      {&operation::iota,                        iota<T>},
      {&operation::random,                      random<T>},
      {&operation::dropout,                     dropout<T>},

      {&operation::sgd,                         sgd<T>},
      {&operation::adamw,                       adamw<T>},
    };
    return all;
  }
}
template <class T>
std::span<const FusedRow> Table<T>::fused() {
  if constexpr (std::is_floating_point_v<T>) {
    static constexpr FusedRow all[]{
      {{&operation::matmul, &operation::add},   {matmul_add<T>}},
      {{},                                      {in_pieces}},
    };
    return all;
  } else {
    return {};
  }
}
// clang-format on

}  // namespace parallel::internals::cpu
