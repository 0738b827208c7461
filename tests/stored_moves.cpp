// Parameters that move themselves, on another axis than they are stored over or on that one: gathered, sliced, split
// otherwise, by a word or by a rule; alone, in layers, by micro-batches, used twice. Every way of storing gives the
// losses of one rank.
#include "stored_axes.hpp"

using namespace stored_axes;

namespace {

constexpr int width = 8;

/// On some ranks' axis b: how a parameter lies, and what it is brought to.
template <const Axis& b, int split>
constexpr Dim at_rest(int dim) {
  return dim == split ? width / b : Dim(width);
}
template <const Axis& b, int split, Placement... to>
struct Moved {
  Parameter<double, Shape<at_rest<b, split>(0), at_rest<b, split>(1)>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(gelu(matmul(x, through<to...>(w))))); }
  template <Placement first, Placement... rest>
  static constexpr auto through(Distributed auto value) {
    const auto moved = parallel::to<On<b, first>>(value);
    if constexpr (sizeof...(rest) > 0)
      return through<rest...>(moved);
    else
      return moved;
  }
};
/// Whole vectors beside what is split: they are sliced by rule 3.
template <const Axis& b>
struct Sliced {
  Parameter<double, Shape<width, width / b>> up{normal(1)};
  Parameter<double, Shape<width>> bias{normal(1)};
  Parameter<double, Shape<width, width>> beside{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(gelu(matmul(x, up) + bias) * matmul(x, up + beside)));
  }
};
/// A parameter that one use takes as it lies, another one moved.
template <const Axis& b, int split, Placement to>
struct TwoUses {
  Parameter<double, Shape<at_rest<b, split>(0), at_rest<b, split>(1)>> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(gelu(matmul(x, parallel::to<On<b, to>>(w))))) + mean(square(w));
  }
};
template <const Axis& b, int split, Placement... to>
struct InLayers {
  struct Block {
    Moved<b, split, to...> inner;
    constexpr auto operator()(Distributed auto x) const {
      return x + gelu(matmul(x, inner.template through<to...>(inner.w)));
    }
  };
  Layers<3, Block> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(layers(x))); }
};

/// What says itself how it is stored.
template <class... Says>
struct Annotated {
  Parameter<double, Shape<width / tensor, width>, Says...> w{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(gelu(matmul(x, to<On<tensor, Broadcast>>(w)))));
  }
};

/// The examples: shared out over b, too, where ranks use a parameter for their own.
template <class Model, const Axis& a, const Axis& b, bool own>
using Trained = Training<Model, AdamW, Tensor<double, Shape<own ? 8 / a / b : 8 / a, width>>>;

/// Stored over some axes, by each of the words.
template <class Program, const Axis& a, const Axis& b, class... Over>
void check_by(const std::vector<double>& one) {
  const Graph graph = build<AllStored<Program, Over...>>();
  check_sound(graph);
  for (const Mesh& mesh : {Mesh{a = 2, b = 2}, Mesh{b = 4, a = 2}}) {
    INFO(text(mesh));
    check_near(losses(graph, mesh, 0.5), one);
  }
}
template <class Model, const Axis& a, const Axis& b, bool own = false, int micro_batches = 1>
void check() {
  using Program = Accumulate<micro_batches, Trained<Model, a, b, own>>;
  const std::vector<double> one = losses(build<Program>(), Mesh{}, 0.5);
  check_by<Program, a, b, Stored<a, Zero::states>>(one);
  check_by<Program, a, b, Stored<a, Zero::gradients>>(one);
  check_by<Program, a, b, Stored<a, Zero::parameters>>(one);
}
/// Stored over the axis that it moves on, and over both.
template <class Model, const Axis& a, const Axis& b, bool own = false>
void check_same() {
  using Program = Trained<Model, a, b, own>;
  const std::vector<double> one = losses(build<Program>(), Mesh{}, 0.5);
  check_by<Program, a, b, Stored<b, Zero::states>>(one);
  check_by<Program, a, b, Stored<b, Zero::gradients>>(one);
  check_by<Program, a, b, Stored<b, Zero::parameters>>(one);
  check_by<Program, a, b, Stored<a, Zero::states>, Stored<b, Zero::states>>(one);
  check_by<Program, a, b, Stored<a, Zero::gradients>, Stored<b, Zero::gradients>>(one);
  check_by<Program, a, b, Stored<a>, Stored<b>>(one);
}
template <const Axis& a, const Axis& b>
void check_ways() {
  check<Moved<b, -1, Broadcast>, a, b, true>();
  check<Moved<b, -1, Split<0>>, a, b>();
  check<Moved<b, -1, Split<1>>, a, b>();
  check<Moved<b, 0, Broadcast>, a, b, true>();
  check<Moved<b, 0, Invariant>, a, b>();
  check<Moved<b, 0, Split<1>>, a, b>();
  check<Moved<b, 1, Broadcast>, a, b, true>();
  check<Moved<b, 1, Invariant>, a, b>();
  check<Moved<b, 1, Split<0>>, a, b>();
}

