// Handwritten digits by convolutions, from files, kept over night: a loop of one's own.
//
//   meson compile -C build/demo examples/digits && build/demo/examples/digits
//   build/demo/examples/digits --mesh data=4 --folder run    keeps checkpoints, and goes on from there when started again
//
// Data are 1797 digits of 8 x 8 (E. Alpaydin and C. Kaynak, 1998, UCI, CC BY 4.0), of which every fifth is tested.
// Every mesh draws the same samples in the same order and has the same losses. A rank reads its own rows, a thread
// makes the next batch while this one is trained on, and SIGTERM or SIGUSR1 ends the training after a checkpoint.
#include <cstdio>
#include <optional>
#include <vector>

#include <parallel/communicator/threads.hpp>
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

constexpr int batch = 48, side = 8, pixels = side * side, digits = 10;

struct Layer {
  Parameter<float, Shape<32 / tensor, 16, 3, 3>> weight{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return relu(convolution<1, 1>(x, weight)); }
};
struct Network {
  Parameter<float, Shape<16, 1, 3, 3>> first{normal(0.3)};
  Layer second;
  Parameter<float, Shape<32 / tensor, side * side / 4, digits>> out{normal(0.05)};
  Parameter<float, Shape<digits>> bias{zeros};

  /// images[examples, 1, side, side] -> scores[examples, digits]
  constexpr auto scores(Distributed auto images) const {
    const auto seen = max_pool<2>(second(relu(convolution<1, 1>(images, first))));  // [examples, 32/tensor, 4, 4]
    return matmul<2>(reshape<batch, 32, side * side / 4>(seen), out) + bias;
  }
  /// What is trained.
  constexpr auto operator()(Distributed auto images, Distributed auto labels) const {
    return mean(cross_entropy(scores(images), labels));
  }
  /// What is tested: how many are told right.
  constexpr auto operator()(Distributed auto images, Distributed auto labels, Distributed auto weights) const {
    return sum(cast<float>(equal(argmax<1>(scores(images)), labels)) * weights);
  }
};

using Images = Tensor<float, Shape<batch / data, 1, side, side>>;
using Labels = Tensor<int, Shape<batch / data>>;
using Step = Training<Network, AdamW, Images, Labels>;
using Test = Evaluation<Network, Images, Labels, Tensor<float, Shape<batch / data>>>;

struct Batch {
  std::vector<float> images = std::vector<float>(batch * pixels);
  std::vector<int> labels = std::vector<int>(batch);
  std::vector<float> weights = std::vector<float>(batch);
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
        made.images[to * pixels + p] = static_cast<float>(images_[from * pixels + p]) / 16;
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
  std::string folder, log;
  int epochs = 20;
};

void train(Threads& world, const Data& data_set, const Options& options, const StopSignals& signals) {
  const OwnedPlan training = derive<Step>(options.mesh), testing = derive<Test, Step>(options.mesh);
  const bool speaks = world.rank() == 0;
  Parameters parameters(training, world.rank(), 1);
  Trainer<Threads, Cpu> step(training, world, parameters, {.learning_rate = 2e-3, .weight_decay = 0.05}, 1);
  std::optional<Checkpoints<Threads>> checkpoints;
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
  const std::int64_t an_epoch = sampler.steps_per_epoch(), steps = options.epochs * an_epoch;
  for (std::int64_t i = from.step; i < steps; ++i) {
    const Batch next = batches.next();
    const StepResult result = step(next.images, next.labels);
    log.step(i, result);
    const bool stops = signals.asked(world);
    if (speaks && (i + 1) % (5 * an_epoch) == 0)
      std::printf("epoch %2d  loss %.3f\n", static_cast<int>((i + 1) / an_epoch), result.loss);
    if (checkpoints && (stops || (i + 1) % an_epoch == 0)) checkpoints->save(step.executor(), i + 1);
    if (!stops) continue;
    if (speaks) std::printf("asked to stop behind step %d\n", static_cast<int>(i + 1));
    return;
  }

  Executor<Threads, Cpu> test(testing, world, parameters);
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

int main(int argc, char** argv) {
  return guarded("digits", [&] {
    Options options;
    std::string mesh = "data=2,tensor=2", data_folder = "examples/data";
    CommandLine arguments("Trains a small convolutional network on handwritten digits.");
    arguments.text("--mesh", mesh, "ranks per axis");
    arguments.text("--data", data_folder, "folder with digits-images.idx and digits-labels.idx");
    arguments.text("--folder", options.folder, "of checkpoints, one an epoch; by default none are kept");
    arguments.text("--log", options.log, "folder of this run in a folder of runs, as runs/first: see runs/runs.html");
    arguments.number("--epochs", options.epochs, "how often each digit is seen", 1, 1000000);
    if (!arguments.read(argc, argv)) return exit_code::done;
    options.mesh = mesh_argument(mesh, {&data, &tensor});
    derive<Step>(options.mesh);  // a mesh that does not fit is refused before any rank starts
    const Data data_set(data_folder + "/digits-images.idx", data_folder + "/digits-labels.idx");
    const StopSignals signals;
    run_threads(options.mesh.ranks(), [&](Threads& world) { train(world, data_set, options, signals); });
    return exit_code::done;
  });
}

// Expected output:
// epoch  5  loss ...
// epoch 10  loss ...
// epoch 15  loss ...
// epoch 20  loss ...
// told right: 9... % of 360 digits
