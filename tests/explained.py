#!/usr/bin/env python3
"""What tools/explain says of mistakes that only a compiler tells: of each the row of docs/errors.md that is meant, and of one that the library refuses
its sentence, the line of the program and the figures. Every row has a mistake.

    explained.py ROOT COMPILER...
"""
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compilers import compile, precompiled

USING = "using namespace parallel;\nusing namespace parallel::axes;\n"
MODEL = """struct Block {
  Parameter<float, Shape<16, 16>> w{xavier};
  constexpr auto operator()(Distributed auto x) const { return matmul(x, w); }
};
struct Model {
  Parameter<float, Shape<16>> bias{zeros};
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(x + bias - y)); }
};
using X = Tensor<float, Shape<32 / data, 16>>;
using Step = Training<Model, AdamW, X, X>;
"""
PLAN = "constexpr auto& p = plan<Step, Mesh{data = 2}>;\n"


def of_model(written):
    """A program whose model computes this."""
    return USING + MODEL.replace("x + bias - y", written) + PLAN


def beside(written):
    """A model, and this."""
    return USING + MODEL + written + "\n"


def optimizer(update):
    return beside("struct Own { struct Hyperparameters {}; static constexpr void update(Update& u) { " + update + " } };\nusing Mine = Training<Model, Own, X, X>;\n"
                  "constexpr auto& p = plan<Mine, Mesh{data = 2}>;")


