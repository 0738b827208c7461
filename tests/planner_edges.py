#!/usr/bin/env python3
"""What users do with tools/plan beyond its examples: other compilers, parts of names, locks of several programs, records that are not whole, and
files that carry nothing. Each answer is the right one, or one sentence.

    planner_edges.py ROOT PLANNER COMPILER EXAMPLES       as planner.py
"""
import os
import re
import shutil
import subprocess
import sys

from planner import Test

# Two programs that plan for one mesh, one of which has the other's name as a part of its own, in a namespace without a name; on an axis of their own.
SOURCE = """#include <parallel/parallel.hpp>
using namespace parallel;
inline constexpr Axis ranks{"ranks"};
namespace {
struct Mean {
  Parameter<float, Shape<16, 32>> up;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, up))); }
};
struct MeanOfRows {
  Parameter<float, Shape<16, 32 / ranks>> up;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, up))); }
};
}
using Step = Training<Mean, AdamW, Tensor<float, Shape<8 / ranks, 16>>>;
constexpr auto& one = plan<Step, Mesh{ranks = 2}>;
constexpr auto& other = plan<Training<MeanOfRows, AdamW, Tensor<float, Shape<8, 16>>>, Mesh{ranks = 2}>;
"""
MEAN, ROWS = "[Training<{anonymous}::Mean, AdamW>(f32[8/ranks, 16]) on ", "[Training<{anonymous}::MeanOfRows, AdamW>(f32[8, 16]) on "

# Three programs that differ in the values of a template argument.
SIZES = """#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct Sizes { int in, out; };
template <Sizes s>
struct Net {
  Parameter<float, Shape<s.in, s.out / data>> w;
  constexpr auto operator()(Distributed auto x) const { return sum(matmul(x, w)); }
};
template <int out>
using Sum = Evaluation<Net<Sizes{8, out}>, Tensor<float, Shape<4, 8>>>;
constexpr auto& small = plan<Sum<8>, Mesh{data = 2}>;
constexpr auto& large = plan<Sum<64>, Mesh{data = 4}>;
constexpr auto& middle = plan<Sum<16>, Mesh{data = 2}>;
"""


