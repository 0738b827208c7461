// The program of docs/precision.md. What the document says of it is asserted here; print_tables prints its plan.
#pragma once
#include <parallel/parallel.hpp>

namespace precision {

using namespace parallel;
using namespace parallel::axes;

template <class T>
struct Mlp {
  Parameter<T, Shape<64, 256 / tensor>, Stored<data, Split<0>, Zero::states>> up;
  Parameter<T, Shape<256 / tensor, 64>, Stored<data, Split<1>, Zero::states>> down;
  constexpr auto operator()(Distributed auto x) const { return matmul(gelu(matmul(x, up)), down); }
};
template <class T>
struct Classifier {
  Parameter<T, Shape<1000, 64>> table;
  Mlp<T> mlp;
  constexpr auto operator()(Distributed auto words, Distributed auto classes) const {
    return mean_cross_entropy(mlp(embedding(words, table)), classes);
  }
};
template <class T>
using Step =
    Accumulate<8, Training<Classifier<T>, AdamW, Tensor<int, Shape<32 / data>>, Tensor<int, Shape<32 / data>>>>;
constexpr auto& p = plan<Step<bfloat16>, Mesh{data = 2, tensor = 2}>;

static_assert(p.forward.messages(all_gather(data)) * 2 == p.backward.messages(reduce_scatter(data)));

using Scaled = LossScaled<Step<float16>>;
using Halves = SumsIn<Step<bfloat16>, Activations<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>;
constexpr auto& halves = plan<Halves, Mesh{data = 2, tensor = 2}>;

static_assert(halves.forward.messages(all_gather(data)) == halves.backward.messages(reduce_scatter(data)));
static_assert(plan<Scaled, Mesh{data = 2, tensor = 2}>.sent() == p.sent());

/// One matrix in each of so many layers that what is made for one of them does not count.
template <class T>
struct Matrix {
  Parameter<T, Shape<256, 256>> w;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(x, w); }
};
template <class T>
struct Deep {
  Layers<256, Matrix<T>> layers;
  constexpr auto operator()(Distributed auto x) const { return mean(square(cast<float>(layers(x)))); }
};
template <class T>
using Deeply = Accumulate<2, Training<Deep<T>, AdamW, Wanted<T, Shape<4 / data, 256>>>>;

}  // namespace precision