CASES = [  # (program, what stands in the row)
    (beside("struct Other { Parameter<float, Shape<16, 32>, Stored<Zero::states>> up; };"), "names the axis first, whose ranks"),
    (of_model("(x - y) ** 2"), "there is no sign for a power"),
    (beside("constexpr auto& p = plan<Frozen<Step, \"bias\">, Mesh{data = 2}>;"), "the words stand in a Grouped"),
    (beside("constexpr auto& p = plan<Pipelined<\"gpipe\", Step>, Mesh{stage = 2}>;"), "a schedule is a variable, not a text"),
    (beside("constexpr Signature cap_table(const Arguments&) { return uniform_row(1, 1, Broadcast); }\nconstexpr Operation cap{.name = \"cap\", .shape = operation::same_shape, .signatures = cap_table};"), "gives a list of rows"),
    (beside("constexpr Operation cap{.name = \"cap\", .shape = operation::same_shape, .signatures = operation::nonlinear_table};\n"
            "template <Distributed T>\nconstexpr auto capped(const T& x, Here here = {}) { return Apply<&cap>{}(here, x); }"), "names the operation itself"),
    (beside("constexpr Operation sign_step{.name = \"sign_step\", .updates = true};\nstruct Own { struct Hyperparameters {}; static constexpr void update(Update& u) { u.replace(sign_step, {u.parameter()}, {u.gradient()}, {1e-3}); } };"), "the numbers of an update have names"),
    (of_model("y").replace("Distributed auto x, Distributed auto y", "Distributed auto data, Distributed auto y").replace("mean(square(y))", "mean(square(to<On<data, Invariant>>(data) - y))"), "a parameter of yours is called like the axis"),
    (beside("template <auto activation>\nstruct Mlp { constexpr auto operator()(Distributed auto x) const { return activation(x); } };\nstruct Deep { Mlp<relu> mlp; };"), "hand over what calls it: `Perceptron<[](Distributed auto x)"),
    (beside("struct Own { struct Hyperparameters {}; static constexpr void update(const Update& u) { descend(u); } static constexpr void descend(Update&) {} };\nusing Mine = Training<Model, Own, X, X>;\n"
            "constexpr auto& p = plan<Mine, Mesh{data = 2}>;"), "an optimizer writes into what it is given"),
    (USING + MODEL.replace("operator()(Distributed auto x) const", "operator()(Distributed auto& x) const").replace("Parameter<float, Shape<16>> bias{zeros};", "Block block;")
     .replace("x + bias - y", "block(gelu(x)) - y") + PLAN, "has no operator() that is const and takes this"),
    (USING + MODEL.replace("operator()(Distributed auto x) const", "forward(Distributed auto x) const").replace("Parameter<float, Shape<16>> bias{zeros};", "Block block;")
     .replace("x + bias - y", "block(gelu(x)) - y") + PLAN, "has no operator() that is const and takes this"),
    (beside("constexpr auto& p = plan<Step, Mesh{data = 2}, 1>;"), "the mesh is one argument, with the stage"),
    (beside("inline constexpr Mesh mesh{data = 2};\nconstexpr auto& p = plan<mesh, Step>;"), "the program comes first, then the mesh"),
    (beside("constexpr auto& p = plan<Training<Layers<4, Block, KeepOnHost<>>, AdamW, X>, Mesh{data = 2}>;"), "`KeepOnHost` has nothing in"),
    (beside("constexpr void back(Gradient& g) { g.give(operation::multiply, 0, {g.cotangent(), g.operand(0)}); }"), "which operand's gradient it is comes first"),
    (beside("using More = Within<AllStored<Step, Stored<Split<0>, data>>, Sent<data, 5_MiB>>;"), "`Stored` names an axis first"),
    (beside("Parameter<float, Shape<16, 64>, On<tensor, 1>> w;"), "a placement is `Split<1>`, `Broadcast`"),
    (beside("inline constexpr Mesh mesh{data = 2};\nusing Batch = Tensor<float, Shape<32 / mesh, 16>>;"), "an axis of the mesh divides an extent"),
    (beside("constexpr Mesh mesh{data(2)};"), "a mesh gives axes their ranks"),
    (beside("constexpr Operation cap{.name = \"cap\", .flops = 10};"), "`.flops` is a function"),
    (beside("constexpr Shaped cap_shape(const Arguments& a) { return a.types[0]; }"), "a `.shape` gives a Shaped"),
    (beside("struct Deep { Layers<4, Block, Recompute<operation::gelu>> blocks; };"), "an operation is named by its address"),
    (beside("constexpr void back(Gradient& g) { g.give(0, g.cotangent() * square(tanh(g.operand(0) / 2.0))); }"), "a gradient writes nodes"),
    (USING + MODEL.replace("Parameter<float, Shape<16>> bias{zeros};", "Block block;").replace("x + bias - y", "recompute(block)(x) - y") + PLAN, "`recompute` takes what is called"),
    (beside("using More = Within<Step, Sent<5_MiB, data>>;"), "`Sent` names the axis first"),
    (beside(PLAN + "static_assert(proven<p.never({all_reduce(data), all_to_all()})>);"), "listed without braces"),
    (of_model("mean({x, y})"), "takes tensors, not lists of them"),
    (beside("struct Deep { Layers<4, Block, KeepOnHost<>> blocks; };"), "`KeepOnHost` has nothing in"),
    (beside(PLAN + "static_assert(at_most(p.peak_memory(), 64_KiB));"), "what is claimed of a plan stands in"),
    (beside(PLAN + "static_assert(proven(p.never(all_to_all())));"), "what is claimed of a plan stands in"),
    (beside("int f(int x, int up) { return x @ up; }"), "there is no sign for a product of matrices"),
    (of_model("recompute(gelu, x)"), "`recompute` takes what is called"),
    (of_model("y").replace("{ return mean(", "{ const auto [most, where] = max<1>(x); return mean(most * x) + mean("), "is taken apart by"),
    (beside("using Other = Training<Model, AdamW, Wanted<X>, X>;"), "an input whose gradient is wanted"),
    (USING + "constexpr models::Gpt2Sizes sizes{};\n", "a published model has a header of its own"),
    (beside(PLAN + "static_assert(at_most<p.peak_memory(), 64 * KiB>);"), "bytes are written with their unit"),
    (beside("constexpr auto p = derive<Step>(Mesh{data = 2});"), "`derive` plans when the program starts"),
    (beside("void f() { Model model; model.train(); }"), "a model is a plain struct without modes"),
    (USING + "using namespace std;\nusing Batch = Tensor<float, Shape<32 / data, 16>>;\n", "since `std::data` is a function"),
    ('namespace parallel {}\ninline constexpr parallel::Axis tensor{"tensor"};\n' + USING + "using Batch = Tensor<float, Shape<32, 16 / tensor>>;\n", "an `Axis` of your own is called"),
    ("using namespace parallel;\nusing Batch = Tensor<float, Shape<32 / tensor, 16>>;\n", "`using namespace parallel::axes` is missing"),
    ("using namespace parallel;\nusing Batch = Tensor<float, Shape<32 / stage, 16>>;\n", "`using namespace parallel::axes` is missing"),
    (beside("void f() { Parameters parameters(1, 2, 3); }"), "its header is not included"),
    (beside("void f() { Trainer<int, int> trainer; }"), "its header is not included"),
    (beside("void f(Threads& world);"), "its header is not included"),
    (of_model("std::exp(x) - y"), "is called without `std::`"),
    (of_model("std::max(x, 0)"), "is called without `std::`"),
    (of_model("cubed(x)").replace("struct Block", "float cubed(float x) { return x * x * x; }\nstruct Block"), "a function of numbers takes none"),
    (beside("struct Run { double scalar(const char*, double = 0) { return 0; } };\nvoid f(Run executor) { executor.scalar(\"x\") = 0.1; }"), "a number is set by a call"),
    ("#include <parallel/data/sampler.hpp>\n" + USING + "SamplerOptions how{.last = LastBatch::keep};\n", "a batch has one shape"),
    (of_model("x + y").replace("Distributed auto x, Distributed auto y", "Distributed x, Distributed y"), "each value has a type of its own"),
    (beside("struct Other { Linear<16, 64> up; };"), "a layer is a struct of yours"),
    (beside("using Batch = Tensor<float, Shape<32, 16> / data>;"), "divides one extent, not a Shape"),
    (beside("using Batch = Tensor<float, Shape<32 / date, 16>>;"), "the name is misspelt"),
    (USING + MODEL.replace("Parameter<float, Shape<16>> bias{zeros};", "Parameter<float, Shape<16, 16>> matmul{zeros};").replace("x + bias - y", "matmul(x, matmul)") + PLAN, "and hides it"),
    (USING + MODEL.replace("Parameter<float, Shape<16>> bias{zeros};", "Layers<2, Block> blocks;").replace("x + bias - y", "blocks([](auto z) { return z; }, x)") + PLAN, "layers are called with the tensor alone"),
    (of_model("x * numbers").replace("struct Block", "constexpr float numbers[16]{};\nstruct Block"), "an array of numbers is no tensor"),
    (beside("using More = Within<Step, 2_GiB>;"), "a budget is said by what it is of"),
    ("#include <parallel/model/stale.hpp>\n" + beside("using More = Training<Model, Stale<AdamW, 1>, X, X>;"), "how many steps comes first"),
    (beside("struct Cap { static constexpr Operation cap{.name = \"cap\"}; };\ninline constexpr Apply<Cap::cap> made{1.0, 2.0, 3.0};"), "two numbers in the braces at most"),
    (optimizer("static_cast<void>(u.state());"), "a state has a name"),
    (of_model("x - y").replace("return mean(square(", "const auto mean = mean(x); return sum(square(mean - ").replace("x - y))", "y))"), "a name stands for what is being made"),
    (beside("Parameter<half, Shape<16, 64>> w;"), "element types are `float`"),
    (beside("using Batch = Tensor<float, Shape<32 / zigzag, 16>>;"), "an order is of an axis"),
    (beside("inline constexpr Axis rows;"), "an axis has a name"),
    (beside("inline constexpr Axis rows{};"), "an axis has a name"),
    (of_model("(factor(1), x + y)").replace("struct Block", "inline float factor(float x) { return x * 2; }\nstruct Block") + "static_assert(run_as_constant<Model, X, X>());\n",
     "or what these or a model call"),
    (of_model("dropout(0.1, x) - y"), "takes its tensor first"),
    (of_model("square(top_k<1, 5>(x))"), "top_k gives two tensors"),
    (beside("constexpr auto& p = plan<Step, data = 2, tensor = 2>;"), "the mesh is one argument, with the stage"),
    (beside("constexpr Tasks tasks(int stage, int stages, int) { static_cast<void>(stage + stages); return {}; }\ninline constexpr Schedule mine{\"mine\", 1, false, false, tasks};"), "a function of four numbers"),
    (beside("constexpr void back(Gradient& g) { g.give(operation::add, 0, {g.cotangent(), g.cotangent()}); }"), "which operand's gradient it is comes first"),
    (beside("Parameter<float, 16, 64> w;"), "the extents stand in a `Shape`"),
    (beside("using Batch = Tensor<float, 16, 64>;"), "the extents stand in a `Shape`"),
    (beside("using More = Accumulate<Step, 4>;"), "how many micro-batches comes first"),
    (beside("using More = AllStored<Step, Zero::states>;"), "is named by its axis"),
    (beside("struct Deep { Layers<Block, 4> blocks; };"), "how many layers comes first"),
    (beside("struct Deep { Layers<4, Recompute<Block>> blocks; };"), "how many layers comes first"),
    (beside("struct Deep { Layers<Block> blocks; };"), "how many layers comes first"),
    (beside("struct Deep { Layers<4> blocks; };"), "how many layers comes first"),
    (beside('using More = Grouped<Step, "bias">;'), "members of a group are named in words"),
    (beside("using More = Training<Model, AdamW{1e-3}, X, X>;"), "the optimizer is a type"),
    (beside("struct Deep { Layers<4, Block, Recompute<gelu>> blocks; };"), "is an operation, not the function"),
    (beside('Parameter<float, Shape<16, 64>, On<"tensor", Split<0>>> w;'), "an axis is a variable, not a text"),
    (beside("Parameter<float, Shape<16, 64>, Stored<Split<0>>> w;"), "`Stored` names an axis first"),
    ("#include <parallel/model/averaged.hpp>\n" + beside("using More = Training<Model, Averaged<AdamW, 0.99>, X, X>;"), "the decay is a number of the run"),
    (beside("constexpr Mesh mesh{.data = 2};"), "the axes are variables"),
    (beside("void f(std::vector<float> data) { const Mesh mesh{data = 2}; }"), "a variable of yours is called like the axis"),
    (beside(PLAN + "static_assert(p.calls(tensor) == 0);"), "neither its mesh has nor its program names"),
    (beside(PLAN + "static_assert(equals<p.forward.sent(all_gather(tensor)), 0>);"), "neither its mesh has nor its program names"),
    ("struct Schedule {};\n" + beside("Schedule made;"), "two namespaces have this name"),
    (beside("struct Deep { Recompute<Layers<4, Block>> blocks; };"), "how many layers comes first"),
    (beside("struct Deep { Layers<4, Block, Recompute> blocks; };"), "how many layers comes first"),
    (beside("using More = AllStored<Step, Stored<data, Zero::optimizer>>;"), "the stages of ZeRO are"),
    (beside("using More = Pipelined<schedules::interleaved, Accumulate<4, Step>>;"), "how many chunks a stage has"),
    (beside("using More = Pipelined<schedules::gpipe(4), Accumulate<4, Step>>;"), "a schedule is named, and not called"),
    (beside("constexpr auto& p = plan<Mesh{data = 2}, Step>;"), "the program comes first, then the mesh"),
    (beside(PLAN + "static_assert(p.forward == all_reduce(data));"), "a phase is asked for its rows"),
    (beside(PLAN + "static_assert(at_most<p.peak_memory, 64_KiB>);"), "what is asked is called"),
    (beside(PLAN + "static_assert(p.backward.calls <= 3);"), "what is asked is called"),
    (beside(PLAN + "static_assert(p.memory.activations <= 3);"), "memory is asked by its use"),
    (USING + MODEL.replace("matmul(x, w); }", "matmul(x, w); }").replace("operator()(Distributed auto x) const", "operator()(Distributed auto x)")
     .replace("Parameter<float, Shape<16>> bias{zeros};", "Block block;").replace("x + bias - y", "block(x) - y") + PLAN, "has no operator() that is const and takes this"),
    (USING + "struct Two { constexpr auto operator()(Distributed auto x) const { return std::array{sum<1>(x), mean<0>(x)}; } };\n"
     "constexpr auto& p = plan<Evaluation<Two, Tensor<float, Shape<32 / data, 16>>>, Mesh{data = 2}>;\n", "tensors have types of their own"),
    (beside("struct Other { Parameter<float, Shape<16, 64>> up(xavier); };"), "a member begins in braces"),
    (beside("struct Other { Parameter<float, Shape<16, 64>> up{uniform(-0.1, 0.1)}; };"), "a Parameter begins with `xavier`"),
    (of_model("x - grad(y, bias)"), "a training derives its gradients"),
    (of_model("x + constant(1.0)"), "a constant says its type and Shape"),
    (beside("inline Shaped shape_of(const Arguments& a) { return operation::same_shape(a); }\n"
            "struct Mine { static constexpr Shaped shape(const Arguments& a) { return shape_of(a); } };\n"
            "constexpr Shaped mine = Mine::shape({});"), "lacks `constexpr`"),
    (beside("constexpr AdamW::Hyperparameters h{.weight_decay = 0.1, .learning_rate = 1e-3};"), "stand in the order of the struct"),
    (USING + "void f(int hidden) { using Batch = Tensor<float, Shape<32 / data, hidden>>; }\n", "types have constants"),
    (beside("void f() { const Mesh mesh = parse(); static_cast<void>(plan<Step, mesh>); }").replace("struct Block", "Mesh parse();\nstruct Block"), "types have constants"),
    (beside("int f(Model model) { return model.parameters(); }"), "a model is types, without numbers"),
    (of_model("x.T + y"), "a tensor has none of these"),
    (optimizer("static_cast<void>(0.1 * u.gradient());"), "an optimizer of your own writes operations"),
    (of_model("true ? x : sum<1>(y)"), "each tensor has a type of its own"),
    (beside("void g(const AdamW::Hyperparameters&);\nvoid f() { g({.lr = 1e-3}); }"), "a name in braces is misspelt"),
    (of_model("x + arange<16>()"), "nothing is called so"),
    (beside("using Batch = Tensor<float, Shape<32, 16>, data>;"), "an axis divides an extent"),
    (beside("struct Deep { Layers<4, Block, stage> blocks; };"), "stages divide how many layers"),
    (beside("using More = Pipelined<Accumulate<4, Step>, schedules::gpipe>;"), "the schedule comes first"),
    (beside("using More = Pipelined<schedules::one_f_one_b, Accumulate<4, Step>>;"), "schedules are"),
    (beside("using More = Grouped<Step, Frozen<Model::bias>>;"), "members are named in words"),
    (beside('using Batch = Tensor<float, Shape<32 / "data", 16>>;'), "an axis is a variable, not a text: `Shape"),
    (beside("using Batch = Tensor<float, Shape<32, 16>, On<Split<0>, data>>;"), "`On` names the axis first"),
    (beside("using Batch = Tensor<float, Shape<32, 16>, On<data, Split>>;"), "`Split` has the dimension"),
    (beside("Parameter<float, Shape<16, 64>, Stored<data, At>> w;"), "`Split` has the dimension"),
    (beside("Parameter<float, Shape<16, 64>, Stored<At<0>>> w;"), "`Stored` names an axis first"),
    (beside("using Batch = Tensor<float, Shape<32, 16>, On<At<0>, data>>;"), "`On` names the axis first"),
    (of_model("to<On<At<0>, data>>(x) - y"), "`On` names the axis first"),
    (beside("struct Deep { Scan<Block, 4> scan; };"), "says how many steps, then the cell"),
    (beside("struct Deep { Scan<Block> scan; };"), "says how many steps, then the cell"),
    (beside("struct Deep { Scan<4> scan; };"), "says how many steps, then the cell"),
    (beside("struct Deep { Scan scan; };"), "says how many steps, then the cell"),
    (of_model("Scan(Block{}, x, y).last - y"), "says how many steps, then the cell"),
    (beside("using More = Training<Model, Adam{1e-3}, X, X>;"), "the optimizer is a type"),
    (beside("using More = Training<Model, SGD, X, X>;"), "optimizers are"),
    (beside("using More = Training<Model, Averaged<AdamW>, X, X>;"), "its header is not included"),
    (beside("using More = Training<Model, Stale<1, AdamW>, X, X>;"), "its header is not included"),
    (of_model("x + zeros<float, Shape<32 / data, 16>>() - y"), "begin a Parameter; a tensor"),
    (of_model("mean(x, {1, 2}) - y"), "stand in `<>`"),
    (of_model("x.to<On<data, Invariant>>() - y"), "operations are functions, not members"),
    (of_model("x.mean<1>() - y"), "operations are functions, not members"),
    (of_model("to<On<data, Replicate>>(x) - y"), "placements are"),
    (of_model("to<On<data, Shard<0>>>(x) - y"), "placements are"),
    (beside("Parameter<float, Shape<16, 64>, On<tensor, Sharded>> w;"), "placements are"),
    ("#define update(x, y) ((x) -= (y))\n#include <parallel/model/averaged.hpp>\n" + beside(PLAN), "a macro of yours"),
    ("#define update(x) ((x) *= 2)\n#include <parallel/model/averaged.hpp>\n" + of_model("cubed(x)"), "a macro of yours"),
    ("#define exponential 2\n#include <parallel/model/averaged.hpp>\n" + beside(PLAN), "a macro of yours"),
    (beside("void f() {\n  struct Inner { constexpr auto operator()(Distributed auto x) const { return mean(x); } };\n"
            "  static_cast<void>(derive<Training<Inner, AdamW, X>>(Mesh{data = 2}));\n}"), "a struct within a function can have no templates"),
    (beside("void f() {\n  struct Inner { template <class T> constexpr auto operator()(const T& x) const { return mean(x); } };\n"
            "  static_cast<void>(derive<Training<Inner, AdamW, X>>(Mesh{data = 2}));\n}"), "a struct within a function can have no templates"),
    (beside("template <class T> struct Network { Parameter<T, Shape<16>> w; };\nusing More = Training<Network, AdamW, X, X>;\nconstexpr auto& p = plan<More, Mesh{data = 2}>;"),
     "a model is a type"),
    (of_model("x - detach(y)"), "nothing keeps a gradient back"),
    (of_model("x - stop_gradient(y)"), "nothing keeps a gradient back"),
    (of_model("x - y.detach()"), "nothing keeps a gradient back"),
    (beside("void f() { Eager<Threads, Cpu> eager(1); }"), "its header is not included"),
    (beside("void f() { Eager eager(1); }"), "its header is not included"),
    (beside("void f() { Eagerly<Step, Threads, Cpu> eager(1); }"), "its header is not included"),
]

