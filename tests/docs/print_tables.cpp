// Prints what the documents quote from the code: the tables of transitions and of operations, and plans.
// tools/check_docs.py compares.
//
// Each block begins with a line "@ NAME"; the documents hold it between "<!-- printed: NAME -->" and "<!-- end -->".
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/communicator/threads.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/averaged.hpp>
#include <parallel/model/stale.hpp>
#include <parallel/parallel.hpp>
#include <parallel/question/moment.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/trainer.hpp>

#include "../../tools/planner/picture.hpp"
#include "../../tools/planner/tree.hpp"
#include "../../tools/planner/why_member.hpp"
#include "../../tools/planner/why_memory.hpp"
#include "blocks.hpp"
#include "masks.hpp"
#include "offload.hpp"
#include "own_schedule.hpp"
#include "precision.hpp"
#include "print_exercises.hpp"
#include "print_grids.hpp"
#include "print_megatron.hpp"
#include "print_parallelisms.hpp"
#include "print_published.hpp"
#include "recomputation.hpp"
#include "rules.hpp"

// The programs of README.md and docs/quick-start.md as they are, so that their plans name their own lines. All that
// they include is above; their main functions become templates that nobody uses, so that no kernel is compiled.
#define main(...)        \
  unused;                \
  template <class never> \
  [[maybe_unused]] auto never_called(__VA_ARGS__)
namespace mlp {
#include "../../examples/mlp.cpp"
}  // namespace mlp
namespace quick_start {
#include "quick_start.cpp"
}  // namespace quick_start
#undef main

