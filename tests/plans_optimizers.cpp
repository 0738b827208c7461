// What optimizers keep, send and compute, by their plans: Adafactor's factors, Muon's matrices, states in bf16.
#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

inline constexpr int layers = 6, width = 64, inner = 160;
struct Block {
  Parameter<float, Shape<width, inner / tensor>> up{normal(0.3)};
  Parameter<float, Shape<inner / tensor>> bias{zeros};
  Parameter<float, Shape<inner / tensor, width>> down{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up) + bias), down); }
};
struct Network {
  Layers<layers, Block> blocks;
  Parameter<float, Shape<width, 10>> out{normal(0.3)};
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(blocks(x), out))); }
};
template <class Optimizer>
using Step = Training<Network, Optimizer, Tensor<float, Shape<840 / data, width>>>;

// ---- Adafactor ----

constexpr auto& factored = plan<Step<Adafactor>, Mesh{data = 2, tensor = 2}>;
constexpr std::int64_t whole_lines(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
// rows and columns of `up` and of `down`, each bias, rows and columns of `out`
static_assert(factored.memory.of(Use::optimizer_state) ==
              2 * (whole_lines(4 * layers * width) + whole_lines(4 * layers * inner / 2)) +
                  whole_lines(4 * layers * inner / 2) + whole_lines(4 * width) + whole_lines(4 * 10));
// what `tensor` splits: sums by row of `up` and by column of `down`; of three stacks two sums of squares each
static_assert(factored.optimizer.calls(all_reduce(tensor).of(4 * layers * width)) == 2);
static_assert(factored.optimizer.calls(all_reduce(tensor).of(8 * layers)) == 6);
static_assert(factored.optimizer.collectives(data) == 0);

// ---- Muon ----

constexpr auto& shared = plan<Step<Muon>, Mesh{data = 2, tensor = 2}>;
constexpr double matrix = 4.0 * width * inner, head = 4.0 * width * 10;
// six layers: three on each rank of `data`, of these two and one on those of `tensor`, where a rank has half of each
static_assert(shared.optimizer.calls(all_to_all(tensor).of(4 * 4 * width * inner)) == 2 * 2);
static_assert(shared.optimizer.calls(all_gather(data).of(6 * 4 * width * inner / 2)) == 2);
// a matrix that all have lies on the first of them, and comes back to all
static_assert(shared.optimizer.calls(all_gather(tensor).of(2 * 4 * width * 10)) == 1);
static_assert(shared.optimizer.sent(tensor) == 4 * (4 * matrix / 4) + 2 * head / 2 + 8);

// Stored split, a rank's part of each layer goes where the layer is made orthogonal, and comes back: no more is sent
// than the parts that it does not have already.
constexpr auto& stored = plan<AllStored<Step<Muon>, Stored<data>>, Mesh{data = 3}>;
static_assert(stored.optimizer.calls(all_to_all(data)) == 2 * 3 && stored.optimizer.calls(all_gather(data)) == 0);
// its momentum is shared out by whole matrices
static_assert(stored.memory.of(Use::optimizer_state) == 2 * whole_lines(4 * layers / 3 * width * inner) +
                                                            whole_lines(4 * width * 10) +
                                                            2 * whole_lines(4 * layers * ((inner + 2) / 3)));

struct Words {
  Parameter<float, Shape<12, 8>> table{normal(0.3)};
  Parameter<float, Shape<8, 6>> in{normal(0.3)};
  Parameter<float, Shape<6, 8>> turned{normal(0.3)};
  Parameter<float, Shape<6, 4>> out{as_vector(normal(0.3))};
  constexpr auto operator()(Distributed auto tokens) const {
    const auto x = matmul(gelu(matmul(embedding(tokens, table), in)), turned);
    return mean(square(matmul(matmul(x, transpose(turned)), out))) + mean(square(matmul(x, transpose(table))));
  }
};

/// Elements of matrices that are made orthogonal, on all ranks together, over those that the program has.
double made_orthogonal(const GraphView& g, const Mesh& mesh, double& most) {
  std::int64_t all = 0, program = 0, largest = 0;
  for (const Node& n : g.nodes) {
    if (n.operation != &operation::normalized) continue;
    const Layout& layout = g.value(n.result).type.layout;
    program += layout.elements();
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const LocalPart part = local_part(layout, mesh, rank);
      REQUIRE(part.flat_from == 0);
      all += part.own * part.each;
      largest = std::max(largest, part.size[0]);
    }
  }
  most = static_cast<double>(largest);
  return program > 0 ? static_cast<double>(all) / static_cast<double>(program) : 0;
}

}  // namespace

