// How much of a step's collectives its rank computes under: by hand, and of every program by adding up what happens
// between any two moments.
#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/cost/predict.hpp>
#include <parallel/cost/published_machines.hpp>

#include "every_program.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {

constexpr Slice computes(double begin, double end) { return {0, 0, 0, 0, begin, end}; }
constexpr Slice sends(int track, double begin, double end) { return {0, 0, 0, track, begin, end}; }
constexpr Simulation step_of(std::initializer_list<Slice> slices) {
  Simulation s;
  for (const Slice& slice : slices) s.slices.push_back(slice);
  return s;
}
constexpr bool is(const Overlap& o, double seconds, double under) {
  return o.seconds == seconds && o.under_computation == under;
}

// half of it under the first computation, a quarter under the second, a quarter is waited for
static_assert(is(overlap(step_of({computes(0, 4), sends(1, 2, 6), computes(5, 9)})), 4, 3));
static_assert(overlap(step_of({computes(0, 4), sends(1, 2, 6), computes(5, 9)})).share() == 0.75);
// all, none, and what begins where computation ends
static_assert(is(overlap(step_of({computes(0, 4), sends(1, 1, 3)})), 2, 2));
static_assert(is(overlap(step_of({sends(1, 0, 2), computes(2, 4)})), 2, 0));
static_assert(is(overlap(step_of({computes(0, 4), sends(1, 4, 7), computes(7, 8)})), 3, 0));
// several computations under one, and two tracks at a time: each counts
static_assert(is(overlap(step_of({computes(0, 1), computes(1, 2), computes(3, 4), sends(1, 0.5, 3.5)})), 3, 2));
static_assert(is(overlap(step_of({computes(0, 2), sends(1, 1, 3), sends(2, 1, 2)})), 3, 2));
static_assert(is(overlap(step_of({computes(0, 2)})), 0, 0) && overlap(step_of({computes(0, 2)})).share() == 0);
static_assert(is(overlap(step_of({computes(0, 2), sends(1, 1, 3), sends(2, 1, 2)}),
                         [](const Slice& s) { return s.track == 2; }),
                 1, 1));

/// By adding up all pieces between any two ends of slices.
Overlap added_up(const Simulation& step, int track) {
  std::vector<double> ends;
  for (const Slice& s : step.slices) ends.insert(ends.end(), {s.begin, s.end});
  std::sort(ends.begin(), ends.end());
  Overlap all;
  for (const Slice& s : step.slices) {
    if (s.track != track) continue;
    all.seconds += s.end - s.begin;
    for (const Slice& c : step.slices)
      if (c.track == 0) all.under_computation += std::max(0.0, std::min(s.end, c.end) - std::max(s.begin, c.begin));
  }
  return all;
}

/// Products alone take time, a second for a million of operations, and a byte on the link a thousandth of one.
Machine made_up() {
  Machine m;
  m.name = "made up";
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 1e6;
  r.functions[static_cast<int>(DType::f32)] = 1e30;
  r.memory_bandwidth = 1e30;
  r.link = {0, 1e3};
  m.rates.push_back(r);
  m.overlaps = true;
  return m;
}

/// Two products, of which the first has its matrix gathered at once and the second while the first is computed.
struct Two {
  Parameter<float, Shape<100, 100>> first, second;
  constexpr auto operator()(Distributed auto x) const { return matmul(matmul(x, first), second); }
};
using Gathering = AllStored<Evaluation<Two, Tensor<float, Shape<100 / data, 100>>>, Stored<data>>;
/// Four equal layers, each gathered while the one before is computed.
struct Layer {
  Parameter<float, Shape<100, 100>> w;
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Four {
  Layers<4, Layer> layers;
  constexpr auto operator()(Distributed auto x) const { return layers(x); }
};
using Ahead = AllStored<Evaluation<Four, Tensor<float, Shape<100 / data, 100>>>, Stored<data>>;

}  // namespace

TEST_CASE("gathers of layers lie under the layer before") {
  // A rank computes 2 * 50 * 100 * 100 operations for a layer, one second, and sends half of 40,000 bytes, 20 seconds.
  Machine machine = made_up();
  const OwnedPlan ahead = derive<Ahead>(Mesh{data = 2});
  Overlap slow = overlap_of_gathers(*ahead, simulate(*ahead, machine));
  CHECK(slow.seconds == doctest::Approx(4 * 20));
  CHECK(slow.under_computation == doctest::Approx(3));  // each layer but the last computes under the next one's gather
  // a hundred times faster, 0.2 seconds: all but the first lie under a layer
  machine.rates[0].link.bandwidth = 1e5;
  Overlap fast = overlap_of_gathers(*ahead, simulate(*ahead, machine));
  CHECK(fast.seconds == doctest::Approx(4 * 0.2));
  CHECK(fast.under_computation == doctest::Approx(3 * 0.2));
  CHECK(fast.share() == doctest::Approx(0.75));
  // where nothing overlaps nothing is hidden
  machine.overlaps = false;
  const Overlap none = overlap_of_gathers(*ahead, simulate(*ahead, machine));
  CHECK(none.seconds == doctest::Approx(4 * 0.2));
  CHECK(none.under_computation == doctest::Approx(0));
  // without a loop both gathers are asked for before the first product
  machine = made_up();
  machine.rates[0].link.bandwidth = 1e5;
  const OwnedPlan two = derive<Gathering>(Mesh{data = 2});
  const Overlap both = overlap_of_gathers(*two, simulate(*two, machine));
  CHECK(both.seconds == doctest::Approx(2 * 0.2));
  CHECK(overlap(simulate(*two, machine)).seconds == doctest::Approx(2 * 0.2));
}

TEST_CASE("of every program it is what adding up gives, and what is not hidden is waited for") {
  int plans = 0;
  every::program([&]<class Program>(const char* name) {
    CAPTURE(name);
    for (const Mesh& mesh :
         {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{data = 2, tensor = 2}, Mesh{stage = 2}, Mesh{sequence = 4}})
      try {
        const OwnedPlan plan = derive<Program>(mesh);
        Machine alone = machines::dgx_a100;
        alone.overlaps = false;
        for (const Machine& machine : {machines::dgx_a100, machines::h100, alone}) {
          const Simulation step = simulate(*plan, machine);
          Overlap all;
          for (int t = 1; t <= step.tracks.size(); ++t) {
            const Overlap one = overlap(step, [&](const Slice& s) { return s.track == t; });
            const Overlap expected = added_up(step, t);
            CHECK(one.seconds == doctest::Approx(expected.seconds));
            CHECK(one.under_computation == doctest::Approx(expected.under_computation).epsilon(1e-9));
            CHECK(one.seconds == doctest::Approx(step.busy(t)));
            all.seconds += one.seconds;
            all.under_computation += one.under_computation;
            // with one track, whoever does not compute waits for it
            if (step.tracks.size() == 1)
              CHECK(one.seconds - one.under_computation == doctest::Approx(step.exposed[0]).epsilon(1e-6));
          }
          CHECK(overlap(step).seconds == doctest::Approx(all.seconds));
          CHECK(overlap(step).under_computation == doctest::Approx(all.under_computation));
          CHECK(overlap_of_gathers(*plan, step).seconds <= all.seconds * (1 + 1e-9));
          ++plans;
        }
      } catch (const MeshRefused&) {
      }
  });
  CHECK(plans >= 60);
}
