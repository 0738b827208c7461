// Brute force over the definition on two axes, and on a sample of three: every operation, every way in which its
// operands may enter, also nested on one dimension in both orders. What the rule derives without a move must be what
// the ranks' own kernels compute, and its gradients theirs; what it refuses though each axis alone has a row must be
// unsound in every nesting of its result.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "operation_cases.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace cases;

namespace {

constexpr Axis a{"a"}, b{"b"}, c{"c"};

/// A dimension that an axis splits, too: within the first `at` axes that split it, around the others.
Dim nested(const Dim& dim, const Axis* axis, int at) {
  Dim result(dim.size);
  for (int i = 0; i <= dim.count; ++i) {
    if (i == std::min(at, dim.count)) result = result / *axis;
    if (i < dim.count) result = result / *dim.axes[i];
  }
  return result;
}

/// Every layout of an operand over some axes: Broadcast, Partial (where it has no whole numbers) or split on each,
/// nested in every order.
std::vector<Layout> layouts(const Operand& o, const std::vector<const Axis*>& axes) {
  Layout plain;
  for (const auto size : o.size) plain.dims.push_back(Dim(size));
  std::vector<Layout> all{plain};
  for (const Axis* axis : axes) {
    std::vector<Layout> more;
    for (const Layout& l : all) {
      more.push_back(l.with(axis, Broadcast));
      if (o.dtype != DType::i32) more.push_back(l.with(axis, Partial));
      for (int d = 0; d < l.rank(); ++d)  // within what splits the dimension already, around it, or between
        for (int at = 0; at <= l.dims[d].count; ++at) {
          more.push_back(l);
          more.back().dims[d] = nested(l.dims[d], axis, at);
        }
    }
    all = more;
  }
  return all;
}
bool divides(const Layout& l, const Mesh& mesh) {
  for (const Dim& d : l.dims)
    if (d.size % degree(d, mesh) != 0) return false;
  return true;
}

/// What was counted, so that the test cannot pass by comparing nothing.
struct Counts {
  int derived = 0, refused = 0, nested = 0;
};

class Brute {
 public:
  Brute(const Case& one, const Mesh& mesh) : case_(one), mesh_(mesh) {
    for (int i = 0; i < mesh.count; ++i) axes_.push_back(mesh.axes[i].axis);
    for (const Operand& o : one.operands) {
      choices_.push_back(layouts(o, axes_));
      Type type{o.dtype, {}};
      for (const auto size : o.size) type.layout.dims.push_back(Dim(size));
      plain_.types.push_back(type);
      plain_.kinds.push_back(Kind::activation);
    }
    plain_.ints = one.ints;
    const Shaped shaped = one.operation->shape(plain_);
    REQUIRE(!shaped.refusal);
    shapes_ = shaped.results;
    rows_ = one.operation->signatures(plain_);
    Inference whole;
    for (const Type& t : plain_.types) whole.to.push_back(t.layout);
    whole.results = shapes_;
    whole.kind = Kind::activation;
    std::vector<std::int64_t> size;
    for (const Dim& d : shapes_[0].layout.dims) size.push_back(d.size);
    for (int seed = 0; seed < 3; ++seed) {  // a mask of few elements may look alike in another order
      Given given;
      for (const Operand& o : one.operands) given.operands.push_back(random_.array(o, one.positive));
      given.cotangent = random_.array({size}, false);
      given.truth = computed(whole, Mesh{}, given);
      given_.push_back(given);
    }
  }

  /// Every combination of layouts.
  Counts run() {
    std::vector<std::size_t> at(choices_.size());
    for (bool more = true; more;) {
      Arguments entering = plain_;
      for (std::size_t i = 0; i < at.size(); ++i) entering.types[static_cast<int>(i)].layout = choices_[i][at[i]];
      judge(entering);
      more = false;
      for (std::size_t i = at.size(); i-- > 0 && !more;)
        if (++at[i] < choices_[i].size())
          more = true;
        else
          at[i] = 0;
    }
    return counts_;
  }
  /// So many, each made of a row for every axis and a nesting.
  Counts sample(int times) {
    for (int i = 0; i < times; ++i) {
      Arguments entering = plain_;
      for (const Axis* axis : axes_) {
        const Signature& row = rows_[static_cast<int>(random_.engine() % static_cast<unsigned>(rows_.size()))];
        for (int o = 0; o < entering.types.size(); ++o) {
          Layout& layout = entering.types[o].layout;
          const Placement p = row.operands[o];
          if (!p.split())
            layout = layout.with(axis, p);
          else
            layout.dims[p.dim] = nested(layout.dims[p.dim], axis, static_cast<int>(random_.engine() % 3));
        }
      }
      judge(entering);
    }
    return counts_;
  }

 private:
  struct Computed {
    Array result;
    std::vector<Array> gradients;
    bool consistent = true;
  };
  /// Numbers, and what one rank makes of them.
  struct Given {
    std::vector<Array> operands{};
    Array cotangent{};
    Computed truth{};
  };

