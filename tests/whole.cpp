// Whole tensors go into ranks' parts and out of them by runs: element by element what a walk over the part says, and in
// pieces as long as the placement allows.
#include <numeric>

#include <doctest/doctest.h>

#include <parallel/run/whole.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

struct Sum {
  Parameter<double, Shape<8 / data / tensor>> w{zeros};
  constexpr auto operator()(Distributed auto x) const { return mean(x) + mean(w); }
};
using Any = Evaluation<Sum, Tensor<double, Shape<2>>>;

/// Where element i of a rank's part lies in the full tensor, by the definition of a split; -1: it is padding.
std::vector<std::int64_t> by_definition(const Plan& plan, const Layout& layout, int rank) {
  const Mesh& mesh = plan.mesh;
  Layout box = layout;
  for (const Placed& p : layout.others)
    if (p.placement.flat) box = box.with(p.axis, Invariant);
  std::vector<std::int64_t> all;
  std::int64_t at[max_rank]{};
  for (std::int64_t i = 0; i < local_elements(box, mesh); ++i) {
    std::int64_t index = 0;
    for (int d = 0; d < box.rank(); ++d) index = index * box.dims[d].size + offset(box.dims[d], mesh, rank) + at[d];
    all.push_back(index);
    for (int d = box.rank() - 1; d >= 0 && ++at[d] == local(box.dims[d], mesh); --d) at[d] = 0;
  }
  const LocalPart part = local_part(layout, mesh, rank);
  if (part.flat_from < 0) return all;
  const std::int64_t share = part.size[part.flat_from] * part.each, flat = part.flat * part.each;
  std::vector<std::int64_t> own(static_cast<std::size_t>(local_elements(layout, mesh)), -1);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(all.size()); ++i) {
    const std::int64_t in_share = i % flat - part.before * part.each;
    if (in_share >= 0 && in_share < part.own * part.each)
      own[static_cast<std::size_t>(i / flat * share + in_share)] = all[static_cast<std::size_t>(i)];
  }
  return own;
}
/// By runs, and how many there were.
std::vector<std::int64_t> by_runs(const Plan& plan, const Layout& layout, int rank, int& runs) {
  std::vector<std::int64_t> own(static_cast<std::size_t>(local_elements(layout, plan.mesh)), -1);
  runs = 0;
  each_run(plan, layout, rank, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
    std::iota(own.begin() + position, own.begin() + position + length, index);
    ++runs;
  });
  return own;
}
void check(const Mesh& mesh, const Layout& layout, int expected) {
  const OwnedPlan plan = derive<Any>(mesh);
  int all = 0;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    INFO(text(Type{DType::f64, layout}) << " of rank " << rank << " on " << text(mesh));
    int runs = 0;
    CHECK(by_runs(*plan, layout, rank, runs) == by_definition(*plan, layout, rank));
    all = std::max(all, runs);
  }
  INFO(text(Type{DType::f64, layout}) << " on " << text(mesh));
  CHECK(all == expected);
}

Layout of(std::initializer_list<Dim> dims) {
  Layout layout;
  for (const Dim& d : dims) layout.dims.push_back(d);
  return layout;
}

}  // namespace

TEST_CASE("a rank's part is the runs that its placement allows") {
  const Mesh mesh{data = 2, tensor = 4};
  check(mesh, of({}), 1);
  check(mesh, of({8, 12}), 1);
  check(mesh, of({8 / data, 12, 5}), 1);
  check(mesh, of({8, 12, 20 / tensor}), 96);
  check(mesh, of({8, 12 / tensor, 5}), 8);
  check(mesh, of({8 / data, 12 / tensor, 5}), 4);
  check(mesh, of({8, 16 / data / tensor, 5}), 8);
  check(mesh, of({3, 16 / tensor / data, 4}), 3);
  check(mesh, of({8 / data, 3, 4 / tensor}), 12);  // runs of one element
  check(mesh, of({2 / data, 4 / tensor}), 1);
}
TEST_CASE("shares of a flat view, which may be padded") {
  const Mesh mesh{data = 2, tensor = 4};
  check(mesh, of({8, 12}).with(&data, SplitFlat), 1);
  check(mesh, of({7, 5}).with(&data, SplitFlat).with(&tensor, SplitFlat), 1);
  check(mesh, of({3}).with(&data, SplitFlat).with(&tensor, SplitFlat), 1);  // some ranks have padding alone
  check(mesh, of({8 / tensor, 13}).with(&data, SplitFlat), 1);
  check(mesh, of({7, 8 / tensor}).with(&data, SplitFlat), 4);  // the middle row is shared
  check(mesh, of({5, 7, 3}).with(&data, behind(SplitFlat, 1)), 5);
  check(mesh, of({5, 7, 3}).with(&data, SplitPadded), 1);
  check(mesh, of({4, 5, 8 / tensor}).with(&data, behind(SplitPadded, 1)), 12);
}
