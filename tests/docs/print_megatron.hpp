// The tables and plans of docs/megatron.md, from its programs (megatron.hpp).
#pragma once
#include "../../tools/planner/picture.hpp"
#include "../../tools/planner/tree.hpp"
#include "blocks.hpp"
#include "megatron.hpp"

namespace megatron {
using namespace parallel::internals;

/// Megatron-LM's functions, core/tensor_parallel/mappings.py, as the moves that they are.
struct MegatronRegion {
  const char* name;
  Placement from, to;
};
constexpr MegatronRegion of_tensor_parallelism[] = {{"copy_to_tensor_model_parallel_region, f", Invariant, Broadcast},
                                                    {"reduce_from_tensor_model_parallel_region, g", Partial, Invariant},
                                                    {"scatter_to_tensor_model_parallel_region", Invariant, Split<0>},
                                                    {"gather_from_tensor_model_parallel_region", Split<0>, Invariant}};
constexpr MegatronRegion of_sequence_parallelism[] = {
    {"gather_from_sequence_parallel_region", Split<0>, Broadcast},
    {"reduce_scatter_to_sequence_parallel_region", Partial, Split<0>}};

inline void print_regions(const std::string& name, std::span<const MegatronRegion> regions) {
  blocks::begin(name);
  std::puts(
      "| Megatron-LM's function | move | forward | sent | conjugate | backward | sent |\n|---|---|---|---|---|---|---|");
  for (const MegatronRegion& r : regions) {
    const Placement from = conjugate(r.to), to = conjugate(r.from);
    const Collective forward = collective(r.from, r.to), backward = collective(from, to);
    std::printf("| `%s` | %s | %s | %s | %s | %s | %s |\n", r.name, blocks::arrow(r.from, r.to).c_str(),
                std::string(name_of(forward)).c_str(), blocks::cost(forward).c_str(), blocks::arrow(from, to).c_str(),
                std::string(name_of(backward)).c_str(), blocks::cost(backward).c_str());
  }
}

/// Whether a reduction is that of gradients of parameters: it has the shape of one, or is that of several in one call.
inline bool of_parameter(const Plan& plan, const Node& node) {
  if (plan.graph.maker(node.operands[0]).operation == &operation::bucket) return true;
  const Layout& layout = plan.graph.value(node.operands[0]).type.layout;
  for (const Member& m : plan.graph.members) {
    bool same = m.role == Role::parameter && m.type.layout.rank() == layout.rank();
    for (int d = 0; same && d < layout.rank(); ++d) same = m.type.layout.dims[d].size == layout.dims[d].size;
    if (same) return true;
  }
  return false;
}
/// "4 all_reduce `f32[8, 16, 32] +tensor`", one for every kind of collective, in the order of the step. The loss, one
/// number, is left out.
inline std::string collectives_of(const Plan& plan, const Communication& phase) {
  std::vector<std::pair<std::string, std::int64_t>> kinds;
  phase.each([&](const Node& node, std::int64_t times) {
    const Type& type = plan.graph.value(node.operands[0]).type;
    if (type.layout.rank() == 0 || (node.phase == Phase::backward && of_parameter(plan, node))) return;
    const std::string kind = std::string(name_of(node.transition.collective)) +
                             (node.transition.maximum ? " max" : "") + " `" + text(type) + "`";
    for (auto& [seen, count] : kinds)
      if (seen == kind) return void(count += times);
    kinds.emplace_back(kind, times);
  });
  std::string words;
  for (const auto& [kind, count] : kinds)
    words += (words.empty() ? "" : ", ") + (count > 1 ? std::to_string(count) + " " : "") + kind;
  return words.empty() ? "-" : words;
}
/// How many calls reduce gradients of parameters, once a step, and of how much.
inline std::string gradients_of(const Plan& plan) {
  std::int64_t calls = 0, bytes = 0;
  plan.backward.each([&](const Node& node, std::int64_t times) {
    if (of_parameter(plan, node)) {
      calls += times;
      bytes += times * plan.backward.message(node);
    }
  });
  return calls == 0 ? "-" : std::to_string(calls) + " calls, " + printing::bytes(static_cast<double>(bytes));
}

/// What the layer gives: what meets the square of the loss.
inline std::string given(const Plan& plan) {
  for (const Origin& origin : plan.graph.origins)
    if (origin.operation == &operation::square) return text(plan.graph.value(origin.operands[0]).type);
  return "?";
}
inline void print_linear() {
  struct Case {
    const char* name;
    const char* input;
    const Plan* plan;
  };
  const Case cases[] = {{"column", "f32[4, 6]", &alone<Column, 4, 6>},
                        {"column, output gathered", "f32[4, 6]", &alone<GatheredColumn, 4, 6>},
                        {"column, bias left whole", "f32[4, 6]", &alone<WholeBias, 4, 6>},
                        {"row, input split", "f32[4, 8/tensor]", &alone<Row, 4, 8 / tensor>},
                        {"row, input whole", "f32[4, 8]", &alone<Row, 4, 8>},
                        {"pair", "f32[4, 6]", &alone<Pair, 4, 6>},
                        {"pair, gathered between", "f32[4, 6]", &alone<GatheredPair, 4, 6>},
                        {"pair between slices", "f32[4/tensor, 6]", &alone<SlicedPair, 4 / tensor, 6>}};
  blocks::begin("megatron linear");
  std::puts("| layer | takes | gives | forward | backward |\n|---|---|---|---|---|");
  for (const Case& c : cases)
    std::printf("| %s | `%s` | `%s` | %s | %s |\n", c.name, c.input, given(*c.plan).c_str(),
                collectives_of(*c.plan, c.plan->forward).c_str(),
                (collectives_of(*c.plan, c.plan->backward) +
                 (gradients_of(*c.plan) == "-" ? "" : ", the gradient of the bias gathered"))
                    .c_str());
}

template <models::Gpt2Sizes n>
void print_annotation(const char* name) {
  const OwnedPlan plan = derive<Step<n>>(two);
  std::printf("| %s | %s | %s | %s | %.0f %% |\n", name, collectives_of(plan, plan->forward).c_str(),
              collectives_of(plan, plan->backward).c_str(), gradients_of(plan).c_str(), 100 * plan->redundant(tensor));
}
inline void print_annotations() {
  blocks::begin("megatron annotations");
  std::puts(
      "| annotation | forward | backward, hidden states and keys | backward, gradients of parameters, once a step | work not divided |");
  std::puts("|---|---|---|---|---|");
  print_annotation<only_heads>("`heads = 4 / tensor`");
  print_annotation<only_inner>("`inner = 128 / tensor`");
  print_annotation<only_vocabulary>("`vocabulary = 64 / tensor`");
  print_annotation<only_context>("`context = 16 / tensor`");
  print_annotation<tensor_parallel>("heads, inner, vocabulary");
  print_annotation<sequence_parallel>("all four");
}

template <class Layer, Dim context>
void print_memory(const char* name) {
  const Mesh ranks{tensor = 8};
  const OwnedPlan two_layers = derive<TrainedStack<Layer, 2, context>>(ranks),
                  three_layers = derive<TrainedStack<Layer, 3, context>>(ranks);
  const auto more = [&](auto figure) {
    return printing::bytes(static_cast<double>(figure(*three_layers) - figure(*two_layers)));
  };
  std::printf("| %s | %s | %s | %s |\n", name, more([](const Plan& p) { return p.forward.sent(tensor); }).c_str(),
              more([](const Plan& p) { return p.backward.sent(tensor); }).c_str(),
              more([](const Plan& p) { return p.memory.of(Use::activations); }).c_str());
}
inline void print_memories() {
  blocks::begin("megatron memory");
  std::puts(
      "| a layer of GPT-3 on eight ranks, f32 | sent forward | sent backward | kept for the backward pass |\n|---|---|---|---|");
  using Layer = models::Gpt2<gpt3>::Block;
  print_memory<Layer, 2048>("tensor parallel");
  print_memory<Layer, 2048 / tensor>("sequence parallel, what was gathered is kept");
  print_memory<KeepsSlices<gpt3>, 2048 / tensor>("sequence parallel, gathered again");
}

inline void print() {
  print_regions("megatron regions", of_tensor_parallelism);
  print_regions("megatron sequence regions", of_sequence_parallelism);
  blocks::print_block("megatron column picture", planner::picture(Tensor<float, Shape<6, 8 / tensor>>::type, two));
  blocks::print_block("megatron row picture", planner::picture(Tensor<float, Shape<8 / tensor, 6>>::type, two));
  print_linear();
  blocks::print_collectives("megatron pair", alone<Pair, 4, 6>);
  const std::string tree = planner::tree(block);
  blocks::print_block("megatron block", tree.substr(0, tree.find("\noptimizer")));
  print_annotations();
  print_memories();
  blocks::print_collectives("megatron sequence", plan<Trained<Block, Shape<examples, 16 / tensor, 32>>, two>);
  blocks::print_collectives("megatron vocabulary", predictor);
  blocks::print_collectives("megatron grouped", few_keys, true);
  blocks::print_collectives("megatron token", token);
}

}  // namespace megatron
