// What people would think of things they have not seen: two towers over tables of users and items, split by rows.
//
//   meson compile -C build/demo examples/recommend && build/demo/examples/recommend
//   build/demo/examples/recommend --mesh tensor=4 --folder run    keeps checkpoints, and goes on from there
//   mpirun -n 4 build/demo/examples/recommend --mpi               over MPI
//
// Data are ratings that this file generates: users and items have four hidden traits each, all drawn from the standard
// normal distribution, and a rating is half their product and noise of deviation 0.5. So it is known what can be
// learnt: ratings that were held out are told with an error of about 0.5 by who knows all traits, and of 1.12 by who says 0.
// The model knows of users and items by their numbers only. Every mesh draws the same samples and has the same losses.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <vector>

#include <parallel/communicator/threads.hpp>
#if defined(WITH_MPI)
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/data/prefetch.hpp>
#include <parallel/data/rows.hpp>
#include <parallel/data/sampler.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/stop_signals.hpp>
#include <parallel/run/trainer.hpp>

#include "command_line.hpp"

using namespace parallel;
using namespace parallel::axes;

constexpr int users = 512, items = 256, traits = 4, batch = 512, width = 16, hidden = 32, features = 8;
constexpr double noise = 0.5;

/// What is known of one of `many`, and what a perceptron makes of it. The table is split by rows: a rank looks up
/// those that it has, and the sum over the ranks is completed where it meets a matrix.
template <int many>
struct Tower {
  Parameter<float, Shape<many / tensor, width>> table{normal(0.3)};
  Parameter<float, Shape<width, hidden / tensor>> up{xavier};
  Parameter<float, Shape<hidden / tensor>> up_bias{zeros};
  Parameter<float, Shape<hidden / tensor, features>> down{xavier};
  constexpr auto operator()(Distributed auto numbers) const {
    return matmul(tanh(matmul(embedding(numbers, table), up) + up_bias), down);
  }
};
struct TwoTowers {
  Tower<users> user;
  Tower<items> item;
  /// users[examples], items[examples] -> ratings[examples]
  constexpr auto ratings(Distributed auto of, Distributed auto what) const { return sum<1>(user(of) * item(what)); }
  /// What is trained.
  constexpr auto operator()(Distributed auto of, Distributed auto what, Distributed auto rating) const {
    return mean(square(ratings(of, what) - rating));
  }
  /// What is tested: the sum of squared errors.
  constexpr auto operator()(Distributed auto of, Distributed auto what, Distributed auto rating,
                            Distributed auto weights) const {
    return sum(square(ratings(of, what) - rating) * weights);
  }
};

using Numbers = Tensor<int, Shape<batch / data>>;
using Ratings = Tensor<float, Shape<batch / data>>;
using Step = Training<TwoTowers, AdamW, Numbers, Numbers, Ratings>;
using Test = Evaluation<TwoTowers, Numbers, Numbers, Ratings, Ratings>;

constexpr auto& expected = plan<Step, Mesh{data = 2, tensor = 2}>;
static_assert(expected.forward.collectives(tensor) == 4);  // for each tower its rows of the table, and its features

