// Every stage of ZeRO and every life of what is gathered, layers kept and computed again, one micro-batch and two, on
// every mesh up to eight ranks: losses of ten steps are those of one rank that stores all whole, and the same bits where
// terms are added up in the same order. Where `replica` has several ranks, it is hybrid sharding.
#pragma once
#include <algorithm>

#include "ten_steps.hpp"

namespace every_mesh {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using ten_steps::check_near;

inline constexpr Axis replica{"replica"};

/// A transformer's block. What an axis splits is `factor` long; nothing divides the rest.
template <int factor, Context how>
struct Block {
  Parameter<double, Shape<5>> gain{normal(1)};
  Parameter<double, Shape<5, 3, factor / tensor, 1>> qkv{normal(0.4)};
  Parameter<double, Shape<factor / tensor, 1, 5>> projection{normal(0.4)};
  Parameter<double, Shape<5, factor / tensor>> up{normal(0.3)};
  Parameter<double, Shape<factor / tensor>> bias{normal(0.3)};
  Parameter<double, Shape<factor / tensor, 5>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(rms_norm(x, gain), qkv);
    const auto attended = attention<true, how>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all));
    const auto y = x + matmul<2>(attended, projection);
    return y + matmul(gelu(matmul(y, up) + bias), down);
  }
};
template <int factor, Dim layers, Context how, class... Word>
struct Model {
  Parameter<double, Shape<3, 5>> in{normal(0.5)};
  Layers<layers, Block<factor, how>, Word...> blocks;
  Parameter<double, Shape<5, 3>> out{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(blocks(matmul(x, in)), out) - y));
  }
};

/// Ways to store the same program. From stage 2 on each micro-batch's gradient is reduced, before it is added up.
inline const std::string way[] = {"whole",    "stage 1",  "stage 2",          "stage 3",
                                  "per pass", "per step", "stage 1 on hosts", "stage 3 on hosts"};
/// Its examples are the same, in however many micro-batches.
template <int factor, int micro_batches, Order order>
using Examples =
    Tensor<double, Shape<2 * factor / micro_batches / replica / data, factor / Ordered{&sequence, order}, 3>>;
template <int factor, Dim layers, Context how, Order order, int micro_batches, class... Word>
using Step =
    Accumulate<micro_batches, Training<Model<factor, layers, how, Word...>, Momentum,
                                       Examples<factor, micro_batches, order>, Examples<factor, micro_batches, order>>>;
template <class Step>
std::vector<Graph> stages() {
  std::vector<Graph> all;
  all.push_back(build<Step>());
  all.push_back(build<AllStored<Step, Stored<data, Zero::states>>>());
  all.push_back(build<AllStored<Step, Stored<data, Zero::gradients>>>());
  all.push_back(build<AllStored<Step, Stored<data>>>());
  return all;
}
template <class Step>
std::vector<Graph> lives() {
  std::vector<Graph> all = stages<Step>();
  all.push_back(build<AllStored<Step, Stored<data, Gathered::per_pass>>>());
  all.push_back(build<AllStored<Step, Stored<data, Gathered::per_step>>>());
  all.push_back(build<AllStored<Step, Stored<data, Zero::states>, Stored<host, Zero::states>>>());
  all.push_back(build<AllStored<Step, Stored<data>, Stored<host>>>());
  return all;
}

/// All meshes up to eight ranks that `chosen` takes, whose extents are among those given; an axis of extent 1 is left
/// out.
template <class Chosen>
std::vector<Mesh> meshes(std::initializer_list<int> extents, Chosen chosen) {
  std::vector<Mesh> all{Mesh{}};
  for (const Axis* axis : {&replica, &data, &tensor, &sequence, &stage})
    for (std::size_t i = 0, count = all.size(); i < count; ++i)
      for (const int extent : extents)
        if (all[i].ranks() * extent <= 8) {
          Mesh more = all[i];
          more.axes[more.count++] = Extent(axis, extent);
          all.push_back(more);
        }
  std::erase_if(all, [&](const Mesh& mesh) { return !chosen(mesh); });
  return all;
}

/// Over how many of these axes gradients are added up. Over one, terms are in one order whatever is stored. Of several,
/// whole gradients are completed on all at once, stored ones on `data` first; and then, at stage 1, those of layers'
/// vectors on one axis after the other.
inline int sums(const Mesh& mesh, std::initializer_list<const Axis*> axes) {
  return static_cast<int>(std::count_if(axes.begin(), axes.end(), [&](const Axis* a) { return mesh.extent(a) > 1; }));
}
/// By an optimizer that a wrong factor of gradients does not escape.
inline std::vector<double> losses(const Graph& graph, const Mesh& mesh) {
  return ten_steps::losses<Momentum>(graph, mesh, {.weight_decay = 0.1});
}
inline bool staged(const Mesh& mesh) { return mesh.extent(&stage) > 1; }

template <int factor, Dim layers, Context how = Context::gathered, Order order = Order::contiguous>
void check(const std::vector<Mesh>& all) {
  using Again = Recompute<Repeat::collectives>;
  const std::vector<Graph> kept[] = {lives<Step<factor, layers, how, order, 1>>(),
                                     lives<Step<factor, layers, how, order, 2>>()};
  const std::vector<Graph> again[] = {stages<Step<factor, layers, how, order, 1, Again>>(),
                                      stages<Step<factor, layers, how, order, 2, Again>>()};
  const std::vector<double> one = losses(kept[0][0], Mesh{});
  CHECK(one.front() > 1.2 * one.back());
  for (const Mesh& mesh : all)
    for (const int micro_batches : {1, 2}) {
      INFO(micro_batches << " micro-batches on " << text(mesh));
      std::vector<std::vector<double>> seen;
      for (std::size_t i = 0; i < std::size(way); ++i) {
        INFO(way[i]);
        seen.push_back(losses(kept[micro_batches - 1][i], mesh));
        check_near(seen[i], one);
        if (i < again[0].size()) CHECK(losses(again[micro_batches - 1][i], mesh) == seen[i]);
        if (i > 2 && i < 6) CHECK(seen[i] == seen[2]);
        if (i == 6 && sums(mesh, {&replica, &sequence}) <= 1) CHECK(seen[6] == seen[1]);
        if (i == 7) CHECK(seen[7] == seen[3]);
        if (i == 2 && micro_batches == 1 && sums(mesh, {&replica, &sequence}) <= 1) CHECK(seen[2] == seen[1]);
        if (i == 1 && sums(mesh, {&replica, &data, &sequence}) <= 1) CHECK(seen[1] == seen[0]);
      }
    }
}

}  // namespace every_mesh