namespace {
using namespace parallel;
using namespace parallel::internals;
using namespace blocks;

// Transitions
// ---------------------------------------------------------------------------------------------------------------------------

void print_transitions() {
  begin("transitions");
  std::puts("| from → to | collective | sent | conjugate | its collective | sent |");
  std::puts("|---|---|---|---|---|---|");
  for (const TransitionRow& row : transitions) {
    const Placement from = conjugate(row.to), to = conjugate(row.from);
    const Collective back = collective(from, to);
    std::printf("| %s%s | %s | %s | %s | %s | %s |\n", arrow(row.from, row.to).c_str(),
                row.by_name ? " (never derived, refused by `to`)" : "", std::string(name_of(row.collective)).c_str(),
                cost(row.collective).c_str(), arrow(from, to).c_str(), std::string(name_of(back)).c_str(),
                cost(back).c_str());
  }
}

// Operations
// ----------------------------------------------------------------------------------------------------------------------------

struct Operand {
  std::string name;
  std::vector<std::int64_t> size;
  DType dtype = DType::f32;
};
struct Example {
  std::string name;
  const Operation* operation;
  std::vector<Operand> operands;
  Ints ints{};
};

std::string letters(Placement p) {
  return p == Invariant ? "I" : p == Broadcast ? "B" : p == Partial ? "P" : "S" + std::to_string(p.dim);
}
Type type_of(const Operand& o) {
  Type type{o.dtype, {}};
  for (const std::int64_t n : o.size) type.layout.dims.push_back(Dim(n));
  return type;
}
/// "4, 6" of f32[4, 6]
std::string sizes(const Type& type) {
  const std::string whole = text(type);
  return whole.substr(whole.find('['));
}

void print_operation(const Example& e) {
  Arguments a;
  for (const Operand& o : e.operands) {
    a.types.push_back(type_of(o));
    a.kinds.push_back(Kind::activation);
  }
  a.ints = e.ints;
  const Shaped shaped = e.operation->shape(a);
  const Signatures rows = e.operation->signatures(a);
  const bool differentiable = shaped.results[0].dtype != DType::i32;  // whole numbers have no gradient
  bool exchanges = false;
  for (const Signature& row : rows) exchanges = exchanges || row.communicates;

  begin(e.name);
  std::string head = "|", line = "|", rule = "|";
  for (const Operand& o : e.operands) {
    head += " " + o.name + sizes(type_of(o)) + " |";
    rule += "---|";
  }
  head += " → result" + sizes(shaped.results[0]) + (differentiable ? " | gradient of the result |" : " |");
  rule += differentiable ? "---|---|" : "---|";
  for (const Operand& o : e.operands)
    if (differentiable && o.dtype != DType::i32) {
      head += " → of " + o.name + " |";
      rule += "---|";
    }
  std::printf("%s%s\n%s%s\n", head.c_str(), exchanges ? " communicates |" : "", rule.c_str(), exchanges ? "---|" : "");
  for (const Signature& row : rows) {
    line = "|";
    for (const Placement p : row.operands) line += " " + letters(p) + " |";
    line += " " + letters(row.results[0]) + " |";
    if (differentiable) line += " " + letters(conjugate(row.results[0])) + " |";
    for (std::size_t i = 0; i < e.operands.size(); ++i)
      if (differentiable && e.operands[i].dtype != DType::i32)
        line += " " + letters(conjugate(row.operands[static_cast<int>(i)])) + " |";
    std::printf("%s%s\n", line.c_str(), !exchanges ? "" : row.communicates ? " yes |" : " |");
  }
  const std::int64_t flops =
      e.operation->flops != nullptr ? e.operation->flops(a) : shaped.results[0].layout.elements();
  std::printf("\nFLOP of this example, whole: %lld.\n", static_cast<long long>(flops));
}

void print_operations() {
  namespace op = operation;
  const Operand x{"x", {4, 6}}, y{"y", {4, 6}};
  const Example examples[] = {
      {"matmul", &op::matmul, {x, {"w", {6, 8}}}, {1, 0, 0, 0}},
      {"matmul-2", &op::matmul, {{"x", {4, 16, 2, 3}}, {"w", {2, 3, 6}}}, {2, 0, 0, 0}},
      {"batched_matmul", &op::matmul, {{"x", {2, 4, 6}}, {"w", {2, 6, 8}}}, {1, 0, 0, 1}},
      {"add", &op::add, {x, {"b", {6}}}},
      {"multiply", &op::multiply, {x, y}},
      {"divide", &op::divide, {x, y}},
      {"scale", &op::scale, {x}},
      {"unary", &op::gelu, {x}},
      {"cast", &op::casting, {x}, {static_cast<int>(DType::f64)}},
      {"where", &op::where, {{"mask", {4, 6}, DType::i32}, x, y}},
      {"less", &op::less, {x, {"y", {6}}}},
      {"maximum", &op::larger, {x, {"y", {6}}}},
      {"pow", &op::pow, {x, {"y", {6}}}},
      {"dropout", &op::dropout, {x}},
      {"sum", &op::sum, {x}, {1}},
      {"max", &op::max, {x}, {1}},
      {"argmax", &op::argmax, {x}, {1}},
      {"top_k", &op::top_k_positions, {x}, {1, 2}},
      {"cumulative_sum", &op::cumulative_sum, {x}, {1, 0}},
      {"softmax", &op::softmax, {x}, {1}},
      {"cross_entropy", &op::cross_entropy, {{"logits", {4, 32}}, {"target", {4}, DType::i32}}, {32, no_target}},
      {"binary_cross_entropy", &op::binary_cross_entropy, {{"logits", {4, 6}}, {"targets", {4, 6}}}},
      {"layer_norm", &op::layer_norm, {x, {"gain", {6}}, {"shift", {6}}}},
      {"rms_norm", &op::rms_norm, {x, {"gain", {6}}}},
      {"embedding", &op::embedding, {{"index", {4}, DType::i32}, {"table", {32, 6}}}},
      {"convolution", &op::convolution, {{"x", {2, 4, 8, 8}}, {"weight", {6, 4, 3, 3}}}, {1, 1, 1, 1}},
      {"convolution-apart", &op::convolution, {{"x", {2, 4, 8, 8}}, {"weight", {6, 4, 2, 2}}}, {2, 2, 0, 0}},
      {"transposed_convolution",
       &op::transposed_convolution,
       {{"x", {2, 6, 8, 8}}, {"weight", {6, 4, 3, 3}}},
       {2, 2, 1, 1, 1, 1}},
      {"max_pool", &op::max_pool, {{"x", {2, 4, 8, 8}}}, {2, 2, 0, 0, 2, 2}},
      {"average_pool", &op::average_pool, {{"x", {2, 4, 8, 8}}}, {1, 1, 1, 1, 3, 3}},
      {"batch_norm", &op::batch_norm, {{"x", {2, 4, 8}}, {"gain", {4}}, {"shift", {4}}}},
      {"gather", &op::gather, {{"index", {4, 3}, DType::i32}, {"x", {4, 6}}}, {1}},
      {"scattered", &op::scattered, {{"index", {4, 3}, DType::i32}, {"source", {4, 3}}}, {1, 6}},
      {"attention", &op::attention, {{"q", {2, 16, 8, 4}}, {"k", {2, 16, 2, 4}}, {"v", {2, 16, 2, 4}}}, {1, 0, 0}},
      {"rotary", &op::rotary, {{"x", {2, 16, 8, 4}}}},
      {"sample", &op::sample, {{"logits", {4, 32}}}, {0, 32}},
      {"remember", &op::remember, {{"x", {2, 1, 8, 4}}, {"position", {}, DType::i32}}, {1, 16}},
      {"transpose", &op::transpose, {x}, {1, 0}},
      {"reshape", &op::reshape, {{"x", {2, 4, 6}}}, {8, 6}},
      {"reshape-split", &op::reshape, {{"x", {8, 6}}}, {2, 4, 6}},
      {"slice", &op::slice, {x}, {1, 0, 2}},
      {"concatenate", &op::concatenate, {x, y}, {1}},
  };
  for (const Example& e : examples) print_operation(e);
}

// Plans
// ---------------------------------------------------------------------------------------------------------------------------------

void print_plans() {
  print_block("tree network", planner::tree(rules::network));
  print_block("why network", planner::why(rules::network, "blocks.0.down"));
  print_block("why memory network", planner::why_memory(rules::network));
  print_block("phases network", planner::phases_then(rules::network));
  for (const Member& m : rules::network.graph.members)
    if (rules::network.graph.path(m) == "blocks.*.up")
      print_block("picture network", planner::picture(m.type, rules::network.mesh));
  print_plan("mlp", mlp::mlp_plan);
  print_plan("quick start", quick_start::step_plan);
  print_collectives("precision", precision::p);
  print_collectives("precision halves", precision::halves);
  print_plan("network", rules::network);
  print_collectives("all whole", rules::all_whole, true);
  print_collectives("fits", rules::fits);
  print_collectives("data parallel", rules::data_parallel);
  print_collectives("biases", rules::biases);
  print_collectives("completion", rules::completion);
  print_collectives("gathering", rules::gathering);
  print_collectives("result", rules::result);
  print_collectives("once", rules::once);
  print_collectives("several", rules::several);
  print_collectives("apart", rules::sums<rules::Apart>);
  print_collectives("together", rules::sums<rules::Together>);
  print_collectives("split on data", rules::split_on_data);
}
}  // namespace

