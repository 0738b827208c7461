// Random programs: whatever the rule derives, on two axes, computes what one rank computes, and so do its gradients.
#include <random>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

#include "lockstep.hpp"

using namespace parallel;
using namespace parallel::internals;
using lockstep::Array;

namespace {

constexpr Axis first{"first"}, second{"second"};
constexpr int extent = 8;

/// A program that grows by random operations; what the rule refuses is left out and counted.
struct Program {
  std::mt19937_64 engine;
  Trace trace{};
  std::vector<int> inputs{};  ///< data and parameters
  std::vector<int> parameters{};
  std::vector<int> values{};
  int loss = -1, refused = 0, applied = 0;
  std::vector<int> gradients{};

  explicit Program(unsigned seed) : engine(seed) {
    for (int i = 0; i < 6; ++i) declare(i % 2 == 0, pick(3) == 0 ? 1 : 2);
    for (int i = 0; i < 14; ++i) grow();
    const int last = values.back();
    const int squared = apply(operation::square, {last}, {});
    const int sum = apply(operation::sum, {squared}, {}, 1.0 / 64);
    loss = sum;
    Differentiation differentiation(trace);
    differentiation.run(loss, 1);
    for (const int p : parameters) gradients.push_back(differentiation.of(p));
  }

  int pick(int below) { return static_cast<int>(engine() % static_cast<unsigned>(below)); }

  void declare(bool parameter, int rank) {
    Type type{DType::f64, {}};
    for (int d = 0; d < rank; ++d) type.layout.dims.push_back(Dim(extent));
    const bool turned = pick(2) == 1;  // where both split one dimension, either is the outer one
    for (const Axis* axis : {turned ? &second : &first, turned ? &first : &second}) {
      const int choice = pick(4);
      if (choice == 1) type.layout = type.layout.with(axis, split(pick(rank)));
      if (choice == 2 && !parameter) type.layout = type.layout.with(axis, Broadcast);
    }
    Member member;
    member.role = parameter ? Role::parameter : Role::input;
    member.type = type;
    const int value = trace.declare(parameter ? operation::parameter : operation::input, member,
                                    parameter ? Kind::parameter : Kind::data, parameter);
    inputs.push_back(value);
    values.push_back(value);
    if (parameter) parameters.push_back(value);
  }

  /// The result, or -1 where the rule refuses.
  int apply(const Operation& op, const List<int, max_operands>& operands, const Ints& ints, double number = 0,
            double second_number = 0) {
    Arguments a;
    for (const int o : operands) {
      a.types.push_back(trace.graph.values[o].type);
      a.kinds.push_back(trace.graph.values[o].kind);
    }
    a.ints = ints;
    const Inference inferred = infer(op, a);
    if (inferred.refusal) return -1;
    return parallel::internals::apply(trace, op, operands, inferred, ints, {}, number, second_number);
  }
  int rank_of(int value) const { return trace.graph.values[value].type.layout.rank(); }
  int any(int rank) {
    for (int tries = 0; tries < 50; ++tries) {
      const auto from_end = static_cast<std::size_t>(pick(static_cast<int>(values.size())));
      const int value = values[values.size() - 1 - (pick(2) == 0 ? from_end : from_end % 3)];
      if (rank == 0 || rank_of(value) == rank) return value;
    }
    return values[0];
  }
  void grow() {
    int result = -1;
    const int x = any(2), y = any(2);
    if (rank_of(x) != 2 || rank_of(y) != 2) return;
    switch (pick(10)) {
      case 0: result = apply(operation::add, {x, any(0)}, {}); break;
      case 1: result = apply(operation::multiply, {x, any(0)}, {}); break;
      case 2: result = apply(operation::subtract, {x, y}, {}); break;
      case 3:
      case 4:
        result = apply(operation::matmul, {x, y}, {1, 0, 0, 0});
        if (result >= 0) result = apply(operation::scale, {result}, {}, 0.3);  // numbers stay of one size
        break;
      case 5: result = apply(operation::gelu, {x}, {}); break;
      case 6: result = apply(operation::scale, {x}, {}, 0.7); break;
      case 7: result = apply(operation::transpose, {x}, {1, 0}); break;
      case 8: result = apply(operation::softmax, {x}, {pick(2)}); break;
      case 9: {
        const int gain = any(1), shift = any(1);
        if (rank_of(gain) == 1 && rank_of(shift) == 1)
          result = apply(operation::layer_norm, {x, gain, shift}, {}, 0.09);
        break;
      }
    }
    if (result < 0)
      ++refused;
    else {
      ++applied;
      values.push_back(result);
    }
  }
};

}  // namespace

TEST_CASE("random programs compute on four ranks what they compute on one") {
  int applied = 0, refused = 0, compared = 0, communicated = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Program program(seed);
    applied += program.applied;
    refused += program.refused;
    for (const Node& n : program.trace.graph.nodes)
      communicated += n.operation == &operation::move && communicates(n.transition.collective);
    std::mt19937_64 engine(seed);
    std::vector<Array> given;
    for (const int input : program.inputs) {
      std::vector<std::int64_t> size(static_cast<std::size_t>(program.rank_of(input)), extent);
      given.push_back(lockstep::zeros(size));
      for (double& x : given.back().data) x = std::uniform_real_distribution<double>(-1, 1)(engine);
    }
    const auto run = [&](const Mesh& mesh) {
      lockstep::AllRanks machine(program.trace.graph, mesh);
      for (std::size_t i = 0; i < given.size(); ++i) machine.set(program.inputs[i], given[i]);
      machine.run();
      std::vector<Array> results{machine.whole(program.loss)};
      for (const int g : program.gradients)
        if (g >= 0) results.push_back(machine.whole(g));
      return results;
    };
    const auto one = run(Mesh{first = 1, second = 1});
    for (const Mesh& mesh : {Mesh{first = 2, second = 2}, Mesh{first = 4}, Mesh{second = 4, first = 2}}) {
      INFO("seed " << seed << " on " << text(mesh));
      const auto many = run(mesh);
      for (std::size_t i = 0; i < one.size(); ++i) {
        // a gradient that is zero in exact arithmetic
        const bool noise = lockstep::absolute_difference(many[i], one[i]) < 1e-12;
        CHECK((noise || lockstep::difference(many[i], one[i]) < 1e-8));
        ++compared;
      }
    }
  }
  CHECK(applied > 2000);
  CHECK(refused > 200);
  CHECK(compared > 2000);
  CHECK(communicated > 1000);
}
