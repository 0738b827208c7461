// Programs whose gradients are known to the last bit: of each element the sum of an input over its examples, for a
// parameter and for one of each layer; and what is left of it where sums are rounded.
#pragma once
#include <cmath>
#include <vector>

#include "program.hpp"

namespace sums {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

constexpr int width = 12, layers = 2, examples = 8, micro_batches = 4;

/// `Storing`: none, or how it is Stored.
template <class T, class... Storing>
struct Layer {
  Parameter<T, Shape<width / tensor>, Storing...> term{ones};
  constexpr auto operator()(Distributed auto x) const { return x + term; }
};
template <class T, class... Storing>
struct Model {
  Parameter<T, Shape<width / tensor>, Storing...> first{ones};
  Layers<layers, Layer<T, Storing...>> all;
  constexpr auto operator()(Distributed auto c) const { return sum(cast<float>(all(cast<T>(c) + first)) * c); }
};
template <class T, class... Storing>
using Step =
    Accumulate<micro_batches,
               Training<Model<T, Storing...>, KeepGradients, Tensor<float, Shape<examples / data, width / tensor>>>>;

inline const std::vector<Mesh> meshes{{data = 1}, {data = 2}, {data = 4}, {tensor = 2}, {data = 2, tensor = 2}};

/// What a program says: the parameters' element type, those of its sums, and the stage of ZeRO or 0.
struct Words {
  DType parameters, accumulated, reduced;
  int stage;
};
/// f(words, graph) for all of them.
template <class F>
void each_program(F f) {
  const auto two = [](auto g) {
    g(float{});
    g(bfloat16{});
  };
  const auto all = [&](auto g) {
    two(g);
    g(float16{});
  };
  const auto stored = [&]<class T, class A, class R, class... Storing>(T, A, R, int stage, Storing...) {
    f(Words{dtype_of<T>, dtype_of<A>, dtype_of<R>, stage},
      build<SumsIn<LossScaled<Step<T, Storing...>>, Accumulated<A>, Reduced<R>>>());
  };
  two([&](auto t) {
    all([&](auto a) {
      all([&](auto r) {
        stored(t, a, r, 0);
        stored(t, a, r, 1, Stored<data, Split<0>, Zero::states>{});
        stored(t, a, r, 2, Stored<data, Split<0>, Zero::gradients>{});
        stored(t, a, r, 3, Stored<data, Split<0>>{});
      });
    });
  });
}

/// Multiples of 2^-11 below 4, sums of which float has exactly and halves have not.
inline std::vector<float> numbers() {
  std::vector<float> c = program::numbers<float>(micro_batches * examples * width, 5);
  for (float& e : c) e = std::floor(e * 8192) / 2048;
  return c;
}
constexpr auto feed = [](auto& executor, auto&) {
  executor.input(0, numbers());
  executor.scalar("loss_scale", 16);
};

inline float rounded(float x, DType to) {
  return to == DType::bf16 ? static_cast<float>(bfloat16(x)) : to == DType::f16 ? static_cast<float>(float16(x)) : x;
}
/// Every parameter's gradient, on so many ranks of `data`.
inline std::vector<double> expected(const Words& words, int ranks) {
  const std::vector<float> c = numbers();
  std::vector<double> result;
  for (int element = 0; element < width; ++element) {
    // of one micro-batch on one rank: c / micro_batches, added up over its examples
    const auto gradient = [&](int rank, int micro_batch) {
      float sum = 0;
      for (int e = rank * examples / ranks; e < (rank + 1) * examples / ranks; ++e)
        sum += rounded(c[static_cast<std::size_t>((micro_batch * examples + e) * width + element)] / micro_batches * 16,
                       words.parameters);
      return rounded(sum, words.parameters);
    };
    const auto over_ranks = [&](auto term) {
      float sum = 0;
      for (int r = 0; r < ranks; ++r) sum += rounded(term(r), words.reduced);
      return rounded(sum, words.reduced);
    };
    const auto over_micro_batches = [&](auto term) {
      float sum = 0;
      for (int k = 0; k < micro_batches; ++k) sum = rounded(sum + term(k), words.accumulated);
      return sum;
    };
    // stages 2 and 3 reduce each micro-batch's, the others what they have added up
    const float sum =
        words.stage >= 2 ? over_micro_batches([&](int k) { return over_ranks([&](int r) { return gradient(r, k); }); })
                         : over_ranks([&](int r) { return over_micro_batches([&](int k) { return gradient(r, k); }); });
    result.push_back(static_cast<double>(sum) / 16);
  }
  return result;
}

}  // namespace sums
