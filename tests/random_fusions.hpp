// Random programs with linear layers, biases that are computed, slices that are put together, rows that are looked up,
// gates and what else goes element by element, and their gradients.
#pragma once
#include <random>

#include <parallel/parallel.hpp>

namespace random_fusions {

using namespace parallel;
using namespace parallel::internals;

inline constexpr Axis ranks{"first"};
inline constexpr int extent = 8;

/// A program that grows by random operations; what the rule refuses, here and below as a value of -1, is left out.
struct Program {
  std::mt19937_64 engine;
  Trace trace{};
  std::vector<int> inputs{}, values{};
  int index = -1;  ///< of rows; the input behind the others

  explicit Program(unsigned seed) : engine(seed) {
    for (int i = 0; i < 8; ++i) declare(i < 3 ? 2 : i == 3 ? 3 : 1 + pick(3));
    Member rows;
    rows.role = Role::input;
    rows.type = {DType::i32, {}};
    rows.type.layout.dims.push_back(Dim(extent));
    if (pick(3) == 0) rows.type.layout = rows.type.layout.with(&ranks, split(0));
    rows.path = trace.graph.name({}, {"index"});
    index = trace.declare(operation::input, rows, Kind::data, false);
    for (int i = 0; i < 22; ++i) keep(grown());
    int loss = -1;
    for (int i = 0; i < 3; ++i) {
      const int sum = apply(operation::sum,
                            {apply(operation::square, {values[values.size() - 1 - static_cast<std::size_t>(pick(6))]})},
                            {}, 1.0 / 64);
      loss = loss < 0 ? sum : apply(operation::add, {loss, sum});
    }
    Differentiation differentiation(trace);
    differentiation.run(loss, 1);
    const auto give = [&](int value) { trace.output({}, building::summed(trace, value)); };
    give(loss);
    for (const int i : inputs)
      if (differentiation.of(i) >= 0) give(differentiation.of(i));
    for (Node& n : trace.graph.nodes) n.flops = trace.graph.flops(n);
  }

  std::int64_t elements(std::size_t input) const { return trace.graph.values[inputs[input]].type.layout.elements(); }

 private:
  int pick(int below) { return static_cast<int>(engine() % static_cast<unsigned>(below)); }
  int rank_of(int value) const { return trace.graph.values[value].type.layout.rank(); }

  void declare(int rank) {
    Member member;
    member.role = Role::input;
    member.type = {DType::f64, {}};
    for (int d = 0; d < rank; ++d) member.type.layout.dims.push_back(Dim(extent));
    const int choice = inputs.empty() ? 1 : pick(3);  // one is split at least
    if (choice == 1) member.type.layout = member.type.layout.with(&ranks, split(pick(rank)));
    member.path = trace.graph.name({}, {"input.", std::to_string(inputs.size())});
    inputs.push_back(
        trace.declare(operation::input, member, choice == 2 || rank == 1 ? Kind::parameter : Kind::activation, true));
    values.push_back(inputs.back());
  }
  int any(int rank) {
    for (int tries = 0; tries < 50; ++tries) {
      const int from_end = pick(2) == 0 ? pick(3) : pick(static_cast<int>(values.size()));
      const int value = values[values.size() - 1 - static_cast<std::size_t>(from_end)];
      if (rank_of(value) == rank) return value;
    }
    return -1;
  }
  int apply(const Operation& operation, const List<int, max_operands>& operands, const Ints& ints = {},
            double number = 0) {
    Arguments a;
    for (const int o : operands) {
      if (o < 0) return -1;
      a.types.push_back(trace.graph.values[o].type);
      a.kinds.push_back(trace.graph.values[o].kind);
    }
    a.ints = ints;
    const Inference inferred = infer(operation, a);
    return inferred.refusal ? -1
                            : parallel::internals::apply(trace, operation, operands, inferred, ints, {}, number, 0);
  }
  int product(int x, int w) { return apply(operation::matmul, {x, w}, {1, 0, 0, 0}); }
  int sum(int x, int y) { return apply(operation::add, {x, y}); }
  int scaled(int x, double by) { return apply(operation::scale, {x}, {}, by); }  // numbers stay of one size
  int rows_of(int table) { return apply(operation::embedding, {index, table}); }
  int part(int x, int dim, int begin, int end) { return apply(operation::slice, {x}, {dim, begin, end}); }

  /// A product of three dimensions; what is added to it, as a bias is, may be a linear layer itself, which is computed
  /// after it.
  int conditioned(int x, int y, int bias) {
    const int before = product(x, any(3));
    int h = pick(2) == 0 ? y : product(y, any(2));
    if (pick(2) == 0) h = sum(h, bias);
    if (pick(2) == 0) h = apply(operation::gelu, {h});
    int result = sum(before, h);
    if (pick(3) == 0) result = sum(result, any(1));
    return scaled(product(result, any(1)), 0.1);
  }
  int grown() {
    const int x = any(2), y = any(2), bias = any(1);
    switch (pick(21)) {
      case 0:
      case 1: return scaled(sum(product(x, y), bias), 0.4);
      case 2: return scaled(sum(product(x, y), product(bias, any(2))), 0.2);
      case 3:
        return scaled(apply(operation::multiply, {sum(product(x, y), bias), sum(product(x, any(2)), any(1))}), 0.1);
      case 4:
      case 5:
      case 6: return conditioned(x, y, bias);
      case 7: return apply(operation::gelu, {x});
      case 8: return apply(operation::multiply, {x, bias});
      case 9:
        return apply(operation::concatenate,
                     {apply(operation::gelu, {part(x, 1, 3, 8)}), apply(operation::square, {part(x, 1, 0, 3)})}, {1});
      case 10:
        return apply(operation::concatenate,
                     {apply(operation::multiply, {part(x, 0, 0, 4), part(x, 0, 4, 8)}), part(x, 0, 0, 4)}, {0});
      case 11: return apply(operation::layer_norm, {x, bias, any(1)}, {}, 0.09);
      case 12: return apply(operation::transpose, {x}, {1, 0});
      case 13: return scaled(apply(operation::multiply, {apply(operation::silu, {x}), y}), 0.5);  // a gate
      case 14: return scaled(apply(operation::square, {apply(operation::relu, {sum(x, bias)})}), 0.2);
      case 15:
        return apply(operation::tanh,
                     {apply(operation::subtract, {scaled(apply(operation::multiply, {x, bias}), 0.3), y})});
      case 16: return scaled(sum(rows_of(y), product(x, y)), 0.4);  // a table that is a head's weight
      case 17: return scaled(sum(product(rows_of(x), y), rows_of(x)), 0.3);
      case 18:  // two tables, which a sum gives the same gradient
        return scaled(sum(apply(operation::multiply, {rows_of(x), rows_of(y)}), sum(x, y)), 0.3);
      case 19:  // a slice that leaves the rest of its gradient to others
        return sum(
            scaled(apply(operation::concatenate, {apply(operation::gelu, {part(x, 1, 3, 8)}), part(y, 1, 0, 3)}, {1}),
                   0.5),
            scaled(x, 0.5));
      default:
        return apply(operation::sigmoid, {apply(operation::sigmoid, {apply(operation::gelu_erf, {sum(bias, x)})})});
    }
  }
  void keep(int value) {
    if (value < 0) return;
    values.push_back(value);
    const Node& maker = trace.graph.maker(value);
    if (pick(5) == 0 && maker.operation->computes)
      for (int r = 0; r < maker.results; ++r) trace.graph.values[maker.result + r].keep = Keep::recomputed;
  }
};

}  // namespace random_fusions
