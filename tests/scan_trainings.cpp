// Scan in trainings: stored split by every stage of ZeRO, and beside layers that are shared out over stages.
#include <doctest/doctest.h>

#include "scan_models.hpp"
#include "ten_steps.hpp"

using namespace scans;
using namespace ten_steps;

namespace {

using Looped = Trained<double, 4, Model<double, 4, Plain>, AdamW>;

/// A scan before the layers and one behind them, which are At the first stage and At the last; both take the input, a
/// sequence of all states goes through the layers, and a state past them.
template <Dim depth>
struct Staged {
  Scan<4, Gru<double>> first;
  Layers<depth, Block<double>> blocks;
  Scan<4, Decay<double>> last;
  Scan<4, Gru<double>> again;
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    const auto entered = first(initial, x);
    const auto through =
        to<Shape<4, batch / data, width / tensor>>(blocks(to<Shape<4, batch / data, width>>(entered.each)));
    const auto left = last(entered.last, through);
    return mean(square(again(left.last, x).last - y)) + mean(left.each);
  }
};
template <Dim depth>
using Run = Accumulate<
    4, Training<Staged<depth>, AdamW, Given<double>, Tensor<double, Shape<4, batch / data, features>>, Given<double>>>;

}  // namespace

TEST_CASE("stored split, by every stage of ZeRO, a scan trains alike") {
  const auto one = losses(build<Looped>(), Mesh{});
  CHECK(one.front() > one.back());
  check_near(losses(build<Looped>(), Mesh{data = 2, tensor = 2}), one);
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_near(losses(build<AllStored<Looped, Stored<data>>>(), mesh), one);
    check_near(losses(build<AllStored<Looped, Stored<data, Zero::states>>>(), mesh), one);
    check_near(losses(build<AllStored<Looped, Stored<data, Zero::gradients>>>(), mesh), one);
    check_near(losses(build<AllStored<Looped, Stored<data, Gathered::per_step>>>(), mesh), one);
    check_near(losses(build<AllStored<Looped, Stored<host>>>(), mesh), one);
  }
  const auto three = losses(build<Accumulate<3, Looped>>(), Mesh{});
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{data = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_near(losses(build<AllStored<Accumulate<3, Looped>, Stored<data>>>(), mesh), three);
    check_near(losses(build<AllStored<Accumulate<3, Looped>, Stored<data, Zero::gradients>>>(), mesh), three);
  }
}
TEST_CASE("scans stand before the layers of a pipeline, and behind them") {
  const auto one = losses(build<Run<4>>(), Mesh{});
  const Graph graph = build<Run<4 / stage>>();
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_near(losses(graph, mesh), one);
  }
  check_near(losses(build<Pipelined<schedules::zero_bubble_h1, Run<4 / stage>>>(), Mesh{stage = 2}), one);
  check_near(losses(build<Pipelined<schedules::interleaved<2>, Run<4 / stage>>>(), Mesh{stage = 2}), one);
}
