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


def main(*arguments):
    test = Test(*arguments)
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
