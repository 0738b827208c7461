// The gradient checker passes where gradients are right, on any mesh, and names what is not.
#include <doctest/doctest.h>

#include <parallel/communicator/threads.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/check_gradients.hpp>

#include "scan_models.hpp"

using namespace parallel;
using namespace parallel::axes;
namespace library = parallel::operation;

namespace {

template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t stream, int below = 0) {
  std::vector<T> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = below > 0 ? static_cast<T>(random_uniform(11, stream, i) * below)
                       : static_cast<T>(2 * random_uniform(11, stream, i) - 1);
  return all;
}

constexpr int batch = 4, context = 4, channels = 8, heads = 2, size = 4, vocabulary = 8;

template <class T>
struct Block {
  Parameter<T, Shape<channels>> gain{ones}, shift{zeros};
  Parameter<T, Shape<channels, 3, heads / tensor, size>> qkv{normal(0.3)};
  Parameter<T, Shape<heads / tensor, size, channels>> projection{normal(0.3)};
  Parameter<T, Shape<channels, 16 / tensor>> up{normal(0.3)};
  Parameter<T, Shape<16 / tensor, channels>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(layer_norm(x, gain, shift), qkv);
    const auto y = x + matmul<2>(attention(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all)), projection);
    return y + matmul(gelu(matmul(y, up)), down);
  }
};
template <class T>
struct Gpt {
  Parameter<T, Shape<vocabulary / tensor, channels>> token{normal(0.5)};
  Parameter<T, Shape<context, channels>> position{normal(0.5)};
  Layers<2, Block<T>> blocks;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = to<Shape<batch / data, context, channels>>(embedding(tokens, token) + position);
    return mean(cross_entropy(matmul(blocks(x), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<batch / data, context>>;

struct Images {
  Parameter<double, Shape<4 / tensor, 3, 3, 3>> first{normal(0.3)};
  Parameter<double, Shape<4 / tensor>> gain{ones}, shift{zeros};
  Parameter<double, Shape<4 / tensor, 5>> head{normal(0.3)};
  constexpr auto operator()(Distributed auto images, Distributed auto targets) const {
    const auto hidden = gelu(batch_norm(convolution<1, 1>(images, first), gain, shift));
    return mean(cross_entropy(einsum<"bchw,cj->bj">(hidden, head), targets));
  }
};

struct Recurrent {
  Scan<3, scans::Gru<double>> scan;
  constexpr auto operator()(Distributed auto h, Distributed auto sequence, Distributed auto y) const {
    return mean(square(scan(h, sequence).last - y));
  }
};

struct Dropped {
  Parameter<double, Shape<6, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor, 4>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(dropout(gelu(matmul(x, up)), 0.4), down) - y));
  }
};

// An own operation whose gradient has a wrong factor.
template <class T>
void cubed_kernel(const Call& call) {
  const T* x = call.operands[0].as<const T>();
  T* y = call.results[0].as<T>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) y[i] = x[i] * x[i] * x[i];
}
template <class T>
void cubed_gradient_kernel(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *g = call.operands[1].as<const T>();
  T* to = call.results[0].as<T>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) to[i] = 2 * x[i] * x[i] * g[i];
}
inline constexpr Operation cubed_derivative{.name = "cubed_gradient"};
constexpr void cubed_gradient(Gradient& g) { g.give(0, cubed_derivative, {g.operand(0), g.cotangent()}); }
inline constexpr Operation cubed{.name = "cubed",
                                 .shape = library::same_shape,
                                 .signatures = library::nonlinear_table,
                                 .element_by_element = 1,
                                 .gradient = cubed_gradient};
inline constexpr CpuKernels kernels[]{
    {&cubed, cubed_kernel<float>, cubed_kernel<double>},
    {&cubed_derivative, cubed_gradient_kernel<float>, cubed_gradient_kernel<double>},
};
struct Planted {
  Parameter<double, Shape<6, 8 / tensor>> up{normal(0.4)};
  Parameter<double, Shape<8 / tensor, 4>> down{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(Apply<cubed>{}(Here{}, matmul(x, up)), down) - y));
  }
};

// x * w, whose gradient forgets w; and one without any.
template <class T>
void weighted_kernel(const Call& call) {
  const T *x = call.operands[0].as<const T>(), *w = call.operands[1].as<const T>();
  T* y = call.results[0].as<T>();
  for (std::int64_t i = 0; i < call.results[0].elements(); ++i) y[i] = x[i] * w[i];
}
constexpr void forgetful_gradient(Gradient& g) { g.give(0, library::multiply, {g.operand(1), g.cotangent()}); }
inline constexpr Operation forgetful{.name = "forgetful",
                                     .shape = library::same_shape,
                                     .signatures = library::nonlinear_table,
                                     .element_by_element = 2,
                                     .gradient = forgetful_gradient};