RUN = """constexpr auto train = plan<Step, Mesh{data = 2}>;
using Predict = Evaluation<Model, X, X>;
template <class World>
void with(World& world) { static_cast<void>(world); }
void run(Threads& world, const OwnedPlan& made, Parameters& parameters, Trainer<Threads, Cpu>& step, Executor<Threads, Cpu>& predict,
         Checkpoints<Threads>& checkpoints, const std::vector<float>& x, const CosineSchedule& rate) {
  static_cast<void>(world), static_cast<void>(made), static_cast<void>(parameters), static_cast<void>(step), static_cast<void>(predict);
  static_cast<void>(checkpoints), static_cast<void>(x), static_cast<void>(rate);
"""


def running(statement):
    """What a rank does, with all that a run has."""
    return USING + MODEL + RUN.replace("constexpr auto train", "constexpr auto& train") + "  " + statement + "\n}\n"


OWN = """namespace own {
constexpr Operation cap{.name = "cap", .shape = operation::same_shape};
template <class T>
void cap_kernel(const Call& call) { static_cast<void>(call); }
template <class T>
void other_kernel(const T* x, T* y, int n) { static_cast<void>(x), static_cast<void>(y), static_cast<void>(n); }
}  // namespace own
"""
HEADERS = ["parallel/parallel.hpp", "parallel/communicator/threads.hpp", "parallel/device/cpu.hpp", "parallel/run/trainer.hpp", "parallel/run/checkpoint.hpp",
           "parallel/run/learning_rate.hpp", "parallel/data/rows.hpp", "parallel/file/csv.hpp", "parallel/file/npy.hpp",
           "parallel/file/tokenizer.hpp", "parallel/file/write_safetensors.hpp", "parallel/run/run_log.hpp", "parallel/run/watching.hpp"]