TEST_CASE("no matrix is made orthogonal twice, on any mesh, however it lies") {
  const auto check = [](const Graph& graph) {
    for (const Mesh& mesh : {Mesh{data = 1, tensor = 1}, Mesh{data = 2, tensor = 1}, Mesh{data = 1, tensor = 2},
                             Mesh{data = 3, tensor = 1}, Mesh{data = 2, tensor = 2}, Mesh{data = 4, tensor = 1},
                             Mesh{data = 5, tensor = 1}, Mesh{data = 3, tensor = 2}, Mesh{data = 7, tensor = 1},
                             Mesh{data = 4, tensor = 2}, Mesh{data = 2, tensor = 4}, Mesh{data = 1, tensor = 8}}) {
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      double most = 0;
      CHECK(made_orthogonal(plan->graph, mesh, most) == 1);
      CHECK(most <= (layers + mesh.ranks() - 1) / mesh.ranks() + 1);  // one more, as two axes share it out in turn
    }
  };
  check(build<Step<Muon>>());
  check(build<Step<MuonMatchingAdamW>>());
  check(build<AllStored<Step<Muon>, Stored<data, Zero::states>>>());
  check(build<AllStored<Step<Muon>, Stored<data>>>());
  check(build<AllStored<Step<Muon>, Stored<data>, Stored<tensor>>>());
}
TEST_CASE("matrices are what products read; not what an embedding reads, nor what says so") {
  const OwnedPlan plan = derive<Training<Words, Muon, Tensor<int, Shape<4 / data>>>>(Mesh{data = 2});
  std::string momenta;
  for (const Member& m : plan->graph.members)
    if (plan->graph.path(m).ends_with(".momentum")) momenta += std::string(plan->graph.path(m)) + " ";
  CHECK(momenta == "in.momentum turned.momentum ");
}
TEST_CASE("Adafactor takes nothing of a parameter's size, stored or not") {
  const auto check = [](const Graph& graph, const Mesh& mesh) {
    const OwnedPlan plan = derive(graph, mesh, {}, {});
    const GraphView& g = plan->graph;
    for (const int n : g.order) {
      const Node& node = g.node(n);
      // what updates in place, or shows another what is there, takes nothing; slices and gathers are ZeRO's own
      if (node.phase != Phase::optimizer || node.operation->updates || is_alias(g, node, mesh)) continue;
      if (node.is(Structural::move) && (node.transition.to.flat || node.transition.from.flat)) continue;
      for (int r = 0; r < node.results; ++r)
        if (!node.is(Structural::stacked) && !node.is(Structural::layer))
          CHECK(g.value(node.result + r).type.layout.elements() <= layers * std::max(width, inner));
    }
  };
  for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    check(build<Step<Adafactor>>(), mesh);
    check(build<AllStored<Step<Adafactor>, Stored<data, Zero::states>>>(), mesh);
    check(build<AllStored<Step<Adafactor>, Stored<data>>>(), mesh);
  }
}
TEST_CASE("states in bf16 take half of what they took") {
  const auto halved = []<class Optimizer>(Optimizer) {
    for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}}) {
      const auto states = [&](const Graph& graph) {
        std::int64_t bytes = 0;
        const OwnedPlan plan = derive(graph, mesh, {}, {});
        for (const Member& m : plan->graph.members)
          bytes += m.role == Role::state ? local_bytes(plan->graph.value(m.value).type, mesh) : 0;
        return bytes;
      };
      const std::int64_t full = states(build<Step<Optimizer>>());
      CHECK(full > 0);
      CHECK(2 * states(build<Step<StatesIn<bfloat16, Optimizer>>>()) == full);
      CHECK(2 * states(build<AllStored<Step<StatesIn<bfloat16, Optimizer>>, Stored<data>>>()) ==
            states(build<AllStored<Step<Optimizer>, Stored<data>>>()));
    }
  };
  halved(Momentum{});
  halved(Nesterov{});
  halved(Adam{});
  halved(AdamW{});
  halved(Lion{});
  halved(Adafactor{});
  halved(Muon{});
}
