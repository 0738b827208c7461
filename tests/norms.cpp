// Norms as they are lowered: where a rank has whole rows one operation forward and one backward, of which only what is
// wanted is computed; where rows are split, parts.
#include <algorithm>

#include <doctest/doctest.h>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
constexpr int rows = 6, channels = 10;

template <bool centered, bool again = false>
struct Norm {
  constexpr auto operator()(Distributed auto cotangent, Distributed auto x, Distributed auto gain,
                            Distributed auto shift) const {
    return loss(cotangent, layer_norm(x, gain, shift));
  }
  constexpr auto operator()(Distributed auto cotangent, Distributed auto x, Distributed auto gain) const {
    return loss(cotangent, rms_norm(x, gain));
  }
  static constexpr auto loss(Distributed auto cotangent, Distributed auto y) {
    if constexpr (again)
      return sum(square(recompute(y)) * cotangent);
    else
      return sum(square(y) * cotangent);
  }
};
template <bool wanted, class Sizes>
using Input = std::conditional_t<wanted, Wanted<double, Sizes>, Tensor<double, Sizes>>;
/// `x`, `gain`, `shift`: whether its gradient is wanted. What is not centered has no shift. `split`: the rows, by tensor.
template <bool centered, bool x, bool gain, bool shift, bool split = false, bool again = false>
struct OfNorm {
  static constexpr Dim width = split ? channels / tensor : Dim(channels);
  using Row = Shape<width>;
  using Cotangent = Tensor<double, Shape<rows / data, width>>;
  using X = Input<x, Shape<rows / data, width>>;
  using Gain = Input<gain, Row>;
  using type = Training<Norm<centered, again>, KeepGradients, Cotangent, X, Gain, Input<shift, Row>>;
};
template <bool x, bool gain, bool shift, bool split, bool again>
struct OfNorm<false, x, gain, shift, split, again> {
  using Whole = OfNorm<true, x, gain, shift, split, again>;
  using type =
      Training<Norm<false, again>, KeepGradients, typename Whole::Cotangent, typename Whole::X, typename Whole::Gain>;
};
template <bool centered, bool x, bool gain, bool shift, bool split = false, bool again = false>
using Step = typename OfNorm<centered, x, gain, shift, split, again>::type;

struct Count {
  int whole = 0, whole_gradients = 0, results = 0, parts = 0, parameters = 0;  ///< results: of all whole_gradients
  bool operator==(const Count&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Count& c) {
  return out << c.whole << ' ' << c.whole_gradients << ' ' << c.results << ' ' << c.parts << ' ' << c.parameters;
}
template <class Program>
Count count(const Mesh& mesh) {
  const OwnedPlan plan = derive<Program>(mesh);
  Count c;
  for (const Event& e : plan->events) {
    if (e.kind != EventKind::compute) continue;
    const Node& node = plan->graph.node(e.node);
    c.whole += node.operation == &operation::norm_rows;
    if (node.operation == &operation::norm_rows_derivative) {
      ++c.whole_gradients;
      c.results += node.results;
    }
    for (const Operation* part : {&operation::row_mean, &operation::row_variance, &operation::normalize,
                                  &operation::norm_products, &operation::norm_derivative})
      c.parts += node.operation == part;
    c.parameters += node.operation == &operation::norm_parameter_derivative;
  }
  return c;
}
template <class Program>
std::vector<lockstep::Array> outputs(const Mesh& mesh) {
  const auto cotangent = program::numbers<double>(rows * channels, 1), x = program::numbers<double>(rows * channels, 2),
             gain = program::numbers<double>(channels, 3), shift = program::numbers<double>(channels, 4);
  return program::outputs<Program>(mesh, [&](auto& executor) {
    const auto& members = executor.plan().graph.members;
    const auto inputs =
        std::count_if(members.begin(), members.end(), [](const Member& m) { return m.role == Role::input; });
    int i = 0;
    for (const auto* numbers : {&cotangent, &x, &gain, &shift})
      if (i < inputs) executor.input(i++, *numbers);
  });
}
/// That a program's gradients are those, of some positions, of the program that wants all.
template <bool centered, bool x, bool gain, bool shift>
void check_wanted() {
  const auto all = outputs<Step<centered, true, true, centered>>(Mesh{data = 1}),
             some = outputs<Step<centered, x, gain, shift>>(Mesh{data = 2});
  std::size_t i = all.size() - (centered ? 3 : 2), found = some.size() - (x + gain + shift);
  for (const bool wanted : {x, gain, shift}) {
    if (wanted) CHECK(lockstep::difference(some.at(found++), all.at(i)) < 1e-12);
    ++i;
  }
}
}  // namespace

TEST_CASE("whole rows are one operation forward and one backward") {
  const Mesh mesh{data = 2};
  CHECK(count<Step<true, true, true, true>>(mesh) == Count{1, 1, 3, 0, 0});
  CHECK(count<Step<true, true, false, false>>(mesh) == Count{1, 1, 1, 0, 0});
  CHECK(count<Step<true, true, false, true>>(mesh) == Count{1, 1, 3, 0, 0});
  CHECK(count<Step<true, false, true, false>>(mesh) == Count{1, 0, 0, 0, 1});
  CHECK(count<Step<true, false, true, true>>(mesh) == Count{1, 0, 0, 0, 1});
  CHECK(count<Step<false, true, true, false>>(mesh) == Count{1, 1, 2, 0, 0});
  CHECK(count<Step<false, true, false, false>>(mesh) == Count{1, 1, 1, 0, 0});
  CHECK(count<Step<false, false, true, false>>(mesh) == Count{1, 0, 0, 0, 1});
}
TEST_CASE("split rows are parts, also where the mesh has one rank") {
  for (const int ranks : {1, 2}) {
    const Mesh mesh{tensor = ranks};
    CHECK(count<Step<true, true, true, true, true>>(mesh) == Count{0, 0, 0, 5, 1});
    CHECK(count<Step<false, true, true, false, true>>(mesh) == Count{0, 0, 0, 4, 1});
    const auto whole = outputs<Step<true, true, true, true>>(Mesh{data = 1}),
               split = outputs<Step<true, true, true, true, true>>(mesh);
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(lockstep::difference(split[i], whole[i]) < 1e-12);
  }
}
TEST_CASE("gradients are the same whichever of them are wanted") {
  check_wanted<true, true, false, false>();
  check_wanted<true, true, false, true>();
  check_wanted<true, true, true, false>();
  check_wanted<true, false, true, false>();
  check_wanted<true, false, false, true>();
  check_wanted<true, false, true, true>();
  check_wanted<false, true, false, false>();
  check_wanted<false, false, true, false>();
}
TEST_CASE("a norm that is computed again has its statistics again, and the same gradients") {
  using Again = Step<true, true, true, true, false, true>;
  CHECK(count<Again>(Mesh{data = 2}) == Count{2, 1, 3, 0, 0});
  const auto kept = outputs<Step<true, true, true, true>>(Mesh{data = 1}), again = outputs<Again>(Mesh{data = 1});
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(lockstep::difference(again[i], kept[i]) == 0);
}
