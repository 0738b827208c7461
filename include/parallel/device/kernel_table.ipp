// Which kernel computes an operation. This is included in a device's namespace: its kernels have the names that stand
// here.

// clang-format off
template <class T>
std::span<const KernelRow> Table<T>::kernels() {
  if constexpr (std::is_same_v<T, int>) {  // whole numbers are moved and chosen
    static constexpr KernelRow all[]{
      {&operation::add,                         binary<int, Add>},
      {&operation::subtract,                    binary<int, Subtract>},
      {&operation::multiply,                    binary<int, Multiply>},
      {&operation::where,                       where<int>,                     0},
      {&operation::drawn,                       drawn},
      {&operation::copy,                        copy},
      {&operation::reshape,                     copy},
      {&operation::cast,                        cast<int>},
      {&operation::transpose,                   transpose<int>},
      {&operation::slice,                       slice},
      {&operation::concatenate,                 concatenate},
      {&operation::constant,                    constant<int>},
      {&operation::iota,                        iota<int>},
    };
    return all;
  } else if constexpr (std::is_same_v<T, Scalars>) {  // what the optimizer decides by: doubles, whatever the type of the gradients
    static constexpr KernelRow all[]{
      {&operation::square_sum,                  square_sum},
      {&operation::add_scalars,                 add_scalars},
      {&operation::layer_squares,               layer_squares},
      {&operation::factored_update_squares,     factored_update_squares,       -1, true},
      {&operation::full_update_squares,         full_update_squares,           -1, true},
      {&operation::adafactor_size,              adafactor_size},
      {&operation::clip,                        clip},
      {&operation::digit_histogram,             digit_histogram},
      {&operation::narrow,                      narrow},
      {&operation::draw,                        draw},
    };
    return all;
  } else {
    static constexpr KernelRow all[]{
      // operation                              kernel                         operand of whole numbers: indices, a
      // mask; whether bf16 or f16 meets f32; whether states may be bf16
      {&operation::add,                         binary<T, Add>},
      {&operation::subtract,                    binary<T, Subtract>},
      {&operation::multiply,                    binary<T, Multiply>},
      {&operation::divide,                      binary<T, Divide>},
      {&operation::accumulate,                  accumulate<T>,                 -1, true},
      {&operation::where,                       where<T>,                       0},
      {&operation::masked,                      masked<T>,                      0},
      {&operation::scale,                       scale<T>},
      {&operation::scaled,                      scaled<T>,                     -1, true},
      {&operation::square,                      unary<T, Square>},
      {&operation::sqrt,                        unary<T, Sqrt>},
      {&operation::exp,                         unary<T, Exp<T>>},
      {&operation::log,                         unary<T, Log>},
      {&operation::tanh,                        unary<T, Tanh>},
      {&operation::sigmoid,                     unary<T, Sigmoid<T>>},
      {&operation::relu,                        relu<T>},
      {&operation::relu_derivative,             relu_gradient<T>},
      {&operation::gelu,                        unary<T, Gelu<T>>},
      {&operation::gelu_derivative,             gradient<T, GeluDerivative<T>>},
      {&operation::gelu_erf,                    unary<T, GeluErf<T>>},
      {&operation::gelu_erf_derivative,         gradient<T, GeluErfDerivative<T>>},
      {&operation::silu,                        unary<T, Silu<T>>},
      {&operation::silu_derivative,             gradient<T, SiluDerivative<T>>},

      {&operation::matmul,                      matmul<T>,                     -1, true},
      {&operation::rotary,                      rotary<T>},
      {&operation::attention,                   attention<T>,                  -1, true},
      {&operation::attention_derivative,        attention_gradient<T>,         -1, true},

      {&operation::convolution,                 convolution<T>},
      {&operation::transposed_convolution,      transposed_convolution<T>},
      {&operation::convolution_weight,          convolution_weight<T>},
      {&operation::max_pool,                    max_pool<T>},
      {&operation::max_pool_derivative,         max_pool_gradient<T>},
      {&operation::average_pool,                average_pool<T>},
      {&operation::average_pool_derivative,     average_pool_gradient<T>},
      {&operation::channel_mean,                channel_mean<T>,               -1, true},
      {&operation::channel_variance,            channel_variance<T>,           -1, true},
      {&operation::channel_normalize,           channel_normalize<T>,          -1, true},
      {&operation::channel_products,            channel_products<T>,           -1, true},
      {&operation::channel_derivative,          channel_gradient<T>,           -1, true},
      {&operation::gather,                      gather<T>,                      0},
      {&operation::scattered,                   scattered<T>,                   0},

      {&operation::sum,                         sum<T>,                        -1, true},
      {&operation::sum_to,                      sum_to<T>},
      {&operation::expand,                      expand<T>,                     -1, true},
      {&operation::local_max,                   local_max<T>},
      {&operation::count_maxima,                count_maxima<T>,               -1, true},
      {&operation::max_derivative,              max_gradient<T>,               -1, true},

      {&operation::sum_of_exponentials,         sum_of_exponentials<T>,        -1, true},
      {&operation::normalized_exponential,      normalized_exponential<T>,     -1, true},
      {&operation::row_product,                 row_product<T>,                -1, true},
      {&operation::softmax_derivative,          softmax_gradient<T>,           -1, true},
      {&operation::class_maximum,               class_maximum<T>,              -1, true},
      {&operation::class_exponentials,          class_exponentials<T>,         -1, true},
      {&operation::rescaled_exponentials,       rescaled_exponentials<T>},
      {&operation::class_mean,                  class_mean<T>,                 -1, true},
      {&operation::count_targets,               count_targets<T>,              0, true},
      {&operation::pick,                        pick<T>,                       1, true},
      {&operation::negative_log_likelihood,     negative_log_likelihood<T>,    -1, true},
      {&operation::cross_entropy_derivative,    cross_entropy_gradient<T>,     1, true},

      {&operation::norm_rows,                   norm_rows<T>,                  -1, true},
      {&operation::norm_rows_derivative,        norm_rows_gradient<T>,         -1, true},
      {&operation::row_mean,                    row_mean<T>,                   -1, true},
      {&operation::row_variance,                row_variance<T>,               -1, true},
      {&operation::normalize,                   normalize<T>,                  -1, true},
      {&operation::norm_products,               norm_products<T>,              -1, true},
      {&operation::norm_derivative,             norm_gradient<T>,              -1, true},
      {&operation::norm_parameter_derivative,   norm_parameter_gradient<T>,    -1, true},

      {&operation::embedding,                   embedding<T>,                   0},
      {&operation::embedding_derivative,        embedding_gradient<T>,         0, true},

      {&operation::copy,                        copy},
      {&operation::stash,                       copy},
      {&operation::reshape,                     copy},
      {&operation::bucket,                      bucket},
      {&operation::maximum_of,                  copy},
      {&operation::cast,                        cast<T>,                       -1, true},
      {&operation::rounded,                     rounded<T>,                    -1, true},
      {&operation::transpose,                   transpose<T>},
      {&operation::slice,                       slice},
      {&operation::pad,                         pad},
      {&operation::write,                       write},
      {&operation::concatenate,                 concatenate},
      {&operation::constant,                    constant<T>},
      {&operation::iota,                        iota<T>},
      {&operation::random,                      random<T>},
      {&operation::dropout,                     dropout<T>},

      {&operation::sgd,                         sgd<T>,                        -1, true},
      {&operation::momentum,                    momentum<T>,                   -1, true, true},
      {&operation::nesterov,                    nesterov<T>,                   -1, true, true},
      {&operation::adam,                        adam<T>,                       -1, true, true},
      {&operation::adamw,                       adamw<T>,                      -1, true, true},
      {&operation::lion,                        lion<T>,                       -1, true, true},
      {&operation::muon_momentum,               muon_momentum<T>,              -1, true},
      {&operation::muon_direction,              muon_direction<T>,             -1, true},
      {&operation::normalized,                  normalized<T>},
      {&operation::weighted_sum,                weighted_sum<T>},
      {&operation::muon,                        muon<T>},
      {&operation::muon_matching_adamw,         muon<T>},
      {&operation::factored_squares,            factored_squares<T>},
      {&operation::adafactor_mean,              adafactor_mean<T>,             -1, true},
      {&operation::adafactor_squares,           adafactor_squares<T>,          -1, true},
      {&operation::adafactor,                   adafactor<T>,                  -1, true},
      {&operation::adafactor_full,              adafactor_full<T>,             -1, true},
    };
    return all;
  }
}
// clang-format on