class Edges(Test):
    def write(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file

    def expect(self, holds, words):
        if not holds:
            self.fault(words)

    def compilers(self):
        source = self.write("two.cpp", SOURCE)
        self.plan(source, compiler=f"env {self.compiler}", says=["Training<{anonymous}::Mean, AdamW>"])
        self.plan(source, compiler="no-such-compiler -x", code=69, says=["the compiler 'no-such-compiler' cannot be run: No such file"])
        self.plan(source, "--compiler", " ", code=2, says=["no compiler is named"])
        self.plan(self.write("wide.cpp", SOURCE + "using Wide = float __attribute__((vector_size(64)));\nvoid wide(Wide) {}\n"), never=["note:", "ABI"])
        eigen = self.write("eigen.cpp", SOURCE + "#include <Eigen/Core>\n")
        self.plan(eigen, says=["Training<"])
        self.plan(eigen, "--eigen", "nowhere", code=65, says=["there is no Eigen in 'nowhere'", "--eigen"])
        for compiler in filter(shutil.which, ["g++-12", "clang++-14"]):  # a lock passes from one to the other
            self.plan(source, "--compiler", compiler, "--check" if (self.folder / "two.plan").exists() else "--lock")

    def names(self):
        program = self.folder / "two.o"
        self.compile(self.folder / "two.cpp", program, "-c")
        self.plan(program, "--program", "Mean", says=["::Mean,"], never=["MeanOfRows"])  # a whole word goes before a part of one
        self.plan(program, "--program", "Training<{anonymous}::Mean,AdamW>", says=["::Mean,"], never=["MeanOfRows"])
        self.plan(program, "--program", "meanof", says=["MeanOfRows"], never=["::Mean,"])
        self.plan(program, "--program", "Step", code=2, says=["'Step'; names are types, not aliases", "Training<{anonymous}::Mean, AdamW>(f32[8/ranks, 16]); axes: ranks", "MeanOfRows"])
        self.plan(program, "--mesh", "data=2", code=78, says=["for example ranks=2 with"], never=["tensor"])
        whole = self.write("whole.cpp", SOURCE[: SOURCE.index("using Step")].replace(" / ranks", "") +
                           "auto none = derive<Training<Mean, AdamW, Tensor<float, Shape<8, 16>>>>(Mesh{});\n")
        self.plan(whole, says=["one rank"])
        self.plan(whole, "--mesh", "data=2", code=78, says=["the program names no axis"])

    def same_names(self):
        """Programs whose types differ in values alone have a number each: their locks are theirs, and each can be chosen."""
        source, lock = self.write("sizes.cpp", SIZES), self.folder / "sizes.plan"
        name = "Evaluation<Net<{...}>>(f32[4, 8])"
        self.plan(source, says=[f"\n{name} #2\n", f"{name} #3\n"], never=["#1", "#4"])
        whole = self.plan(source)
        self.plan(source, "--lock")
        titles = [line for line in lock.read_text().splitlines() if line.startswith("[")]
        self.plan(source, "--check")
        for compiler in filter(shutil.which, ["g++-12", "clang++-14"]):
            self.plan(source, "--compiler", compiler, "--check")
        for number in ("", " #2", " #3"):
            one = self.plan(source, "--program", name + number)
            self.expect(one.startswith(name + number + "\n") and one in whole, f"--program {name + number} chooses\n{one}")
        self.expect(len(set(titles)) == 3, f"the lock of three programs holds {titles}")

    def arguments(self):
        mlp = self.examples / "mlp"
        for arguments, says in [
            ((mlp, "--why"), "--why"),
            ((), "FILE"),
            (("",), "FILE is empty"),
            ((mlp, "--mesh", ""), "--mesh is empty"),
            ((mlp, "--machine", ""), "--machine is empty"),
            *[((mlp, f"{flag}="), f"{flag} lacks its value; tools/plan --help") for flag in ("--mesh", "--machine", "--stage", "--program", "--run", "--output", "--advise")],
            *[((mlp, "--stage", wrong), f"error: --stage: '{wrong}' is no stage; they are counted from 0; tools/plan --help") for wrong in ("-1", "1.5", "", "99999999999")],
            *[((mlp, flag), "has no stages on data=2, tensor=2: --schedule and --schedule-svg show") for flag in ("--schedule", "--schedule-svg")],
            ((mlp, "--lock", "--check"), "two answers"),
            ((mlp, "--check", "--json"), "--json and --check are two answers"),
            ((mlp, "--run", "x", "--html"), "--html and --run are two answers"),
            ((mlp, "--times"), "--times needs --run alone"),
            ((mlp, "--run", "x", "--schedule", "--times"), "--times needs --run alone"),
            ((mlp, "--lock", "-o", "x"), "--lock has no output"),
            ((mlp, "--json", "--lock-file", "x"), "--lock-file needs --lock or --check"),
        ]:
            self.plan(*arguments, code=2, says=[says])
        self.plan(mlp, "--machine", self.folder, code=78, says=["is a folder"], never=["JSON"])
        tools = self.folder / "tree/tools"  # the launcher and what it would have built, and a link to it
        (tools / "planner").mkdir(parents=True)
        (self.folder / "tree/include/parallel").mkdir(parents=True)
        built = self.folder / "tree/build/tools/tools/planner"
        built.parent.mkdir(parents=True)
        shutil.copy(self.root / "tools/plan", tools / "plan")
        shutil.copy(self.planner, built)
        os.utime(built)
        (self.folder / "link").symlink_to("tree/tools/plan")
        linked = subprocess.run([self.folder / "link", "--help"], capture_output=True, text=True)
        self.expect(linked.returncode == 0 and "--mesh" in linked.stdout, f"a link to tools/plan does not work: {linked.stderr[-300:]}")

    def locks(self):
        program, file = self.folder / "two.o", self.folder / "several.plan"
        titles = lambda: [line for line in file.read_text().splitlines() if line.startswith("[")]
        self.plan(program, "--lock", "--lock-file", file)
        self.expect(titles() == [ROWS + "ranks=2]", MEAN + "ranks=2]"] or titles() == [MEAN + "ranks=2]", ROWS + "ranks=2]"], f"the lock holds {titles()}")
        whole = file.read_text()
        file.write_text(whole.replace("flop ", "flop 1"))
        self.plan(program, "--check", "--lock-file", file, "--program", "Mean", code=76, says=[MEAN, "! computation"], never=["MeanOfRows"])
        self.plan(program, "--lock", "--lock-file", file, "--program", "Mean")
        self.plan(program, "--check", "--lock-file", file, "--program", "Mean")
        self.plan(program, "--check", "--lock-file", file, code=76, says=[ROWS], never=["::Mean,"])
        self.plan(program, "--lock", "--lock-file", file, "--program", "MeanOfRows")
        self.expect(file.read_text() == whole, "a lock written program by program is another than the whole one")
        self.plan(program, "--lock", "--lock-file", file, "--program", "Mean", "--mesh", "ranks=4")
        self.expect(titles()[2:] == [MEAN + "ranks=4]"], f"the lock holds {titles()}")
        self.plan(program, "--check", "--lock-file", file)  # the meshes are the lock's
        self.plan(program, "--check", "--lock-file", file, "--mesh", "ranks=4", code=76, says=[ROWS + "ranks=4]", "+ a plan that"], never=["ranks=2", "::Mean,"])
        file.write_text(whole.replace("ranks=2]", "columns=2]"))
        self.plan(program, "--check", "--lock-file", file, code=76, says=["ranks=2]\n+ a plan that", "columns=2]\n- a plan that"])
        derived = SOURCE[: SOURCE.index("constexpr auto& one")] + "auto none = derive<Step>(Mesh{ranks = 2});\n"  # plans for no mesh of its own
        before, after = self.write("before.cpp", derived), self.write("after.cpp", derived.replace("8 / ranks", "4 / ranks"))
        self.plan(before, "--lock", "--mesh", "ranks=2")
        self.plan(before, "--check")
        self.plan(after, "--check", "--lock-file", "before.plan", code=76, says=["(f32[8/ranks, 16]) on ranks=2]\n- a plan that the lock has"])
        file.write_text(whole.replace("parameter  up", "parameter  \x1b[31mup\u009b"))
        self.plan(program, "--check", "--lock-file", file, code=76, says=["?[31mup?"], never=["\x1b", "\u009b"])
        self.plan(program, "--why", "\x1b[31m", code=2, says=["?[31m"], never=["\x1b"])

    def records(self):
        for example, *more in [("matmul",), ("mlp",), ("classify",), ("gpt", "--steps", "1000")]:
            done = subprocess.run([self.examples / example, *more, "--record", "nowhere/record"], capture_output=True, text=True, timeout=30, cwd=self.folder)
            self.expect(done.returncode == 74 and re.fullmatch(rf"{example}: error: the record 'nowhere/record.\d' cannot be written: .*\n", done.stderr),
                        f"{example} --record nowhere/record ends with {done.returncode}: {done.stderr[-300:]}")
        program, record = self.examples / "classify", self.folder / "run"
        subprocess.run([program, "--record", record], check=True, stdout=subprocess.DEVNULL)
        self.plan(program, "--run", record, "-o", self.folder / "laid")  # the mesh is the record's, the output goes to the file
        self.expect("every call and byte of 4 ranks" in (self.folder / "laid").read_text(), "--run -o writes something else")
        self.plan(self.folder / "two.o", "--run", record, code=76, says=["no program has the axes of the record's mesh, data=2, tensor=2"])
        ranks = [self.folder / f"run.{rank}" for rank in range(4)]
        whole = [rank.read_text() for rank in ranks]
        ranks[0].write_text(whole[3])
        self.plan(program, "--run", record, code=76, says=["run.0' is of rank 3"])
        update = re.compile(r"^2 compute \d+ adamw .*\n", re.MULTILINE)
        self.expect(len(update.findall(whole[0])) > 2, "a step has no updates")
        skipped = [update.sub("", text) for text in whole]
        for kept, code, says in [
            (skipped, 0, "every call"),                                                           # a step that every rank skips, wholly
            (skipped[:3] + whole[3:], 76, "rank 3 skipped other steps"),
            ([update.sub("", text, count=1) for text in whole], 76, "rank 0, step 2"),            # the first update alone
            ([update.sub("", text, count=1) if rank == 1 else text for rank, text in enumerate(whole)], 76, "rank 1, step 2"),
            ([text.replace(update.findall(text)[-1], "") for text in whole], 76, "rank 0, step"),  # the last one
        ]:
            for rank, text in zip(ranks, kept):
                rank.write_text(text)
            self.plan(program, "--run", record, code=code, says=[says])
        for rank, text in zip(ranks, whole):
            rank.write_text(text.replace(" adamw ", " \x1b[31madamw ", 1))
        self.plan(program, "--run", record, code=76, says=["?[31madamw"], never=["\x1b"])

    def pipelines(self):
        """The picture of a run: from a record of each stage, by one clock or not; what is no such run is one sentence."""
        ladder, run, few = self.examples / "ladder", self.folder / "pipe", self.folder / "few"
        program = ladder / "3_pipeline"
        subprocess.run([program, "--record", run], check=True, stdout=subprocess.DEVNULL)
        drawn = self.plan(program, "--run", run, "--schedule", says=["8 micro-batches, were forward, backward and weights equally long\nbelow each stage step "])
        rows = re.findall(r"^(stage|  run) (\d)  ((?:\.\. |[FB]\d +)+)", drawn, re.MULTILINE)
        self.expect([row[:2] for row in rows] == [(who, str(k)) for k in range(4) for who in ("stage", "  run")], f"the picture of a run is\n{drawn}")
        self.expect(len(re.findall(r"^(planned  |run      )[\d.]+ \w+, bubble [\d.]+ %", drawn, re.MULTILINE)) == 2 and "bubble 27.3 %" in drawn, f"a run has other bubbles:\n{drawn}")
        self.plan(program, "--run", run, "--schedule", "--machine", "h100", says=["8 micro-batches on h100\nbelow", "of ranks 0, 1, 2, 3\n\n"], never=["clocks"])
        self.plan(program, "--mesh", "stage=65536", "--lock", "--lock-file", few, code=78, says=["does not divide"])
        kept = self.folder / "kept.plan"
        self.plan(program, "--lock", "--mesh", "stage=4", "--lock-file", kept)
        kept.write_text(kept.read_text().replace("[Accumulate<8,", "[Accumulate<9,"))
        self.plan(program, "--check", "--stage", 1, "--lock-file", kept, code=76, says=["a plan that the lock has and the source no more"])
        self.plan(program, "--run", run, "--schedule-svg", says=["<svg ", "planned and run", ">run 3</text>", "</svg>"])
        self.plan(program, "--run", run, "--schedule", "--json", code=2, says=["two answers"])
        self.plan(ladder / "2_inter_layer", "--run", run, "--schedule", code=76, says=["the run is not the plan"])
        self.plan(self.examples / "classify", "--run", run, "--schedule", code=76, says=["no program has the axes of the record's mesh, stage=4"])
        subprocess.run([self.examples / "mlp", "--record", few], check=True, stdout=subprocess.DEVNULL)
        self.plan(self.examples / "mlp", "--run", few, "--schedule", code=2, says=["has no stages on data=2, tensor=2"])
        later = re.sub(r"^(\d.* )([\d.]+) ([\d.]+)$", lambda line: f"{line[1]}{float(line[2]) + 1000} {float(line[3]) + 1000}", (self.folder / "pipe.1").read_text(), flags=re.MULTILINE)
        (self.folder / "pipe.1").write_text(later)
        self.plan(program, "--run", run, "--schedule", says=["of ranks 0, 1, 2, 3; their clocks differ, so their steps are drawn as if they had begun at once"])
        (self.folder / "pipe.2").unlink()
        self.plan(program, "--run", run, "--schedule", code=66, says=[f"there is no record of stage 2; one is enough of '{run}.2'"])
        subprocess.run([ladder / "7_hybrid", "--record", few], check=True, stdout=subprocess.DEVNULL)
        for rank in (1, 2, 3, 4, 6, 7):
            (self.folder / f"few.{rank}").unlink()
        self.plan(ladder / "7_hybrid", "--run", few, "--schedule", says=["of ranks 0, 5\n"])
        self.plan(ladder / "7_hybrid", "--run", few, code=66, says=["there is no record", "few.1"])

    def carrying_none(self):
        source, program = self.folder / "two.cpp", self.folder / "two.o"
        self.compile(source, self.folder / "lto.o", "-c", "-flto")
        self.plan(self.folder / "lto.o", code=65, says=["-flto"], never=["--gc-sections"])
        main = self.write("main.cpp", SOURCE + "int main() {}\n")
        self.compile(main, self.folder / "dropped", "-fdata-sections", "-Wl,--gc-sections")
        self.plan(self.folder / "dropped", code=65, says=["--gc-sections"], never=["-flto"])
        self.plan(self.write("two.cp", SOURCE), code=65, says=["it is a text", ".cpp"], never=["--gc-sections"])
        self.plan(self.write("none.cpp", "int x;\n"), code=65, says=["name plan<Program, Mesh{...}>"], never=["--gc-sections"])
        said = self.folder / "said.o"
        said.write_bytes(b"a text may say parallel:program and parallel:::mesh: as it likes, here and there" + program.read_bytes())
        self.plan(said, says=["Training<"])
        said.write_bytes(b"parallel:program is what this text says, and nothing else")
        self.plan(said, code=65, says=["carries no program"], never=["cannot be read"])


def main(*arguments):
    test = Edges(*arguments)
    for part in [test.compilers, test.names, test.arguments, test.locks, test.records, test.pipelines, test.same_names, test.carrying_none]:
        part()
    shutil.rmtree(test.folder)
    print("\n".join(test.faults) or "no faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
