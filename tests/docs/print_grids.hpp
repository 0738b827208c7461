// The tables, plans and pictures of docs/parallelism/grids.md.
#pragma once
#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>
#include <parallel/cost/simulate.hpp>

#include "grids.hpp"
#include "print_parallelisms.hpp"

namespace print_grids {
using namespace parallel::internals;
using namespace grids;
using parallelisms::size;

inline void print_rungs() {
  const OwnedPlan two = derive<in_two_dimensions::Step>(in_two_dimensions::mesh),
                  deep = derive<beside_the_ladder::deep::Step>(beside_the_ladder::deep::mesh),
                  three = derive<in_three_dimensions::Step>(in_three_dimensions::mesh);
  parallelisms::print_members("ladder two dimensions members", *two, {"input.0", "out"});
  parallelisms::print_members("ladder three dimensions members", *three, {"input.0", "out"});
  blocks::print_collectives("ladder two dimensions", *two, true);
  blocks::print_collectives("ladder three dimensions", *three, true);
  blocks::begin("ladder grids");
  std::puts("| | mesh | sent | calls | parameters | activations | peak memory |\n|---|---|---|---|---|---|---|");
  const auto line = [](const char* name, const Plan& p) {
    std::printf("| %s | %s | %s | %lld | %s | %s | %s |\n", name, text(p.mesh).c_str(), size(p.sent()).c_str(),
                static_cast<long long>(p.calls()), size(p.memory.of(Use::parameters)).c_str(),
                size(p.memory.of(Use::activations)).c_str(), size(p.peak_memory()).c_str());
  };
  line("[rung 5](tensor.md)", derive<tensor_parallel::Step>(Mesh{axes::tensor = 4}));
  line("[rung 6](sequence.md)", derive<sequence_parallel::Step>(Mesh{axes::tensor = 4}));
  line("rung 11", *two);
  line("[rung 5](tensor.md)", derive<tensor_parallel::Step>(Mesh{axes::tensor = 8}));
  line("[rung 6](sequence.md)", derive<sequence_parallel::Step>(Mesh{axes::tensor = 8}));
  line("rung 11, two deep", *deep);
  line("rung 12", *three);
}

/// One product of matrices that are all alike, on so many ranks; bytes in matrices.
inline constexpr std::int64_t edge = 1024;
inline void print_product(const char* name, const Plan& kept, const Plan& again, const std::string& published) {
  const auto matrices = [](auto bytes) { return static_cast<double>(bytes) / (4.0 * edge * edge); };
  std::int64_t x = 4;
  for (const Member& member : again.graph.members)
    if (again.graph.path(member) == "input.0")
      for (const Dim& d : member.type.layout.dims) x *= local(d, again.mesh);
  std::printf("| %d | %s | %s | %.3g | %.3g | %.3g | %.3g | %.3g | %s |\n", kept.mesh.ranks(), name,
              text(kept.mesh).c_str(), matrices(kept.memory.of(Use::parameters)), matrices(x),
              matrices(std::max(kept.memory.of(Use::activations), x)), matrices(kept.sent()), matrices(again.sent()),
              published.c_str());
}
inline std::string number(double x) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.3g", x);
  return buffer;
}
inline void print_product1(int p) {
  using Layer = Linear<float, edge, edge>;
  const OwnedPlan plan = derive<Alone1<Layer, edge, edge, edge>>(Mesh{column = p});
  print_product("1-D", *plan, *plan, number(2.0 * (p - 1) / p));
}
inline void print_product2(const char* name, int q, int d) {
  using Kept = Linear<float, edge, edge, Gathered::per_pass>;
  using Again = GatheredAgain<Linear<float, edge, edge>>;
  const Mesh mesh = d > 1 ? Mesh{depth = d, row = q, column = q} : Mesh{row = q, column = q};
  print_product(name, derive<Alone2<Kept, edge, edge, edge>>(mesh), derive<Alone2<Again, edge, edge, edge>>(mesh),
                number(d > 1 ? 3.0 * (q - 1) * (d + 1) / (d * q) : 6.0 * (q - 1) / q));
}
inline void print_product3(int q) {
  using Kept = Linear3<float, edge, edge, depth, column, Gathered::per_pass>;
  using Again = GatheredAgain<Linear3<float, edge, edge, depth, column>>;
  const Mesh mesh{row = q, column = q, depth = q};
  print_product("3-D", derive<Alone3<Kept, edge, edge, edge>>(mesh), derive<Alone3<Again, edge, edge, edge>>(mesh),
                number(6.0 * (q - 1) / (q * q * q)));
}
inline void print_products() {
  blocks::begin("grids product");
  std::puts(
      "| ranks | | mesh | A | X, at rest | X, kept | sent | sent, gathered again | published |\n|---|---|---|---|---|---|---|---|---|");
  print_product1(4);
  print_product2("2-D", 2, 1);
  print_product1(8);
  print_product2("2.5-D", 2, 2);
  print_product3(2);
  print_product1(16);
  print_product2("2-D", 4, 1);
  print_product2("2.5-D", 2, 4);
  print_product1(64);
  print_product2("2-D", 8, 1);
  print_product2("2.5-D", 4, 4);
  print_product3(4);
}