/// What a rank holds of the ladder's first rung with each optimizer.
template <class Optimizer>
void print_optimizer(const char* name) {
  const OwnedPlan p = derive<Training<one_rank::Model, Optimizer, one_rank::Batch, one_rank::Batch>>(Mesh{});
  const auto parameters = static_cast<double>(p->memory.of(Use::parameters));
  const auto times = [&](Use use) { return static_cast<double>(p->memory.of(use)) / parameters; };
  std::printf("| `%s` | %.0f | %.0f | %.2g | %.3g |\n", name, 1.0, times(Use::gradients), times(Use::optimizer_state),
              1 + times(Use::gradients) + times(Use::optimizer_state));
}
void print_optimizers() {
  blocks::begin("memory optimizers");
  std::puts("| optimizer | parameters | gradients | states | together |\n|---|---|---|---|---|");
  print_optimizer<Sgd>("Sgd");
  print_optimizer<Momentum>("Momentum");
  print_optimizer<Lion>("Lion");
  print_optimizer<Adam>("Adam");
  print_optimizer<AdamW>("AdamW");
  print_optimizer<StatesIn<bfloat16, AdamW>>("StatesIn<bfloat16, AdamW>");
  print_optimizer<Muon>("Muon");
  print_optimizer<Adafactor>("Adafactor");
}

/// What an optimizer remembers of a matrix and of a vector in layers, by the words behind the parameter's name.
template <class Optimizer>
void print_states(const char* name) {
  const OwnedPlan p = derive<Training<one_rank::Model, Optimizer, one_rank::Batch, one_rank::Batch>>(Mesh{});
  const auto of = [&](std::string_view parameter) {
    std::string words;
    for (int m = 0; m < static_cast<int>(p->graph.members.size()); ++m) {
      const Member& member = p->graph.member(m);
      if (member.role != Role::state || p->graph.path(member.of) != parameter) continue;
      words += (words.empty() ? "`" : ", `") + std::string(p->graph.path(m).substr(parameter.size() + 1)) + "` " +
               text(member.type);
    }
    return words.empty() ? std::string("nothing") : words;
  };
  std::printf("| `%s` | %s | %s |\n", name, of("blocks.*.up").c_str(), of("blocks.*.gain").c_str());
}
void print_all_states() {
  blocks::begin("states");
  std::puts("| optimizer | of `blocks.*.up`, f32[8, 16, 64] | of `blocks.*.gain`, f32[8, 16] |\n|---|---|---|");
  print_states<Sgd>("Sgd");
  print_states<Momentum>("Momentum");
  print_states<Nesterov>("Nesterov");
  print_states<Lion>("Lion");
  print_states<Adam>("Adam");
  print_states<AdamW>("AdamW");
  print_states<Muon>("Muon");
  print_states<MuonMatchingAdamW>("MuonMatchingAdamW");
  print_states<Adafactor>("Adafactor");
  print_states<KeepGradients>("KeepGradients");
  print_states<StatesIn<bfloat16, AdamW>>("StatesIn<bfloat16, AdamW>");
  print_states<Averaged<Sgd>>("Averaged<Sgd>");
  print_states<Stale<2, Sgd>>("Stale<2, Sgd>");
}

