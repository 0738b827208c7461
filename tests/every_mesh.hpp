// Every stage of ZeRO and every life of what is gathered, layers kept and computed again, one micro-batch and two, on
// every mesh up to eight ranks: losses of ten steps are those of one rank that stores all whole, and the same bits where
// terms are added up in the same order. Where `replica` has several ranks, it is hybrid sharding.
#pragma once
#include "ten_steps.hpp"

namespace every_mesh {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using ten_steps::check_near, ten_steps::losses;

inline constexpr Axis replica{"replica"};

/// A transformer's block. What an axis splits is `factor` long; nothing divides the rest.
template <int factor>
struct Block {
  Parameter<double, Shape<5>> gain{normal(1)};
  Parameter<double, Shape<5, 3, factor / tensor, 1>> qkv{normal(0.4)};
  Parameter<double, Shape<factor / tensor, 1, 5>> projection{normal(0.4)};
  Parameter<double, Shape<5, factor / tensor>> up{normal(0.3)};
  Parameter<double, Shape<factor / tensor>> bias{normal(0.3)};
  Parameter<double, Shape<factor / tensor, 5>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(rms_norm(x, gain), qkv);
    const auto k = to<On<sequence, Broadcast>>(take<2, 1>(all)), v = to<On<sequence, Broadcast>>(take<2, 2>(all));
    const auto y = x + matmul<2>(attention(take<2, 0>(all), k, v), projection);
    return y + matmul(gelu(matmul(y, up) + bias), down);
  }
};
template <int factor, class... Word>
struct Model {
  Parameter<double, Shape<3, 5>> in{normal(0.5)};
  Layers<factor / stage, Block<factor>, Word...> blocks;
  Parameter<double, Shape<5, 3>> out{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

/// The same program, stored in every way. Which ways add up gradients of micro-batches before ranks do is in front.
inline constexpr int ways = 6, before = 2;
inline const std::string way[ways] = {"whole", "stage 1", "stage 2", "stage 3", "per pass", "per step"};
/// Its examples are the same, in however many micro-batches.
template <int factor, int micro_batches, class... Word>
std::vector<Graph> stored() {
  using X = Tensor<double, Shape<2 * factor / micro_batches / replica / data, factor / sequence, 3>>;
  using Step = Accumulate<micro_batches, Training<Model<factor, Word...>, AdamW, X, X>>;
  std::vector<Graph> all;
  all.push_back(build<Step>());
  all.push_back(build<AllStored<Step, Stored<data, Zero::states>>>());
  all.push_back(build<AllStored<Step, Stored<data, Zero::gradients>>>());
  all.push_back(build<AllStored<Step, Stored<data>>>());
  all.push_back(build<AllStored<Step, Stored<data, Gathered::per_pass>>>());
  all.push_back(build<AllStored<Step, Stored<data, Gathered::per_step>>>());
  return all;
}

/// All meshes whose extents are among those given, up to eight ranks; an axis of extent 1 is left out.
inline std::vector<Mesh> meshes(std::initializer_list<int> extents) {
  std::vector<Mesh> all{Mesh{}};
  for (const Axis* axis : {&replica, &data, &tensor, &sequence, &stage})
    for (std::size_t i = 0, count = all.size(); i < count; ++i)
      for (const int extent : extents)
        if (all[i].ranks() * extent <= 8) {
          Mesh more = all[i];
          more.axes[more.count++] = Extent(axis, extent);
          all.push_back(more);
        }
  return all;
}

/// Whether gradients are added up over one axis at most, so in the same order whatever is stored: stored ones are
/// completed on `data` first, whole ones on all axes at once.
inline bool one_sum(const Mesh& mesh) {
  int axes = 0;
  for (const Axis* axis : {&replica, &data, &sequence}) axes += mesh.extent(axis) > 1 ? 1 : 0;
  return axes <= 1;
}

/// Runs all on the meshes; returns how many these are.
template <int factor>
int check(std::initializer_list<int> extents) {
  const std::vector<Graph> kept[] = {stored<factor, 1>(), stored<factor, 2>()};
  const std::vector<Graph> again[] = {stored<factor, 1, Recompute<Repeat::collectives>>(),
                                      stored<factor, 2, Recompute<Repeat::collectives>>()};
  const std::vector<double> one = losses(kept[0][0], Mesh{});
  CHECK(one.front() > 1.2 * one.back());
  const std::vector<Mesh> all = meshes(extents);
  for (const Mesh& mesh : all)
    for (const int parts : {1, 2}) {
      INFO(parts << " micro-batches on " << text(mesh));
      std::vector<std::vector<double>> seen;
      for (int i = 0; i < ways; ++i) {
        INFO(way[i]);
        seen.push_back(losses(kept[parts - 1][static_cast<std::size_t>(i)], mesh));
        check_near(seen.back(), one);
        CHECK(losses(again[parts - 1][static_cast<std::size_t>(i)], mesh) == seen.back());
        // the same order of sums: of stages 1 to 3 where each micro-batch is its own sum, of no ZeRO and stage 1
        const int first = parts == 1 ? 1 : before;
        if (i > first) CHECK(seen.back() == seen[static_cast<std::size_t>(first)]);
        if (i == 1 && one_sum(mesh)) CHECK(seen[1] == seen[0]);
      }
    }
  return static_cast<int>(all.size());
}

}  // namespace every_mesh