  /// The row that the operands have on one axis.
  const Signature* row_on(const Arguments& entering, const Axis* axis) const {
    for (const Signature& row : rows_) {
      bool same = !row.by_name;
      for (int i = 0; i < entering.types.size(); ++i)
        same = same && row.operands[i] == entering.types[i].layout.on(axis);
      if (same) return &row;
    }
    return nullptr;
  }

  void judge(const Arguments& entering) {
    std::vector<const Signature*> rows;
    for (const Axis* axis : axes_) {
      rows.push_back(row_on(entering, axis));
      if (rows.back() == nullptr) return;  // one axis alone: soundness.cpp
    }
    std::string where(case_.operation->name);
    for (const Type& t : entering.types) {
      where += " " + text(t);
      if (!divides(t.layout, mesh_)) return;
    }
    INFO(where);
    const Inference inferred = infer(*case_.operation, entering);
    if (!inferred.refusal) {
      for (int i = 0; i < entering.types.size(); ++i) CHECK(inferred.to[i] == entering.types[i].layout);
      for (const Type& r : inferred.results)
        if (!divides(r.layout, mesh_)) return;
      CHECK(sound(inferred));
      ++counts_.derived;
      return;
    }
    // Every nesting of the results that the rows ask for.
    Inference by_hand;
    for (const Type& t : entering.types) by_hand.to.push_back(t.layout);
    by_hand.kind = Kind::activation;
    by_hand.results = shapes_;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      order.push_back(i);
      if (rows[i]->communicates) by_hand.exchanging.push_back(axes_[i]);
    }
    do {
      Inference one = by_hand;
      bool possible = true;
      for (int r = 0; r < shapes_.size(); ++r) {
        for (const std::size_t i : order)
          one.results[r].layout = one.results[r].layout.with(axes_[i], rows[i]->results[r]);
        possible = possible && divides(one.results[r].layout, mesh_);
      }
      if (possible) CHECK_FALSE(sound(one));
    } while (std::next_permutation(order.begin(), order.end()));
    ++counts_.refused;
    for (const Type& t : entering.types)
      for (const Dim& d : t.layout.dims)
        if (d.count > 1) {
          ++counts_.nested;
          return;
        }
  }

  Computed computed(const Inference& inferred, const Mesh& mesh, const Given& given) {
    Trace trace;
    List<int, max_operands> operands;
    for (int i = 0; i < plain_.types.size(); ++i) {
      Member member;
      member.role = Role::input;
      member.type = {plain_.types[i].dtype, inferred.to[i]};
      const bool differentiable = member.type.dtype != DType::i32;
      operands.push_back(trace.declare(operation::input, member, Kind::activation, differentiable));
    }
    const int result = apply(trace, *case_.operation, operands, inferred, case_.ints, {}, case_.first, case_.second);
    const auto forward = trace.graph.order;
    Member member;
    member.role = Role::input;
    member.type = conjugate(trace.graph.values[result].type);
    const int cotangent = trace.declare(operation::input, member, Kind::activation, false);
    Differentiation differentiation(trace);
    differentiation.run(forward, result, cotangent);

    lockstep::Machine machine(trace.graph, mesh);
    const auto noise = [this] { return random_(); };
    for (int i = 0; i < operands.size(); ++i)
      machine.set(operands[i], given.operands[static_cast<std::size_t>(i)], noise);
    machine.set(cotangent, given.cotangent, noise);
    machine.run();
    Computed done{machine.whole(result), {}, machine.consistent(result)};
    for (const int o : operands) {
      const int gradient = differentiation.of(o);
      done.gradients.push_back(gradient >= 0 ? machine.whole(gradient) : Array{});
    }
    return done;
  }
  bool sound(const Inference& inferred) {
    for (const Given& given : given_) {
      const Computed parts = computed(inferred, mesh_, given);
      if (!parts.consistent || lockstep::difference(parts.result, given.truth.result) >= tolerance(case_)) return false;
      for (std::size_t i = 0; i < parts.gradients.size(); ++i)
        if (!parts.gradients[i].data.empty() &&
            lockstep::difference(parts.gradients[i], given.truth.gradients[i]) >= tolerance(case_))
          return false;
    }
    return true;
  }

  const Case& case_;
  Mesh mesh_;
  std::vector<const Axis*> axes_{};
  Random random_{};
  std::vector<Given> given_{};
  std::vector<std::vector<Layout>> choices_{};
  Arguments plain_{};
  List<Type, max_results> shapes_{};
  Signatures rows_{};
  Counts counts_{};
};

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
  Counts all;
  for (const Mesh& mesh : {Mesh{a = 2, b = 2}, Mesh{a = 2, b = 3}}) {
    std::vector<Case> every = of_operations(mesh.ranks());
    for (const Case& one : relating(mesh.ranks())) every.push_back(one);
    for (const Case& one : every) {
      const Counts n = Brute(one, mesh).run();
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
  Counts all;
  std::vector<Case> every = of_operations(8);
  for (const Case& one : relating(8)) every.push_back(one);
  for (const Case& one : every) {
    const Counts n = Brute(one, Mesh{a = 2, b = 2, c = 2}).sample(40);
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