/// Every number that a program of the library may read: its defaults, and who reads it.
class NumbersTable {
 public:
  template <class Numbers>
  void add(const Numbers& numbers, std::string_view reader) {
    each_hyperparameter(numbers, [&](std::string_view name, double value) { add(name, value, reader); });
  }
  void add(std::string_view name, double value, std::string_view reader) {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.name == name; });
    if (row == rows_.end()) row = rows_.insert(row, {std::string(name)});
    auto of = std::find_if(row->defaults.begin(), row->defaults.end(), [&](const auto& d) { return d.first == value; });
    if (of == row->defaults.end()) of = row->defaults.insert(of, {value, ""});
    of->second += (of->second.empty() ? "" : ", ") + std::string(reader);
  }
  void print() const {
    std::puts("| number | where nobody says otherwise |\n|---|---|");
    for (const Row& row : rows_) {
      std::string words;
      for (const auto& [value, readers] : row.defaults)
        words += (words.empty() ? "" : "; ") + shortest(value) + ": " + readers;
      std::printf("| `%s` | %s |\n", row.name.c_str(), words.c_str());
    }
  }

 private:
  struct Row {
    std::string name;
    std::vector<std::pair<double, std::string>> defaults{};
  };
  std::vector<Row> rows_{};
};
void print_numbers() {
  NumbersTable table;
  table.add(Sgd::Hyperparameters{}, "Sgd");
  table.add(Momentum::Hyperparameters{}, "Momentum, Nesterov");
  table.add(Lion::Hyperparameters{}, "Lion");
  table.add(Adam::Hyperparameters{}, "Adam");
  table.add(AdamW::Hyperparameters{}, "AdamW");
  table.add(Muon::Hyperparameters{}, "Muon");
  table.add(MuonMatchingAdamW::Hyperparameters{}, "MuonMatchingAdamW");
  table.add(Adafactor::Hyperparameters{}, "Adafactor");
  table.add(KeepGradients::Hyperparameters{}, "KeepGradients");
  const auto add = [&](std::string_view name, double value) {
    const std::string_view reader =
        name == "seed"         ? "dropout, random, sample; the trainer sets its own"
        : name == "step"       ? "them, Adam, AdamW, Adafactor, Averaged, Stale; a training counts it itself, from 1"
        : name == "loss_scale" ? "LossScaled, which moves it itself"
        : name.starts_with("average_") ? "Averaged"
                                       : "sample";
    table.add(name, value, reader);
  };
  each_hyperparameter(ScalarsOfOperations{}, add);
  each_hyperparameter(ScalarsOfTrainings{}, add);
  blocks::begin("numbers");
  table.print();
}

/// Bytes that a parameter takes, of a program that is nearly nothing but parameters, when it takes most.
template <class Program>
void print_bytes(const char* name) {
  const OwnedPlan p = derive<Program>(Mesh{axes::data = 1});
  const Moment most = fullest(*p);
  const auto bytes = [&](Use use) { return std::lround(static_cast<double>(most.of(use)) / (256.0 * 256 * 256)); };
  const long kept = bytes(Use::parameters), used = bytes(Use::parameters_in_use), gradients = bytes(Use::gradients),
             states = bytes(Use::optimizer_state);
  std::printf("| %s | %ld | %ld | %ld | %ld | %ld |\n", name, kept, used, gradients, states,
              kept + used + gradients + states);
}
void print_precisions() {
  using namespace precision;
  blocks::begin("precision bytes");
  std::puts("| program | parameters | in use | gradients | states of AdamW | together |\n|---|---|---|---|---|---|");
  print_bytes<Deeply<float>>("`Step<float>`");
  print_bytes<SumsIn<Deeply<float>, Reduced<bfloat16>, Accumulated<bfloat16>>>(
      "`SumsIn<Step<float>, Reduced<bfloat16>, Accumulated<bfloat16>>`");
  print_bytes<Deeply<bfloat16>>("`Step<bfloat16>`");
  print_bytes<SumsIn<Deeply<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>>(
      "`SumsIn<Step<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>`");
  print_bytes<LossScaled<Deeply<float16>>>("`LossScaled<Step<float16>>`");
  print_bytes<SumsIn<LossScaled<Deeply<float16>>, Reduced<float16>, Accumulated<float16>>>(
      "`SumsIn<LossScaled<Step<float16>>, Reduced<float16>, Accumulated<float16>>`");
}

int main() {
  print_transitions();
  print_operations();
  print_plans();
  print_optimizers();
  print_numbers();
  print_all_states();
  print_precisions();
  recomputation::print();
  offloading::print();
  megatron::print();
  parallelisms::print();
  print_grids::print();
  own_schedule::print();
  print_exercises();
  print_published();
}
