// Parameters stored over several axes at once, flat and by dimensions, whose gradients come from some of these axes only,
// from other ones at each use, or from all; and with weights that each micro-batch updates. All pairs of words and uses.
#include <parallel/object/sound_graph.hpp>

#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

namespace {

inline constexpr Axis replica{"replica"};

/// One product, entering as the annotations say.
template <class... Annotation>
struct Product {
  Parameter<double, Shape<6, 5>, Annotation...> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(gelu(matmul(x, w)))); }
};
/// A norm whose gain each rank of an axis uses for its own positions.
struct Gain {
  Parameter<double, Shape<6>, On<tensor, Broadcast>> gain{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(rms_norm(x, gain) - x)); }
};
/// A parameter that is used twice, with inputs that lie otherwise.
struct Twice {
  Parameter<double, Shape<6, 5>> w{normal(1)};
  constexpr auto operator()(Distributed auto a, Distributed auto b) const {
    return mean(square(gelu(matmul(a, w)))) + 0.5 * mean(square(matmul(b, w)));
  }
};
/// The same of layers.
struct LayersTwice {
  struct Block {
    Parameter<double, Shape<6, 6>> w{normal(0.4)};
    Parameter<double, Shape<6>> c{normal(0.4)};
    constexpr auto operator()(Distributed auto x) const { return x + gelu(matmul(x, w) + c); }
  };
  Layers<3, Block> layers;
  constexpr auto operator()(Distributed auto a, Distributed auto b) const {
    return mean(square(layers(a))) + 0.5 * mean(square(layers(b)));
  }
};
using OverData = Tensor<double, Shape<8 / data, 6>>;
using OverTensor = Tensor<double, Shape<8 / tensor, 6>>;
using OverBoth = Tensor<double, Shape<8 / data, 4 / tensor, 6>>;

const std::initializer_list<Mesh> two_axes = {
    {data = 2}, {tensor = 2}, {data = 2, tensor = 2}, {data = 2, tensor = 1}, {data = 4, tensor = 2}};

void check_sound(const Graph& graph) { CHECK_NOTHROW(object::check_graph(graph)); }

template <auto... word>
using OnBoth = Types<Stored<data, word...>, Stored<tensor, word...>>;
template <class Program, class... S>
void check_stored(const std::vector<double>& one, Types<S...>, std::initializer_list<Mesh> meshes) {
  const Graph graph = build<AllStored<Program, S...>>();
  check_sound(graph);
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    check_near(losses(graph, mesh, 0.5), one);
  }
}
template <class Program>
void check_words() {
  const std::vector<double> one = losses(build<Program>(), Mesh{}, 0.5);
  check_stored<Program>(one, OnBoth<Zero::states>{}, two_axes);
  check_stored<Program>(one, OnBoth<Zero::gradients>{}, two_axes);
  check_stored<Program>(one, OnBoth<>{}, two_axes);
  check_stored<Program>(one, OnBoth<Gathered::per_pass>{}, two_axes);
  check_stored<Program>(one, OnBoth<Gathered::per_step>{}, two_axes);
  check_stored<Program>(one, Types<Stored<data, Zero::states>>{}, two_axes);
  check_stored<Program>(one, Types<Stored<tensor, Zero::gradients>>{}, two_axes);
}

/// Said of the parameter itself, by dimension and flat.
template <class... S>
using Own = Training<Product<S...>, AdamW, Tensor<double, Shape<8 / replica / data, 6>>>;
template <class... S>
void check_own() {
  using Program = Training<Product<S...>, AdamW, Tensor<double, Shape<8 / replica / data, 6>>>;
  const Graph graph = build<Program>();
  check_sound(graph);
  const std::vector<double> one = losses(build<Own<>>(), Mesh{}, 0.5);
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{replica = 2}, Mesh{replica = 2, data = 2}}) {
    INFO(text(mesh));
    check_near(losses(graph, mesh, 0.5), one);
  }
}
template <auto... word>
void check_dimensions() {
  check_own<Stored<data, Split<0>, word...>, Stored<replica, word...>>();
  check_own<Stored<replica, Split<0>, word...>, Stored<data, word...>>();
  check_own<Stored<replica, word...>, Stored<data, word...>>();
}

}  // namespace