/// A number between 0 and 1 for each counter, by SplitMix64 (Steele et al., 2014).
double uniform(std::uint64_t counter) {
  std::uint64_t z = (counter + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return (static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}
/// And one from the standard normal distribution (Box and Muller, 1958).
double drawn(std::uint64_t counter) {
  return std::sqrt(-2 * std::log(uniform(2 * counter))) * std::cos(2 * std::numbers::pi * uniform(2 * counter + 1));
}

struct Batch {
  std::vector<int> of = std::vector<int>(batch), what = std::vector<int>(batch);
  std::vector<float> ratings = std::vector<float>(batch), weights = std::vector<float>(batch);
};
/// Every user's rating of every item, of which every tenth is held out, and the batches' rows that a rank needs.
class Data {
 public:
  Data() {
    for (std::uint64_t n = 0; n < traits * (users + items); ++n) traits_.push_back(drawn(n));
  }
  static constexpr std::int64_t size = users * items, tested = (size + 9) / 10;
  Batch batch_of(const std::vector<std::int64_t>& samples, const std::vector<std::int64_t>& rows, bool testing) const {
    Batch made;
    for (const std::int64_t row : rows) {
      const std::int64_t sample = samples[static_cast<std::size_t>(row)];
      if (sample == no_sample) continue;
      const std::int64_t pair = testing ? 10 * sample : sample + sample / 9 + 1;
      const auto at = static_cast<std::size_t>(row);
      made.of[at] = static_cast<int>(pair / items);
      made.what[at] = static_cast<int>(pair % items);
      made.ratings[at] = static_cast<float>(known(made.of[at], made.what[at]) + noise_of(pair));
      made.weights[at] = 1;
    }
    return made;
  }

  /// The error of who knows all traits.
  static double least_error() {
    double squares = 0;
    for (std::int64_t sample = 0; sample < tested; ++sample) squares += std::pow(noise_of(10 * sample), 2);
    return std::sqrt(squares / static_cast<double>(tested));
  }

 private:
  double known(int user, int item) const {
    double product = 0;
    for (int i = 0; i < traits; ++i) product += traits_[at(user, i)] * traits_[at(users + item, i)];
    return product / 2;
  }
  static double noise_of(std::int64_t pair) {
    return noise * drawn(traits * (users + items) + static_cast<std::uint64_t>(pair));
  }
  static std::size_t at(int row, int i) { return static_cast<std::size_t>(row * traits + i); }
  std::vector<double> traits_;
};

struct Options {
  Mesh mesh{data = 2, tensor = 2};
  std::string folder;
  int epochs = 4;
  bool mpi = false;
};

template <Communicator World>
void train(World& world, const Data& ratings, const Options& options, const StopSignals& signals) {
  const OwnedPlan training = derive<Step>(options.mesh), testing = derive<Test, Step>(options.mesh);
  const bool speaks = world.rank() == 0;
  Parameters parameters(training, world.rank(), 1);
  Trainer<World, Cpu> step(training, world, parameters, {.weight_decay = 0.01}, 1);
  std::optional<Checkpoints<World>> checkpoints;
  Resumed from;
  if (!options.folder.empty()) {
    checkpoints.emplace(world, options.folder);
    from = checkpoints->resume(step.executor());
  }

  const Sampler sampler(Data::size - Data::tested, batch);
  const std::vector<std::int64_t> rows = rows_of(training, 0, world.rank());
  Prefetch<Batch> batches([&](std::int64_t i) { return ratings.batch_of(sampler.samples(i), rows, false); }, from.step);
  const std::int64_t an_epoch = sampler.steps_per_epoch(), steps = options.epochs * an_epoch;
  const CosineSchedule rate{2e-2, 2e-4, std::min(20, static_cast<int>(steps)), static_cast<int>(steps)};
  for (std::int64_t i = from.step; i < steps; ++i) {
    const Batch next = batches.next();
    step.executor().scalar("learning_rate", rate.at(static_cast<int>(i)));
    const double loss = step(next.of, next.what, next.ratings).loss;
    const bool stops = signals.asked(world);
    if (speaks && (i + 1) % an_epoch == 0)
      std::printf("epoch %d  loss %.7g\n", static_cast<int>((i + 1) / an_epoch), loss);
    if (checkpoints && (stops || (i + 1) % an_epoch == 0)) checkpoints->save(step.executor(), i + 1);
    if (!stops) continue;
    if (speaks) std::printf("asked to stop behind step %d\n", static_cast<int>(i + 1));
    return;
  }

  Executor<World, Cpu> test(testing, world, parameters);
  const Sampler in_order(Data::tested, batch, {.last = LastBatch::padded, .shuffled = false});
  double squares = 0;
  for (std::int64_t i = 0; i < in_order.steps_per_epoch(); ++i) {
    const Batch next = ratings.batch_of(in_order.samples(i), rows, true);
    squares += test(next.of, next.what, next.ratings, next.weights).output_scalar("result");
  }
  if (speaks)
    std::printf("error of %d ratings held out: %.4f, of who knows all traits: %.4f\n", static_cast<int>(Data::tested),
                std::sqrt(squares / static_cast<double>(Data::tested)), Data::least_error());
}

int main(int argc, char** argv) {
  return guarded("recommend", [&] {
    Options options;
    std::string mesh = "data=2,tensor=2";
    CommandLine arguments("Trains two towers on ratings of items by users.");
    arguments.text("--mesh", mesh, "ranks per axis");
    arguments.text("--folder", options.folder, "of checkpoints, one an epoch; by default none are kept");
    arguments.number("--epochs", options.epochs, "how often each rating is seen", 1, 1000000);
    arguments.flag("--mpi", options.mpi, "ranks are the processes of mpirun instead of threads");
    if (!arguments.read(argc, argv)) return exit_code::done;
    options.mesh = mesh_argument(mesh, {&data, &tensor});
    derive<Step>(options.mesh);  // a mesh that does not fit is refused before any rank starts
    const Data ratings;
    const StopSignals signals;
    const auto rank = [&](auto& world) { train(world, ratings, options, signals); };
    if (!options.mpi) {
      run_threads(options.mesh.ranks(), rank);
      return exit_code::done;
    }
#if defined(WITH_MPI)
    run_mpi(rank, {.ranks = options.mesh.ranks()});
    return exit_code::done;
#else
    throw Failure("this build has no MPI; install libboost-mpi-dev and configure again, or leave --mpi away",
                  exit_code::unavailable);
#endif
  });
}

// Expected output:
// epoch 1  loss ...
// epoch 2  loss ...
// epoch 3  loss ...
// epoch 4  loss ...
// error of 13108 ratings held out: 0.5..., of who knows all traits: 0.4...