inline constexpr Operation hopeless{.name = "hopeless",  // which says that it is constant, and is not
                                    .shape = library::same_shape,
                                    .signatures = library::nonlinear_table,
                                    .element_by_element = 2,
                                    .gradient = library::no_gradient};
inline constexpr CpuKernels weighted_kernels[]{
    {&forgetful, weighted_kernel<float>, weighted_kernel<double>},
    {&hopeless, weighted_kernel<float>, weighted_kernel<double>},
};
struct Forgotten {
  Parameter<double, Shape<6, 4>> up{normal(0.4)};
  Parameter<double, Shape<8 / data, 4>> by{normal(0.4)}, unused{ones};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(Apply<forgetful>{}(Here{}, matmul(x, up), exp(by)) - y));
  }
};
struct Hopeless {
  Parameter<double, Shape<6, 4>> up{normal(0.4)};
  Parameter<double, Shape<8 / data, 4>> by{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(Apply<hopeless>{}(Here{}, matmul(x, up), by) - y));
  }
};

/// Nothing goes back to x.
struct Deaf {
  Parameter<double, Shape<8 / data, 6>> by{normal(0.4)};
  Parameter<double, Shape<6, 4>> up{normal(0.4)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(Apply<forgetful>{}(Here{}, by, x), up) - y));
  }
};

const Mesh meshes[] = {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}};

template <class Step, class... Inputs>
void passes(const Inputs&... inputs) {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    const OwnedPlan plan = derive<Step>(mesh);
    std::vector<CheckedGradients> done(static_cast<std::size_t>(mesh.ranks()));
    run_threads(mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 1);
      done[static_cast<std::size_t>(world.rank())] =
          check_gradients(plan, world, parameters, {inputs...}, {.samples = 3});
    });
    CHECK(done[0].elements > 5);
    CHECK(done[0].largest < 1e-5);
    for (const CheckedGradients& of_rank : done) CHECK(of_rank.largest == done[0].largest);
  }
}
using X = Tensor<double, Shape<8 / data, 6>>;
using Y = Tensor<double, Shape<8 / data, 4>>;
const std::vector<double> x = numbers<double>(48, 1), y = numbers<double>(32, 2);

/// The sentence with which f ends on one rank.
template <class F>
std::string said(const OwnedPlan& plan, F f) {
  try {
    run_threads(plan->mesh.ranks(), [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 1);
      f(world, parameters);
    });
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace

TEST_CASE("gradients of a GPT, of convolutions, of a Scan and behind dropout are right on every mesh") {
  passes<Training<Gpt<double>, KeepGradients, Tokens, Tokens>>(numbers<int>(16, 1, vocabulary),
                                                               numbers<int>(16, 2, vocabulary));
  passes<Training<Images, KeepGradients, Tensor<double, Shape<4 / data, 3, 4, 4>>, Tensor<int, Shape<4 / data>>>>(
      numbers<double>(4 * 3 * 16, 1), numbers<int>(4, 2, 5));
  passes<Training<Recurrent, KeepGradients, Tensor<double, Shape<8 / data, 4 / tensor>>,
                  Tensor<double, Shape<3, 8 / data, 3>>, Tensor<double, Shape<8 / data, 4 / tensor>>>>(
      numbers<double>(32, 1), numbers<double>(72, 2), numbers<double>(32, 3));
  passes<Training<Dropped, KeepGradients, X, Y>>(x, y);
  passes<AllStored<Accumulate<2, Training<Dropped, KeepGradients, Tensor<double, Shape<4 / data, 6>>,
                                          Tensor<double, Shape<4 / data, 4>>>>,
                   Stored<data>>>(x, y);
}

TEST_CASE("a gradient that is wrong is named, with its element and both numbers, and nothing stays moved") {
  for (const Mesh& mesh : meshes) {
    const OwnedPlan plan = derive<Training<Planted, KeepGradients, X, Y>>(mesh);
    std::vector<double> before(48), after(48);
    const std::string words = said(plan, [&](Threads& world, Parameters& parameters) {
      if (world.rank() == 0) parameters.get(plan, 0, "up", before);
      try {
        check_gradients(plan, world, parameters, {x, y}, {.samples = 4}, CpuDouble{kernels});
      } catch (...) {
        if (world.rank() == 0) parameters.get(plan, 0, "up", after);
        throw;
      }
    });
    INFO(words);
    CHECK(words.find("the gradient of up is ") != std::string::npos);
    CHECK(words.find(", but the loss changes by ") != std::string::npos);
    CHECK(words.find("(central difference, step ") != std::string::npos);
    CHECK(before == after);
  }
}

TEST_CASE("a parameter that an operation forgets is named, and the operation") {
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const auto check = [&]<class Step>(const Step*) {
      const OwnedPlan plan = derive<Step>(mesh);
      return said(plan, [&](Threads& world, Parameters& parameters) {
        check_gradients(plan, world, parameters, {x, y}, {.samples = 4}, CpuDouble{weighted_kernels});
      });
    };
    const std::string forgotten = check(static_cast<Training<Forgotten, KeepGradients, X, Y>*>(nullptr)),
                      none = check(static_cast<Training<Hopeless, KeepGradients, X, Y>*>(nullptr));
    INFO(forgotten);
    CHECK(forgotten.find("the parameter by gets no gradient, but the loss changes by ") != std::string::npos);
    CHECK(forgotten.find("); the operation forgetful may forget it: have .gradient give one to each operand") !=
          std::string::npos);
    INFO(none);
    CHECK(none.find("the parameter up gets no gradient, but the loss changes by ") != std::string::npos);
    CHECK(none.find("); the operation hopeless may forget it: ") != std::string::npos);
    // what is frozen is none of it
    CHECK(check(static_cast<Grouped<Training<Forgotten, KeepGradients, X, Y>, Frozen<"by">>*>(nullptr)).empty());
  }
}

