// What a project of its own does: it plans at start-up, prints, and trains over threads.
#include <cstdio>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Line {
  Parameter<float, Shape<2, 4 / tensor>> up{normal(0.5)};
  Parameter<float, Shape<4 / tensor, 1>> down{normal(0.5)};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const {
    return mean(square(matmul(matmul(x, up), down) - y));
  }
};
using Step = Training<Line, Sgd, Tensor<float, Shape<8, 2>>, Tensor<float, Shape<8, 1>>>;

int main() {
  const OwnedPlan plan = derive<Step>(Mesh{tensor = 2});
  std::printf("%s\n", text(*plan).c_str());
  double first = 0, last = 0;
  run_threads(2, [&](Threads& world) {
    Parameters parameters(*plan, world.rank(), 1);
    Trainer<Threads, Cpu> trainer(*plan, world, parameters, Sgd::Hyperparameters{.learning_rate = 0.1}, 1);
    std::vector<float> x(16), y(8);
    for (std::size_t i = 0; i < 8; ++i) {
      x[2 * i] = static_cast<float>(i) / 8;
      x[2 * i + 1] = 1 - x[2 * i];
      y[i] = 3 * x[2 * i] - x[2 * i + 1];
    }
    for (int step = 0; step < 50; ++step) {
      trainer.executor().input(0, x);
      trainer.executor().input(1, y);
      const double loss = trainer.step().loss;
      if (world.rank() == 0) (step == 0 ? first : last) = loss;
    }
  });
  std::printf("loss %g, then %g\n", first, last);
  return last < first / 10 ? 0 : 1;
}
