// Floats and labels: a classifier of three spirals, on one rank and on four, with the same losses.
//
// The same model as any textbook's, with a batch split on `data` and a hidden layer split on `tensor`. The cross
// entropy of a split batch is a split loss, its mean a pending sum: one all-reduce of one number. Labels are whole
// numbers and have no gradient.
//
//   meson compile -C build/demo examples/classify && build/demo/examples/classify [--record FILE]
#include <cmath>
#include <cstdio>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr int examples = 96, hidden = 64, classes = 3;

struct Classifier {
  Parameter<float, Shape<2, hidden / tensor>> in{normal(1)};
  Parameter<float, Shape<hidden / tensor>> in_bias{normal(1)};
  Parameter<float, Shape<hidden / tensor, hidden>> middle{xavier};
  Parameter<float, Shape<hidden>> middle_bias{zeros};
  Parameter<float, Shape<hidden, classes>> out{xavier};
  Parameter<float, Shape<classes>> out_bias{zeros};

  constexpr auto operator()(Distributed auto points) const {
    const auto first = relu(matmul(points, in) + in_bias);          // f32[examples/data, hidden/tensor]
    const auto second = relu(matmul(first, middle) + middle_bias);  // completed here: relu takes no pending sum
    return matmul(second, out) + out_bias;                          // f32[examples/data, classes]
  }
  constexpr auto operator()(Distributed auto points, Distributed auto labels) const {
    return mean(cross_entropy((*this)(points), labels));
  }
};

using Points = Tensor<float, Shape<examples / data, 2>>;
using Labels = Tensor<int, Shape<examples / data>>;
using Step = Training<Classifier, AdamW, Points, Labels>;
using Scores = Evaluation<Classifier, Points>;

/// Trains on a mesh; the losses every hundred steps, then the share of points that are classified right.
void train(const Mesh& mesh, const std::string& record) {
  const OwnedPlan plan = derive<Step>(mesh), scores = derive<Scores, Step>(mesh);
  std::vector<float> points;
  std::vector<int> labels;
  for (int i = 0; i < examples; ++i) {
    const double t = static_cast<double>(i / classes) / (examples / classes), turn = 4 * t + 2.0944 * (i % classes);
    points.push_back(static_cast<float>((0.2 + t) * std::cos(turn)));
    points.push_back(static_cast<float>((0.2 + t) * std::sin(turn)));
    labels.push_back(i % classes);
  }
  std::printf("%s:", text(mesh).c_str());
  std::vector<int> right(static_cast<std::size_t>(mesh.ranks()));
  run_threads(mesh.ranks(), [&](Threads& world) {
    Parameters parameters(plan, world.rank(), 3);
    Trainer<Threads, Cpu> trainer(plan, world, parameters, {.beta2 = 0.99, .weight_decay = 0.01, .clip_norm = 1}, 3);
    Recording recording(record, plan, world.rank());
    trainer.executor().record(recording);
    trainer.executor().input(0, points);
    trainer.executor().input(1, labels);
    for (int step = 0; step <= 300; ++step) {
      const StepResult result = trainer.step(1e-2);
      if (world.rank() == 0 && step % 100 == 0) std::printf("  loss %.3f", result.loss);
    }
    recording.write();
    Executor<Threads, Cpu> evaluate(scores, world, parameters);
    evaluate.input(0, points);
    evaluate.run();
    const View y = evaluate.output(0);  // this rank's examples
    for (std::int64_t i = 0; i < y.size[0]; ++i) {
      const float* row = y.as<float>() + i * classes;
      const auto best = std::max_element(row, row + classes) - row;
      right[static_cast<std::size_t>(world.rank())] +=
          best == labels[static_cast<std::size_t>(y.offset[0] + i)] ? 1 : 0;
    }
  });
  int total = 0;
  for (int rank = 0; rank < mesh.ranks(); rank += mesh.extent(&tensor)) total += right[static_cast<std::size_t>(rank)];
  std::printf("  right %d of %d\n", total, examples);
}

int main(int argc, char** argv) {
  return guarded("classify", [&] {
    const std::string record = record_argument(argc, argv);
    train(Mesh{data = 1, tensor = 1}, "");
    train(Mesh{data = 2, tensor = 2}, record);
    return exit_code::done;
  });
}

// Expected output:
// data=1, tensor=1:  loss 1.144  loss ...  loss 0.000  loss 0.000  right 96 of 96
// data=2, tensor=2:  loss 1.144  loss ...  loss 0.000  loss 0.000  right 96 of 96