TEST_CASE("over two axes: a parameter used on both, differently on one or the other, in one product or several") {
  check_words<Training<Gain, AdamW, OverBoth>>();
  check_words<Training<Product<>, AdamW, OverBoth>>();
  check_words<Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Training<Product<On<data, Broadcast>>, AdamW, OverBoth>>();
  check_words<Training<Product<On<data, Broadcast>, On<tensor, Broadcast>>, AdamW, OverBoth>>();
  check_words<Accumulate<2, Training<Product<On<tensor, Broadcast>>, AdamW, OverBoth>>>();
}
TEST_CASE("the same where each use leaves it pending on another axis") {
  check_words<Training<Twice, AdamW, OverData, OverTensor>>();
  check_words<Training<Twice, AdamW, OverTensor, OverBoth>>();
  check_words<Training<LayersTwice, AdamW, OverTensor, OverData>>();
  check_words<Training<LayersTwice, AdamW, OverBoth, OverData>>();
  check_words<Accumulate<2, Training<LayersTwice, AdamW, OverTensor, OverData>>>();
}
TEST_CASE("by a dimension over one axis, and flat over another what that leaves") {
  check_dimensions<Zero::states>();
  check_dimensions<Zero::gradients>();
  check_dimensions<>();
  check_dimensions<Gathered::per_pass>();
  check_dimensions<Gathered::per_step>();
}

namespace {
struct Staged {
  struct Block {
    Parameter<double, Shape<5, 9>> up{normal(0.3)};
    Parameter<double, Shape<9, 5>> down{normal(0.3)};
    constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
  };
  Parameter<double, Shape<7, 5>> in{normal(0.3)};
  Layers<4 / stage, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(matmul(x, in)))); }
};
using Asynchronous =
    Pipelined<schedules::pipedream, Accumulate<4, Training<Staged, AdamW, Tensor<double, Shape<8 / data, 7>>>>>;
struct Says {
  Parameter<double, Shape<8, 8>, Stored<data, Split<1>, Gathered::per_step>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); }
};
template <auto... word>
void check_asynchronous() {
  const std::vector<double> two = losses(build<Asynchronous>(), Mesh{stage = 2});
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{data = 2, stage = 2}, Mesh{data = 4, stage = 2}}) {
    INFO(text(mesh));
    check_near(losses(build<AllStored<Asynchronous, Stored<data, word...>>>(), mesh), two);
  }
}
}  // namespace

TEST_CASE("with weights that each micro-batch updates") {
  check_asynchronous<Zero::states>();
  check_asynchronous<Zero::gradients>();
  check_asynchronous<>();
  check_asynchronous<Gathered::per_pass>();
  check_asynchronous<Gathered::per_step>();
}
TEST_CASE("what a parameter says itself goes before what its program says; programs' words add up") {
  const auto rest = [](const Graph& graph) { return text(graph.members[0].type); };
  using Step = Training<Says, AdamW, Tensor<double, Shape<8 / replica / data, 8>>>;
  CHECK(rest(build<AllStored<Step, Stored<replica, Zero::states>>>()) == "f64[8, 8/data]");
  CHECK(rest(build<AllStored<Step, Stored<replica, Gathered::per_step>>>()) == "f64[8, 8/data] /replica");
  using Plain = Training<Product<>, AdamW, Tensor<double, Shape<8 / replica / data, 6>>>;
  CHECK(rest(build<AllStored<AllStored<Plain, Stored<data>>, Stored<replica>>>()) == "f64[6, 5] /replica /data");
}
