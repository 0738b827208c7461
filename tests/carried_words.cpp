// Every word for memory, alone and together, on a pipeline with a parameter on its first and last stage: what is
// written of the program reads back, and plans to the same memory, calls and bytes on every mesh.
#include <doctest/doctest.h>

#include <parallel/object/find_object.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

inline constexpr Axis replica{"replica"};

template <class T>
struct Block {
  Parameter<T, Shape<6>> gain{ones};
  Parameter<T, Shape<6, 10 / tensor>> up{normal(0.3)};
  Parameter<T, Shape<10 / tensor, 6>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(rms_norm(x, gain), up)), down); }
};
template <class T, class... Word>
struct Model {
  Parameter<T, Shape<7, 6>> token{normal(0.3)};
  Parameter<T, Shape<6>> gain{ones};
  Layers<8 / stage, Block<T>, Word...> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(cross_entropy(matmul(rms_norm(blocks(embedding(x, token)), gain), transpose(token)), y));
  }
};
template <int micro_batches>
using Tokens = Tensor<int, Shape<8 / micro_batches / replica / data, 3>>;

/// Plans, each from a graph of its own, have the same of all that their figures tell.
void same(const OwnedPlan& read, const OwnedPlan& made) {
  CHECK(read->peak_memory() == made->peak_memory());
  CHECK(read->host_memory() == made->host_memory());
  CHECK(read->calls() == made->calls());
  CHECK(read->sent() == made->sent());
  CHECK(read->flops() == made->flops());
  CHECK(read->events.size() == made->events.size());
}

int programs = 0;

template <class Program>
void reads_back() {
  const Graph graph = build<Program>();
  const Vector<std::int64_t> written = object::written<Program>(graph);
  const std::vector<std::int64_t> words(written.begin(), written.end());
  const auto carried = object::Reader(words).program();
  INFO(carried->name);
  ++programs;
  const auto own = [&](const Mesh& mesh) {
    Mesh result;
    for (int i = 0; i < mesh.count; ++i)
      if (const Axis* axis = carried->axis(mesh.axes[i].axis->text()))
        result.axes[result.count++] = Extent(axis, mesh.axes[i].size);
    result.here = mesh.here;
    return result;
  };
  for (const Mesh& mesh : {Mesh{}, Mesh{data = 2}, Mesh{replica = 2, data = 2}, Mesh{data = 2, tensor = 2},
                           Mesh{stage = 2, data = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2, tensor = 2}})
    for (int s = 0; s < mesh.extent(&stage); ++s) {
      INFO(text(mesh) << ", stage " << s);
      same(object::derive(*carried, own(mesh.on_stage(s))), derive(graph, mesh.on_stage(s), {}, {}));
    }
}

/// All ways to store a program, on one axis, two and the host.
template <class Program>
void stored() {
  reads_back<Program>();
  reads_back<AllStored<Program, Stored<data, Zero::states>>>();
  reads_back<AllStored<Program, Stored<data, Zero::gradients>>>();
  reads_back<AllStored<Program, Stored<data>>>();
  reads_back<AllStored<Program, Stored<data, Gathered::per_pass>>>();
  reads_back<AllStored<Program, Stored<data, Gathered::per_step>>>();
  reads_back<AllStored<Program, Stored<data>, Stored<replica>>>();
  reads_back<AllStored<Program, Stored<host, Zero::states>>>();
  reads_back<AllStored<Program, Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>>();
  reads_back<AllStored<Program, Stored<data>, Stored<host>>>();
}
template <int m, class T, class... Word>
using Step = Accumulate<m, Training<Model<T, Word...>, AdamW, Tokens<m>, Tokens<m>>>;
template <int m, class... Word>
void kept() {
  stored<Step<m, float, Word...>>();
  stored<LossScaled<Step<m, float16, Word...>>>();
}

}  // namespace

TEST_CASE("what is written of a program with any words for memory reads back and plans alike") {
  kept<1>();
  kept<2>();
  kept<2, Recompute<>>();
  kept<2, Recompute<2, Repeat::collectives>>();
  kept<2, Recompute<>, KeepOnHost>();
  CHECK(programs == 100);
}
