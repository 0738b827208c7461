// Every operation on small operands, for tests that ask the definition by brute force.
#pragma once
#include <vector>

#include <parallel/parallel.hpp>
#include <parallel/run/trial.hpp>

namespace cases {

using namespace parallel;
using namespace parallel::internals;

struct Operand {
  std::vector<std::int64_t> size;
  DType dtype = DType::f64;
  int below = 0;  ///< whole numbers from 0 to below - 1, whatever the type
};
struct Case {
  const Operation* operation;
  std::vector<Operand> operands;
  Ints ints{};
  double first = 0, second = 0;
  bool positive = false;  ///< operands from 0.5 to 1.5, where the function is defined and smooth
};

/// Every extent that is split is a multiple of n.
inline std::vector<Case> of_operations(std::int64_t n) {
  const std::int64_t a = 2 * n, b = n, c = 3 * n;
  const auto whole = [](std::vector<std::int64_t> size, int below) {
    return Operand{std::move(size), DType::i32, below};
  };
  const auto few = [](std::vector<std::int64_t> size) {
    return Operand{std::move(size), DType::f64, 3};
  };  // some equal
  namespace op = operation;
  std::vector<Case> all{
      {&op::matmul, {{{a, c}}, {{c, b}}}, {1, 0, 0, 0}},
      {&op::matmul, {{{c, a}}, {{c, b}}}, {1, 1, 0, 0}},
      {&op::matmul, {{{a, c}}, {{b, c}}}, {1, 0, 1, 0}},
      {&op::matmul, {{{c, a}}, {{b, c}}}, {1, 1, 1, 0}},
      {&op::matmul, {{{b, a, c}}, {{c, b}}}, {1, 0, 0, 0}},
      {&op::matmul, {{{a, c}}, {{c, 3, b, 1}}}, {1, 0, 0, 0}},
      {&op::matmul, {{{a, b, c}}, {{b, c, a}}}, {2, 0, 0, 0}},
      {&op::matmul, {{{b, a, c}}, {{b, c, a}}}, {1, 0, 0, 1}},
      {&op::matmul, {{{1, a, c}}, {{1, c, b}}}, {1, 0, 0, 1}},
      {&op::add, {{{a, b}}, {{a, b}}}},
      {&op::add, {{{a, b}}, {{b}}}},
      {&op::add, {{{a, 1}}, {{b}}}},
      {&op::subtract, {{{a, b}}, {{a, b}}}},
      {&op::subtract, {{{b}}, {{a, b}}}},
      {&op::multiply, {{{a, b}}, {{a, b}}}},
      {&op::multiply, {{{a, b}}, {{b}}}},
      {&op::multiply, {{{}}, {{a, b}}}},
      {&op::divide, {{{a, b}}, {{a, b}}}, {}, 0, 0, true},
      {&op::divide, {{{b}}, {{a, b}}}, {}, 0, 0, true},
      {&op::scale, {{{a, b}}}, {}, 1.5},
      {&op::square, {{{a, b}}}},
      {&op::sqrt, {{{a, b}}}, {}, 0, 0, true},
      {&op::exp, {{{a, b}}}},
      {&op::log, {{{a, b}}}, {}, 0, 0, true},
      {&op::tanh, {{{a, b}}}},
      {&op::sigmoid, {{{a, b}}}},
      {&op::relu, {{{a, b}}}},
      {&op::gelu, {{{a, b}}}},
      {&op::gelu_erf, {{{a, b}}}},
      {&op::silu, {{{a, b}}}},
      {&op::where, {whole({a, b}, 2), {{a, b}}, {{a, b}}}},
      {&op::where, {whole({b}, 2), {{a, b}}, {{1}}}},
      {&op::softplus, {{{a, b}}}},
      {&op::sin, {{{a, b}}}},
      {&op::cos, {{{a, b}}}},
      {&op::abs, {{{a, b}}}},
      {&op::sign, {{{a, b}}}},
      {&op::clamp, {{{a, b}}}, {}, -0.4, 0.6},
      {&op::huber, {{{a, b}}}, {}, 0.5},
      {&op::larger, {{{a, b}}, {{a, b}}}},
      {&op::larger, {{{b}}, {{a, 1}}}},
      {&op::smaller, {{{a, b}}, {{b}}}},
      {&op::pow, {{{a, b}}, {{a, b}}}, {}, 0, 0, true},
      {&op::pow, {{{a, b}}, {{}}}, {}, 0, 0, true},
      {&op::pow, {{{b}}, {{a, 1}}}, {}, 0, 0, true},
      {&op::binary_cross_entropy, {{{a, b}}, {{a, b}}}},
      {&op::binary_cross_entropy, {{{a, 1}}, {{a, b}}}},
      {&op::binary_cross_entropy, {{{a, b}}, {{}}}},
      {&op::equal, {few({a, b}), few({a, b})}},
      {&op::not_equal, {few({a, b}), few({b})}},
      {&op::less, {few({b}), few({a, b})}},
      {&op::less_equal, {few({a, b}), few({a, 1})}},
      {&op::greater, {few({a, b}), few({})}},
      {&op::greater_equal, {whole({a, b}, 3), whole({a, b}, 3)}},
      {&op::concatenate, {{{a, b}}, {{a, b}}}, {1}},
      {&op::concatenate, {{{a, b}}, {{c, b}}}, {0}},
      {&op::slice, {{{a, b}}}, {0, 1, 1 + n}},
      {&op::slice, {{{a, b}}}, {1, 0, b}},
      {&op::layer_norm, {{{a, c}}, {{c}}, {{c}}}, {}, 1e-5},
      {&op::layer_norm, {{{a, b, c}}, {{c}}, {{c}}}, {}, 1e-5},
      {&op::rms_norm, {{{a, c}}, {{c}}}, {}, 1e-5},
      {&op::softmax, {{{a, c}}}, {1}},
      {&op::softmax, {{{a, b, c}}}, {0}},
      {&op::attention, {{{b, a, 2 * n, 3}}, {{b, a, 2 * n, 3}}, {{b, a, 2 * n, n}}}, {1, 0, 0}, 0.6},
      {&op::attention, {{{b, a, 2 * n, 3}}, {{b, a, 2 * n, 3}}, {{b, a, 2 * n, n}}, whole({b, a}, 2)}, {0, 1, 0}, 0.6},
      {&op::attention,
       {{{b, n, 2 * n, 3}}, {{b, a, n, 3}}, {{b, a, n, n}}, whole({b, a}, 2), whole({}, 3)},
       {1, 1, 1},
       0.6},
      {&op::attention, {{{a, n, n, 3}}, {{a, a, n, 3}}, {{a, a, n, n}}}, {0, 0, 0}, 0.6, 0.4},
      {&op::attention,
       {{{b, a, 2 * n, 3}}, {{b, a, n, 3}}, {{b, a, n, n}}, whole({b, a}, 2), whole({b, a}, 2)},
       {1, 2, 0},
       0.6},
      {&op::rotary, {{{b, a, n, 4}}}, {}, 100, 1},
      {&op::rotary, {{{b, n, 2 * n, 2}}, whole({}, 5)}, {}, 10000, 1},
      {&op::attention, {{{b, a, 2 * n, n}}, {{b, a, 2, n}}, {{b, a, 2, 2 * n}}}, {0, 0, 0}, 0.6},
      {&op::embedding, {whole({a}, static_cast<int>(c)), {{c, b}}}},
      {&op::embedding, {whole({b, a}, static_cast<int>(c)), {{c, b}}}},
      {&op::cross_entropy, {{{a, c}}, whole({a}, static_cast<int>(c))}, {c, no_target}},
      {&op::cross_entropy, {{{b, a, c}}, whole({b, a}, static_cast<int>(c))}, {c, no_target}},
      {&op::cross_entropy, {{{b, a, c}}, whole({b, a}, static_cast<int>(c))}, {c, 1}, 0.2},
      {&op::count_targets, {whole({a, b}, 3)}, {1, static_cast<int>(DType::f64)}},
      {&op::sample, {{{a, c}}}, {0, c}},
      {&op::sample, {{{b, a, c}}}, {3, c - 1}},
      {&op::dropout, {{{a, b}}}, {}, 0.3},
      {&op::sum, {{{a, b, c}}}, {1}, 1},
      {&op::sum, {{{a, b}}}, {}, 1.0 / static_cast<double>(a * b)},
      {&op::sum, {{{a, b, c}}}, {0, 2}, 0.5},
      {&op::max, {{{a, b, c}}}, {1}},
      {&op::max, {{{a, b}}}, {}},
      {&op::min, {{{a, b, c}}}, {1}},
      {&op::min, {{{a, b}}}, {}},
      {&op::argmax, {{{a, b, c}}}, {1}},
      {&op::argmin, {few({a, c})}, {1}},
      {&op::log_softmax, {{{a, c}}}, {1}},
      {&op::log_softmax, {{{a, b, c}}}, {0}},
      {&op::cumulative_sum, {{{a, b, c}}}, {1, 0}},
      {&op::cumulative_sum, {{{a, c}}}, {1, 1}},
      {&op::top_k_positions, {{{a, b, c}}}, {2, 3}},
      {&op::top_k_positions, {few({a, c})}, {0, n}},
      {&op::chosen, {{{a, b, c}}, whole({a, 1, c}, static_cast<int>(b))}, {1}},
      {&op::chosen, {{{a, b}}, whole({a, 1}, static_cast<int>(b))}, {1}},
      {&op::reshape, {{{a, c}}}, {a * c}},
      {&op::reshape, {{{a * c}}}, {a, c}},
      {&op::reshape, {{{a, b, c}}}, {a * b, c}},
      {&op::reshape, {{{b, a, 1, c}}}, {b, a, c}},
      {&op::reshape, {{{1, a, c}}}, {a * c}},
      {&op::transpose, {{{a, b}}}, {1, 0}},
      {&op::transpose, {{{a, b, c}}}, {2, 0, 1}},
      {&op::convolution, {{{a, b, 3, 4}}, {{c, b, 2, 3}}}, {1, 1, 0, 0}},
      {&op::convolution, {{{b, a, n, 2 * n}}, {{c, a, 3, 2}}}, {1, 1, 1, 0}},
      {&op::convolution, {{{b, a, 2 * n, 3 * n}}, {{c, a, 2, 3}}}, {2, 3, 0, 0}},
      {&op::convolution, {{{b, a, 2 * n, 4}}, {{c, a, 1, 3}}}, {2, 2, 0, 1}},
      {&op::convolution, {{{a, b, 2 * n}}, {{c, b, 3}}}, {1, 1}},
      {&op::convolution, {{{1, b, 3 * n}}, {{c, b, 2}}}, {3, 0}},
      {&op::transposed_convolution, {{{b, a, n, 2}}, {{a, c, 2, 3}}}, {2, 2, 0, 1, 0, 1}},
      {&op::transposed_convolution, {{{b, a, 2 * n}}, {{a, c, 3}}}, {2, 1, 1}},
      {&op::convolution_weight, {{{b, a, 2 * n, 3}}, {{b, c, n, 2}}}, {2, 1, 0, 0, 2, 2}},
      {&op::convolution_weight, {{{b, a, n}}, {{b, c, n}}}, {1, 1, 3}},
      {&op::max_pool, {{{a, b, 2 * n, 4}}}, {2, 1, 0, 1, 2, 3}},
      {&op::max_pool, {{{a, b, 3 * n}}}, {2, 1, 3}},
      {&op::average_pool, {{{a, b, 2 * n, 3 * n}}}, {2, 3, 0, 0, 1, 3}},
      {&op::average_pool, {{{a, b, 2 * n}}}, {1, 1, 2}},
      {&op::batch_norm, {{{a, c}}, {{c}}, {{c}}}, {}, 1e-5},
      {&op::batch_norm, {{{a, b, c}}, {{b}}, {{b}}}, {}, 1e-5},
      {&op::gather, {whole({a, b}, static_cast<int>(c)), {{a, c}}}, {1}},
      {&op::gather, {whole({a, b, 2}, static_cast<int>(c)), {{c, b, 2}}}, {0}},
      {&op::gather, {whole({b, 1, a}, static_cast<int>(c)), {{b, c, a}}}, {1}},
      {&op::scattered, {whole({a, b}, static_cast<int>(c)), {{a, b}}}, {1, c}},
      {&op::scattered, {whole({a, b, 2}, static_cast<int>(c)), {{a, b, 2}}}, {0, c}},
      {&op::casting, {{{a, b}}}, {static_cast<int>(DType::f32)}},
  };
  return all;
}

/// The operands of a case, as an operation is tried with them.
inline std::vector<TriedOperand> tried(const Case& c) {
  std::vector<TriedOperand> all;
  for (const Operand& o : c.operands)
    all.push_back({o.size, o.dtype, o.below, c.positive ? 0.5 : -1, c.positive ? 1.5 : 1});
  return all;
}

constexpr double tolerance(const Case& c) { return c.operation == &operation::casting ? 1e-5 : 1e-9; }

}  // namespace cases
