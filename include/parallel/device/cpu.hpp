// The CPU as a device: which kernel computes an operation.
#pragma once
#include <parallel/device/cpu/attention.hpp>
#include <parallel/device/cpu/broadcast.hpp>
#include <parallel/device/cpu/cross_entropy.hpp>
#include <parallel/device/cpu/device.hpp>
#include <parallel/device/cpu/elementwise.hpp>
#include <parallel/device/cpu/embedding.hpp>
#include <parallel/device/cpu/matmul.hpp>
#include <parallel/device/cpu/movement.hpp>
#include <parallel/device/cpu/norm.hpp>
#include <parallel/device/cpu/optimizer.hpp>
#include <parallel/device/cpu/random.hpp>
#include <parallel/device/cpu/reduce.hpp>
#include <parallel/device/cpu/softmax.hpp>
#include <parallel/device/cpu/source.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/add.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/cast.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/multiply.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/scale.hpp>
#include <parallel/operation/slice.hpp>
#include <parallel/operation/softmax.hpp>
#include <parallel/operation/source.hpp>
#include <parallel/operation/transpose.hpp>
#include <parallel/operation/unary.hpp>
#include <parallel/operation/update.hpp>
#include <parallel/operation/where.hpp>

namespace parallel::cpu {

// clang-format off
template <class T>
std::span<const CpuKernels> Table<T>::kernels() {
  static constexpr CpuKernels all[]{
    // operation                             float                           double                           int             indices, mask
    {&operation::add,                        add<float>,                     add<double>,                     add<int>},
    {&operation::subtract,                   subtract<float>,                subtract<double>,                subtract<int>},
    {&operation::multiply,                   multiply<float>,                multiply<double>,                multiply<int>},
    {&operation::divide,                     divide<float>,                  divide<double>},
    {&operation::accumulate,                 accumulate<float>,              accumulate<double>},
    {&operation::where,                      where<float>,                   where<double>,                   where<int>,         0},
    {&operation::masked,                     masked<float>,                  masked<double>,                  nullptr,            0},
    {&operation::scale,                      scale<float>,                   scale<double>},
    {&operation::square,                     square<float>,                  square<double>},
    {&operation::sqrt,                       sqrt<float>,                    sqrt<double>},
    {&operation::exp,                        exp<float>,                     exp<double>},
    {&operation::relu,                       relu<float>,                    relu<double>},
    {&operation::relu_derivative,            relu_gradient<float>,           relu_gradient<double>},
    {&operation::gelu,                       gelu<float>,                    gelu<double>},
    {&operation::gelu_derivative,            gelu_gradient<float>,           gelu_gradient<double>},
    {&operation::gelu_erf,                   gelu_erf<float>,                gelu_erf<double>},
    {&operation::gelu_erf_derivative,        gelu_erf_gradient<float>,       gelu_erf_gradient<double>},

    {&operation::matmul,                     matmul<float>,                  matmul<double>},
    {&operation::attention,                  attention<float>,               attention<double>},
    {&operation::attention_derivative,       attention_gradient<float>,      attention_gradient<double>},

    {&operation::sum,                        sum<float>,                     sum<double>},
    {&operation::sum_to,                     sum_to<float>,                  sum_to<double>},
    {&operation::expand,                     expand<float>,                  expand<double>},
    {&operation::local_max,                  local_max<float>,               local_max<double>},
    {&operation::count_maxima,               count_maxima<float>,            count_maxima<double>},
    {&operation::max_derivative,             max_gradient<float>,            max_gradient<double>},

    {&operation::sum_of_exponentials,        sum_of_exponentials<float>,     sum_of_exponentials<double>},
    {&operation::normalized_exponential,     normalized_exponential<float>,  normalized_exponential<double>},
    {&operation::row_product,                row_product<float>,             row_product<double>},
    {&operation::softmax_derivative,         softmax_gradient<float>,        softmax_gradient<double>},
    {&operation::pick,                       pick<float>,                    pick<double>,                    nullptr,            1},
    {&operation::negative_log_likelihood,    negative_log_likelihood<float>, negative_log_likelihood<double>},
    {&operation::cross_entropy_derivative,   cross_entropy_gradient<float>,  cross_entropy_gradient<double>,  nullptr,            1},

    {&operation::row_mean,                   row_mean<float>,                row_mean<double>},
    {&operation::row_variance,               row_variance<float>,            row_variance<double>},
    {&operation::normalize,                  normalize<float>,               normalize<double>},
    {&operation::norm_products,              norm_products<float>,           norm_products<double>},
    {&operation::norm_derivative,            norm_gradient<float>,           norm_gradient<double>},
    {&operation::norm_parameter_derivative,  norm_parameter_gradient<float>, norm_parameter_gradient<double>},

    {&operation::embedding,                  embedding<float>,               embedding<double>,               nullptr,            0},
    {&operation::embedding_derivative,       embedding_gradient<float>,      embedding_gradient<double>,      nullptr,            0},
    {&operation::copy,                       copy<float>,                    copy<double>,                    copy<int>},
    {&operation::reshape,                    copy<float>,                    copy<double>,                    copy<int>},
    {&operation::maximum_of,                 copy<float>,                    copy<double>},
    {&operation::cast,                       cast<float>,                    cast<double>,                    cast<int>},
    {&operation::transpose,                  transpose<float>,               transpose<double>,               transpose<int>},
    {&operation::slice,                      slice<float>,                   slice<double>,                   slice<int>},
    {&operation::pad,                        pad<float>,                     pad<double>},
    {&operation::concatenate,                concatenate<float>,             concatenate<double>,             concatenate<int>},
    {&operation::constant,                   constant<float>,                constant<double>,                constant<int>},
    {&operation::iota,                       iota<float>,                    iota<double>,                    iota<int>},
    {&operation::random,                     random<float>,                  random<double>},
    {&operation::dropout,                    dropout<float>,                 dropout<double>},

    {&operation::square_sum,                 nullptr,                        square_sum},
    {&operation::add_scalars,                nullptr,                        add<double>},
    {&operation::clip,                       nullptr,                        clip},
    {&operation::sgd,                        sgd<float>,                     sgd<double>},
    {&operation::adamw,                      adamw<float>,                   adamw<double>},
  };
  return all;
}
// clang-format on

}  // namespace parallel::cpu
