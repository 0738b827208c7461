// Brute force over the definition on two axes, and on a sample of three: every operation, every way in which its
// operands may enter, also nested on one dimension in both orders. What the rule derives without a move must be what
// the ranks' own kernels compute, and its gradients theirs; what it refuses though each axis alone has a row must be
// unsound in every nesting of its result.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/run/trial_on_axes.hpp>

#include "operation_cases.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace cases;

namespace {

constexpr Axis a{"a"}, b{"b"}, c{"c"};

/// Of a case on a mesh, every combination of layouts or a sample of so many.
TrialOnAxes::Counts brute(const Case& one, const Mesh& mesh, int sample = 0) {
  Trial trial(*one.operation, tried(one), {one.ints, {one.first, one.second}});
  trial.compute_truths();
  const auto where = [&](const Arguments& lying) {
    std::string words(one.operation->name);
    for (const Type& t : lying.types) words += " " + text(t);
    return words;
  };
  const auto wrong = [&](const Arguments& lying, const std::string& words) {
    FAIL_CHECK(where(lying) << ": " << words);
  };
  const auto missed = [&](const Arguments& lying) { FAIL_CHECK(where(lying) << " is refused, but sound"); };
  TrialOnAxes on_axes(trial, mesh, tolerance(one));
  return sample > 0 ? on_axes.sample(sample, wrong, missed) : on_axes.run(100'000'000, wrong, missed);
}

/// Operations that relate two dimensions in more ways than one.
std::vector<Case> relating(int n) {
  namespace op = operation;
  std::vector<Case> all;
  for (const int groups : {n, 2 * n, 4 * n})
    all.push_back({&op::attention, {{{1, 2, 4 * n, 3}}, {{1, 3, groups, 3}}, {{1, 3, groups, 2}}}, {0, 0, 0}, 0.6});
  all.push_back({&op::reshape, {{{2 * n, 2, n}}}, {4 * n * n}});
  all.push_back({&op::reshape, {{{4 * n * n}}}, {2 * n, 2 * n}});
  all.push_back({&op::reshape, {{{2 * n, 2 * n}}}, {n, 4 * n}});
  all.push_back({&op::embedding, {{{2 * n}, DType::i32, 4 * n}, {{4 * n, n}}}});
  return all;
}

}  // namespace

TEST_CASE("on two axes the rule finds what is sound and refuses what is not") {
  TrialOnAxes::Counts all;
  for (const Mesh& mesh : {Mesh{a = 2, b = 2}, Mesh{a = 2, b = 3}}) {
    std::vector<Case> every = of_operations(mesh.ranks());
    for (const Case& one : relating(mesh.ranks())) every.push_back(one);
    for (const Case& one : every) {
      const TrialOnAxes::Counts n = brute(one, mesh);
      all.derived += n.derived;
      all.refused += n.refused;
      all.nested += n.nested;
    }
  }
  INFO("derived " << all.derived << ", refused " << all.refused << ", of them nested " << all.nested);
  CHECK(all.derived > 1000);
  CHECK(all.nested > 100);
}

TEST_CASE("on three axes, a sample") {
  TrialOnAxes::Counts all;
  std::vector<Case> every = of_operations(8);
  for (const Case& one : relating(8)) every.push_back(one);
  for (const Case& one : every) {
    const TrialOnAxes::Counts n = brute(one, Mesh{a = 2, b = 2, c = 2}, 40);
    all.derived += n.derived;
    all.refused += n.refused;
  }
  INFO("derived " << all.derived << ", refused " << all.refused);
  CHECK(all.derived > 1000);
  CHECK(all.refused > 100);
}

