#!/usr/bin/env python3
"""tools/plan --advise as a user has it: its rows are what tools/plan predicts of each mesh alone, and what cannot be answered is one sentence.

    planner_advise.py ROOT PLANNER COMPILER EXAMPLES       EXAMPLES: the folder of the built examples
"""
import json
import shutil
import sys

from planner import Test

UNPLACED = """#include <parallel/parallel.hpp>
using namespace parallel;
struct M { Parameter<float, Shape<4, 4>> w; constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, w))); } };
auto made = [] { return derive<Training<M, AdamW, Tensor<float, Shape<4, 4>>>>(Mesh{}); };
"""
STAGED = """#include "ROOT/tests/pipeline_models.hpp"
using namespace pipelines;
using Step = Accumulate<4, Training<Gpt<float>, AdamW, Tokens, Tokens, Tokens>>;
inline constexpr Schedule mine{"mine", 1, false, false, [](int, int, int m, int) { return schedules::in_turn(m, m); }};
auto made = [] { return derive<Step>(Mesh{stage = 2}); };
"""

# Layers that are stored whole and kept whole; its own plan is over its budget.
OVER = """#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct Block {
  Parameter<float, Shape<32, 64 / tensor>> up;
  Parameter<float, Shape<64 / tensor, 32>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
struct M {
  Layers<8, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Accumulate<2, Training<M, AdamW, Tensor<float, Shape<64 / data, 32>>>>;
constexpr auto& p = plan<Within<Step, PeakMemory<200'000>>, Mesh{data = 4}>;
static_assert(p.forward.collectives(all_gather(data)) == 0);
auto calls() { return p.calls(); }
"""
# Layers of attention that two stages share, three each; not with the first stage of ZeRO.
ATTENDED = """#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct Block {
  Parameter<float, Shape<32, 3, 2, 16>> qkv;
  Parameter<float, Shape<2, 16, 32>> projection;
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv);
    return x + matmul<2>(attention(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all)), projection);
  }
};
REFUSED
struct M {
  Layers<6 / stage, Block WORD> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
auto made = [] { return derive<Accumulate<2, Training<M, AdamW, Tensor<float, Shape<8 / data, 64, 32>>>>>(Mesh{}); };
"""
# Attention whose sequence is split, by a word.
AROUND = """#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct M {
  Parameter<float, Shape<64, 3, 4, 16>> qkv;
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv);
    return mean(square(attention<true, Context::WORD>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all))));
  }
};
auto made = [] { return derive<Training<M, Sgd, Tensor<float, Shape<2, 512 / sequence, 64>>>>(Mesh{}); };
"""
REFUSED = """#ifdef PARALLEL_TRIED
constexpr bool is(const char* a, const char* b) { return *a == *b && (*a == 0 || is(a + 1, b + 1)); }
template <bool> struct No;
template <> struct No<false> {};
No<is(PARALLEL_TRIED, "states data")> no;
#endif
"""
# as the tool is told, as one writes it, and both on the host too
STORED = {"": ("", ("parameters host", "AllStored<..., Stored<host>>")),
          "states data": ("AllStored<..., Stored<data, Zero::states>>", ("states host", "AllStored<..., Stored<data, Zero::states>, Stored<host, Zero::states>>")),
          "gradients data": ("AllStored<..., Stored<data, Zero::gradients>>", ("gradients host", "AllStored<..., Stored<data, Zero::gradients>, Stored<host, Zero::gradients>>")),
          "parameters data": ("AllStored<..., Stored<data>>", ("parameters host", "AllStored<..., Stored<data>, Stored<host>>"))}
# Compiles each source once with each set of annotations, and notes what it is asked for.
KEEPING = """#!/bin/sh
for word; do case "$word" in -DPARALLEL_TRIED=*) tried="$word";; *.cpp) source="$word";; esac; object="$word"; done
echo "$tried" >> "FOLDER/compiled"
kept="FOLDER/$(printf %s "$source $tried" | cksum | tr ' ' -).kept"
[ -e "$kept" ] || { COMPILER "$@" && cp "$object" "$kept"; } || exit 1
cp "$kept" "$object"
"""
# of layers, and whether what is stored is on the host too; the last but one is of no layers
LAYERS = {"": ("", False), "recompute": ("Layers<n, Block, Recompute<>>", False),
          "recompute collectives": ("Layers<n, Block, Recompute<Repeat::collectives>>", False),
          ";": ("", True), "recompute;keep on host": ("Layers<n, Block, Recompute<>, KeepOnHost>", True)}


