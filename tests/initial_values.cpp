// What is drawn by counter is the same on every mesh, bit for bit: a rank's parameters are its slice of what one rank
// has, and dropout drops the same elements however a tensor lies.
#include <doctest/doctest.h>

#include <parallel/device/stream.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/model/llama.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using lockstep::Array;
using program::Weighed;

namespace {

using Meshes = std::vector<Mesh>;
const Meshes of_tensor{Mesh{tensor = 1}, Mesh{tensor = 2}, Mesh{tensor = 4}}, of_data{Mesh{data = 2}, Mesh{data = 4}},
    of_both{Mesh{data = 2, tensor = 2}, Mesh{tensor = 2, data = 2}};

/// Every initializer, every way to lie: split by two axes, along inner dimensions, stored otherwise than used.
template <class T>
struct Everything {
  Parameter<T, Shape<8 / data / tensor, 3, 16>> rows{normal(0.3)};
  Parameter<T, Shape<4, 8 / tensor, 8 / data>> inner{xavier};
  Parameter<T, Shape<16, 6>, Stored<data, Split<0>>> sharded{scaled_normal(0.1, 7)};
  Parameter<T, Shape<8 / tensor>> ones_of{ones};
  Parameter<T, Shape<5>> whole;
  constexpr auto operator()(Distributed auto x) const {
    return mean(x) + mean(rows) + mean(inner) + mean(sharded) + mean(ones_of) + mean(whole);
  }
};
template <class T>
using OfEverything = Evaluation<Everything<T>, Tensor<T, Shape<2>>>;
using Tokens = Tensor<int, Shape<4 / data, 8>>;
template <Dim context>
using OfGpt2 = Evaluation<models::Gpt2<models::Gpt2Sizes{.context = context,
                                                         .channels = 16,
                                                         .heads = 4 / tensor,
                                                         .inner = 24 / tensor,
                                                         .vocabulary = 24 / tensor,
                                                         .classes = 17,
                                                         .layers = 3}>,
                          Tokens, Tokens>;
using OfLlama = Evaluation<models::Llama<models::LlamaSizes{.context = 8,
                                                            .channels = 16,
                                                            .heads = 4 / tensor,
                                                            .key_heads = 2,
                                                            .inner = 24 / tensor,
                                                            .vocabulary = 24 / tensor,
                                                            .layers = 2}>,
                           Tokens, Tokens>;

/// So large that a rank draws it by several threads.
constexpr int large_rows = 600, large_columns = 1024;
struct Large {
  Parameter<float, Shape<large_rows / data, large_columns / tensor>> w{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return mean(x) + mean(w); }
};

/// A rank's part by the definition of Split, cut axis by axis.
Array slice_of(Array whole, const Layout& layout, const Mesh& mesh, int rank) {
  for (int d = 0; d < layout.rank(); ++d)
    for (int i = 0; i < layout.dims[d].count; ++i) {
      const Axis* axis = layout.dims[d].axes[i];
      const std::int64_t extent = whole.size[static_cast<std::size_t>(d)] / mesh.extent(axis);
      whole = lockstep::part(whole, static_cast<std::size_t>(d), mesh.coordinate(rank, axis) * extent, extent);
    }
  return whole;
}
/// A rank's first values, parameter by parameter.
template <class T>
std::vector<Array> first_values(const Plan& plan, int rank) {
  const Parameters parameters(plan, rank, 77);
  std::vector<Array> all;
  for (const Member& m : plan.graph.members) {
    if (m.role != Role::parameter) continue;
    Array own;
    for (const Dim& d : m.type.layout.dims) own.size.push_back(local(d, plan.mesh));
    const T* data = reinterpret_cast<const T*>(parameters.data(plan, rank) +
                                               plan.storage[static_cast<std::size_t>(m.value)].offset);
    own.data.assign(data, data + own.elements());
    all.push_back(own);
  }
  return all;
}
template <class T, class Program>
void check_slices() {
  const std::vector<Array> master = first_values<T>(derive<Program>(Mesh{tensor = 1}), 0);
  for (const Mesh& mesh :
       {Mesh{tensor = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}, Mesh{tensor = 2, data = 4}}) {
    const OwnedPlan plan = derive<Program>(mesh);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const std::vector<Array> own = first_values<T>(*plan, rank);
      std::size_t at = 0;
      for (const Member& m : plan->graph.members) {
        if (m.role != Role::parameter) continue;
        INFO(plan->graph.path(m) << " of rank " << rank << " on " << text(mesh));
        const Array expected = slice_of(master[at], m.type.layout, mesh, rank);
        CHECK(own[at].size == expected.size);
        CHECK(own[at++].data == expected.data);
      }
      CHECK(at == master.size());
    }
  }
}

constexpr int rows = 4, positions = 8, columns = 24;