TEST_CASE("operands nest differently only where no order of the axes contradicts none of them") {
  const auto inferred = [](const Operation& operation, const Ints& ints, const Type& x, const Type& w) {
    Arguments met;
    met.types = {x, w};
    met.kinds = {x.dtype == DType::i32 ? Kind::data : Kind::activation, Kind::parameter};
    met.ints = ints;
    return infer(operation, met);
  };
  const Ints product{1, 0, 0, 0};
  // An axis that is first met alone is the inner one of another operand.
  const Inference gathered = inferred(operation::matmul, product, Tensor<float, Shape<4, 8 / b, 16>>::type,
                                      Tensor<float, Shape<16, 32 / a / b>>::type);
  CHECK(!gathered.refusal);
  CHECK(text(Type{DType::f32, gathered.to[0]}) == "f32[4, 8, 16] ~a ~b");
  CHECK(text(gathered.results[0]) == "f32[4, 8, 32/a/b]");
  const Inference looked_up =
      inferred(operation::embedding, {}, Tensor<int, Shape<8 / b>>::type, Tensor<float, Shape<64 / a / b, 16>>::type);
  CHECK(!looked_up.refusal);
  CHECK(text(looked_up.results[0]) == "f32[8, 16] +a +b");
  const Inference contradicting =
      inferred(operation::add, {}, Tensor<float, Shape<8 / a / b>>::type, Tensor<float, Shape<8 / b / a>>::type);
  CHECK(contradicting.refusal.reason == Reason::nested_otherwise);
  // It would have to be sliced on a, outside b.
  const Inference outside =
      inferred(operation::add, {}, Tensor<float, Shape<8 / a / b>>::type, Tensor<float, Shape<8 / b>>::type);
  CHECK(outside.refusal.reason == Reason::nested_otherwise);
}

TEST_CASE("a pending key beside whole values is completed to where all operands can go") {
  const Type q = Tensor<float, Shape<2, 8, 4 / a, 4>>::type, whole = Tensor<float, Shape<2, 8, 4, 4>>::type;
  Type pending = whole;
  pending.layout = pending.layout.with(&a, Partial);
  const auto inferred = [&](const Type& k, const Type& v) {
    Arguments met;
    met.types = {q, k, v};
    met.kinds = {Kind::activation, Kind::activation, Kind::activation};
    met.ints = {1, 0, 0};
    return infer(operation::attention, met);
  };
  for (const Inference& one : {inferred(pending, whole), inferred(whole, pending)}) {
    CHECK(!one.refusal);
    for (int i = 1; i < 3; ++i) CHECK(one.to[i].on(&a) == Broadcast);
  }
  for (int i = 1; i < 3; ++i) CHECK(inferred(pending, pending).to[i].on(&a) == split(2));
}

TEST_CASE("whole data enters as it lies, whatever the row asks: so it is moved once where it has to move") {
  const auto inferred = [](const Operation& operation, const Ints& ints, const Type& x, const Type& w) {
    Arguments met;
    met.types = {x, w};
    met.kinds = {Kind::data, Kind::parameter};
    met.ints = ints;
    return infer(operation, met);
  };
  const Ints product{1, 0, 0, 0};
  const Type whole = Tensor<float, Shape<4, 8>>::type, by_column = Tensor<float, Shape<8, 6 / b>>::type;
  const Type anyhow = Tensor<float, Shape<4, 8>, On<b, Broadcast>>::type, weight = Tensor<float, Shape<8, 6>>::type;
  const Inference columns = inferred(operation::matmul, product, whole, by_column);
  CHECK(columns.to[0].on(&b) == Invariant);  // rule 2
  CHECK(text(columns.results[0]) == "f32[4, 6/b]");
  const Inference all_whole = inferred(operation::matmul, product, anyhow, weight);
  CHECK(all_whole.to[0].on(&b) == Broadcast);  // rule 1
  CHECK(text(all_whole.results[0]) == "f32[4, 6]");
  const Inference gathered =
      inferred(operation::matmul, product, Tensor<float, Shape<4 / a, 8>, On<b, Broadcast>>::type, weight);
  CHECK(gathered.to[0].on(&b) == Broadcast);  // beside what a moves
  const Inference looked_up =
      inferred(operation::embedding, {}, Tensor<int, Shape<4>>::type, Tensor<float, Shape<8 / b, 6>>::type);
  CHECK(looked_up.to[0].on(&b) == Invariant);
  CHECK(text(looked_up.results[0]) == "f32[4, 6] +b");
  const Inference completed =
      inferred(operation::matmul, product, Tensor<float, Shape<4, 8>, On<b, Partial>>::type, by_column);
  CHECK(completed.to[0].on(&b) == Invariant);  // rule 4
  CHECK(text(completed.results[0]) == "f32[4, 6/b]");
  // A slice is no retype.
  const Inference sliced = inferred(operation::add, {}, anyhow, Tensor<float, Shape<4 / b, 8>>::type);
  CHECK(sliced.to[0].on(&b) == split(0));
}
