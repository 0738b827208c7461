// Handwritten digits from files, by one of three models, kept over night: a loop of one's own.
//
//   meson compile -C build/demo examples/digits && build/demo/examples/digits
//   build/demo/examples/digits --model perceptron            two matrices, which see the 64 pixels at once
//   build/demo/examples/digits --model gru                   a recurrent network, which sees them one by one
//   build/demo/examples/digits --mesh data=4 --folder run    keeps checkpoints, and goes on from there when started again
//   mpirun -n 4 build/demo/examples/digits --mpi             over MPI
//
// Data are 1797 digits of 8 x 8 (E. Alpaydin and C. Kaynak, 1998, UCI, CC BY 4.0), of which every fifth is tested.
// Every mesh draws the same samples in the same order and has the same losses, up to rounding. A rank reads its own
// rows, a thread makes the next batch while this one is trained on, and SIGTERM or SIGUSR1 ends the training after a checkpoint.
#include <algorithm>
#include <cstdio>
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
#include <parallel/file/idx.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/run_log.hpp>
#include <parallel/run/stop_signals.hpp>
#include <parallel/run/trainer.hpp>

#include "command_line.hpp"

using namespace parallel;
using namespace parallel::axes;

// Meshes round differently, and a recurrent network that learns fast makes ever more of it. Of doubles the losses of all
// three models agree for epochs; of floats the recurrent one's differ in the fifth digit after five.
using Number = double;
constexpr int batch = 48, side = 8, pixels = side * side, digits = 10;

/// Each model makes of images[examples, 1, side, side] scores[examples, digits].
struct Layer {
  Parameter<Number, Shape<32 / tensor, 16, 3, 3>> weight{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return relu(convolution<1, 1>(x, weight)); }
};
struct Convolutions {
  static constexpr double rate = 3e-3;
  static constexpr int epochs = 20;
  Parameter<Number, Shape<16, 1, 3, 3>> first{normal(0.3)};
  Layer second;
  Parameter<Number, Shape<32 / tensor, side * side / 4, digits>> out{normal(0.05)};
  Parameter<Number, Shape<digits>> bias{zeros};
  constexpr auto operator()(Distributed auto images) const {
    const auto seen = max_pool<2>(second(relu(convolution<1, 1>(images, first))));  // [examples, 32/tensor, 4, 4]
    return matmul<2>(reshape<batch, 32, side * side / 4>(seen), out) + bias;
  }
};

struct Perceptron {
  static constexpr double rate = 1e-2;
  static constexpr int epochs = 60;
  Parameter<Number, Shape<pixels, 128 / tensor>> up{xavier};
  Parameter<Number, Shape<128 / tensor>> up_bias{zeros};
  Parameter<Number, Shape<128 / tensor, digits>> down{xavier};
  Parameter<Number, Shape<digits>> bias{zeros};
  constexpr auto operator()(Distributed auto images) const {
    return matmul(relu(matmul(reshape<batch, pixels>(images), up) + up_bias), down) + bias;
  }
};

constexpr int width = 64;  // of the recurrent network
/// A gated recurrent unit (Cho et al., 2014, as PyTorch has it); x has what reset, update and fresh take from a pixel.
struct Gru {
  Parameter<Number, Shape<width, width / tensor>> reset{xavier}, update{xavier}, fresh{xavier};
  Parameter<Number, Shape<width / tensor>> bias{zeros};
  constexpr auto operator()(Distributed auto h, Distributed auto x) const {
    const auto all = to<On<tensor, Broadcast>>(h);
    const auto r = sigmoid(matmul(all, reset) + take<1, 0>(x));
    const auto z = sigmoid(matmul(all, update) + take<1, 1>(x));
    const auto n = tanh(r * (matmul(all, fresh) + bias) + take<1, 2>(x));
    return n + z * (h - n);
  }
};
struct Recurrent {
  static constexpr double rate = 1e-2;
  static constexpr int epochs = 24;
  Parameter<Number, Shape<1, 3, width / tensor>> in{normal(0.5)};
  Parameter<Number, Shape<3, width / tensor>> in_bias{zeros};
  Scan<pixels, Gru> gru;
  Parameter<Number, Shape<width / tensor, digits>> out{xavier};
  Parameter<Number, Shape<digits>> bias{zeros};
  constexpr auto operator()(Distributed auto images) const {
    const auto one_by_one = reshape<pixels, batch, 1>(transpose(reshape<batch, pixels>(images)));
    const auto nothing = constant<Number, Shape<batch / data, width / tensor>>(0);
    return matmul(gru(nothing, matmul(one_by_one, in) + in_bias).last, out) + bias;
  }
};

