#!/usr/bin/env python3
"""A call around a run, as of an Executor or a Sampler, with arguments that it does not take, or in another order, is one error, whose sentence says
what it takes. All of one compiler stand in one unit: each has its sentence, and nothing else is said.

    calls.py INCLUDE COMPILER...
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """#include <array>
#include <sstream>
#ifdef WITH_MPI
#include <parallel/communicator/mpi.hpp>
#endif
#include <parallel/communicator/checked.hpp>
#include <parallel/communicator/threads.hpp>
#include <parallel/data/prefetch.hpp>
#include <parallel/data/sampler.hpp>
#include <parallel/data/windows.hpp>
#include <parallel/device/cpu.hpp>
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>
#include <parallel/run/mesh_argument.hpp>
#include <parallel/run/averages.hpp>
#include <parallel/run/checkpoint.hpp>
#include <parallel/run/eager.hpp>
#include <parallel/run/eagerly.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/learning_rate.hpp>
#include <parallel/run/load_weights.hpp>
#include <parallel/run/save_weights.hpp>
#include <parallel/run/trainer.hpp>
#include <parallel/run/whole_tensor.hpp>
using namespace parallel;
using namespace parallel::axes;
float plain(float);
struct Net {
  Parameter<float, Shape<4, 3>> w{xavier};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(cross_entropy(matmul(x, w), y)); }
};
struct Scale {
  double by;
};
template <Distributed T>
constexpr auto operator*(const Scale& scale, const T& x) {
  return scale.by * x;
}
using X = Tensor<float, Shape<8 / data, 4>>;
using Step = Training<Net, AdamW, X, Tensor<int, Shape<8 / data>>>;
constexpr Mesh two{data = 2};
struct Batch {};
struct All {
  Threads& world;
  const OwnedPlan& plan;
  Parameters& parameters;
  const Parameters& constant;
  std::vector<float>& x;
  std::vector<int>& y;
  Executor<Threads, Cpu>& e;
  Trainer<Threads, Cpu>& step;
  const Trainer<Threads, Cpu>& const_step;
  Eager<Threads, Cpu>& eager;
};
"""
USED = "[[maybe_unused]] auto& [world, plan, parameters, constant, x, y, e, step, const_step, eager] = all;"
SWAPPED, EXECUTOR, TRAINER = "is named by its communicator, then its device", "an Executor is made of", "a Trainer is made of"
EAGERLY, PARAMETERS, DERIVE = "Eagerly is made of", "Parameters are made of", "derive takes the program as its template argument"
THREADS, GUARDED, SAMPLER = "run_threads takes how many ranks", "guarded takes the program's name", "a Sampler is made of how many samples there are, the rows"
PREFETCH, WINDOWS, AVERAGES = "a Prefetch is made of", "TokenWindows are made of", "take_averages takes"
RESULT, STEPPED, CONSTANT = "a step gives its loss among others", "a trainer is called with the inputs", "a Trainer that is const"
WARMED, GRADIENT, MODEL, SHAPE = "WarmedUp takes", "a gradient is of a loss, a scalar", "an eager session takes a model", "its element type, its Shape"
NAMED, GRID, EXTENT, VALUE = "numbers in braces are AdamW's", "a mesh has axes", "an extent stands before the axis", "xavier, zeros and ones are no"
FRACTION = "is a floating point number, which would be cut off"
LIMIT = "take the plan's figure, then the limit"
TOKENS = "a file has tokens of 2 bytes, or of 4"
WANTED, SESSION, LOOK = "whole numbers have no gradient; give", "an eager session is made of", "look takes the tensor"
SAVED, SETTING, VIEWED = "Checkpoints are made of the communicator", "a parameter is set by the plan", "a view does not know its elements"
NORMAL, NO_END = "normal takes its deviation alone", "a Prefetch is no range"
READING, NOT_COPIED, NO_RANGE = "a parameter is read by the plan", "Parameters are not copied", "Parameters are no range"
WHOLE_STEP = "a trainer's call is the whole step"
STAYS, CAUSAL, POSSESSED = "stays where it is made", "whether attention is causal", "a Trainer has parameters of yours"
BRACES = "of what a gradient is made by stand in braces"
IGNORED, DEVIATION = "write cross_entropy<0, -100>", "scaled_normal takes its deviation"
CONSTANT_WORLD, ANOTHER_WORLD = "the communicator is const", "the communicator is of another type"
READ, BYTES = "a view is read as numbers that no tensor has", "which are no bytes"
SAMPLES, ENDS, AHEAD, KEPT = "the options of a Sampler", "the option of TokenWindows", "how many batches a Prefetch", "the options of Checkpoints"
ORDER, WRITES, UNKEPT, INDICES = "an order is of an axis", "get writes a whole tensor", "a plan that nobody keeps", "no gradient that can be wanted"
MASK, DOCUMENTS, SAMPLED = "masked_attention takes a mask", "document_attention takes the number", "not of the samples"
IN_BRACKETS, FLAT, REBOUND = "an eager tensor has its element type", "is given its numbers one behind the other", "an assignment cannot change"
ONE_STEP, OF_EXECUTOR, UNNAMED = "a step gives numbers, and is", "are those of a trainer's executor", "inputs have no names"
RESUMES, OF_WHAT, STEP_OF = "goes on from its newest checkpoint by resume", "a checkpoint is of what trains", "goes on from is a step"
REPLACED, QUESTION, USE = "what takes the place of what", "a plan is not asked like this", "a plan's memory is asked of a use"
UNITS, PLANNED, NO_TENSOR = "bytes are counted by powers of 1024", "a plan is of a program and a mesh", "an operand is no tensor"
APPLIED, NUMBERS, TABLE = "an operation is applied to tensors", "a Tensor is the type of an input", "a constant is one number everywhere"
KEPT_BY_NAME, OF_FUNCTION, AS_ONE = "how many checkpoints are kept is said by name", "neither of a function nor of its number", "is given all its numbers as one"
CALLED_FIRST = "recompute takes what is called"
LISTED = "tensors that are put together stand without braces"
POOLED = "max_pool<2>(x), with its window"
DERIVED, ADDRESSES, ELEMENT = "derive takes the mesh as an argument", "is told the addresses of its axes", "the element type is none of"
PERCENT, POSITIONS = "what is dropped is said in percent", "there are more tokens than the context has positions"
LOADED, WRITTEN, PROCESSES = "load_weights takes an Executor", "save_weights takes the communicator", "run_mpi takes what each rank does"
WHOLE_TENSOR = "write whole_tensor<float>(world, step.executor()"
REFUSED = [
    ("auto made = whole_tensor(world, step.executor(), \"w\");", WHOLE_TENSOR),
    ("auto made = whole_tensor<float>(step.executor(), \"w\");", WHOLE_TENSOR),
    ("auto made = whole_tensor<float>(world, parameters, \"w\");", WHOLE_TENSOR),
    ("const auto made = iota<int, Shape<4>>();", "write iota<Shape<4>>(), and cast<float>(iota<Shape<4>>())"),
    ("const auto made = random<long double, Shape<4>>(0.1);", "the element type is none of"),
    ("const auto made = random<bool, Shape<4>>(0.1);", "the element type is none of"),
    ("using Made = On<tensor>; constexpr Placement p = Made::placement;", "write On<tensor, Broadcast>, with Invariant, Partial, Split<d> or At<k>"),
    ("const Parameter<float, Shape<4>> made{normal(0.1), false};", "is no beginning of a Parameter, nor are two;"),
    ('parameters.get("w");', READING),
    ('parameters.get("w", x);', READING),
    ("Parameters made = parameters;", NOT_COPIED),
    ("for (auto& p : parameters) p *= 2;", NO_RANGE),
    ("Executor<Cpu, Threads> made(plan, world, parameters);", SWAPPED),
    ("Trainer<Threads, float> made(plan, world, parameters, AdamW::Hyperparameters{}, 1);", SWAPPED),
    ("Eager<Threads> made(two, world);", SWAPPED),
    ("Eagerly<Threads, Cpu, Step> made(plan, world, parameters);", SWAPPED),
    ("Eagerly<Net, Threads, Cpu> made(plan, world, parameters);", SWAPPED),
    ("Executor made(plan, world, parameters);", SWAPPED),
    ("Trainer made(plan, world, parameters, {.learning_rate = 1e-2}, 1); made(x, y);", SWAPPED),
    ("Executor<Threads, Cpu> made(world, plan, parameters);", EXECUTOR),
    ("Executor<Threads, Cpu> made(plan, world);", EXECUTOR),
    ("Executor<Threads, Cpu> made(plan, world, constant);", EXECUTOR),
    ("Executor<Threads, Cpu> made(derive<Step>(two), world, parameters);", EXECUTOR),
    ("Trainer<Threads, Cpu> made(world, plan, parameters, {.learning_rate = 1e-2}, 1);", TRAINER),
    ("Trainer<Threads, Cpu> made(derive<Step>(two), world, parameters, {.learning_rate = 1e-2}, 1);", TRAINER),
    ("Trainer<Threads, Cpu> made(derive<Step>(two), world, parameters, AdamW::Hyperparameters{}, 1U);", TRAINER),
    ("Trainer<Threads, Cpu> made(plan, world, parameters, Momentum{}, 1);", TRAINER),
    ("Trainer<Threads, Cpu> made(plan, world, parameters);", TRAINER),
    ("Trainer<Threads, Cpu> made(plan, world, parameters, {.learning_rate = 1e-2});", TRAINER),
    ("Trainer<Threads, Cpu> made(*plan, world, parameters, {}); Trainer<Threads, Cpu> other(*plan, world, parameters, {.learning_rate = 1e-2});", TRAINER),
    ("Trainer<Threads, Cpu> made(plan, world, parameters, 1e-2, 1);", TRAINER),
    ("Trainer<Threads, Cpu> made(plan, world, parameters, {.learning_rate = 1e-2, .momentum = 0.9}, 1); "
     "Trainer<Threads, Cpu> other(plan, world, parameters, {.lr = 1e-2, .weight_decay = 0.1}, 1); "
     "Trainer<Threads, Cpu> third(plan, world, parameters, {.lr = 1e-2, .betas = {0.9, 0.95}}, 1, Cpu{}); "
     "Trainer<Threads, Cpu> fourth(*plan, world, parameters, {.lr = 1e-2});", NAMED),
    ("constexpr Mesh made{2, 2};", GRID),
    ("constexpr Mesh made{data, tensor};", GRID),
    ('constexpr Mesh made{"data", 2};', GRID),
    ("constexpr Mesh made{{data, 2}}; Mesh other{{data, 2}, {tensor, 2}};", GRID),
    ('Mesh made{{"data", 2}, {"tensor", 2}, {"stage", 2}};', GRID),
    ("using Made = Tensor<float, Shape<8, 4 / tensor * 8L>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<8LL * (4 / tensor)>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<16 / data / 2UL>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<16 / data - 1ULL>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<16 / (data * tensor), 4>>; Made made;", EXTENT),
    ("constexpr Dim h = 8; using Made = Tensor<float, Shape<short{4} * h / tensor>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<data / 8, 4>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<data, 4>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<8U * data, 4>>; Made made;", EXTENT),
    ("using Made = Tensor<float, Shape<8.0 / 3 * 25, 4>>; Made made;", FRACTION),
    ("using Made = Tensor<float, Shape<8, 2e3L / tensor>>; Made made;", FRACTION),
    ("constexpr Mesh made{data = 2.0f};", FRACTION),
    ("static_assert(at_most<4096, 64_KiB>);", LIMIT),
    ('for (float v : e.output("loss")) static_cast<void>(v);', VIEWED),
    ("Trainer<Threads, Cpu> made(plan, world, parameters, {.learning_rate = 1e-3}, 1, Cpu{}, 3);", TRAINER),
    ('write_tokens("f", y);', TOKENS),
    ("Parameter<float, Shape<8, 4>> made{xavier()};", VALUE),
    ("Parameter<float, Shape<8, 4>> made{normal(0, 0.1)};", NORMAL),
    ("Eagerly<Step, Threads, Cpu> made(world, plan, parameters);", EAGERLY),
    ("Eagerly<Step, Threads, Cpu> made(derive<Step>(two), world, parameters);", EAGERLY),
    ("Parameters made(plan);", PARAMETERS),
    ("Parameters made(plan, 1);", PARAMETERS),
    ("Parameters made(plan, world, 1);", PARAMETERS),
    ("auto made = derive(two);", DERIVE),
    ("auto made = derive<Step>(2);", DERIVE),
    ('auto made = derive<Step>("data=2");', DERIVE),
    ("run_threads([](Threads&) {}, 4);", THREADS),
    ("run_threads(4, [](int) {});", THREADS),
    ("run_threads(two, [](Threads&) {});", THREADS),
    ("int made = guarded([] { return 0; });", GUARDED),
    ('int made = guarded("name", [] {});', GUARDED),
    ('load_weights(parameters, "file", "table");', LOADED),
    ('load_weights(e, "file", WeightTable{});', LOADED),
    ('load_weights(world, e, Safetensors("file"), WeightTable{});', LOADED),
    ('load_weights(step, Safetensors("file"), WeightTable{});', LOADED),
    ('save_weights(parameters, "file");', WRITTEN),
    ('save_weights(e, "file", WeightTable{});', WRITTEN),
    ('save_weights(world, "file", e, WeightTable{});', WRITTEN),
    ("using Made = Tensor<float, Shape<zigzag(8 / data), 4>>; Made made;", ORDER),
    ("using Made = Tensor<float, Shape<cyclic(8), 4>>; Made made;", ORDER),
    ('auto made = e.get("w");', WRITES),
    ("const Plan& made = *derive<Step>(two);", UNKEPT),
    ("Wanted<int, Shape<8>> made;", INDICES),
    ("auto q = eager.tensor<float, Shape<1, 4, 2, 4>>(x); auto made = masked_attention(q, q, q);", MASK),
    ("auto q = eager.tensor<float, Shape<1, 4, 2, 4>>(x); auto made = document_attention(q, q, q);", DOCUMENTS),
    ("std::vector<Trainer<Threads, Cpu>> steps; steps.push_back(std::move(step));", STAYS),
    ("Trainer<Threads, Cpu> made(plan, world, {.learning_rate = 1e-3}, 1);", POSSESSED),
    ("auto q = eager.tensor<float, Shape<1, 4, 2, 4>>(x); auto made = attention(q, q, q, true);", CAUSAL),
    ("auto made = [](Gradient& g) { g.give(0, operation::add, g.operand(0), g.cotangent()); };", BRACES),
    ("auto q = eager.tensor<float, Shape<4, 8>>(x); auto t = eager.tensor<int, Shape<4>>(x); auto made = cross_entropy(q, t, -100);", IGNORED),
    ("auto q = eager.tensor<float, Shape<4, 8>>(x); auto t = eager.tensor<int, Shape<4>>(x); auto made = mean_cross_entropy(q, t, -100);", "write mean_cross_entropy<0, -100>"),
    ("auto made = scaled_normal(12, 0.02);", DEVIATION),
    ("const Threads& w = world; Trainer<Threads, Cpu> made(plan, w, parameters, AdamW::Hyperparameters{}, 1);", CONSTANT_WORLD),
    ("Checked<Threads> w(world); Trainer<Threads, Cpu> made(plan, w, parameters, AdamW::Hyperparameters{}, 1);", ANOTHER_WORLD),
    ("Checked<Threads> w(world); Executor<Threads, Cpu> made(plan, w, parameters);", ANOTHER_WORLD),
    ("Sampler made(x, 8);", SAMPLED),
    ("Sampler made(x);", SAMPLED),
    ("Sampler made(100);", SAMPLER),
    ("Sampler made(100, 48, 3);", SAMPLER),
    ("Sampler made(100, 48, {.shuffle = true}); Sampler other(100, 48, {.seed = 3, .drop_last = true});", SAMPLES),
    ('TokenWindows made(TokenFile("tokens.bin"), 8, {.eos = 3});', ENDS),
    ("Prefetch<Batch> made([](std::int64_t) { return Batch{}; }, 0, {.depth = 3});", AHEAD),
    ('Checkpoints made(world, "folder", {.keep = 3}); Checkpoints other(world, "folder", {.newest = 2, .every = 10});', KEPT),
    ('Checkpoints made(world, "folder", 3);', KEPT_BY_NAME),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto r = recompute(q, Net{});", CALLED_FIRST),
    ("auto w = eager.wanted<float, Shape<4>>(x); auto g = eager.gradient([](Distributed auto v) { return mean(v); }, w);", OF_FUNCTION),
    ("auto w = eager.wanted<float, Shape<4>>(x); auto g = eager.gradient(eager.whole(mean(w))[0], w);", OF_FUNCTION),
    ("auto w = eager.wanted<float, Shape<4>>(x); auto g = eager.gradient(plain, w);", OF_FUNCTION),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto r = recompute(q, plain);", CALLED_FIRST),
    ("auto made = eager.tensor<float, Shape<4>>(1, 2, 3, 4);", AS_ONE),
    ("auto made = eager.tensor<float>(Shape<4>{}, x);", IN_BRACKETS),
    ("auto made = eager.wanted<float>(x, Shape<4>{});", IN_BRACKETS),
    ("Prefetch<Batch> made([] { return Batch{}; }, 0);", PREFETCH),
    ("Prefetch<Batch> made([](std::int64_t) {}, 0);", PREFETCH),
    ("Prefetch<Batch> made([](std::int64_t) { return 1; }, 0);", PREFETCH),
    ("Prefetch<Batch> made([](std::int64_t) { return Batch{}; }, 0); for (const auto& batch : made) static_cast<void>(batch);", NO_END),
    ('TokenWindows made("tokens.bin", 8);', WINDOWS),
    ('TokenWindows made(TokenFile("tokens.bin"));', WINDOWS),
    ("take_averages(step.executor(), world, parameters);", AVERAGES),
    ("take_averages(world, step, parameters);", AVERAGES),
    ("auto loss = step(x, y); loss.backward();", ONE_STEP),
    ("step(x, y).item();", ONE_STEP),
    ('step.scalar("learning_rate", 1e-3);', OF_EXECUTOR),
    ("step.input(0, x);", OF_EXECUTOR),
    ("step.output(0);", OF_EXECUTOR),
    ('e.input("x", x);', UNNAMED),
    ('step.executor().input(std::string("y"), y);', UNNAMED),
    ('e.input("x", {1.0F, 2.0F});', UNNAMED),
    ('Checkpoints made(world, "folder"); made.load(step);', RESUMES),
    ('Checkpoints made(world, "folder"); made.save(1, step);', OF_WHAT),
    ('Checkpoints made(world, "folder"); made.save(parameters, 1);', OF_WHAT),
    ('Checkpoints made(world, "folder"); if (auto r = made.resume(step)) r.step = 1;', STEP_OF),
    ("auto made = [](Update& u) { u.replace(operation::add, u.parameter(), u.gradient(), {\"learning_rate\"}); };", REPLACED),
    ("auto made = [](Update& u) { u.replace(operation::add, u.parameter(), {u.gradient()}); };", REPLACED),
    ("auto made = [](Update& u) { u.replace(operation::add, {u.parameter()}, u.gradient()); };", REPLACED),
    ("constexpr auto& made = parallel::plan<Step, two>; static_assert(made.forward.all_reduce(data) == 1);", QUESTION),
    ("constexpr auto& made = parallel::plan<Step, two>; static_assert(made.memory(Use::activations) < 4096);", USE),
    ("using Made = Tensor<float, Shape<32 / (data, tensor), 4>>; Made made;", EXTENT),
    ("double loss = step(x, y);", RESULT),
    ("if (step(x, y)) return;", RESULT),
    ("std::ostringstream() << step(x, y);", RESULT),
    ('Checkpoints made("folder", world);', SAVED),
    ('Checkpoints made(step, "folder"); made.save(step, 1);', SAVED),
    ('parameters.set("w", x);', SETTING),
    ('parameters.set("w", 0, x);', SETTING),
    ('float loss = e.output("loss")[0];', VIEWED),
    ('auto read = e.output("loss").span<std::int64_t>();', READ),
    ('auto read = e.output("loss").as<const unsigned>();', READ),
    ('auto read = e.output("loss").span<std::uint8_t>();', BYTES),
    ("step.step(x, y);", STEPPED),
    ("step.zero_grad();", WHOLE_STEP),
    ("step.backward(x);", WHOLE_STEP),
    ("step.train();", WHOLE_STEP),
    ("step.eval();", WHOLE_STEP),
    ("step.step(CosineSchedule{});", STEPPED),
    ("const_step(x, y);", CONSTANT),
    ("WarmedUp made{20};", WARMED),
    ("WarmedUp made{CosineSchedule{}, 20};", WARMED),
    ("auto loss = mean(eager.wanted<float, Shape<4>>(x)); auto g = eager.gradient(loss);", GRADIENT),
    ("auto loss = mean(eager.wanted<float, Shape<5>>(x)); auto g = eager.gradient(loss, x);", GRADIENT),
    ("auto w = eager.wanted<float, Shape<6>>(x); auto g = eager.gradient(w, mean(w));", GRADIENT),
    ("auto made = eager.model<Net>();", MODEL),
    ("auto made = eager.model<Step>(1);", MODEL),
    ("auto made = eager.tensor(x);", IN_BRACKETS),
    ("auto made = eager.tensor<float, Shape<2, 2>>({{1, 2}, {3, 4}});", FLAT),
    ("const auto w = eager.wanted<float, Shape<9>>(x); w = 2 * w;", REBOUND),
    ("auto made = eager.tensor<Shape<8, 4>, float, X>(x);", SHAPE),
    ("auto made = eager.wanted<Shape<8, 4>, float, X, X>(x);", SHAPE),
    ("auto made = eager.tensor<Shape<2>, float, X, X, X>({1.0F, 2.0F});", SHAPE),
    ("auto made = eager.wanted<int, Shape<8>>(y);", WANTED),
    ('Eager<Threads, Cpu> made("data=2", world);', SESSION),
    ("Eager<Threads, Cpu> made(world, two);", SESSION),
    ("constexpr std::int64_t made = 64_KB;", UNITS),
    ("constexpr std::int64_t made = 64_MB;", UNITS),
    ("constexpr std::int64_t made = 2_GB;", UNITS),
    ("constexpr auto& made = parallel::plan<Step>;", PLANNED),
    ("auto made = parallel::plan<AllStored<Step, Stored<data>>>(two);", PLANNED),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = Net{} - q;", NO_TENSOR),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = q * x;", NO_TENSOR),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = bfloat16(2.0F) / q;", NO_TENSOR),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = Apply<operation::scale>{}(Here(), q, 2.0);", APPLIED),
    ("X made(x);", NUMBERS),
    ("Tensor<int, Shape<8>> made = y;", NUMBERS),
    ("auto made = parallel::constant<float, Shape<4>>({1, 2, 3, 4});", TABLE),
    ("auto made = parallel::constant<float, Shape<4>>(x);", TABLE),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = concatenate<0>({q, q});", LISTED),
    ("auto q = eager.tensor<float, Shape<3>>(x); auto made = concatenate({q, q}, 0);", LISTED),
    ('const std::string folder = "folder"; Checkpoints<Threads> made(folder, world);', SAVED),
    ("auto made = derive<Step, two>();", DERIVED),
    ("auto q = eager.tensor<float, Shape<1, 1, 4, 4>>(x); auto made = max_pool<2, 2, 0, 1>(q);", POOLED),
    ('auto made = mesh_argument("data=2", {data, tensor});', ADDRESSES),
    ("auto q = eager.tensor<float, Shape<4>>(x); auto made = cast<DType::f16>(q);", ELEMENT),
    ("constexpr models::Gpt2Sizes made{.dropped = 0.1};", PERCENT),
    ("constexpr models::Gpt2Sizes sizes{.context = 4, .channels = 4, .heads = 2, .inner = 8, .vocabulary = 8, .classes = 8, .layers = 1, .dropped = 0}; "
     "auto t = eager.tensor<int, Shape<1, 5>>(y); auto made = eager.model<models::Gpt2<sizes>>(1).logits(t);", POSITIONS),
    ('auto made = look("x", eager.tensor<float, Shape<4>>(x));', LOOK),
]
BY_MPI = [
    ("run_mpi(4, [](Mpi&) {});", PROCESSES),
    ("run_mpi([](Mpi&) {}, 4, 5);", PROCESSES),
    ("run_mpi();", PROCESSES),
]
# Taken, with a warning: what nobody reads.
WARNED = [
    'guarded("name", [] { return 0; });',
    "constexpr auto& made = parallel::plan<Step, two>; made.never(all_gather(data));",
    "constexpr auto& made = parallel::plan<Step, two>; made.is({});",
]
ACCEPTED = [
    'auto made = whole_tensor<float>(world, step.executor(), "w"); auto other = whole_tensor<float>(world, e, std::string("w"));',
    "X made, copy(made), other{made}; std::vector<X> many(3); auto none = parallel::constant<float>(0);",
    'auto made = mesh_argument(std::string("data=2"), {&data}); auto none = mesh_argument("data=2", {}); const std::array<const Axis*, 1> known{&data}; auto third = mesh_argument("data=2", known);',
    "auto q = eager.tensor<float, Shape<4>>(x); auto made = Scale{2} * q;",
    "constexpr models::Gpt2Sizes sizes{.dropped = 20}; static_assert(sizes.dropped / 100.0 == 0.2); constexpr int percent = sizes.dropped; static_assert(percent == 20 && sizes.dropped == 20 && 0 != sizes.dropped && sizes.dropped > 0);",
    "enum { rows, columns }; constexpr std::size_t last = 1; auto q = eager.tensor<float, Shape<4, 2>>(x); auto made = mean<columns>(q) + max<last>(q) + sum<1>(q);",
    "Executor<Threads, Cpu> made(plan, world, parameters); made(x, y);",
    "Executor<Threads, Cpu> made(plan, world, parameters); made.input(0, {1.0F, 2.0F}); made.input(1, y); std::ostringstream() << plan << *plan;",
    "Executor<Threads, Cpu> made(plan.get(), world, parameters, Cpu{}, &e, {}, {}, false);",
    "Trainer<Threads, Cpu> made(plan, world, parameters, {.learning_rate = 1e-2}, 1); made(x, y); made.step(1); made.step();",
    "Trainer<Threads, Cpu> made(*plan, world, parameters, {}, 1), other(plan, world, parameters, {.weight_decay = 0.1, .clip_norm = 1}, 1, Cpu{});",
    "Trainer<Threads, Cpu> made(plan, world, parameters, {1e-2}, 1); Sampler sampler(100, 48, {3}), other(100, 48, {}), third(100, 48, {.shuffled = false});",
    "Trainer<Threads, Cpu> made(*plan, world, parameters, AdamW::Hyperparameters{}, 1, Cpu{}); made.step(0.5F);",
    "Trainer<Threads, Cpu> made(plan, world, parameters, Sgd::Hyperparameters{}, 1); double loss = made(x, y).loss; static_cast<void>(loss);",
    "Eagerly<Step, Threads, Cpu> made(plan, world, parameters); made(x, y);",
    "Parameters made(plan, world.rank(), 1); Parameters other = std::move(made); other = Parameters(plan, 0, 2, Cpu{});",
    "auto made = derive<Step>(two); made = derive<Step>(two, 1); made = derive<Step, Step>({data = 2});",
    "run_threads(4, [](Threads&) {}); run_threads(two.ranks(), [](auto& w) { w.barrier(); }, std::chrono::seconds(1));",
    'int made = guarded("name", [] { return 0; });',
    "Sampler made(100, 48), other(100, 48, {.seed = 3}), copy(made); SamplerOptions how; Sampler third(100, 48, how);",
    'Prefetch made([](std::int64_t) { return Batch{}; }, 0); write_tokens("f", std::vector<std::uint16_t>{1, 2}); write_tokens("f", std::span<const std::uint32_t>());',
    "Prefetch<Batch> made([](std::int64_t) { return Batch{}; }, 0), other([](auto) { return Batch{}; });",
    'TokenFile tokens("f"); TokenWindows made(tokens, 8), other(made), third(TokenFile("f"), 8, {.end_of_document = 3});',
    "take_averages(world, step.executor(), parameters);",
    'auto read = e.output("loss").span<const float>(); auto bytes = e.output("loss").as<const std::byte>();',
    'load_weights(e, Safetensors("file"), WeightTable{}); load_weights(step.executor(), Safetensors("file"), {{}});',
    'save_weights(world, e, "file", WeightTable{}); save_weights(world, step.executor(), std::string("file"), {{}}, FileDType::BF16);',
    "using Made = Tensor<float, Shape<4 * 8 / data, 16 / data / tensor>>; Made made; Mesh none{}, grid{data = 2, tensor = 2}, copy{grid};",
    'Checkpoints made(world, "folder"), other(world, "folder", {.newest = 2}); made.save(step, 1); parameters.set(plan, 0, "w", x);',
    "WarmedUp made{20, CosineSchedule{.warmup = 0}}; WarmedUp other{20, CosineSchedule{.warmup = 0}, 0.1}; WarmedUp copy{made};",
    "auto w = eager.wanted<float, Shape<4>>(x); auto g = eager.gradient(mean(w), w), h = eager.gradient(mean(w), w); "
    'auto v = eager.gradient(mean(w), "w"); auto m = eager.model<Net>(1);',
    "auto made = eager.tensor<float, Shape<2>>({1, 2}); auto other = eager.wanted<double, Shape<2>>({1, 2}); auto third = eager.tensor<int, Shape<2>>({1, 2});",
    "auto made = eager.tensor<float, Shape<8 / data, 4>>(x); auto other = eager.tensor<int, Shape<8>, On<data, Broadcast>>(y);",
]


def operations(include):
    """Operations that are called with what they do not take, and what each says: of all that missing.hpp has with other arguments."""
    text = r'"(?:[^"\\]|\\.)*"'
    called, missing = ((Path(include) / "parallel/operation" / name).read_text() for name in ("called.hpp", "missing.hpp"))
    says = dict(re.findall(rf"^PARALLEL_CALLED\(\s*(\w+),((?:\s*{text})+)\)$", called, re.MULTILINE))
    names = re.findall(r"^PARALLEL_OTHERWISE\((\w+), ", missing, re.MULTILINE)
    sentences = {name: "".join(part[1:-1] for part in re.findall(text, says[name])).split('\\"')[0] for name in names}
    return [(f"const Parameter<float, Shape<4, 3>> w; {name}(w, Batch{{}}, w, w, w, w);", f"in the order of docs/operations.md: write {sentences[name]}") for name in dict.fromkeys(names)]


def with_mpi():
    """What a compiler needs for run_mpi; nothing where there is no MPI."""
    if not shutil.which("mpicxx"):
        return []
    folders = subprocess.run(["mpicxx", "--showme:incdirs"], capture_output=True, text=True, check=True).stdout.split()
    return ["-DWITH_MPI", *(option for folder in folders for option in ("-isystem", folder))]


def errors(compiler, include, statements, folder, warnings=()):
    """The errors of a function for each of these."""
    source = Path(folder) / "calls.cpp"
    source.write_text(HEAD + "".join(f"void f{i}(All& all) {{\n  {USED}\n  {s}\n}}\n" for i, s in enumerate(statements)))
    limit = ["-ferror-limit=0"] if "clang" in compiler else []
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused", *warnings, *limit, *with_mpi(), f"-I{include}", "-isystem", "/usr/include/eigen3", str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    return [line for line in run.stderr.splitlines() if " error: " in line or " warning: " in line]


def main(include, compilers):
    compilers = [c for c in compilers if shutil.which(c)]
    faults = 0 if compilers else 1
    refused = REFUSED + operations(include) + (BY_MPI if with_mpi() else [])
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            found = errors(compiler, include, [statement for statement, _ in refused], folder)
            wrong = []
            for sentence in dict.fromkeys(s for _, s in refused):
                said, expected = sum(sentence in e for e in found), sum(s == sentence for _, s in refused)
                if said != expected:
                    wrong.append(f"{said} times instead of {expected}: {sentence}")
            wrong += [e[:300] for e in found if not any(sentence in e for _, sentence in refused)]
            wrong += errors(compiler, include, ACCEPTED, folder)
            dropped = errors(compiler, include, WARNED, folder, ["-Wunused-result", "-Wunused-value"])
            if len(dropped) != len(WARNED) or not all("nodiscard" in e for e in dropped):
                wrong += [f"{len(dropped)} warnings of what nobody reads instead of {len(WARNED)}:", *dropped]
            faults += len(wrong)
            for what in wrong:
                print(f"{compiler}: {what}")
    print(f"{len(refused)} refused, {len(ACCEPTED)} accepted, {' '.join(compilers)}: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