struct Dropped {
  constexpr auto operator()(Distributed auto x) const { return dropout(x, 0.3); }
};
struct DroppedSum {  // pending where k is split; of whole numbers, and grown by 2, so that sums are exact
  constexpr auto operator()(Distributed auto a, Distributed auto b) const { return dropout(matmul(a, b), 0.5); }
};
struct DroppedAttention {
  constexpr auto operator()(Distributed auto q, Distributed auto k, Distributed auto v) const {
    return attention<false>(q, k, v, 0.3);
  }
};
template <class Layer, class Result, class... Input>
using Step = Training<Weighed<Layer>, KeepGradients, Wanted<float, Result>, Tensor<float, Input>...>;

/// What a layer gives on a mesh: the gradient of its cotangent.
template <class Program>
std::vector<double> given(const Mesh& mesh, const std::vector<std::vector<float>>& inputs) {
  return program::outputs<Program>(
             mesh,
             [&](auto& executor) {
               executor.input(0, std::vector<float>(program::input_elements(executor.plan()), 1.0F));  // the cotangent
               for (std::size_t i = 0; i < inputs.size(); ++i) executor.input(static_cast<int>(i) + 1, inputs[i]);
             })
      .back()
      .data;
}
std::uint32_t word(std::size_t element) {  // seed 3, step 1, the first call, no layer, no micro-batch
  const double scalars[] = {3, 1};
  return RandomStream::of({0, 1, 0}, scalars, 0, 0).word(element);
}

template <Dim first, Dim second, Dim third>
void check_dropped(const Meshes& meshes, const std::vector<float>& x, const std::vector<double>& expected) {
  using Lying = Shape<first, second, third>;
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    CHECK(given<Step<Dropped, Lying, Lying>>(mesh, {x}) == expected);
  }
}
template <Dim depth>
void check_dropped_sum(const Meshes& meshes, const std::vector<double>& expected, const std::vector<float>& a,
                       const std::vector<float>& b) {
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    CHECK(given<Step<DroppedSum, Shape<rows, columns>, Shape<rows, depth>, Shape<depth, columns>>>(mesh, {a, b}) ==
          expected);
  }
}
template <Dim batch, Dim queries, Dim heads>
void check_dropped_attention(const Meshes& meshes, const std::vector<std::vector<float>>& inputs,
                             const std::vector<double>& expected) {
  using Query = Shape<batch, queries, heads, 2>;
  using Key = Shape<batch, 8, heads, 2>;
  using Value = Shape<batch, 8, heads, 8>;
  using Result = Shape<batch, queries, heads, 8>;
  for (const Mesh& mesh : meshes) {
    INFO(text(mesh));
    CHECK(given<Step<DroppedAttention, Result, Query, Key, Value>>(mesh, inputs) == expected);
  }
}

}  // namespace

