// All pairs of the words that a program can say: how parameters are stored, what is computed again, the optimizer,
// micro-batches, a parameter on the first and the last stage, a scaled loss, which word stands within which, and by which
// schedule stages work. Ten steps of each program, with gradients that are clipped, have the losses of the same program
// on one rank that says none of the words by which memory is saved.
#include <algorithm>

#include "ten_steps.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;
using namespace ten_steps;

namespace {

using Hidden = Shape<12 / data, 4 / sequence / tensor, 5>;
using Whole = Shape<12 / data, 4 / sequence, 5>;

/// A transformer's block beside sequence parallelism. `again`: it says itself that its attention is computed again.
template <bool again>
struct Block {
  Parameter<double, Shape<5>> gain{normal(1)};
  Parameter<double, Shape<5, 3, 4 / tensor, 2>> qkv{normal(0.4)};
  Parameter<double, Shape<4 / tensor, 2, 5>> projection{normal(0.4)};
  Parameter<double, Shape<5, 4 / tensor>> up{normal(0.3)};
  Parameter<double, Shape<4 / tensor>> bias{normal(0.3)};
  Parameter<double, Shape<4 / tensor, 5>> down{normal(0.3)};
  constexpr auto attended(Distributed auto x) const {
    const auto all = matmul(to<Whole>(rms_norm(x, gain)), qkv);
    const auto k = to<On<sequence, Broadcast>>(take<2, 1>(all)), v = to<On<sequence, Broadcast>>(take<2, 2>(all));
    return matmul<2>(attention(take<2, 0>(all), k, v), projection);
  }
  constexpr auto operator()(Distributed auto x) const {
    const auto part = [&] {
      if constexpr (again)
        return recompute([&](const auto& h) { return this->attended(h); }, x);
      else
        return attended(x);
    };
    const auto y = x + to<Hidden>(part());
    return y + to<Hidden>(matmul(gelu(matmul(to<Whole>(y), up) + bias), down));
  }
};
/// `tied`: a matrix and a vector are used before and behind the layers.
template <bool tied, class Blocks>
struct Model {
  Parameter<double, Shape<5, 5>> in{normal(0.5)};
  Parameter<double, Shape<5>> shift{normal(0.3)};
  Blocks blocks;
  Parameter<double, Shape<5, 7>> out{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    const auto h = to<Whole>(blocks(to<Hidden>(matmul(x, in) + shift)));
    const auto behind = [&] {
      if constexpr (tied)
        return matmul(h + shift, transpose(in));
      else
        return h;
    };
    return mean(square(matmul(behind(), out) - y));
  }
};

template <class... S>
struct StoredBy {
  template <class Program>
  using of = AllStored<Program, S...>;
};
template <>
struct StoredBy<> {
  template <class Program>
  using of = Program;
};
template <class... All>
struct Choice {
  static constexpr int count = sizeof...(All);
  template <int i>
  using at = std::tuple_element_t<i, std::tuple<All...>>;
};
using Stores = Choice<StoredBy<>, StoredBy<Stored<data, Zero::states>>, StoredBy<Stored<data, Zero::gradients>>,
                      StoredBy<Stored<data>>, StoredBy<Stored<data, Gathered::per_step>>,
                      StoredBy<Stored<data, Gathered::per_pass>>, StoredBy<Stored<host, Zero::states>>,
                      StoredBy<Stored<host, Zero::gradients>>, StoredBy<Stored<host, Gathered::per_step>>,
                      StoredBy<Stored<data>, Stored<host>>,
                      StoredBy<Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>>;
using Computed = Choice<Layers<4 / stage, Block<false>>, Layers<4 / stage, Block<true>>,
                        Layers<4 / stage, Block<false>, Recompute<>>,
                        Layers<4 / stage, Block<false>, Recompute<2, Repeat::collectives>>>;
using Optimizers = Choice<Momentum, Adafactor, Muon>;
inline const Schedule* const schedules_of[] = {
    &schedules::one_forward_one_backward, &schedules::naive,          &schedules::gpipe,
    &schedules::interleaved<2>,           &schedules::zero_bubble_h1, &schedules::zero_bubble_h2};
inline constexpr int schedule_count = static_cast<int>(std::size(schedules_of));

/// What one program says, each word by its number.
enum Word { stores, computed, optimizer, batches, tied, scaled, within, words };
constexpr int counts[words] = {Stores::count, Computed::count, Optimizers::count, 2, 2, 2, 2};
constexpr int programs = Stores::count * Computed::count;
struct Said {
  int word[words];
};
constexpr Said said(int program) {
  const int s = program / Computed::count, r = program % Computed::count, high = r / 2, low = r % 2;
  return {{s, r, (s + r) % Optimizers::count, (high + s) % 2, (low + s / 2) % 2, (high + low + s / 4) % 2,
           (low + s / 2 + s) % 2}};
}
constexpr bool all_pairs() {
  for (int a = 0; a < words; ++a)
    for (int b = a + 1; b < words; ++b)
      for (int x = 0; x < counts[a]; ++x)
        for (int y = 0; y < counts[b]; ++y) {
          bool found = false;
          for (int p = 0; p < programs && !found; ++p) found = said(p).word[a] == x && said(p).word[b] == y;
          if (!found) return false;
        }
  return true;
}
static_assert(all_pairs());

template <int program>
struct Program {
  static constexpr Said says = said(program);
  static constexpr int micro_batches = 2 * says.word[batches] + 2;
  using Optimizer = Optimizers::at<says.word[optimizer]>;
  template <class Blocks>
  using Step =
      Training<Model<says.word[tied] != 0, Blocks>, Optimizer, Tensor<double, Shape<12 / data, 4 / sequence, 5>>,
               Tensor<double, Shape<12 / data, 4 / sequence, 7>>>;
  template <class P>
  using Stored = typename Stores::template at<says.word[stores]>::template of<P>;
  template <class P>
  using Scaled = std::conditional_t<says.word[scaled] != 0, LossScaled<P>, P>;
  using Training = Step<Computed::at<says.word[computed]>>;

