// GPTs of the sizes that the literature prints, with its choices: tensor and sequence parallelism, layers on stages,
// what is saved of a layer. [1] Narayanan et al., arXiv:2104.04473; [2] Korthikanti et al., arXiv:2205.05198.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>
#include <parallel/parallel.hpp>

namespace published {
using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

/// What the backward pass finds of a layer: everything; all but attention's scores and what tensor parallelism gathers
/// (selective recomputation, Korthikanti et al., 2022); its input only, and computes again what it needs; or its input
/// only, and computes again the whole layer, as the papers' programs do.
enum class Saved { everything, selective, inputs, recomputed_as_published };

/// What everything is. As the papers' programs have it: dropout stores its mask, a byte for each element, attention its
/// scores, and of what tensor parallelism gathers a rank saves its slice, which is gathered again. The same, but masks
/// are drawn again and what was gathered is kept. Or as the library does without a word: masks are drawn again, what was
/// gathered is kept, and attention has no scores to be saved.
enum class Policy { saved_as_published, scores, own };

struct Gpt {
  std::int64_t heads, width, layers;
  int micro_batches = 1;
  std::int64_t batch = 1;  ///< of one micro-batch, over all replicas
  bool sequence = false;
  Saved saved = Saved::everything;
  Policy policy = Policy::scores;
  std::int64_t context = 2048, vocabulary = 51200;
  constexpr std::int64_t size() const { return width / heads; }
  constexpr Dim examples() const { return batch > 1 ? batch / data : Dim(batch); }
  constexpr Dim positions() const { return sequence ? context / tensor : Dim(context); }
};

template <Gpt n, class T>
struct Norm {
  Parameter<T, Shape<n.width>> gain{ones};
  Parameter<T, Shape<n.width>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};

/// Of attention's scores.
template <Gpt n>
constexpr auto large(Distributed auto x) {
  if constexpr (n.saved == Saved::selective)
    return recompute(x);
  else
    return x;
}
// x   result
// S   S
constexpr void stored_dropout_lower(Lowering& l) {
  Type mask = l.results[0];
  Dim& last = mask.layout.dims[mask.layout.rank() - 1];
  last.size /= bytes_of(mask.dtype);  // in elements of x's type, one byte for each of x's
  l.result = l.emit(*l.operation, {l.operands[0]}, {l.results[0], mask}, {}, l.reals[0]);
}
inline constexpr Operation masked{.name = "masked"};
constexpr void stored_dropout_gradient(Gradient& g) { g.give(0, masked, {g.cotangent(), g.result(1)}); }
/// Dropout that keeps its mask.
inline constexpr Operation stored_dropout{.name = "stored_dropout",
                                          .shape = operation::same_shape,
                                          .signatures = operation::nonlinear_table,
                                          .element_by_element = 1,
                                          .lower = stored_dropout_lower,
                                          .gradient = stored_dropout_gradient};
template <Gpt n, Distributed X>
constexpr auto drop(const X& x, Here here = {}) {
  if constexpr (n.policy == Policy::saved_as_published)
    return Apply<stored_dropout>{0.1}(here, x);
  else
    return dropout(x, 0.1, here);
}

/// As every product takes it: whole, used differently by each rank of `tensor`.
template <Gpt n>
constexpr auto entering(Distributed auto x) {
  const auto gathered = to<On<tensor, Broadcast>>(x);
  if constexpr (n.saved == Saved::selective || n.policy == Policy::saved_as_published)
    return recompute(gathered);
  else
    return gathered;
}
/// As it lies between: a sum over `tensor` completed.
template <Gpt n>
constexpr auto between(Distributed auto x) {
  return to<Shape<n.examples(), n.positions(), n.width>>(x);
}

/// Attention as it was computed before its scores stayed in registers: q, k, v[batch, positions, heads, size].
template <Gpt n>
constexpr auto with_scores(Distributed auto q, Distributed auto k, Distributed auto v) {
  const auto heads = transpose<0, 2, 1, 3>(q), values = transpose<0, 2, 1, 3>(v);
  const auto keys = transpose<0, 2, 3, 1>(k);
  const auto probabilities = large<n>(softmax<3>(large<n>(batched_matmul(heads, keys))));
  return transpose<0, 2, 1, 3>(batched_matmul(large<n>(drop<n>(probabilities)), values));
}

/// Attention; of the library's own policy the one whose scores stay in registers.
template <Gpt n>
constexpr auto attend(Distributed auto q, Distributed auto k, Distributed auto v) {
  if constexpr (n.policy == Policy::own)
    return attention(q, k, v, 0.1);
  else
    return with_scores<n>(q, k, v);
}

template <Gpt n, class T>
struct Block {
  Norm<n, T> norm1, norm2;
  Parameter<T, Shape<n.width, n.heads / tensor, n.size()>> query, key, value;
  Parameter<T, Shape<n.heads / tensor, n.size()>> query_bias{zeros}, key_bias{zeros}, value_bias{zeros};
  Parameter<T, Shape<n.heads / tensor, n.size(), n.width>> projection;
  Parameter<T, Shape<n.width>> projection_bias{zeros};
  Parameter<T, Shape<n.width, 4 * n.width / tensor>> up;
  Parameter<T, Shape<4 * n.width / tensor>> up_bias{zeros};
  Parameter<T, Shape<4 * n.width / tensor, n.width>> down;
  Parameter<T, Shape<n.width>> down_bias{zeros};