TEST_CASE("a rank's first parameters are its slice of one rank's, bit for bit") {
  check_slices<float, OfEverything<float>>();
  check_slices<double, OfEverything<double>>();
  check_slices<float, OfGpt2<8>>();
  check_slices<float, OfGpt2<8 / tensor>>();
  check_slices<float, OfLlama>();
}
TEST_CASE("many numbers are drawn as one by one, and as Box and Muller have them") {
  constexpr std::int64_t count = 1000;
  const Draw normals{.seed = 77, .stream = 5, .scale = 0.02},
      uniforms{.seed = 77, .stream = 5, .normal = false, .scale = 0.5};
  const std::uint64_t first = (std::uint64_t{1} << 32) - 500;  // indices of two words
  std::vector<double> all(count), even(count);
  draw(normals, first, count, all.data());
  draw(uniforms, first, count, even.data());
  double mean_of = 0, square_of = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t index = first + static_cast<std::uint64_t>(i);
    const double one = all[static_cast<std::size_t>(i)];
    CHECK(one == 0.02 * random_normal(77, 5, index));
    const auto w = random_words(77, 5, index);
    CHECK(std::abs(one / 0.02 - std::sqrt(-2 * std::log(random_fraction(w[0], w[1]))) *
                                    std::cos(2 * std::numbers::pi * random_fraction(w[2], w[3]))) < 1e-14);
    CHECK(even[static_cast<std::size_t>(i)] == 0.5 * (2 * random_uniform(77, 5, index) - 1));
    mean_of += one / 0.02 / count;
    square_of += one / 0.02 * (one / 0.02) / count;
  }
  CHECK(std::abs(mean_of) < 0.1);
  CHECK(std::abs(square_of - 1) < 0.15);
  for (const std::int64_t begin : {0, 1, 15, 16, 17, 500, 983})  // whoever draws how many
    for (const std::int64_t n : {1, 2, 15, 16, 17}) {
      std::vector<double> some(static_cast<std::size_t>(n));
      std::vector<float> narrow(static_cast<std::size_t>(n));
      draw(normals, first + static_cast<std::uint64_t>(begin), n, some.data());
      draw(normals, first + static_cast<std::uint64_t>(begin), n, narrow.data());
      for (std::size_t i = 0; i < some.size(); ++i) {
        CHECK(some[i] == all[static_cast<std::size_t>(begin) + i]);
        CHECK(narrow[i] == static_cast<float>(some[i]));
      }
    }
}
TEST_CASE("numbers that several threads draw are those of one") {
  const auto of = [](const Mesh& mesh) {
    std::vector<float> all(large_rows * large_columns);
    const OwnedPlan plan = derive<Evaluation<Large, Tensor<float, Shape<2>>>>(mesh);
    for (int rank = 0; rank < mesh.ranks(); ++rank) Parameters(plan, rank, 3).get(plan, rank, "w", all);
    return all;
  };
  const std::vector<float> one = of(Mesh{data = 1});
  std::vector<float> expected(one.size());
  draw({.seed = 3, .stream = 0, .scale = 0.3}, 0, static_cast<std::int64_t>(one.size()), expected.data());
  CHECK(one == expected);  // this machine's threads, all of which one rank has
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{tensor = 4}, Mesh{data = 2, tensor = 2}}) CHECK(of(mesh) == one);
}
TEST_CASE("dropout drops the same however a tensor lies, bit for bit") {
  const std::vector<float> x = program::numbers<float>(rows * positions * columns, 1);
  std::vector<double> expected;
  for (std::size_t i = 0; i < x.size(); ++i)
    expected.push_back(word(i) < dropped_below(0.3) ? 0.0 : static_cast<double>(x[i] * static_cast<float>(1 / 0.7)));
  check_dropped<rows, positions, columns>({Mesh{}}, x, expected);
  check_dropped<rows / data, positions, columns>(of_data, x, expected);
  check_dropped<rows, positions / tensor, columns>(of_tensor, x, expected);
  check_dropped<rows, positions, columns / tensor>(of_tensor, x, expected);
  check_dropped<rows / data, positions / tensor, columns>(of_both, x, expected);
  check_dropped<rows, positions, columns / tensor / data>(of_both, x, expected);
}
TEST_CASE("every term of a pending sum drops the same") {
  constexpr int depth = 16;
  const std::vector<int> a = program::numbers<int>(rows * depth, 1, 9),
                         b = program::numbers<int>(depth * columns, 2, 9);
  std::vector<double> expected(rows * columns);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t k = 0; k < depth; ++k)
      expected[i] += 2 * a[i / columns * depth + k] * b[k * columns + i % columns];
    if (word(i) < dropped_below(0.5)) expected[i] = 0;
  }
  const std::vector<float> left(a.begin(), a.end()), right(b.begin(), b.end());
  check_dropped_sum<depth>({Mesh{}}, expected, left, right);
  check_dropped_sum<depth / tensor>(of_tensor, expected, left, right);
  check_dropped_sum<depth / data / tensor>(of_both, expected, left, right);
}
TEST_CASE("attention drops the same probabilities however queries and heads lie, bit for bit") {
  // Queries are zero, so that a probability is 1/8; a value is the unit vector of its key, so that a result is its row
  // of probabilities.
  constexpr std::size_t batch = 4, queries = 8, heads = 4, keys = 8;
  std::vector<float> values(batch * keys * heads * keys);
  for (std::size_t i = 0; i < batch * keys * heads; ++i) values[i * keys + i / heads % keys] = 1;
  std::vector<double> expected;
  for (std::size_t i = 0; i < batch * queries * heads * keys; ++i) {
    const std::size_t key = i % keys, head = i / keys % heads, query = i / keys / heads % queries,
                      b = i / keys / heads / queries;
    expected.push_back(word(((b * heads + head) * queries + query) * keys + key) < dropped_below(0.3)
                           ? 0.0
                           : static_cast<double>(static_cast<float>(1 / 0.7) / 8));
  }
  const std::vector<std::vector<float>> inputs{std::vector<float>(batch * queries * heads * 2),
                                               program::numbers<float>(batch * keys * heads * 2, 3), values};
  check_dropped_attention<batch, queries, heads>({Mesh{}}, inputs, expected);
  check_dropped_attention<batch / data, queries, heads>(of_data, inputs, expected);
  check_dropped_attention<batch, queries / tensor, heads>(of_tensor, inputs, expected);
  check_dropped_attention<batch, queries, heads / tensor>(of_tensor, inputs, expected);
  check_dropped_attention<batch / data, queries, heads / tensor>(of_both, inputs, expected);
  check_dropped_attention<batch, queries, heads / data / tensor>(of_both, inputs, expected);
}
