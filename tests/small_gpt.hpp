// A GPT-2 whose parameters are stored split (ZeRO), with tensor and sequence parallelism and stages, in any element type,
// and the meshes that have one of these each. PyTorch's numbers of it are in the fixture.
#pragma once
#include "fixture.hpp"
#include "program.hpp"

namespace small_gpt {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

constexpr int batch = 2, micro_batches = 2, context = 8, channels = 16, heads = 4, size = 4, vocabulary = 32;

template <class T>
struct Norm {
  Parameter<T, Shape<channels>> gain{ones};
  Parameter<T, Shape<channels>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};
template <class T>
struct Attention {
  Parameter<T, Shape<channels, 3, heads / tensor, size>, Stored<data, Split<0>>> qkv;
  Parameter<T, Shape<3, heads / tensor, size>> qkv_bias{zeros};
  Parameter<T, Shape<heads / tensor, size, channels>, Stored<data, Split<2>>> projection;
  Parameter<T, Shape<channels>> projection_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv) + qkv_bias;
    return matmul<2>(attention(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all)), projection) + projection_bias;
  }
};
template <class T>
struct Mlp {
  Parameter<T, Shape<channels, 4 * channels / tensor>, Stored<data, Split<0>>> up;
  Parameter<T, Shape<4 * channels / tensor>> up_bias{zeros};
  Parameter<T, Shape<4 * channels / tensor, channels>, Stored<data, Split<1>>> down;
  Parameter<T, Shape<channels>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
  }
};
template <class T>
struct Block {
  Norm<T> norm1;
  Attention<T> attention;
  Norm<T> norm2;
  Mlp<T> mlp;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(norm1(x));
    return y + mlp(norm2(y));
  }
};
template <class T>
struct Gpt {
  Parameter<T, Shape<vocabulary / tensor, channels>> token;
  Parameter<T, Shape<context, channels>> position;
  Layers<2 / stage, Block<T>> blocks;
  Norm<T> norm;
  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto x = to<Shape<batch / data, context / tensor, channels>>(embedding(tokens, token) + position);
    return mean(cross_entropy(matmul(norm(blocks(x)), transpose(token)), targets));
  }
};
using Tokens = Tensor<int, Shape<batch / data, context>>;
template <class T>
using Step = Accumulate<micro_batches, Training<Gpt<T>, AdamW, Tokens, Tokens>>;

inline const Mesh meshes[] = {Mesh{data = 1}, Mesh{data = 2}, Mesh{tensor = 2}, Mesh{stage = 2},
                              Mesh{stage = 2, data = 2, tensor = 2}};

/// Runs f(trainer, rank) on a mesh of thread ranks, from PyTorch's weights on PyTorch's batch.
template <class Program, class F>
void train(const Mesh& mesh, const AdamW::Hyperparameters& numbers, F f) {
  const auto tokens = fixture().values<int>("tokens"), targets = fixture().values<int>("targets");
  run_threads(mesh.ranks(), [&](Threads& world) {
    const OwnedPlan plan = derive<Program>(mesh, world.rank());
    Parameters parameters(plan, world.rank(), 1);
    for (const Member& m : plan->graph.members)
      if (const std::string path(plan->graph.path(m)); m.role == Role::parameter)
        parameters.set(plan, world.rank(), path, fixture().values<float>("parameter/" + path));
    Trainer<Threads, Cpu> trainer(plan, world, parameters, numbers, 1);
    trainer.executor().input(0, tokens);
    trainer.executor().input(1, targets);
    f(trainer, world.rank());
  });
}

}  // namespace small_gpt