/// A sum over the ranks of b comes first, of that each rank of a then has its part; and nothing else travels but what is
/// updated.
constexpr auto& gathered_over_tensor =
    plan<AllStored<Trained<Moved<tensor, 0, Broadcast>, data, tensor, true>, Stored<data, Zero::states>>,
         Mesh{data = 2, tensor = 2}>;
constexpr double whole = width * width * sizeof(double);
static_assert(gathered_over_tensor.backward.sent(reduce_scatter(tensor)) == whole / 2);
static_assert(gathered_over_tensor.optimizer.sent(reduce_scatter(data)) +
                  gathered_over_tensor.backward.sent(reduce_scatter(data)) ==
              whole / 2 / 2);
static_assert(gathered_over_tensor.sent(all_gather(data)) == whole / 2 / 2);

}  // namespace

TEST_CASE("a parameter that is brought elsewhere on an axis behind the one it is stored over") {
  check_ways<data, tensor>();
}
TEST_CASE("and on one before it") { check_ways<tensor, data>(); }
TEST_CASE("on the one that it is stored over, or on one of two") {
  check_same<Moved<tensor, -1, Broadcast>, data, tensor, true>();
  check_same<Moved<tensor, -1, Split<0>>, data, tensor>();
  check_same<Moved<tensor, -1, Split<1>>, data, tensor>();
  check_same<Moved<tensor, -1, Split<1>, Split<0>>, data, tensor>();
  check_same<Moved<data, -1, Split<0>>, tensor, data>();
  check_same<Moved<data, -1, Split<1>>, tensor, data>();
  check_same<TwoUses<tensor, -1, Split<0>>, data, tensor>();
  check_same<TwoUses<tensor, -1, Split<1>>, data, tensor>();
  check_same<InLayers<tensor, -1, Split<0>>, data, tensor>();
  check_same<Sliced<tensor>, data, tensor>();
  check_same<Sliced<data>, tensor, data>();
}
TEST_CASE("there and further") {
  check<Moved<tensor, 0, Invariant, Split<1>>, data, tensor>();
  check<Moved<tensor, 1, Split<0>, Broadcast>, data, tensor, true>();
  check<Moved<tensor, 0, Invariant, Split<0>>, data, tensor>();
}
TEST_CASE("by a rule") {
  check<Sliced<tensor>, data, tensor>();
  check<Sliced<data>, tensor, data>();
}
TEST_CASE("and beside it as it lies") {
  check<TwoUses<tensor, 0, Broadcast>, data, tensor, true>();
  check<TwoUses<tensor, 1, Invariant>, data, tensor>();
  check<TwoUses<tensor, -1, Split<1>>, data, tensor, false, 2>();
}
TEST_CASE("in layers, and by micro-batches") {
  check<InLayers<tensor, 0, Broadcast>, data, tensor, true>();
  check<InLayers<tensor, 1, Split<0>>, data, tensor, false, 2>();
  check<Moved<tensor, 0, Broadcast>, data, tensor, true, 2>();
  check<Moved<tensor, 1, Split<0>>, data, tensor, false, 2>();
}
TEST_CASE("what is split by dimensions, too, what one rank has, and the host") {
  const auto by = []<class... Says>(Types<Says...>) {
    const std::vector<double> one = losses(build<Trained<Annotated<>, data, tensor, true>>(), Mesh{}, 0.5);
    const Graph graph = build<Trained<Annotated<Says...>, data, tensor, true>>();
    check_sound(graph);
    for (const Mesh& mesh : {Mesh{data = 2, tensor = 2}, Mesh{tensor = 4, data = 2}}) {
      INFO(text(mesh));
      check_near(losses(graph, mesh, 0.5), one);
    }
  };
  by(Types<Stored<data, Split<0>, Zero::states>>{});
  by(Types<Stored<data, Split<0>, Zero::gradients>>{});
  by(Types<Stored<data, Split<1>, Zero::gradients>>{});
  by(Types<Stored<data, At<0>, Zero::states>>{});
  by(Types<Stored<data, Zero::states>, Stored<host, Zero::states>>{});
  by(Types<Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>{});
  by(Types<Stored<data>, Stored<host>>{});
}