template <class Model>
struct Classifier {
  Model scores;
  /// What is trained.
  constexpr auto operator()(Distributed auto images, Distributed auto labels) const {
    return mean(cross_entropy(scores(images), labels));
  }
  /// What is tested: how many are told right.
  constexpr auto operator()(Distributed auto images, Distributed auto labels, Distributed auto weights) const {
    return sum(cast<Number>(equal(argmax<1>(scores(images)), labels)) * weights);
  }
};

using Images = Tensor<Number, Shape<batch / data, 1, side, side>>;
using Labels = Tensor<int, Shape<batch / data>>;
template <class Model>
using Step = Training<Classifier<Model>, AdamW, Images, Labels>;
template <class Model>
using Test = Evaluation<Classifier<Model>, Images, Labels, Tensor<Number, Shape<batch / data>>>;

struct Batch {
  std::vector<Number> images = std::vector<Number>(batch * pixels);
  std::vector<int> labels = std::vector<int>(batch);
  std::vector<Number> weights = std::vector<Number>(batch);
};
/// The rows of a batch that a rank needs, from the files.
class Data {
 public:
  Data(const std::string& images, const std::string& labels)
      : images_(read_idx(images).as<std::uint8_t>()), labels_(read_idx(labels).as<std::uint8_t>()) {
    if (images_.size() != labels_.size() * pixels)
      throw Failure(images + " and " + labels + " are not of as many images; name two that belong together",
                    exit_code::bad_data);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t tested() const { return (size() + 4) / 5; }
  Batch batch_of(const std::vector<std::int64_t>& samples, const std::vector<std::int64_t>& rows, bool testing) const {
    Batch made;
    for (const std::int64_t row : rows) {
      const std::int64_t sample = samples[static_cast<std::size_t>(row)];
      if (sample == no_sample) continue;
      const auto from = static_cast<std::size_t>(testing ? 5 * sample : sample + sample / 4 + 1),
                 to = static_cast<std::size_t>(row);
      for (std::size_t p = 0; p < pixels; ++p)
        made.images[to * pixels + p] = static_cast<Number>(images_[from * pixels + p]) / 16;
      made.labels[to] = labels_[from];
      made.weights[to] = 1;
    }
    return made;
  }

 private:
  FileView<std::uint8_t> images_, labels_;
};

struct Options {
  Mesh mesh{data = 2, tensor = 2};
  std::string model = "convolutions", files = "examples/data", folder, log;
  int epochs = 0;
  bool mpi = false;
};

template <class Model, Communicator World>
void train(World& world, const Data& data_set, const Options& options, const StopSignals& signals) {
  const OwnedPlan training = derive<Step<Model>>(options.mesh),
                  testing = derive<Test<Model>, Step<Model>>(options.mesh);
  const bool speaks = world.rank() == 0;
  Parameters parameters(training, world.rank(), 1);
  Trainer<World, CpuDouble> step(training, world, parameters, {.weight_decay = 0.05, .clip_norm = 1}, 1);
  std::optional<Checkpoints<World>> checkpoints;
  Resumed from;
  if (!options.folder.empty()) {
    checkpoints.emplace(world, options.folder);
    from = checkpoints->resume(step.executor());
  }

  const Sampler sampler(data_set.size() - data_set.tested(), batch);
  const std::vector<std::int64_t> rows = rows_of(training, 0, world.rank());
  Prefetch<Batch> batches([&](std::int64_t i) { return data_set.batch_of(sampler.samples(i), rows, false); },
                          from.step);
  RunLog log(world, options.log, training, {.from = from.step, .per_step = batch, .tensorboard = true});
  const std::int64_t an_epoch = sampler.steps_per_epoch(), epochs = options.epochs > 0 ? options.epochs : Model::epochs,
                     steps = epochs * an_epoch, quarter = std::max<std::int64_t>(epochs / 4, 1) * an_epoch;
  const CosineSchedule rate{Model::rate, Model::rate / 10, std::min(20, static_cast<int>(steps)),
                            static_cast<int>(steps)};
  for (std::int64_t i = from.step; i < steps; ++i) {
    const Batch next = batches.next();
    step.executor().scalar("learning_rate", rate.at(static_cast<int>(i)));
    const StepResult result = step(next.images, next.labels);
    log.step(i, result);
    const bool stops = signals.asked(world);
    if (speaks && (i + 1) % quarter == 0)
      std::printf("epoch %2d  loss %.7g\n", static_cast<int>((i + 1) / an_epoch), result.loss);
    if (checkpoints && (stops || (i + 1) % an_epoch == 0)) checkpoints->save(step.executor(), i + 1);
    if (!stops) continue;
    if (speaks) std::printf("asked to stop behind step %d\n", static_cast<int>(i + 1));
    return;
  }

  Executor<World, CpuDouble> test(testing, world, parameters);
  const Sampler in_order(data_set.tested(), batch, {.last = LastBatch::padded, .shuffled = false});
  double right = 0;
  for (std::int64_t i = 0; i < in_order.steps_per_epoch(); ++i) {
    const Batch next = data_set.batch_of(in_order.samples(i), rows, true);
    right += test(next.images, next.labels, next.weights).output_scalar("result");
  }
  if (speaks)
    std::printf("told right: %.1f %% of %d digits\n", 100 * right / static_cast<double>(data_set.tested()),
                static_cast<int>(data_set.tested()));
}

template <class Model>
void run(const Options& options) {
  derive<Step<Model>>(options.mesh);  // a mesh that does not fit is refused before any rank starts
  const Data data_set(options.files + "/digits-images.idx", options.files + "/digits-labels.idx");
  const StopSignals signals;
  const auto rank = [&](auto& world) { train<Model>(world, data_set, options, signals); };
  if (!options.mpi) return run_threads(options.mesh.ranks(), rank);
#if defined(WITH_MPI)
  run_mpi(rank, {.ranks = options.mesh.ranks()});
#else
  throw Failure("this build has no MPI; install libboost-mpi-dev and configure again, or leave --mpi away",
                exit_code::unavailable);
#endif
}

int main(int argc, char** argv) {
  return guarded("digits", [&] {
    Options options;
    std::string mesh = "data=2,tensor=2";
    CommandLine arguments("Trains a small network on handwritten digits.");
    arguments.text("--model", options.model, "convolutions, perceptron or gru");
    arguments.text("--mesh", mesh, "ranks per axis");
    arguments.text("--data", options.files, "folder with digits-images.idx and digits-labels.idx");
    arguments.text("--folder", options.folder, "of checkpoints, one an epoch; by default none are kept");
    arguments.text("--log", options.log, "folder of this run in a folder of runs, as runs/first: see runs/runs.html");
    arguments.number("--epochs", options.epochs, "how often each digit is seen; 0: as often as the model needs", 0,
                     1000000);
    arguments.flag("--mpi", options.mpi, "ranks are the processes of mpirun instead of threads");
    if (!arguments.read(argc, argv)) return exit_code::done;
    options.mesh = mesh_argument(mesh, {&data, &tensor});
    if (options.model == "convolutions")
      run<Convolutions>(options);
    else if (options.model == "perceptron")
      run<Perceptron>(options);
    else if (options.model == "gru")
      run<Recurrent>(options);
    else
      throw Failure("--model " + options.model + " is none; write convolutions, perceptron or gru", exit_code::usage);
    return exit_code::done;
  });
}

// Expected output:
// epoch ...  loss ...
// epoch ...  loss ...
// epoch ...  loss ...
// epoch ...  loss ...
// told right: 9... % of 360 digits
