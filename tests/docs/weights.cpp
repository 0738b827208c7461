// The program of docs/files.md about weights.
#include <cstdio>
#include <string>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/file/safetensors.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/published_weights.hpp>

using namespace parallel;
using namespace parallel::axes;

namespace {

constexpr models::Gpt2Sizes sizes{.context = 16,
                                  .channels = 32,
                                  .heads = 4 / tensor,
                                  .inner = 128 / tensor,
                                  .vocabulary = 64 / tensor,
                                  .classes = 50,
                                  .layers = 2,
                                  .dropped = 0};
using Tokens = Tensor<int, Shape<4 / data, 16>>;
using Evaluating = Evaluation<models::Gpt2<sizes>, Tokens, Tokens>;

/// A model that others call otherwise.
struct Classifier {
  struct Block {
    Parameter<float, Shape<16, 2, 32 / tensor>> gates{normal(0.1)};
    Parameter<float, Shape<32 / tensor, 16>> down{normal(0.1)};
    constexpr auto operator()(Distributed auto x) const {
      const auto both = matmul(x, gates);
      return x + matmul(silu(take<1, 0>(both)) * take<1, 1>(both), down);
    }
  };
  Layers<3, Block> blocks;
  Parameter<float, Shape<16, 10>> head{normal(0.1)};
  constexpr auto operator()(Distributed auto x) const { return matmul(blocks(x), head); }
};
using Classifying = Evaluation<Classifier, Tensor<float, Shape<8 / data, 16>>>;

void gpt2(Threads& world, const Plan& plan, const std::string& file, const std::string& copy) {
  const std::vector<int> tokens(4 * 16, 7), targets(4 * 16, 8);
  Parameters parameters(plan, world.rank(), 1);
  Executor<Threads, Cpu> evaluate(plan, world, parameters);
  load_weights(evaluate, Safetensors(file), hugging_face_gpt2(sizes.classes));
  const double loss = evaluate(tokens, targets).output_scalar("result");
  if (world.rank() == 0) std::printf("the loss is %.2f\n", loss);
  save_weights(world, evaluate, copy, hugging_face_gpt2(sizes.classes), FileDType::BF16);
}

void classifier(Threads& world, const Plan& plan, const std::string& file, const std::string& kept) {
  Parameters parameters(plan, world.rank(), 1);
  Executor<Threads, Cpu> executor(plan, world, parameters);
  const WeightTable table{
      .rows = {{"blocks.*.gates", {"layers.{}.gate.weight", "layers.{}.up.weight"}, "in which out -> out in"},
               {"blocks.*.down", {"layers.{}.down.weight"}, "in out -> out in"},
               {"head", {"classifier.weight"}, "in out -> out in"}},
      .ignored = {"classifier.bias"}};
  save_weights(world, executor, file, table);
  load_weights(executor, Safetensors(file), table);

  save_weights(world, executor, kept, member_names(plan));
  load_weights(executor, Safetensors(kept), member_names(plan));
}

}  // namespace

int main(int argc, char** argv) {
  return guarded("weights", [&] {
    if (argc != 2) throw Failure("name a folder to write in", exit_code::usage);
    const std::string folder = argv[1], file = folder + "/gpt2.safetensors";
    const OwnedPlan plan = derive<Evaluating>(Mesh{data = 2, tensor = 2}), of_one = derive<Evaluating>(Mesh{data = 1}),
                    classifying = derive<Classifying>(Mesh{tensor = 2});
    run_threads(1, [&](Threads& world) {  // as if it were published
      Parameters parameters(*of_one, world.rank(), 1);
      Executor<Threads, Cpu> executor(*of_one, world, parameters);
      save_weights(world, executor, file, hugging_face_gpt2(sizes.classes));
    });
    run_threads(4, [&](Threads& world) { gpt2(world, *plan, file, folder + "/copy.safetensors"); });
    run_threads(2, [&](Threads& world) {
      classifier(world, *classifying, folder + "/own.safetensors", folder + "/kept.safetensors");
    });
    return 0;
  });
}