  constexpr auto operator()(Distributed auto x) const {
    const auto a = entering<n>(norm1(x));
    const auto q = matmul(a, query) + query_bias, k = matmul(a, key) + key_bias;
    const auto attended = matmul<2>(attend<n>(q, k, matmul(a, value) + value_bias), projection);
    const auto y = x + drop<n>(between<n>(attended) + projection_bias);
    const auto hidden = matmul(entering<n>(norm2(y)), up) + up_bias;
    return y + drop<n>(between<n>(matmul(gelu(hidden), down)) + down_bias);
  }
};

template <Gpt n, class B, Saved saved = n.saved>
struct Blocks {
  using type = Layers<n.layers / stage, B>;
};
template <Gpt n, class B>
struct Blocks<n, B, Saved::inputs> {
  using type = Layers<n.layers / stage, B, Recompute<Repeat::collectives>>;
};
template <Gpt n, class B>
struct Blocks<n, B, Saved::recomputed_as_published> {
  using type = Layers<n.layers / stage, B, RecomputeAsPublished>;
};

template <Gpt n, class T = bfloat16>
struct Model {
  Parameter<T, Shape<n.vocabulary / tensor, n.width>> token;
  Parameter<T, Shape<n.context, n.width>> place;
  typename Blocks<n, Block<n, T>>::type blocks;
  Norm<n, T> last;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = to<Shape<n.examples(), n.positions(), n.width>>(drop<n>(embedding(tokens, token) + place));
    return mean(cross_entropy(matmul(entering<n>(last(blocks(x))), transpose(token)), targets));
  }
};

template <Gpt n>
using Tokens = Tensor<int, Shape<n.examples(), n.context>>;
/// Adds in bf16 too, over ranks and over micro-batches, as the papers' programs do: half the bytes, and a rounding for
/// each sum.
template <class Program>
using RoundedSums = SumsIn<Program, Activations<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>;
template <Gpt n, class T = bfloat16>
using Step = RoundedSums<Accumulate<n.micro_batches, Training<Model<n, T>, AdamW, Tokens<n>, Tokens<n>>>>;

/// The program with another schedule than 1F1B.
template <Gpt n>
Graph built(const Schedule& schedule = schedules::one_forward_one_backward) {
  return with_schedule(build<Step<n>>(), schedule);
}