RUNNING = ["-DPARALLEL_LIBRARY", "-isystem", "/usr/include/eigen3"]
RUNS = [  # the same, with the headers of a run
    (running("for (const auto& [name, numbers] : parameters) static_cast<void>(name);"), "their names are `parameters.names(plan)`"),
    ("#include <parallel/run/eager.hpp>\n" + beside("auto f(Eager<Threads, Cpu>& eager, const std::vector<float>& numbers) { return eager.tensor(numbers, {4, 2}); }"),
     "is told its elements' type and its Shape"),
    (running("step.fit(x, y);"), "a training takes a step"),
    (beside("auto f(const Tokenizer& tokenizer) { return tokenizer(\"a word\"); }"), "the tokens of a text are"),
    (beside("auto f() { return read_csv<float>(\"people.csv\")[\"height\"]; }"), "columns are asked for when the file is read"),
    ("#include <mpi.h>\n" + beside(""), "what runs over MPI is compiled by"),
    (running("const auto read = read_npy<float>(\"x.npy\"); static_cast<void>(read);"), "a file says itself of what type"),
    (running("write_safetensors(\"x.safetensors\", {{\"w\", x}});"), "entries, of names, element types and shapes"),
    ("#include <parallel/model/gpt2.hpp>\n#include <parallel/run/published_weights.hpp>\n" + beside("inline constexpr models::Gpt2Sizes sizes{};\nauto f() { return hugging_face_gpt2(sizes); }"), "how many tokens the file's vocabulary has"),
    (running("const float first = predict(x).output<float>(\"result\")[0]; static_cast<void>(first);"), "the numbers of an output are read by their type"),
    (running("step.watch(\"bias\");"), "what is looked at is said before the ranks begin"),
    ("#include <parallel/run/eager.hpp>\n" + beside("double f(Eager<Threads, Cpu>& eager) { const double l = eager.whole(eager.tensor<float, Shape<1>>({1})); return l; }"),
     "`whole` gives all the numbers of a tensor"),
    ("#include <parallel/run/load_weights.hpp>\n" + beside("WeightTable table{.rows = {{\"up\", \"fc.weight\", \"in out -> out in\"}}};"), "the names of a row are a list"),
    (USING + OWN + "constexpr auto capped(Distributed auto x, double c, Here here = {}) { return Apply<own::cap>(here, x, c); }\n"
     + MODEL.replace("x + bias - y", "capped(x, 2.0) - y") + PLAN, "stand in braces before the call"),
    (running("static_cast<void>(step.executor().member(\"bias\"));"), "a member is meant by its number"),
    (running("const std::vector<float> v = read_npy(\"x.npy\").as<float>(); static_cast<void>(v);"), "a view of a file lies in the file"),
    (running("watch([](const WatchedTensor&) {}, \"blocks.*.up\");"), "not a text"),
    ("#include <parallel/run/eager.hpp>\n" + beside("auto f(Eager<Threads, Cpu>& eager, const std::vector<float>& g) { return eager.text(g); }"), "`eager.text` prints a tensor"),
    (beside("bool f(const std::vector<float>& g) { return g > 0; }"), "is a vector of numbers: `eager.whole(x)[0]`"),
    (running("const int from = Checkpoints(world, \"folder\").resume(step); static_cast<void>(from);"), "what a resume gives"),
    (running("std::vector<float> v = predict.output(\"result\"); static_cast<void>(v);"), "an output is looked at"),
    (running("const auto [loss, norm] = step(x, x); static_cast<void>(norm); static_cast<void>(loss);"), "a step gives a struct"),
    (running("static_cast<void>(step(x, x) < 0.1);"), "a step gives its loss among others"),
    (running("world.all_reduce(x);"), "what ranks exchange a program derives"),
    (running("static_cast<void>(world.rank == 0);"), "what is asked is called"),
    (beside("void f(Trainer<Threads, Cpu>& step) { auto other = step; }"), "stays where it is made"),
    (running("static constexpr CpuKernels mine[]{{&operation::matmul, nullptr, nullptr}}; Executor<Threads, Cpu> own(made, world, parameters, mine);"), "a table of kernels is given within the device"),
    (running("static constexpr CpuKernels mine[]{{&operation::matmul, nullptr, nullptr}}; Trainer<Threads, Cpu> own(made, world, parameters, {.beta1 = 0.8}, 1, mine);"),
     "a table of kernels is given within the device"),
    (running("const Mesh mesh({2, 2}, {\"data\", \"tensor\"}); static_cast<void>(mesh);"), "a mesh has axes, each with its ranks"),
    (running("const Sgd::Hyperparameters how{.learning_rate = 0.5, .momentum = 0.9}; static_cast<void>(how);"), "the optimizer has no number of this name"),
    (running("const CosineSchedule other{.eta_min = 1e-3}; static_cast<void>(other);"), "a schedule has its numbers in the order"),
    (running("const double loss = step(x, x).loss; loss.backward();"), "a loss is a number here"),
    (running("rate.step();"), "a schedule is asked"),
    (running("static_cast<void>(predict.loss());"), "what a program returns is an output"),
    (running("static_cast<void>(made.forward);"), "a plan of start-up is pointed to"),
    (running("static_cast<void>(train.forward.all_reduces(data));"), "a phase is asked by"),
    (running("run_threads(2, with);"), "a template is no function yet"),
    (running("const double all = predict(x, x); static_cast<void>(all);"), "a run gives the executor"),
    (running("step({x, x});"), "inputs are arguments, one behind the other"),
    (running("const std::vector<float> bias = parameters[\"bias\"];"), "a parameter is read into memory of yours"),
    (running("const std::vector<float> bias = parameters.get(made, world.rank(), \"bias\");"), "a parameter is read into memory of yours"),
    (running("const auto table = read_csv<float>(\"x.csv\", std::vector<std::string>{\"a\"});"), "is said in options"),
    (running("const auto rows = rows_of(made, world.rank());"), "rows are of an input"),
    (running("static_cast<void>(FileDType::float32);"), "element types of files"),
    (running("write_npy(\"x.npy\", x);"), "the shape stands between"),
    (USING + OWN + "constexpr auto capped(Distributed auto x, double c, Here here = {}) { return Apply<own::cap, c>{}(here, x); }\n"
     + MODEL.replace("x + bias - y", "capped(x, 2.0) - y") + PLAN, "whole numbers of an operation stand in `<>`"),
    (USING + OWN + "namespace own { template <Distributed X> constexpr auto capped(const X& x, Here here = {}) { return Apply<capped>{}(here, x); } }\n"
     + MODEL.replace("x + bias - y", "own::capped(x) - y") + PLAN, "what is applied is the operation"),
    (USING + OWN + "constexpr auto capped(Distributed auto x, Here here = {}) { gelu(x, here); }\n"
     + MODEL.replace("x + bias - y", "capped(x) - y") + PLAN, "a function of yours gives nothing"),
    (USING + OWN + "constexpr void cap_gradient(const Gradient& g) { g.give(0, own::cap, {g.operand(0)}); }\n", "which changes what it is given"),
    (USING + OWN + "constexpr void cap_gradient(const Gradient&) {}\nconstexpr Operation capped{.name = \"capped\", .gradient = cap_gradient};\n", "which changes what it is given"),
    (USING + OWN + "constexpr Type cap_shape(const Arguments& a) { return a.types[0]; }\nconstexpr Operation capped{.name = \"capped\", .shape = cap_shape};\n", "a `.shape` gives a Shaped"),
    (USING + OWN.replace("constexpr", "inline const").replace("same_shape", "same_shape, .signatures = operation::nonlinear_table, .element_by_element = 1") + "constexpr auto capped(Distributed auto x, Here here = {}) { return Apply<own::cap>{}(here, x); }\n"
     + MODEL.replace("x + bias - y", "capped(x) - y") + PLAN.replace("Step", "Evaluation<Model, X, X>"), "types have constants"),
    (running("step.step(rate(3));"), "a schedule is asked by its name"),
    (running("step.step(WarmedUp{3, rate}(3));"), "a schedule is asked by its name"),
    (running("checkpoints.save(step);"), "a checkpoint is of what trains"),
    (running("checkpoints.save(step, 1, {{\"data\", 3}});"), "a checkpoint is of what trains"),
    (running("Checkpoints<Threads> other; other.save(step, 1);"), "checkpoints are made of the communicator"),
    (running("RunLog log(\"runs/x\", made);"), "a log is made of the communicator"),
    (running("RunLog log(world, \"runs/x\", made); log.step(0, 0.5);"), "a log takes what a step gives"),
    (running("watch(\"bias\", [](const std::string& line) { std::puts(line.c_str()); });"), "what is called for a watched tensor"),
    (running("step.executor().scalar(\"learning_rate\", \"1e-3\");"), "a number is set by a number"),
    (running("const FileView<float> numbers = read_npy(\"x.npy\");"), "a file's elements are read by their type"),
    (running("const Tokenizer words(\"x.json\"); const std::vector<std::uint16_t> ids = words.encode(\"x\");"), "`encode` gives ints"),
    (USING + OWN + "constexpr CpuKernels own_kernels[]{{own::cap, own::cap_kernel<float>, own::cap_kernel<double>}};\n", "has the operation's address"),
    (USING + OWN + "constexpr CpuKernels own_kernels[]{{&own::cap, own::other_kernel<float>, own::other_kernel<double>}};\n", "a kernel is `template"),
]