  static Graph plain() { return build<Accumulate<micro_batches, Step<Computed::at<0>>>>(); }
  static Graph graph() {
    if constexpr (says.word[within] != 0)
      return build<Scaled<Accumulate<micro_batches, Stored<Training>>>>();
    else
      return build<Stored<Scaled<Accumulate<micro_batches, Training>>>>();
  }
};

/// Whether layers go into a schedule's chunks on so many stages.
bool fits(const Schedule& schedule, int stages, const Said& says) {
  return schedule.chunks == 1 || (stages == 2 && says.word[computed] != 3);
}
template <int program>
void check() {
  using P = Program<program>;
  const typename P::Optimizer::Hyperparameters numbers{.clip_norm = 0.1};
  const std::vector<double> one = losses<typename P::Optimizer>(P::plain(), Mesh{}, numbers);
  CHECK(one.front() > one.back());
  const Graph graph = P::graph();
  int schedule = program % Computed::count * 4 + program / Computed::count;
  for (const Mesh& mesh : {Mesh{data = 3}, Mesh{tensor = 2, sequence = 2}, Mesh{data = 2, tensor = 2}, Mesh{stage = 2},
                           Mesh{data = 2, stage = 2}, Mesh{tensor = 2, stage = 2}, Mesh{stage = 4}}) {
    const int stages = mesh.extent(&stage);
    if (stages == 4 && P::says.word[computed] == 3) continue;  // two layers are computed again at a time
    const Schedule* by = stages == 1 ? schedules_of[0] : schedules_of[schedule++ % schedule_count];
    if (!fits(*by, stages, P::says)) by = schedules_of[0];
    INFO("program " << program << " on " << text(mesh) << " by " << by->name);
    check_near(losses<typename P::Optimizer>(with_schedule(graph, *by), mesh, numbers), one);
  }
}
template <int... program>
void check_all(std::integer_sequence<int, program...>) {
  (check<program>(), ...);
}

}  // namespace

TEST_CASE("all pairs of words compute what one rank computes without them") {
  check_all(std::make_integer_sequence<int, programs>());
}
