// Adafactor and Muon against PyTorch's, ten steps of a small network, however its parameters lie (tools/fixtures/optimizers.py).
#include "optimizer_network.hpp"

using namespace optimizer_network;

namespace {

struct Case {
  std::string name;
  Graph graph;
  std::vector<Mesh> meshes;
};
template <class Optimizer>
std::vector<Case> cases() {
  const std::vector<Mesh> on_data{{data = 1},
                                  {data = 2},
                                  {data = 3},
                                  {data = 4},
                                  {data = 2, tensor = 2},
                                  {data = 3, tensor = 2},
                                  {data = 2, tensor = 4}};
  std::vector<Case> all;
  std::vector<Mesh> whole = on_data;
  whole.push_back({tensor = 2});
  whole.push_back({tensor = 4});
  all.push_back({"whole", build<Whole<Optimizer>>(), whole});
  all.push_back({"accumulated",
                 build<Accumulate<2, Whole<Optimizer, double, 6>>>(),
                 {{data = 1}, {data = 2}, {data = 2, tensor = 2}}});
  all.push_back({"accumulated, stage 2",
                 build<AllStored<Accumulate<2, Whole<Optimizer, double, 6>>, Stored<data, Zero::gradients>>>(),
                 {{data = 2}, {data = 3, tensor = 2}}});
  all.push_back({"stage 1", build<AllStored<Whole<Optimizer>, Stored<data, Zero::states>>>(), on_data});
  all.push_back({"stage 2", build<AllStored<Whole<Optimizer>, Stored<data, Zero::gradients>>>(), on_data});
  all.push_back({"stage 3", build<AllStored<Whole<Optimizer>, Stored<data>>>(), on_data});
  all.push_back({"on both",
                 build<AllStored<Whole<Optimizer>, Stored<data>, Stored<tensor>>>(),
                 {{data = 2, tensor = 2}, {data = 3, tensor = 2}}});
  all.push_back({"stages", build<Staged<Optimizer>>(), {{stage = 3}, {stage = 3, data = 2}}});
  all.push_back({"stages, stored",
                 build<AllStored<Staged<Optimizer>, Stored<data>>>(),
                 {{stage = 3, data = 2}, {stage = 1, data = 2, tensor = 2}}});
  all.push_back({"stages, two micro-batches", build<StagedTwice<Optimizer>>(), {{stage = 3, data = 2}}});
  return all;
}
template <class Optimizer>
void check(const std::string& name, const typename Optimizer::Hyperparameters& numbers) {
  for (const Case& c : cases<Optimizer>()) {
    CAPTURE(c.name);
    for (const Mesh& mesh : c.meshes) {
      CAPTURE(text(mesh));
      check_like(trained(c.graph, mesh, numbers), name, 2e-7);
    }
  }
}

}  // namespace

TEST_CASE("Adafactor is PyTorch's") { check<Adafactor>("adafactor", {}); }
TEST_CASE("Adafactor with other numbers, and weight decay") {
  check<Adafactor>("adafactor_decayed",
                   {.learning_rate = 0.05, .beta2_decay = 0.5, .clip_threshold = 1.5, .weight_decay = 0.1});
}
TEST_CASE("Muon, with AdamW for vectors, is PyTorch's") {
  check<Muon>("muon", {.learning_rate = 2e-2, .weight_decay = 0.1, .adamw_learning_rate = 1e-2});
}
TEST_CASE("Muon whose steps are as large as AdamW's") {
  check<MuonMatchingAdamW>("muon_like_adamw", {.learning_rate = 1e-2, .weight_decay = 0.1});
}
TEST_CASE("in float, and with states in bf16, they stay near") {
  const auto near = []<class Optimizer>(Optimizer, const std::string& name, const auto& numbers) {
    CAPTURE(name);
    using Half = StatesIn<bfloat16, Optimizer>;
    for (const Mesh& mesh : {Mesh{data = 1}, Mesh{data = 2, tensor = 2}, Mesh{data = 3}}) {
      check_like(trained<float>(build<Whole<Optimizer, float>>(), mesh, numbers), name, 2e-4);
      for (const Graph& graph : {build<Whole<Half, float>>(), build<AllStored<Whole<Half, float>, Stored<data>>>()})
        check_like(trained<float>(graph, mesh, numbers), name, 4e-2);
    }
  };
  near(Adafactor{}, "adafactor", Adafactor::Hyperparameters{});
  near(Muon{}, "muon", Muon::Hyperparameters{.learning_rate = 2e-2, .weight_decay = 0.1, .adamw_learning_rate = 1e-2});
}
