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
    const auto left = last(entered.last, through, initial);
    return mean(square(again(left.last, x).last - y)) + mean(left.each);
  }
};
template <class Model>
using Run =
    Accumulate<4,
               Training<Model, AdamW, Known<double>, Tensor<double, Shape<4, batch / data, features>>, Known<double>>>;

/// What the layers are made from and what is made of them, without a value past them, for which PipeDream has no
/// weights.
template <template <int, class> class Recurrent>
struct Straight {
  Recurrent<4, Gru<double>> first;
  Layers<4 / stage, Block<double>> blocks;
  Recurrent<4, Decay<double>> last;
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    const auto through = blocks(to<Shape<4, batch / data, width>>(first(initial, x).each));
    const auto left = last(y, to<Shape<4, batch / data, width / tensor>>(through), y);
    return mean(square(left.last - y)) + mean(left.each);
  }
};
template <template <int, class> class Recurrent>
using Asynchronous =
    Pipelined<schedules::pipedream,
              Accumulate<4, Training<Straight<Recurrent>, Sgd, Known<double>,
                                     Tensor<double, Shape<4, batch / data, features>>, Known<double>>>>;

struct Dropping {
  Gru<double> gru;
  constexpr auto operator()(Distributed auto h, Distributed auto x) const { return gru(dropout(h, 0.3), x); }
};
struct Dropped {
  Scan<4, Dropping> scan;
  constexpr auto operator()(Distributed auto initial, Distributed auto x, Distributed auto y) const {
    return mean(square(scan(initial, x).last - y));
  }
};
using Drops = Training<Dropped, AdamW, Known<double>, Tensor<double, Shape<4, batch / data, features>>, Known<double>>;

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
  const auto one = losses(build<Run<Staged<4>>>(), Mesh{});
  const Graph graph = build<Run<Staged<4 / stage>>>();
  for (const Mesh& mesh : {Mesh{stage = 2}, Mesh{stage = 4}, Mesh{stage = 2, data = 2}, Mesh{stage = 2, tensor = 2}}) {
    INFO(text(mesh));
    check_near(losses(graph, mesh), one);
  }
  check_near(losses(build<Pipelined<schedules::zero_bubble_h1, Run<Staged<4 / stage>>>>(), Mesh{stage = 2}), one);
  check_near(losses(build<Pipelined<schedules::interleaved<2>, Run<Staged<4 / stage>>>>(), Mesh{stage = 2}), one);
}
TEST_CASE("where stages update without waiting, a scan is still its steps one behind the other") {
  check_near(losses<Sgd>(build<Asynchronous<Plain>>(), Mesh{stage = 2}, {}),
             losses<Sgd>(build<Asynchronous<Written>>(), Mesh{stage = 2}, {}));
}
TEST_CASE("every step drops by its number, the same on every mesh") {
  const auto one = losses(build<Drops>(), Mesh{});
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}})
    check_near(losses(build<Drops>(), mesh), one);
}