inline Machine hosts_of_eight(const Mesh& mesh);
/// A product of square matrices, gathered at once and in panels.
template <class Layer, std::int64_t edge>
void print_panels(const char* name, const Mesh& mesh) {
  const OwnedPlan p = derive<Alone2<Layer, edge, edge, edge>>(mesh);
  const Simulation step = simulate(*p, machines::a100);
  std::printf("| %s | %s | %s | %lld | %s | %.1f ms | %.0f %% | %.1f ms |\n", text(mesh).c_str(), name,
              size(p->sent()).c_str(), static_cast<long long>(p->calls()), size(p->peak_memory()).c_str(),
              1e3 * step.seconds, 100 * overlap(step).share(), 1e3 * simulate(*p, hosts_of_eight(mesh)).seconds);
}
template <std::int64_t edge>
void print_in_panels(const Mesh& mesh) {
  print_panels<Linear<float, edge, edge, Gathered::per_pass>, edge>("kept", mesh);
  print_panels<GatheredAgain<Linear<float, edge, edge>>, edge>("gathered again", mesh);
  print_panels<InPanels<float, edge, edge, 2>, edge>("2 panels", mesh);
  print_panels<InPanels<float, edge, edge, 8>, edge>("8 panels", mesh);
}
inline void print_panels() {
  blocks::begin("grids panels");
  std::puts(
      "| mesh | | sent | calls | peak memory | a step, one host | under computation | hosts of eight |\n|---|---|---|---|---|---|---|---|");
  print_in_panels<16384>({row = 2, column = 2});
  print_in_panels<16384>({row = 4, column = 4});
  print_in_panels<16384>({row = 8, column = 8});
}

/// An A100 of a machine that has eight: axes whose ranks all are in one have its links, others the network's.
inline Machine hosts_of_eight(const Mesh& mesh) {
  Machine machine = machines::a100;
  const Link network = machines::dgx_a100.links[machines::dgx_a100.links.size() - 1].link;
  std::int64_t span = 1;  // of the ranks of an axis, from the first to the last
  for (int i = mesh.count; i-- > 0;) {
    span *= mesh.axes[i].size;
    if (span > 8) machine.links.push_back({mesh.axes[i].axis->text(), network});
  }
  return machine;
}

/// Four layers of a transformer of 4096 channels.
inline constexpr Sizes large{
    .batch = 64, .context = 1024, .width = 4096, .heads = 64, .vocabulary = 51200, .layers = 4};
template <Grid g>
void print_grid(const char* name, const Mesh& mesh) {
  const OwnedPlan p = derive<Trained<float, g, AdamW>>(mesh);
  std::printf("| %d | %s | %s | %s | %lld | %s | %s | %s | %.0f ms | %.0f ms |\n", mesh.ranks(), name,
              text(mesh).c_str(), size(p->sent()).c_str(), static_cast<long long>(p->calls()),
              size(p->memory.of(Use::parameters)).c_str(), size(p->memory.of(Use::activations)).c_str(),
              size(p->peak_memory()).c_str(), 1e3 * simulate(*p, machines::a100).seconds,
              1e3 * simulate(*p, hosts_of_eight(mesh)).seconds);
}
inline void print_one(int ranks) {
  print_grid<one_dimension<large>>("1-D", {column = ranks});
  print_grid<tokens_split<large>>("1-D, tokens split", {column = ranks});
}
inline void print_two(const char* name, const Mesh& mesh) {
  print_grid<two_dimensions<large>>(name, mesh);
  print_grid<again(two_dimensions<large>)>("gathered again", mesh);
}
inline void print_three(int q) {
  const Mesh mesh{row = q, column = q, depth = q};
  print_grid<three_dimensions<large>>("3-D", mesh);
  print_grid<again(three_dimensions<large>)>("gathered again", mesh);
}
inline void print_beside(int rows, int columns) {
  print_grid<again(tokens_split<large>)>("tokens split over columns, rows stored", {row = rows, column = columns});
}
inline void print_transformers() {
  blocks::begin("grids transformer");
  std::puts(
      "| ranks | | mesh | sent | calls | parameters | activations | peak memory | a step, one host | hosts of eight |\n|---|---|---|---|---|---|---|---|---|---|");
  print_one(4);
  print_two("2-D", {row = 2, column = 2});
  print_beside(2, 2);
  print_one(8);
  print_two("2-D", {row = 2, column = 4});
  print_two("2.5-D", {depth = 2, row = 2, column = 2});
  print_three(2);
  print_beside(2, 4);
  print_one(16);
  print_two("2-D", {row = 4, column = 4});
  print_two("2.5-D", {depth = 4, row = 2, column = 2});
  print_beside(4, 4);
  print_one(64);
  print_two("2-D", {row = 8, column = 8});
  print_two("2.5-D", {depth = 4, row = 4, column = 4});
  print_three(4);
  print_beside(8, 8);
}

inline void print() {
  print_rungs();
  print_products();
  print_panels();
  print_transformers();
}
}  // namespace print_grids
