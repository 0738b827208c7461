// A program has one graph: the one that the compiler makes and the one that is made at start-up are equal in every
// word, whatever order the arguments of calls are evaluated in, and whatever order their statements stand in.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "every_program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace every;

namespace {

using Words = std::vector<std::int64_t>;

template <class Program>
Words compiled() {
  return {std::begin(object::program<Program>.words), std::end(object::program<Program>.words)};
}
template <class Program>
Words at_start_up() {
  const Graph graph = build<Program>();
  const auto words = object::written<Program>(graph);
  return {words.begin(), words.end()};
}
/// The words that no compiler and no line changes.
Words of_program(const Words& words) { return {words.begin() + object::header, words.begin() + words[5]}; }

}  // namespace

TEST_CASE("the graph that the compiler made is the one made at start-up, word by word") {
  int programs = 0;
  every::program([&]<class Program>(const char* name) {
    CAPTURE(name);
    CHECK(compiled<Program>() == at_start_up<Program>());
    ++programs;
  });
  CHECK(programs == 18);
}

TEST_CASE("the order of a program's statements is no part of its graph") {
  const Words nested = of_program(compiled<NestedStep<Statements::nested>>());
  CHECK(nested == of_program(compiled<NestedStep<Statements::forwards>>()));
  CHECK(nested == of_program(compiled<NestedStep<Statements::backwards>>()));
}

TEST_CASE("what nothing needs is not in the graph, and draws no random numbers") {
  CHECK(of_program(compiled<NestedStep<Statements::nested>>()) ==
        of_program(compiled<NestedStep<Statements::nested, true>>()));
}

// More outputs than a list of fixed room would hold.
struct Part {
  Parameter<float, Shape<16>> a, b, c, d, e, f, g, h;
  constexpr auto operator()(Distributed auto x) const { return ((x * a + b) * c + d) * e + f + g * h; }
};
struct Many {
  Part a, b, c, d, e, f, g, h, i, j;
  constexpr auto operator()(Distributed auto x) const { return mean(square(j(i(h(g(f(e(d(c(b(a(x)))))))))))); }
};
static_assert(plan<Training<Many, KeepGradients, X>, Mesh{data = 2}>.graph.outputs.size() == 82);

TEST_CASE("what is remembered is needed though nothing reads it") {
  const Graph graph = build<Evaluation<Remembering, X, Tensor<int, Shape<>>>>();
  const OwnedPlan plan = derive(graph, Mesh{data = 2}, {}, {});
  int written = 0;
  for (const Event& e : plan->events) written += plan->graph.node(e.node).operation == &operation::write ? 1 : 0;
  CHECK(written == 3);
}