TAKEN_BY_CLANG = ["stand in the order of the struct"]  # with a warning


def explain(root, said):
    done = subprocess.run([root / "tools/explain"], input=said, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def rows(root):
    document = (root / "docs/errors.md").read_text("utf-8")
    table = document[document.index("### What only the compiler says") :].split("\n\n")[1]
    return [line.strip().strip("|").rsplit(" | ", 1)[1].strip() for line in table.splitlines()[2:]]


def main(root, compilers):
    compilers = [c for c in compilers if shutil.which(c)]
    if not compilers:
        print("no compiler")
        return 1
    faults = [f"docs/errors.md: no mistake shows the row: {row}" for row in rows(root) if not any(words in row for _, words in CASES + RUNS)]
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(root / "include", folder / "include")
        flags = dict(zip(compilers, pool.map(lambda c: precompiled(c, folder / "include", folder), compilers)))
        of_runs = dict(zip(compilers, pool.map(lambda c: precompiled(c, folder / "include", folder / "runs", HEADERS, RUNNING), compilers)))

        def explained(compiler, name, program, flags=flags):
            source = folder / f"{name}-{compiler}.cpp"
            source.write_text("#include <array>\n#include <cmath>\n#include <vector>\n" + program)
            status, output = compile(compiler, *flags[compiler], source)
            if status == 0:
                return source, "it is accepted", output
            code, said = explain(root, output)
            return source, said if code == 1 else f"{said}exit code {code}", output

        def judge(job):
            compiler, (number, (program, words)), flags = job
            source, said, output = explained(compiler, number, program, flags)
            first = next((line for line in output.splitlines() if "error:" in line), "")
            if said == "it is accepted" and "clang" in compiler and words in TAKEN_BY_CLANG:
                return None
            if words not in said or said.count("\n") != 2 or not said.startswith(str(source)):
                return f"{compiler}, '{words}': {first[:200]}\n  explained as: {said[:400]}"
            return None

        faults += [f for f in pool.map(judge, [(c, case, flags) for c in compilers for case in enumerate(CASES)]) if f]
        faults += [f for f in pool.map(judge, [(c, case, of_runs) for c in compilers for case in enumerate(RUNS, len(CASES))]) if f]
        for compiler in compilers:  # what the library refuses, and what is no mistake
            source, said, _ = explained(compiler, "refused", USING + MODEL.replace("Shape<16>> bias", "Shape<17>> bias") + PLAN)
            wanted = rf"{re.escape(str(source))}:\d+: parallel: the shapes do not broadcast; .*\n    shapes_differ: left_extent<16>, right_extent<17>; docs/errors/shapes_differ.md\n"
            if not re.fullmatch(wanted, said):
                faults.append(f"{compiler}: of a refusal it says: {said}")
            saved = folder / "saved.log"
            saved.write_text(explained(compiler, "refused", USING + MODEL.replace("Shape<16>> bias", "Shape<17>> bias") + PLAN)[2])
            of_file = subprocess.run([root / "tools/explain", saved], stdout=subprocess.PIPE, text=True)
            if of_file.stdout != said or of_file.returncode != 1:
                faults.append(f"{compiler}: of a file it says: {of_file.stdout}, exit code {of_file.returncode}")
            source, said, _ = explained(compiler, "axis", USING + MODEL.replace("Tensor<float, Shape<32 / data, 16>>", "Tensor<float, Shape<32 / data, 16>>;\nusing Y = Tensor<float, Shape<32, 16 / data>>")
                                        .replace("AdamW, X, X", "AdamW, X, Y") + PLAN)
            if not re.fullmatch(rf"{re.escape(str(source))}:\d+: parallel: .*\n    disagree: axis<data>, .*; docs/errors/disagree.md\n", said):
                faults.append(f"{compiler}: of a refusal on an axis it says: {said}")
            _, said, _ = explained(compiler, "unknown", "int f() { return \"nothing\"; }\n")
            if "of which docs/errors.md has no row" not in said:
                faults.append(f"{compiler}: of an error without a row it says: {said}")
            macros = folder / f"macros-{compiler}.cpp"  # before any header of the library, from whichever it begins
            for header in ["parallel/parallel.hpp", "parallel/communicator/threads.hpp", "parallel/run/trainer.hpp", "parallel/file/npy.hpp", "parallel/file/csv.hpp"]:
                for defined, words in [("V 3\n#define N 4", "called by one capital letter"), ("batch 32\n#define hidden 64", "called as names in the headers are")]:
                    macros.write_text(f"#define {defined}\n#include <{header}>\n")
                    said = compile(compiler, "-fsyntax-only", f"-I{folder / 'include'}", "-isystem", "/usr/include/eigen3", macros)[1]
                    if said.count(" error: ") != 1 or f"parallel: a macro is {words}" not in explain(root, said)[1]:
                        faults.append(f"{compiler}: of macros before {header} it says: {said[:400]}")
            accepted = folder / "accepted.cpp"
            accepted.write_text(USING + MODEL + PLAN)
            done = subprocess.run([root / "tools/explain", compiler, "-std=c++20", *map(str, flags[compiler]), str(accepted)], stdout=subprocess.PIPE, text=True)
            if done.returncode != 0 or done.stdout:
                faults.append(f"{compiler}: of a program without a mistake it says: {done.stdout}, exit code {done.returncode}")
    # of two files each has its own; colours and blanks in names are no matter; what is no error goes through
    said = explain(root, "\x1b[01;31mmy model.cpp:3:4:\x1b[0m \x1b[01;31merror: \x1b[0m'uniform' was not declared in this scope\n"
                         "other.cpp:7:1: error: static assertion failed: parallel: the batch differs\n")
    row = next(row for row in rows(root) if "which is uniform" in row)
    if said != (1, f"my model.cpp:3: 'uniform' was not declared in this scope\n    {row}\nother.cpp:7: parallel: the batch differs\n"):
        faults.append(f"of two files it says: {said}")
    said = explain(root, "a.cpp:3:4: error: no matching function for call to 'run_threads(int, <unresolved overloaded function type>)'\n")[1]
    if "`run_threads(4, [&](Threads& world) { train(world); })`" not in said:
        faults.append(f"of code in a row it says: {said}")
    for other in ["expected ',' or ';' before 'return'\n    3 | int n = 3  // see @todo", "'struct Data' has no member named 'train'\n    3 | data.train = 1;",
                  "'struct Data' has no member named 'watch'\n    3 | data.watch();",
                  "cannot convert 'std::vector<float>' to 'double' in initialization\n    3 | double m = losses;", "no matching function for call to 'f(std::vector<int>)'\n    3 | f(std::vector<int>{});", "expression is not assignable\n f() = 3;",
                  "expected expression\n  F\nv.cpp:1:9: note: expanded from macro 'F'",
                  "'keep' is not a member of 'Foo'", "no matching function for call to 'max(int, double)'\n    3 | max(1, 2.0);\n/usr/include/c++/12/bits/stl_algobase.h:254:5: note: candidate: 'const T& std::max(const T&, const T&)'",
                  "no match for call to '(const Tokenizer) (int)'",
                  "'struct Node' has no member named 'backward'\n    3 | node.backward();", "no member named 'predict' in 'Model'", "'class std::vector<int>' has no member named 'fit'",
                  "no matching member function for call to 'replace'\n    text.replace(1);\n/usr/include/c++/12/bits/basic_string.h:1: note: candidate",
                  "invalid type argument of unary '*' (have 'int')\n    1 | int main(int argc, char** argv) { return *argc; }",
                  "no matching function for call to 'exchange(int&)'\n    3 | std::exchange(n)", "operands to '?:' have different types 'int' and 'const char*'"]:
        if "has no row" not in explain(root, f"v.cpp:3:1: error: {other}\n")[1]:
            faults.append(f"of '{other}', which is not about the library, it says: {explain(root, f'v.cpp:3:1: error: {other}')}")
    said = explain(root, "/x/include/parallel/a.hpp:1:1: error: static_assert failed \"parallel: the batch differs\"\n/x/include/parallel/b.hpp:2:2: note: in instantiation of function template specialization 'f' requested here\n"
                         "model.cpp:14:20: note: (skipping 7 contexts in backtrace; use -ftemplate-backtrace-limit=0 to see all)\nmodel.cpp:18:21: note: in instantiation of variable template specialization 'p' requested here\n")[1]
    if not said.startswith("model.cpp:14: parallel: the batch differs"):
        faults.append(f"of contexts that clang skips, which end in the model's line, it says: {said}")
    said = explain(root, "v.cpp:3:1: error: no matching function for call to 'as_matrix(parallel::internals::View)'\n")[1]
    if "`as_matrix<float>(view)`, as docs/quick-start.md has it" not in said:
        faults.append(f"of a public name without a row it says: {said}")
    for name, others in [("log", "RunLog"), ("exchange", "l.exchange"), ("Training", "i32["), ("data", "data()")]:
        if others in (said := explain(root, f"v.cpp:3:1: error: no matching function for call to '{name}(parallel::internals::View)'\n")[1]):
            faults.append(f"of {name}, which is written otherwise, it says: {said}")
    for words in ["'sqrt' was not declared in this scope", "'text' was not declared in this scope", "'data' was not declared in this scope"]:
        if "#include" in (said := explain(root, f"v.cpp:3:1: error: {words}\n")[1]):
            faults.append(f"of '{words}', which no header of the library mends, it says: {said}")
    said = explain(root, "v.cpp:3:1: error: 'Checkpoints' was not declared in this scope\n")[1]
    if "`Checkpoints` stands in `#include <parallel/run/checkpoint.hpp>`" not in said:
        faults.append(f"of a public name without its header it says: {said}")
    said = explain(root, "error: templates cannot be declared inside of a local class\n")[1]  # clang says no place, and here nothing follows
    if not said.startswith("the program:?: ") or "put the model outside of the function" not in said:
        faults.append(f"of an error without a place it says: {said}")
    said = explain(root, "".join(f"/x/include/parallel/{name}.hpp:1:1: error: expected expression\n" for name in "ab"))[1]
    if said.count("has no row") != 2:
        faults.append(f"of errors that no line of a program leads to it says: {said}")
    linker = "ld: undefined reference to `main'\ncollect2: error: ld returned 1 exit status\n"
    if explain(root, linker) != (0, linker):
        faults.append(f"of a linker's error it says: {explain(root, linker)}")
    done = subprocess.run([root / "tools/explain", "/no/such/command"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 2 or "cannot be run" not in done.stderr:
        faults.append(f"a command that is not there: {done.stderr}, exit code {done.returncode}")
    done = subprocess.run([root / "tools/explain", root / "examples/mlp.cpp"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 2 or done.stdout or "is a program, which a compiler has to read first" not in done.stderr:
        faults.append(f"of a program it says: {done.stdout[:100]}{done.stderr}, exit code {done.returncode}")
    for fault in faults:
        print(fault)
    print(f"{len(CASES) + len(RUNS)} mistakes, {' '.join(compilers)}: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