// Table 1 of [1]. Every activation is recomputed; micro-batches of one sequence per replica, 1F1B: of those the paper
// says nothing for its table.
template <Gpt n_, int t, int p, int gpus>
struct Row {
  static constexpr Gpt n = n_;
  static constexpr int data_parallel = gpus / (t * p);
  static_assert(n.batch == data_parallel);
  static Mesh mesh() { return Mesh{stage = p, data = data_parallel, tensor = t}; }
  double billions, teraflops;
  static constexpr double L = n.layers, h = n.width, V = n.vocabulary, s = n.context,
                          B = static_cast<double>(n.batch) * n.micro_batches;
  // 12 L h^2 (1 + 13 / 12h + (V + s) / 12Lh)
  static constexpr double parameters() { return 12 * L * h * h + 13 * L * h + (V + s) * h; }
  static constexpr double flops() { return 96 * B * s * L * h * h * (1 + s / (6 * h) + V / (16 * L * h)); }
  double seconds() const { return flops() / (gpus * teraflops * 1e12); }
};
inline constexpr Row<Gpt{24, 2304, 24, 16, 32, false, Saved::recomputed_as_published}, 1, 1, 32> row1{1.7, 137};
inline constexpr Row<Gpt{32, 3072, 30, 16, 32, false, Saved::recomputed_as_published}, 2, 1, 64> row2{3.6, 138};
inline constexpr Row<Gpt{32, 4096, 36, 16, 32, false, Saved::recomputed_as_published}, 4, 1, 128> row3{7.5, 142};
inline constexpr Row<Gpt{48, 6144, 40, 32, 32, false, Saved::recomputed_as_published}, 8, 1, 256> row4{18.4, 135};
inline constexpr Row<Gpt{64, 8192, 48, 48, 32, false, Saved::recomputed_as_published}, 8, 2, 512> row5{39.1, 138};
inline constexpr Row<Gpt{160, 25600, 128, 512, 6, false, Saved::recomputed_as_published}, 8, 64, 3072> row6{1008, 163};

inline void each_row(auto f) {
  f(row1);
  f(row2);
  f(row3);
  f(row4);
  f(row5);
  f(row6);
}

// Of [2].
constexpr Gpt gpt22(Saved saved, bool slices, Policy policy = Policy::scores) {
  return {64, 6144, 48, 1, 4, slices, saved, policy};
}
constexpr Gpt gpt175(Saved saved, bool slices, Policy policy = Policy::scores) {
  return {96, 12288, 96, 64, 1, slices, saved, policy};
}
inline const Mesh eight{tensor = 8}, sixty_four{stage = 8, tensor = 8};

/// A step as it is predicted on DGX A100s, and as it was printed.
struct Compared {
  std::string model{};
  double predicted = 0, printed = 0;
  double error() const { return predicted / printed - 1; }
};
inline std::vector<Compared> compared_steps() {
  std::vector<Compared> all;
  const auto add = [&](const std::string& model, const Graph& graph, const Mesh& mesh, double printed) {
    all.push_back({model, predict(graph, mesh, machines::dgx_a100).seconds, printed});
  };
  each_row([&](auto row) {
    char billions[32];
    std::snprintf(billions, sizeof billions, "%gB", row.billions);
    add(billions + (" on " + std::to_string(row.mesh().ranks())) + " GPUs [1]", built<row.n>(), row.mesh(),
        row.seconds());
  });
  const Schedule& three = schedules::interleaved<3>;
  add("22B on 8 GPUs, all made again [2]", built<gpt22(Saved::recomputed_as_published, false)>(), eight, 1.42);
  add("22B on 8 GPUs, sequence parallel, scores made again [2]", built<gpt22(Saved::selective, true)>(), eight, 1.10);
  add("175B on 64 GPUs, all made again [2]", built<gpt175(Saved::recomputed_as_published, false)>(three), sixty_four,
      18.13);
  add("175B on 64 GPUs, sequence parallel, scores made again [2]", built<gpt175(Saved::selective, true)>(three),
      sixty_four, 13.75);
  return all;
}
inline double mean_error(const std::vector<Compared>& all) {
  double sum = 0;
  for (const Compared& c : all) sum += c.error() < 0 ? -c.error() : c.error();
  return sum / static_cast<double>(all.size());
}

}  // namespace published
