// Steps of whole pipelines, predicted: against numbers computed by hand, and against what `simulate` says of one rank.
#include <doctest/doctest.h>

#include "pipeline_models.hpp"
#include <parallel/plan/predict.hpp>
#include <parallel/plan/published_machines.hpp>
#include <iostream>

using namespace parallel;
using namespace parallel::axes;

using Train = Accumulate<8, Training<pipelines::Gpt<float, pipelines::layers / stage>, AdamW, pipelines::Tokens, pipelines::Tokens, pipelines::Tokens>>;

TEST_CASE("x") {
  const Graph g = build<Train>();
  for (Mesh m : {Mesh{stage=1}, Mesh{stage=2}, Mesh{stage=4}, Mesh{stage=8}, Mesh{stage=4,tensor=2,data=2}}) {
    const Prediction p = predict(g, m, machines::dgx_a100);
    std::cout << text(m) << " " << p.seconds << " idle " << p.idle << " model " << p.model_flops << " alone " << simulate(derive(g, m, {}, {}), machines::dgx_a100).seconds << "\n";
    for (auto& e : p.exposed) std::cout << "   " << text(e.axes) << " " << e.seconds << "\n";
    for (auto& s : p.stages) { std::cout << "  stage " << s.stage << " x" << s.count << " before " << s.before << " behind " << s.behind << " mem " << s.memory.peak() << " flops " << s.flops << " parts";
      for (double d : s.parts) std::cout << " " << d; 
      std::cout << " arrives"; for (double d : s.arrives) std::cout << " " << d; std::cout << "\n"; }
  }
}
