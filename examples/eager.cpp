// Tensors with numbers: what is applied to them is there at once, on every rank, and can be printed. A model of one's own
// runs line by line, with the numbers of its plan. docs/looking.md explains it.
//
// Expected output:
// f32[4/data, 2] on data=2
// [[11, 22],
//  [13, 24],
//  [15, 26],
//  [17, 28]]
// f32[2] +data on data=2
// [56, 100]
// f32[2] on data=2
// [56, 100]
// gradient f32[2] on data=2
// [112, 200]
// hidden = f32[4/data, 3] on data=2
// ...
// the loss of the model, line by line: 20.3...
// the loss of the step:                20.3...
// they are the same bits: yes
#include <cstdio>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/eager.hpp>
#include <parallel/run/eagerly.hpp>
#include <parallel/run/trainer.hpp>

using namespace parallel;
using namespace parallel::axes;

struct Network {
  Parameter<float, Shape<2, 3>> up{normal(1)};
  Parameter<float, Shape<3>> down{normal(1)};
  constexpr auto operator()(Distributed auto x) const {
    const auto hidden = look(gelu(matmul(x, up)), "hidden");
    return mean(square(hidden * down));
  }
};
using Step = Training<Network, AdamW, Tensor<float, Shape<4 / data, 2>>>;

int main(int argc, char** argv) {
  return guarded("eager", [&] {
    const std::string record = record_argument(argc, argv);
    const std::vector<float> numbers{1, 2, 3, 4, 5, 6, 7, 8};
    run_threads(2, [&](Threads& world) {
      const auto print = [&](const std::string& text) {
        if (world.rank() == 0) std::printf("%s\n", text.c_str());
      };
      Eager<Threads, Cpu> eager(Mesh{data = 2}, world);
      const auto x = eager.tensor<float, Shape<4 / data, 2>>(numbers);  // of the whole a rank takes its part
      const auto w = eager.wanted<float, Shape<2>>(std::vector<float>{10, 20});
      const auto y = x + w;
      print(eager.text(y));

      const auto columns = sum<0>(y);  // each rank has added its rows
      print(eager.text(columns));
      print(eager.text(to<Shape<2>>(columns)));  // an all-reduce

      const auto loss = sum(square(columns)) * constant<float>(0.25F);
      print("gradient " + eager.text(eager.gradient(loss, w)));
    });

    const OwnedPlan plan = derive<Step>(Mesh{data = 2});
    run_threads(2, [&](Threads& world) {
      Parameters parameters(plan, world.rank(), 1);
      Trainer<Threads, Cpu> step(plan, world, parameters, AdamW::Hyperparameters{}, 1);
      Recording recording(record, plan, world.rank());
      step.executor().record(recording);
      Eagerly<Step, Threads, Cpu> eagerly(plan, world, parameters);
      const double looked = eagerly(numbers).output_scalar("loss"), loss = step(numbers).loss;
      recording.write();
      if (world.rank() != 0) return;
      std::printf("the loss of the model, line by line: %.4f\nthe loss of the step:                %.4f\n", looked,
                  loss);
      std::printf("they are the same bits: %s\n", looked == loss ? "yes" : "no");
    });
    return exit_code::done;
  });
}
