// Placement invariance: on every mesh, loss and every gradient are those of one rank.
#pragma once
#include <doctest/doctest.h>

#include "models.hpp"
#include "program.hpp"

namespace invariance {

using namespace parallel;
using namespace parallel::axes;
using lockstep::Array;

/// All meshes of data, tensor and sequence whose extents divide `factor`, up to eight ranks; an axis of extent 1 is
/// left out.
inline std::vector<Mesh> meshes(int factor) {
  std::vector<Mesh> all;
  for (int d = 1; d <= 8; ++d)
    for (int t = 1; d * t <= 8; ++t)
      for (int s = 1; d * t * s <= 8; ++s) {
        if (factor % d != 0 || factor % t != 0 || factor % s != 0 || d * t * s == 1) continue;
        Mesh mesh;
        for (const Extent e : {data = d, tensor = t, sequence = s})
          if (e.size > 1) mesh.axes[mesh.count++] = e;
        all.push_back(mesh);
      }
  return all;
}

/// The gradient of a key bias is zero in exact arithmetic: it is judged by the size of its neighbours, with which it is
/// one tensor.
template <class T, int factor, int micro_batches = 1>
void check_gpt() {
  using Model = models::Gpt<T, models::multiples_of(factor)>;
  using Step =
      Accumulate<micro_batches, Training<Model, KeepGradients, typename Model::Tokens, typename Model::Tokens>>;
  const auto count = static_cast<std::int64_t>(micro_batches) * Model::batch * Model::context;
  const auto tokens = program::numbers<int>(count, 1, Model::vocabulary),
             targets = program::numbers<int>(count, 2, Model::vocabulary);
  const auto feed = [&](auto& executor) {
    executor.input(0, tokens);
    executor.input(1, targets);
  };
  const std::vector<Array> one = program::outputs<Step>(Mesh{data = 1}, feed);
  REQUIRE(one.size() == 2 + 16);
  CHECK(one[0].data[0] > 0.5);
  CHECK(one[1].data[0] > 1e-3);
  for (const Mesh& mesh : meshes(factor)) {
    INFO(text(mesh));
    const std::vector<Array> many = program::outputs<Step>(mesh, feed);
    for (std::size_t i = 0; i < one.size(); ++i) {
      INFO("output " << i);
      CHECK(lockstep::difference(many[i], one[i]) < (sizeof(T) == 8 ? 1e-10 : 1e-5));
    }
    const std::vector<Array> again = program::outputs<Step>(mesh, feed);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(again[i].data == many[i].data);  // run to run: the same bits
  }
}

}  // namespace invariance
