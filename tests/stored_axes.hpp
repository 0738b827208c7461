// Parameters stored over several axes at once, flat and by dimensions, whose gradients come from some of these axes only,
// from other ones at each use, or from all; and with weights that each micro-batch updates. All pairs of words and uses.
#pragma once
#include <parallel/object/sound_graph.hpp>

#include "ten_steps.hpp"

namespace stored_axes {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

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

inline const std::initializer_list<Mesh> two_axes = {
    {data = 2}, {tensor = 2}, {data = 2, tensor = 2}, {data = 2, tensor = 1}, {data = 4, tensor = 2}};

inline void check_sound(const Graph& graph) { CHECK_NOTHROW(object::check_graph(graph)); }

/// Where the parts lie that ranks share out of what is stored.
enum class Lies { on_device, on_host };
/// Stored so; by the same words on the host, too.
template <Lies lies, auto... word>
struct By {
  template <class Program, const Axis&... on>
  static Graph program() {
    if constexpr (lies == Lies::on_host)
      return build<AllStored<Program, Stored<on, word...>..., Stored<host, word...>>>();
    else
      return build<AllStored<Program, Stored<on, word...>...>>();
  }
};
inline void check_stored(const std::vector<double>& one, const Graph& graph) {
  check_sound(graph);
  for (const Mesh& mesh : two_axes) {
    INFO(text(mesh));
    check_near(losses(graph, mesh, 0.5), one);
  }
}
template <Lies lies, class Program>
void check_words() {
  const std::vector<double> one = losses(build<Program>(), Mesh{}, 0.5);
  check_stored(one, By<lies, Zero::states>::template program<Program, data, tensor>());
  check_stored(one, By<lies, Zero::gradients>::template program<Program, data, tensor>());
  check_stored(one, By<lies>::template program<Program, data, tensor>());
  check_stored(one, By<lies, Gathered::per_pass>::template program<Program, data, tensor>());
  check_stored(one, By<lies, Gathered::per_step>::template program<Program, data, tensor>());
  check_stored(one, By<lies, Zero::states>::template program<Program, data>());
  check_stored(one, By<lies, Zero::gradients>::template program<Program, tensor>());
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
template <Lies lies, auto... word>
void check_dimensions() {
  const auto check = []<class... S>(Types<S...>) {
    if constexpr (lies == Lies::on_host)
      check_own<S..., Stored<host, word...>>();
    else
      check_own<S...>();
  };
  check(Types<Stored<data, Split<0>, word...>, Stored<replica, word...>>{});
  check(Types<Stored<replica, Split<0>, word...>, Stored<data, word...>>{});
  check(Types<Stored<replica, word...>, Stored<data, word...>>{});
}

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
template <Lies lies, auto... word>
void check_asynchronous() {
  const std::vector<double> two = losses(build<Asynchronous>(), Mesh{stage = 2});
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{data = 2, stage = 2}, Mesh{data = 4, stage = 2}}) {
    INFO(text(mesh));
    check_near(losses(By<lies, word...>::template program<Asynchronous, data>(), mesh), two);
  }
}

}  // namespace stored_axes