TEST_CASE("gradients of wanted inputs are checked as well") {
  using Asked = Wanted<double, Shape<8 / data, 6>>;
  for (const Mesh& mesh : {Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    const auto check = [&]<class Step>(const Step*, CheckedGradients& done) {
      const OwnedPlan plan = derive<Step>(mesh);
      return said(plan, [&](Threads& world, Parameters& parameters) {
        const CheckedGradients all = check_gradients(plan, world, parameters, {x, y}, {.samples = 4});
        if (world.rank() == 0) done = all;
      });
    };
    CheckedGradients without, with;
    CHECK(check(static_cast<Training<Dropped, KeepGradients, X, Y>*>(nullptr), without).empty());
    CHECK(check(static_cast<Training<Dropped, KeepGradients, Asked, Y>*>(nullptr), with).empty());
    CHECK(with.elements == without.elements + 4);
  }
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}}) {
    const OwnedPlan plan = derive<Training<Deaf, KeepGradients, Asked, Y>>(mesh);
    const std::string words = said(plan, [&](Threads& world, Parameters& parameters) {
      check_gradients(plan, world, parameters, {[&](std::size_t i) { return x[i]; }, y}, {.samples = 4},
                      CpuDouble{weighted_kernels});
    });
    INFO(words);
    CHECK(words.find("input.0 gets no gradient, but the loss changes by ") != std::string::npos);
    CHECK(words.find("; the operation forgetful may forget it") != std::string::npos);
  }
}

TEST_CASE("in float it is checked coarsely, and in halves not at all") {
  const auto tokens = numbers<int>(16, 1, vocabulary), targets = numbers<int>(16, 2, vocabulary);
  const OwnedPlan plan = derive<Training<Gpt<float>, KeepGradients, Tokens, Tokens>>(Mesh{data = 2});
  CHECK(said(plan, [&](Threads& world, Parameters& parameters) {
          CHECK(check_gradients(plan, world, parameters, {tokens, targets}).elements > 20);
        }).empty());
  const OwnedPlan half = derive<Training<Gpt<bfloat16>, KeepGradients, Tokens, Tokens>>(Mesh{data = 1});
  CHECK(said(half, [&](Threads& world, Parameters& parameters) {
          check_gradients(half, world, parameters, {tokens, targets});
        }).starts_with("check_gradients: the program computes in bf16"));
}

TEST_CASE("mistakes in using it are one sentence") {
  const OwnedPlan trains = derive<Training<Dropped, Sgd, X, Y>>(Mesh{data = 1}),
                  keeps = derive<Training<Dropped, KeepGradients, X, Y>>(Mesh{data = 1});
  CHECK(said(trains,
             [&](Threads& world, Parameters& p) {
               check_gradients(trains, world, p, {x, y});
             }) ==
        "check_gradients: the plan keeps no gradients; give it the plan of Training<Model, KeepGradients, ...>, the "
        "training's parameters fit it");
  CHECK(said(keeps, [&](Threads& world, Parameters& p) { check_gradients(keeps, world, p, {x}); }) ==
        "the program takes 2 inputs, but 1 were given; give one for each, in the order of the program's types");
  CHECK(said(keeps, [&](Threads& world, Parameters& p) {
          check_gradients(keeps, world, p, {x, y}, {.samples = 0});
        }) == "check_gradients: .samples is 0; check at least one element");
  CHECK(said(keeps, [&](Threads& world, Parameters& p) {
          check_gradients(keeps, world, p, {x, y}, {.step = -1});
        }).starts_with("check_gradients: .step and .tolerance are numbers above 0"));
  // parameters of the training itself
  CHECK(said(trains, [&](Threads& world, Parameters& p) {
          CHECK(check_gradients(keeps, world, p, {x, y}).elements > 8);
        }).empty());
}