def annotations(test):
    """With a budget the source is tried with annotations. What is best of each mesh is what it is when every set of them is compiled and every
    mesh planned by itself."""
    source = test.folder / "over.cpp"
    source.write_text(OVER)
    keeping, compiled = test.folder / "keeping", test.folder / "compiled"
    keeping.write_text(KEEPING.replace("FOLDER", str(test.folder)).replace("COMPILER", test.compiler))
    keeping.chmod(0o755)
    machine = ("--machine", "dgx-a100")
    alone = {}  # (mesh, annotations): seconds, bytes, FLOP
    for stored, (annotation, on_host) in STORED.items():
        for layers, (word, host) in LAYERS.items():
            words = ";".join(word for word in (stored, on_host[0] if host else "", layers) if word)
            with_ = " and ".join(word for word in (on_host[1] if host else annotation, word) if word)
            built = test.folder / "tried.o"
            test.compile(source, built, "-c", "-w", "-Dstatic_assert(...)=", f'-DPARALLEL_TRIED="{words}"')
            for mesh in ("tensor=4", "tensor=2,data=2", "data=4"):
                plan = json.loads(test.plan(built, *machine, "--mesh", mesh, "--json"))
                alone[mesh, with_] = plan["seconds"], plan["memory"]["peak"], plan["flops"]
    name = lambda row: ",".join(f"{axis}={size}" for axis, size in row["mesh"].items())
    peaks = sorted({memory for _, memory, _ in alone.values()})
    for memory in (peaks[-1], *peaks[len(peaks) // 4 :: len(peaks) // 4], peaks[0], peaks[0] - 1):
        compiled.unlink(missing_ok=True)
        advice = json.loads(test.plan(source, *machine, "--advise", 4, "--memory", memory, "--json", compiler=str(keeping)))
        words = compiled.read_text().splitlines()
        if len(words) != len(set(words)) or len(words) != 1 + len(advice["tried"]) or (memory == peaks[-1] and len(words) != len(STORED)):
            test.fault(f"with {memory} bytes it compiles {len(words)} times: {words}")
        best = {}
        for row in advice["candidates"]:
            seconds, peak, flops = alone[name(row), row["with"]]
            if (row["seconds"], row["memory"], row["fits"]) != (seconds, peak, peak <= memory):
                test.fault(f"{name(row)} with {row['with']}: the advice says {row['seconds']} s, {row['memory']} B, the plan {seconds} s, {peak} B")
            if abs(row["computed_more"] - (flops / alone[name(row), ""][2] - 1)) > 1e-12:
                test.fault(f"{name(row)} with {row['with']} computes {row['computed_more']} more, the plan {flops}")
            best.setdefault(name(row), row)
        expected = {}
        for (mesh, _), (seconds, peak, _) in alone.items():
            rank = (0, seconds) if peak <= memory else (1, peak)
            expected[mesh] = min(expected.get(mesh, rank), rank)
        found = {mesh: (0, row["seconds"]) if row["fits"] else (1, row["memory"]) for mesh, row in best.items()}
        if list(found.items()) != sorted(expected.items(), key=lambda item: item[1]):
            test.fault(f"with {memory} bytes the best are {found}, of all that there is {expected}")
        says = test.plan(source, *machine, "--advise", 4, "--memory", memory, says=[" computed ", " with "], never=["where the file is a source"], compiler=str(keeping))
        if ("Nothing that was tried fits in " in says) != (memory < peaks[0]):
            test.fault(f"with {memory} bytes, of which {peaks[0]} are needed, it says {says}")
    least = min((peak, mesh) for (mesh, _), (_, peak, _) in alone.items())
    test.plan(source, *machine, "--advise", 4, "--memory", 1, compiler=str(keeping), says=[f"{least[1].replace(',', ', ')} with AllStored<..., Stored<data>, Stored<host>> and Layers<n, Block, Recompute<>, KeepOnHost>"])
    # an object cannot be compiled with anything; a source without a budget is not, and its own budget holds
    test.plan(test.folder / "tried.o", *machine, "--advise", 4, "--memory", peaks[-1], says=["Annotations that need less memory are tried where the file is a source.\n"], never=[" computed "])
    test.plan(source, *machine, "--advise", 4, code=65, says=["a rank needs more memory than the budget"])
    # an annotation that a program refuses is said, and the others are tried
    refused = test.folder / "refused.cpp"
    refused.write_text(OVER.replace("struct M {", REFUSED + "struct M {"))
    test.plan(refused, *machine, "--advise", 4, "--memory", "3MB", says=["The program does not compile with AllStored<..., Stored<data, Zero::states>>.", "\n1  "])


def contexts(test):
    """The other ways in which attention finds keys are tried, each as it is where it stands in the source."""
    machine = ("--machine", "dgx-a100")
    words = ("gathered", "ring", "ulysses")
    for word in words:
        (test.folder / f"{word}.cpp").write_text(AROUND.replace("WORD", word))
    written = {word: json.loads(test.plan(test.folder / f"{word}.cpp", *machine, "--mesh", "sequence=4", "--json")) for word in words}
    if len({plan["memory"]["peak"] for plan in written.values()}) != 3 or len({plan["seconds"] for plan in written.values()}) != 3:
        test.fault("the three contexts cost the same")
    advice = json.loads(test.plan(test.folder / "gathered.cpp", *machine, "--advise", 4, "--memory", "80GB", "--json"))
    found = {row["with"]: (row["seconds"], row["memory"]) for row in advice["candidates"] if "Stored" not in row["with"]}
    expected = {f"Context::{word}": (plan["seconds"], plan["memory"]["peak"]) for word, plan in written.items()}
    expected[""] = expected["Context::gathered"]
    if found != expected:
        test.fault(f"the advice has {found}, the plans {expected}")
    # an order of positions is a part of the shape
    (test.folder / "zigzag.cpp").write_text(AROUND.replace("WORD", "ring").replace("512 / sequence", "512 / zigzag(sequence)"))
    plan = json.loads(test.plan(test.folder / "zigzag.cpp", "--mesh", "sequence=4", "--json"))
    shape = next(m["shape"] for m in plan["members"] if m["role"] == "input")
    if shape != [{"size": 2, "axes": []}, {"size": 512, "axes": ["sequence"], "order": {"how": "zigzag", "axis": "sequence"}}, {"size": 64, "axes": []}]:
        test.fault(f"an input in zigzag has the shape {shape}")


def remedies(test):
    """--why-memory says what a program refuses, and tries the others; a remedy is what the program is that has the word."""
    desk = test.folder / "desk.json"
    desk.write_text('{"name": "desk", "launch": 0, "overlaps": false, "rates": [{"ranks": 1, "products": {"f32": 9e10}, "memory_bandwidth": 2e10, "link": {"latency": 1e-6, "bandwidth": 1e10}}]}')
    source, written, plain = (test.folder / name for name in ("attended.cpp", "written.cpp", "plain.cpp"))
    source.write_text(ATTENDED.replace("REFUSED", REFUSED).replace("WORD", ""))
    written.write_text(ATTENDED.replace("REFUSED", "").replace("WORD", ", Recompute<&operation::attention>"))
    plain.write_text(ATTENDED.replace("REFUSED", "").replace("WORD", ""))
    mesh = ("--mesh", "data=2,stage=2")
    plans = {file: json.loads(test.plan(file, *mesh, "--json")) for file in (written, plain)}
    peak = plans[written]["memory"]["peak"]
    if peak >= plans[plain]["memory"]["peak"]:
        test.fault("attention made again lowers nothing")
    said = test.plan(source, *mesh, "--why-memory", "--machine", desk, "--memory", peak,
                     says=["The program does not compile with AllStored<..., Stored<data, Zero::states>>.\n",
                           "The program has no plan with Layers<n, Block, Recompute<2, Repeat::collectives>>: "])
    row = [line for line in said.splitlines() if "Recompute<&operation::attention>" in line]
    more = plans[written]["flops"] - plans[plain]["flops"]
    if len(row) != 1 or f"{more:+.3g} FLOP, {100 * more / plans[plain]['flops']:+.1f} %" not in row[0] or "does not fit" in row[0]:
        test.fault(f"of attention made again, {more} FLOP more, --why-memory says {said[-1200:]}")


def main(*arguments):
    test = Test(*arguments)
    annotations(test)
    contexts(test)
    remedies(test)
    gpt, program = test.examples / "gpt", ("--program", "Training")
    machine = ("--machine", "dgx-a100")
    advice = json.loads(test.plan(gpt, *program, *machine, "--advise", 4, "--json"))
    meshes = [row["mesh"] for row in advice["candidates"]]
    if sorted(map(str, meshes)) != sorted(map(str, [{"tensor": 4}, {"data": 4}, {"tensor": 2, "data": 2}])):
        test.fault(f"4 ranks of gpt are {meshes}")
    for row in advice["candidates"]:
        mesh = ",".join(f"{axis}={size}" for axis, size in row["mesh"].items())
        plan = json.loads(test.plan(gpt, *program, *machine, "--mesh", mesh, "--json"))
        sent = {axis: sum(phase["sent"] for total in plan["totals"].values() for phase in total if phase["axis"] == axis) for axis in row["mesh"]}
        if row["seconds"] != plan["seconds"] or row["memory"] != plan["memory"]["peak"] or row["sent"] != sent:
            test.fault(f"{mesh}: the advice says {row['seconds']} s, {row['memory']} B, {row['sent']}; the plan {plan['seconds']} s, {plan['memory']['peak']} B, {sent}")
    if [row["seconds"] for row in advice["candidates"]] != sorted(row["seconds"] for row in advice["candidates"]):
        test.fault("the meshes are not in the order of their steps")

    test.plan(gpt, *program, *machine, "--advise", 4, says=["4 ranks of dgx-a100\n", "\n1  ", " waits for all_reduce "], never=["schedule", "These are no meshes"])
    test.plan(gpt, *program, *machine, "--advise", 8, says=["These are no meshes of the program:\n", "data=8 does not divide dimension 0 (12)"])
    test.plan(gpt, *program, *machine, "--advise", 1, says=["1 rank of dgx-a100", "computes "])
    test.plan(gpt, *program, *machine, "--advise", 4, "--memory", "0.02GB", says=["each with 19.1 MiB", "\n1  ", "\n-  data=4 ", "does not fit in 19.1 MiB: "])
    test.plan(gpt, *machine, "--advise", 4, says=["Evaluation<Gpt>(", "Training<Gpt, AdamW>("])
    out = test.folder / "advice.txt"
    test.plan(gpt, *program, *machine, "--advise", 4, "-o", out)
    if " waits for " not in out.read_text():
        test.fault("-o wrote no advice")

    staged = test.folder / "staged.cpp"
    staged.write_text(STAGED.replace("ROOT", str(test.root)))
    built = test.folder / "staged.o"
    test.compile(staged, built, "-c")
    test.plan(built, *machine, "--advise", 8, says=["schedule", "Of each mesh with stages the fastest schedule; --json has all.", "interleaved", "bubble"])
    for row in json.loads(test.plan(built, *machine, "--advise", 4, "--json"))["candidates"]:
        if row.get("schedule", {"name": "one_forward_one_backward"})["name"] == "one_forward_one_backward":  # the program's own
            mesh = ",".join(f"{axis}={size}" for axis, size in row["mesh"].items())
            plan = json.loads(test.plan(built, *machine, "--mesh", mesh, "--json"))
            if abs(row["seconds"] / plan["seconds"] - 1) > 1e-9:  # one adds up micro-batches in another order
                test.fault(f"{mesh}: the advice says {row['seconds']} s, the plan {plan['seconds']} s")
    own = test.folder / "own.cpp"
    own.write_text(staged.read_text().replace("derive<Step>", "derive<Pipelined<mine, Step>>"))
    test.plan(own, *machine, "--advise", 4, code=65, says=["its schedule 'mine' is a function of its own"])

    unplaced = test.folder / "unplaced.cpp"
    unplaced.write_text(UNPLACED)
    for words, code, says in [
        ((unplaced, *machine, "--advise", 2), 78, ["names no axis"]),
        ((gpt, *program, *machine, "--advise", 7), 78, ["no mesh of 7 ranks is one of Training<Gpt, AdamW>", "valid extents of tensor: 1, 2, 4"]),
        ((gpt, *program, "--machine", "abacus", "--advise", 4), 78, ["there is no machine and no file 'abacus'", "dgx-a100"]),
        ((gpt, *program, "--advise", 4), 2, ["--advise needs prices; say --machine"]),
        ((gpt, "--program", "Nobody", *machine, "--advise", 4), 2, ["no program is called 'Nobody'"]),
        ((gpt, *machine, "--advise", 0), 2, ["--advise"]),
        ((gpt, *machine, "--advise", "many"), 2, ["--advise"]),
        ((gpt, *machine, "--advise", 4, "--mesh", "data=4"), 2, ["--advise tries every mesh; leave --mesh away"]),
        ((gpt, *machine, "--advise", 4, "--dot"), 2, ["two answers"]),
        ((gpt, *machine, "--mesh", "data=4", "--memory", "1GB"), 2, ["--memory needs --advise or --why-memory"]),
        *(((gpt, *machine, "--advise", 4, "--memory", memory), 2, [f"--memory {memory} is no number of bytes"]) for memory in ("3x", "GB", "-1", "0", "1e30", "4 GB", "nan")),
    ]:
        test.plan(*words, code=code, says=says)
    shutil.rmtree(test.folder)
    print("\n".join(test.faults) or "no faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
