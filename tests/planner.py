#!/usr/bin/env python3
"""tools/plan as a user has it: its plan is the compiler's, field by field, on every example; locks are up to date; a run is laid over its plan; what
users give by mistake is one sentence with its exit code, and no file's name reaches a shell.

    planner.py ROOT PLANNER COMPILER EXAMPLES       EXAMPLES: the folder of the built examples
    planner.py --lock ROOT PLANNER COMPILER EXAMPLES    writes the locks of examples/ anew
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What of an example is compiled (its model, no kernels, no run), and for which of its programs and meshes the compiler's plan is compared.
EXAMPLES = {
    "matmul": [("Inner<6>", "two")],
    "mlp": [("Step", "Mesh{data = 2, tensor = 2}"), ("Step", "Mesh{tensor = 4}")],
    "classify": [("Step", "Mesh{data = 2, tensor = 2}"), ("Scores, Mesh{data = 4}, Step", "")],
    "llama": [("Step", "Mesh{data = 2, tensor = 2}"), ("Next<1>", "Mesh{data = 2, tensor = 2}"), ("Next<known>, Mesh{tensor = 2}, Step", "")],
    "gpt": [("Step", "Mesh{data = 2, tensor = 2}"), ("Step", "Mesh{data = 4}"), ("Validate, Mesh{tensor = 4}, Step", "")],
}
MESHES = {name: ["--mesh", "data=2,tensor=2"] for name in ("classify", "llama")}  # of the locks, where an example does not plan for a mesh of its own
LADDER = {"1_one_rank": "", "2_inter_layer": "stage=4", "3_pipeline": "stage=4", "4_data": "data=4", "5_tensor": "tensor=4", "6_sequence": "tensor=4",
          "7_hybrid": "stage=2,data=2,tensor=2", "8_zero": "data=4", "9_servers": "data=4",
          "10_context": "sequence=4", "11_two_dimensions": "row=2,column=2", "12_three_dimensions": "row=2,column=2,depth=2",
          "13_stale": "data=4"}
MESHES |= {f"ladder/{name}": ["--mesh", mesh] if mesh else [] for name, mesh in LADDER.items()}
ENDS = ["struct Options", "/// Runs a product", "/// Trains on a mesh", "int main("]


def model(source):
    """The annotated model of an example without what runs it."""
    text = source.read_text()
    end = min(text.index(mark) for mark in ENDS if mark in text)
    models = [line for line in text.splitlines(keepends=True) if line.startswith("#include <parallel/model/")]
    return "#include <parallel/parallel.hpp>\n" + "".join(models) + text[text.index("using namespace parallel;") : end]


class Test:
    def __init__(self, root, planner, compiler, examples):
        self.root, self.planner, self.compiler, self.examples = Path(root).resolve(), Path(planner).resolve(), compiler, Path(examples).resolve()
        self.folder = Path(tempfile.mkdtemp())
        self.faults = []

    def fault(self, words):
        self.faults.append(words)

    def plan(self, *arguments, code=0, says=(), never=(), compiler=None):
        """What it prints. A mistake is one line that begins with the tool's name."""
        done = subprocess.run([self.planner, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=600, cwd=self.folder,
                              env={**os.environ, "CXX": compiler or self.compiler})
        said = done.stdout + done.stderr
        wrong = [f"does not say {word!r}" for word in says if word not in said] + [f"says {word!r}" for word in never if word in said]
        if code != 0 and (done.stderr.count("tools/plan: error: ") != 1 or "plan: error: " in done.stderr.replace("tools/plan: error: ", "")):
            wrong.append("has not one error")
        if done.returncode != code or wrong:
            self.fault(f"tools/plan {' '.join(map(str, arguments))}\n  exit code {done.returncode}, expected {code}; {'; '.join(wrong)}; it said:\n{said[-1500:]}")
        return done.stdout

    def compile(self, source, target, *more):
        done = subprocess.run([self.compiler, "-std=c++20", "-O0", f"-I{self.root}/include", *map(str, more), str(source), "-o", str(target)], capture_output=True, text=True)
        if done.returncode != 0:
            self.fault(f"{source} does not compile:\n{done.stderr[:2000]}")

    def same(self, name):
        """The compiler's plans as JSON, printed by a program; the same from the tool, asked of the program's object."""
        names = [f"plan<{program}>" if not mesh else f"plan<{program}, {mesh}>" for program, mesh in EXAMPLES[name]]
        lines = "".join(f"  std::cout << planner::json({plan}, \"\").dump() << std::endl;\n" for plan in names)
        source, program = self.folder / f"{name}.cpp", self.folder / f"{name}_plans"
        source.write_text(model(self.root / f"examples/{name}.cpp") + f'#include "{self.root}/tools/planner/json.hpp"\n#include <iostream>\nint main() {{\n{lines}}}\n')
        self.compile(source, program)
        if self.faults:
            return
        compiled = [json.loads(line) for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()]
        for plan in compiled:
            mesh = ",".join(f"{axis['axis']}={axis['ranks']}" for axis in plan["mesh"])
            printed, decoder, found = self.plan(program, "--mesh", mesh, "--json"), json.JSONDecoder(), []
            while printed.strip():
                one, end = decoder.raw_decode(printed.lstrip())
                found += [{**plan, "program": ""} for plan in (one if isinstance(one, list) else [one])]
                printed = printed.lstrip()[end:]
            if plan not in found:
                self.fault(f"{name} on {mesh}: tools/plan prints another plan than the compiler derived")

    def lock(self, name, write=False):
        """The lock beside an example is the plan that the built example carries."""
        file = self.root / f"examples/{name}.plan"
        self.plan(self.examples / name, *(["--lock", *MESHES.get(name, [])] if write else ["--check"]), "--lock-file", file)
        if name == "mlp" and not write:  # what a review sees: `down` is no longer split, so the hidden layer is gathered
            changed = self.folder / "changed.cpp"
            text = "\n".join(line for line in model(self.root / "examples/mlp.cpp").splitlines() if not line.startswith("static_assert"))
            changed.write_text(text.replace("Shape<64 / tensor, 16>> down", "Shape<64, 16>> down"))
            self.plan(changed, "--check", "--lock-file", file, code=76,
                      says=["[Training<Regression, AdamW>", "+ forward  all_gather  tensor", "mlp.up", "changed.cpp:", "! parameter  mlp.down"])

    def runs(self):
        record = self.folder / "record"
        mlp = self.examples / "mlp"
        subprocess.run([mlp, "--record", record], check=True, stdout=subprocess.DEVNULL)
        self.plan(mlp, "--run", record, "--machine", "a100", says=["every call and byte of 4 ranks is the plan's", "all_reduce on data"])
        self.times(mlp, record)
        before = Path(f"{record}.1").read_bytes()
        self.plan(mlp, "--run", record, "--times", "-o", f"{record}.1", code=2, says=["record.1' is a record of the run, which is read"])
        if Path(f"{record}.1").read_bytes() != before:
            self.fault("a record was overwritten")
        desk = self.folder / "desk.json"
        of = {"products": {"f32": 1e11}, "attention": {"f32": 7e10}, "scores": {"f32": 8e8}, "functions": {"f32": 2e9}, "memory_bandwidth": 4e10, "cache_bytes": 8e6, "cache_bandwidth": 1e11}
        desk.write_text(json.dumps({"name": "desk", "launch": 1e-8, "overlaps": False, "write_allocates": True, "attention_block": 64, "rates": [{"ranks": 1, **of}, {"ranks": 2, **of, "link": {"latency": 1e-6, "bandwidth": 1e9}}]}))
        beyond = "desk is described with up to 2 busy ranks; 4 are priced at the rates of those"
        self.plan(mlp, "--machine", desk, says=[beyond])
        self.plan(mlp, "--machine", desk, "--mesh", "data=2,tensor=1", never=["described with"])
        of_threads = "desk is described with up to 1 busy rank of 2 threads; 2 are priced at the rates of those, as if each thread had a core"
        self.plan(mlp, "--machine", desk, "--mesh", "data=2,tensor=1", "--threads", "2", says=[of_threads])
        self.plan(mlp, "--machine", desk, "--mesh", "data=1,tensor=1", "--threads", "2", never=["described with"])
        self.plan(mlp, "--machine", desk, "--advise", "2", "--threads", "2", says=[of_threads])
        self.plan(mlp, "--machine", desk, "--advise", "4", says=[beyond])
        self.plan(mlp, "--machine", desk, "-o", desk, code=2, says=["desk.json' is the machine's file, which is read"])
        if "rates" not in desk.read_text():
            self.fault("the machine's file was overwritten")
        rank = self.folder / "record.1"
        whole = rank.read_text().splitlines(keepends=True)
        at = next(i for i, line in enumerate(whole) if " start " in line)
        *call, begin, end = whole[at].split()
        again, early = " ".join([*call, end, end]) + "\n", " ".join([*call, str(float(begin) - 100), end]) + "\n"
        for damage, code, says in [
            (whole[:at] + whole[at + 1 :], 76, ["rank 1, step 1", "but the plan says"]),
            (whole[: at + 1] + [again] + whole[at + 1 :], 76, ["rank 1, step 1"]),
            (whole[:at] + [early] + whole[at + 1 :], 65, [f"line {at + 1} begins before what stands above it has ended"]),
            (whole[:at] + [whole[at].replace(" 1024 ", " 1020 ")] + whole[at + 1 :], 76, ["of 1020 bytes", "of 1024 bytes", "mlp.down_bias"]),
            (whole[: at + 3], 76, ["the record ends before"]),
            ([line for line in whole if not line.startswith("3 ")], 76, ["rank 1, step 4", "the step behind step 2 is missing"]),
            ([line for line in whole if not line.startswith("1 ")], 76, ["rank 1, step 2", "the steps before it are missing"]),
            ([line for line in whole if not line.startswith("20 ")], 76, ["rank 1 recorded 19 steps, rank 0 20"]),
            ([], 65, ["record.1' is empty"]),
            (whole[:at] + ["1 start\n"], 65, ["line", "cut off"]),
            (["something\n"], 65, ["does not begin"]),
        ]:
            rank.write_text("".join(damage))
            self.plan(mlp, "--run", record, code=code, says=says)
        rank.unlink()
        self.plan(mlp, "--run", record, code=66, says=["record.1"])

    def times(self, program, record):
        """A run is recorded from outside, too; and of one whose events all take a millisecond each row is as many as it has events."""
        outside = self.folder / "outside"
        subprocess.run([program], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PARALLEL_RECORD": str(outside)})
        self.plan(program, "--run", outside, says=["every call and byte of 4 ranks is the plan's"])
        for rank in range(4):
            asked, own = ([line.rsplit(maxsplit=2)[0] for line in Path(f"{file}.{rank}").read_text().splitlines()[3:]] for file in (outside, record))
            if asked != own:
                self.fault(f"PARALLEL_RECORD records other events on rank {rank} than --record")
            head, *lines = Path(f"{outside}.{rank}").read_text().split(f"rank {rank}\n", 1)
            lines = [line.rsplit(maxsplit=2)[0] for line in lines[0].splitlines()]
            Path(f"{outside}.{rank}").write_text(head + f"rank {rank}\n" + "".join(f"{line} {i / 1000} {(i + 1) / 1000}\n" for i, line in enumerate(lines)))
        of_a_step = [line for line in lines if line.startswith("2 ") and " count " not in line]
        printed = self.plan(program, "--run", outside, "--times", says=["time ", "between operations", "a step of rank 0"], never=["slow", "floor"])
        printed = [line.strip() for line in printed.splitlines()]
        counted = printed.pop()
        if not counted.startswith("1 ms") or "counter of steps" not in counted:
            self.fault(f"no millisecond of the counter of steps: {counted}")
        rows = [line.split(maxsplit=3) for line in printed if " ms " in line]
        took = [float(row[0]) for row in rows[:-1]]
        calls = [float(row[2]) * (2 if " on data, " in row[3] or " on tensor, " in row[3] else 1) for row in rows[:-1]]
        if took != calls or sum(took) != len(of_a_step) or len(took) < 10:
            self.fault(f"rows of {took} ms for {calls} events of a step of {len(of_a_step)}")
        if float(rows[-1][0]) != len(of_a_step) or not all(line.startswith("0 s") for line in printed[-3:-1]):
            self.fault(f"a step of {len(of_a_step)} events of a millisecond is {printed[-3:]}")
        # half a millisecond behind every event, and in every third step each takes ten
        at, slow = 0.0, []
        for line in lines:
            took = 10 if int(line.split()[0]) % 3 == 0 else 1
            slow.append(f"{line} {at / 1000} {(at + took) / 1000}\n")
            at += took + 0.5
        Path(f"{outside}.0").write_text(head + "rank 0\n" + "".join(slow))
        printed = [line.strip() for line in self.plan(program, "--run", outside, "--times").splitlines()[:-1]]
        gaps = (len(of_a_step) - 1) / 2
        if not (printed[-3].startswith(f"{gaps:.3g} ms") and "between operations" in printed[-3] and printed[-2].startswith("0 s")):
            self.fault(f"{len(of_a_step)} events with half a millisecond between them: {printed[-3:]}")
        # each of two neighbours is slow in two of three steps, both in one: their medians add up to more than a step's
        at, uneven = 0.0, []
        for i, line in enumerate(lines):
            took = 1 if int(line.split()[0]) % 3 == i % 2 else 10
            uneven.append(f"{line} {at / 1000} {(at + took) / 1000}\n")
            at += took
        Path(f"{outside}.0").write_text(head + "rank 0\n" + "".join(uneven))
        printed = [line.strip() for line in self.plan(program, "--run", outside, "--times").splitlines()[:-1]]
        rows = [line.split(maxsplit=3) for line in printed if " ms " in line]
        if not (printed[-2].startswith("-") and "less: medians" in printed[-2]) or abs(sum(float(row[0]) for row in rows[:-1]) - float(rows[-1][0])) > 0.01 * float(rows[-1][0]):
            self.fault(f"rows of {[row[0] for row in rows]} ms do not add up to the step: {printed[-3:]}")
        Path(f"{outside}.0").write_text(head + "rank 0\n" + "".join(slow))
        self.plan(program, "--run", outside, "--times", "--machine", "a100", says=["floor", "slow: matmul", " where a100 needs ", "(mlp.cpp:"])

    def mistakes(self):
        program = self.folder / "mlp_plans"
        self.plan(code=2)
        self.plan(program, "--jsno", code=2, says=["--jsno", "did you mean --json?"])
        self.plan("no such file.cpp", code=66, says=["no such file.cpp"])
        self.plan(self.folder, code=66, says=["folder"])
        self.plan(program, "--mesh", "data=5", code=78, says=["does not divide", "valid extents of data: 1, 2, 4, 8, 16, 32"])
        self.plan(program, "--mesh", "dta=5", code=78, says=["there is no axis 'dta'", "tensor, data"])
        self.plan(program, "--mesh", "data=1000000000", code=78, says=["1000000000"])
        self.plan(program, "--mesh", "data=65536,tensor=65536", code=78, says=["more than"])
        self.plan(program, "--machine", "none such", code=78, says=["none such"])
        self.plan(program, "--machine", "a100", "--advise", 4, "--stage", 1, code=2, says=["--advise prices all stages; leave --stage away"])
        self.plan(program, "--machine", "a100", "--threads", "2", code=78, says=["no rates of a multiple of so many busy cores"])
        self.plan(program, "--threads", "2", code=2, says=["--threads changes prices alone", "--machine"])
        self.plan(program, "--machine", "a100", "--threads", "0", code=2, says=["--threads"])
        two = self.folder / "two.json"
        rates = ", ".join('{"ranks": %d, "products": {"f32": 1e9}, "memory_bandwidth": 1e12, "link": {"latency": 1e-6, "bandwidth": 1e10}}' % n for n in (1, 2))
        two.write_text('{"name": "two", "launch": 0, "overlaps": false, "rates": [%s]}' % rates)
        seconds = [json.loads(self.plan(program, "--json", "--program", "Training<Regression, AdamW>", "--mesh", "data=1,tensor=1", "--machine", two, "--threads", n))["seconds"] for n in (1, 2)]
        if not 1.9 < seconds[0] / seconds[1] <= 2:
            self.fault(f"--threads 2 prices {seconds[1]} s beside {seconds[0]} of one thread")
        self.plan(program, "--advise", "1", "--program", "Training<Regression, AdamW>", "--machine", two, "--threads", "2", says=["two"])
        self.plan(program, "--why", "mlp.dwon", "--mesh", "data=2", code=2, says=["mlp.dwon", "mlp.down"])
        self.plan(program, "--program", "Gpt", code=2, says=["Gpt", "Training<Regression, AdamW>"])
        self.plan(program, "--timeline", code=2, says=["a timeline"])
        self.plan(program, "--check", "--lock-file", "none.plan", code=66, says=["none.plan"])
        self.plan(program, "-o", self.folder / "no folder/file", code=74, says=["no folder/file"])
        self.plan("/bin/true", code=65, says=["carries no program"])
        whole = program.read_bytes()
        at = whole.index(b"parallel:program")
        truncated = self.folder / "truncated.o"
        truncated.write_bytes(whole[: at + 1000])
        self.plan(truncated, code=65, says=["truncated"])
        damaged = self.folder / "damaged.o"
        damaged.write_bytes(whole[: at + 800] + bytes([whole[at + 800] ^ 1]) + whole[at + 801 :])
        self.plan(damaged, code=65, says=["checksum"])
        odd = self.folder / "a b\"'$(touch seen);`touch seen`.cpp"
        shutil.copy(self.folder / "matmul.cpp", odd)
        self.plan(odd, says=["all_reduce on ranks"])
        if (self.folder / "seen").exists():
            self.fault("a file's name was run by a shell")
        wrong = self.folder / "wrong.cpp"
        wrong.write_text("#include <parallel/parallel.hpp>\nint x = y;\n")
        self.plan(wrong, code=65, says=["wrong.cpp", "does not compile"])

    def remedies(self):
        """What would lower the memory of a program that its budget refuses: tried on its source, of an object not."""
        source = self.folder / "over.cpp"
        source.write_text("""#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct Block {
  Parameter<float, Shape<32, 64>> up;
  Parameter<float, Shape<64, 32>> down;
  constexpr auto operator()(Distributed auto x) const { return x + matmul(gelu(matmul(x, up)), down); }
};
struct M {
  Layers<8, Block> blocks;
  constexpr auto operator()(Distributed auto x) const { return mean(square(blocks(x))); }
};
using Step = Training<M, AdamW, Tensor<float, Shape<64 / data, 32>>>;
using Small = Within<Step, PeakMemory<300'000>>;
constexpr auto& p = plan<PROGRAM, Mesh{data = 4}>;
static_assert(p.forward.collectives(all_gather(data)) == 0);
auto calls() { return p.calls(); }
""".replace("PROGRAM", "Small"))
        self.plan(source, code=65, says=["a rank needs more memory than the budget; tools/plan FILE --why-memory --memory BYTES lists"])
        said = self.plan(source, "--why-memory", "--memory", "300kB")
        lines = [line for line in said.splitlines() if "Stored<" in line or "Layers<n" in line]
        peaks = [line for line in lines if "does not fit" not in line]
        if len(lines) != 3 or not peaks or peaks != lines[: len(peaks)] or "AllStored<..., Stored<data>>" not in peaks[0]:
            self.fault(f"--why-memory with a budget says {said[-800:]}")
        # with little memory only the host and recomputation together do; a machine whose device is its host has no other
        least = "AllStored<..., Stored<data>, Stored<host>> and Layers<n, Block, Recompute<>, KeepOnHost>"
        said = self.plan(source, "--why-memory", "--memory", "60kB", says=[least])
        lines = [line for line in said.splitlines() if "Stored<" in line or "Layers<n" in line]
        if len(lines) != 3 or least not in lines[0] or "does not fit" in lines[0] or "does not fit" not in lines[1]:
            self.fault(f"--why-memory with 60 kB says {said[-800:]}")
        desk = self.folder / "desk.json"
        desk.write_text('{"name": "desk", "launch": 0, "overlaps": false, "rates": [{"ranks": 1, "products": {"f32": 9e10}, "memory_bandwidth": 2e10, "link": {"latency": 1e-6, "bandwidth": 1e10}}]}')
        self.plan(source, "--why-memory", "--memory", "60kB", "--machine", desk, says=["Stored<data>"], never=["<host", "OnHost"])
        said = self.plan(source, "--why-memory")
        lines = [line for line in said.splitlines() if "Stored<" in line or "Recompute<" in line]
        if len(lines) != 3 or "Zero::states" not in lines[0] + lines[1] or "does not fit" in said:
            self.fault(f"--why-memory says {said[-800:]}")
        plain = self.folder / "plain.cpp"
        plain.write_text(source.read_text().replace("plan<Small", "plan<Step"))
        self.compile(plain, self.folder / "plain.o", "-c")
        self.plan(self.folder / "plain.o", "--why-memory", says=["what would lower it is tried where the file is a source"], never=["would lower it  "])
        # what fits is said with the word in the source: it compiles, and needs what was said
        stored = self.folder / "stored.cpp"
        stored.write_text(source.read_text().replace("PeakMemory<300'000>>;", "PeakMemory<300'000>>;\nusing Fits = AllStored<Small, Stored<data>>;").replace("plan<Small", "plan<Fits").replace("static_assert", "// "))
        self.plan(stored, says=["peak "])

    def trees(self):
        """What a reader of the tree sees: headings, columns, the parts of accumulated micro-batches, the members of an update, no axis of one rank."""
        source, built = self.folder / "steps.cpp", self.folder / "steps.o"
        source.write_text("""#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct Block {
  Parameter<float, Shape<16, 32 / tensor>, Stored<data, Split<0>>> a_member_with_a_long_name;
  Parameter<float, Shape<32 / tensor, 16>> w2;
  Parameter<float, Shape<16>> b2;
  constexpr auto operator()(Distributed auto x) const { return x + (matmul(relu(matmul(x, a_member_with_a_long_name)), w2) + b2); }
};
struct M {
  Layers<3, Block> blocks;
  constexpr auto operator()(Distributed auto x, Distributed auto y) const { return mean(square(blocks(x) - y)); }
};
using Batch = Tensor<float, Shape<8 / data, 16>>;
using Step = Training<M, AdamW, Batch, Batch>;
constexpr auto& p = plan<Step, Mesh{data = 2, tensor = 2}>;
constexpr auto& accumulated = plan<Accumulate<4, Step>, Mesh{data = 2, tensor = 2}>;
auto both() { return p.calls() + accumulated.calls(); }
""")
        self.compile(source, built, "-c")
        both = ("--mesh", "data=2,tensor=2")

        tree = self.plan(built, *both, "--program", "Accumulate").splitlines()
        heads = [line for line in tree[: tree.index("optimizer") + 1] if line.strip() in ("forward", "backward", "optimizer") or "micro-batches" in line or "layers, " in line]
        wanted = ["4 micro-batches, one after the other", "  forward", "    layers, 3 times", "  backward",
                  "    layers, 3 times, the last first", "after the 4 micro-batches, once: what they added up", "  forward", "  backward", "optimizer"]
        if heads != wanted:
            return self.fault(f"the parts of a step with micro-batches are {heads}, expected {wanted}")
        after = next(at for at, line in enumerate(tree) if line.startswith("after the 4 micro-batches"))
        reduced = [at for at, line in enumerate(tree) if "-> reduce_scatter on data" in line and at < tree.index("optimizer")]
        completed = [at for at, line in enumerate(tree) if "-> all_reduce on data, last micro-batch" in line and "[32/tensor, 16]" in line]
        if len(reduced) != 1 or reduced[0] > after:
            self.fault("what is stored split is not reduced within the micro-batches")
        if len(completed) != 1 or completed[0] > after:
            self.fault("what is whole is not completed in the last micro-batch")

        title = next(line for line in tree if line.startswith("line "))
        moves = [line for line in tree if "  -> " in line]
        columns = {name: title.index(name) for name in ("operation", "message", "why")}
        for line in moves:
            if line[columns["operation"]:][:3] != "-> " or any(line[at - 1] != " " or line[at] == " " for at in columns.values()):
                self.fault(f"this line is not in its columns:\n{title}\n{line}")
        if len(moves) != 9:
            self.fault(f"the tree has {len(moves)} collectives, expected 9")
        for words in ("blocks.*.a_member_with_a_long_name  matmul ", "3 parameters", "adamw ", "3 gradients"):
            if not any(words in line for line in tree):
                self.fault(f"the tree does not say {words!r}")
        if not any(" adamw " in line and line.endswith("blocks.*.a_member_with_a_long_name, blocks.*.w2, blocks.*.b2") for line in tree):
            self.fault("the update does not name its members")
        if any("to<>" in line or " constant" in line for line in tree) or not any("to<On<data, Invariant>, On<tensor, Invariant>>" in line for line in tree):
            self.fault("the norm's move does not say where to")

        for flags in ((), ("--dot",), ("--why", "blocks.0.w2")):
            said = self.plan(built, "--mesh", "data=2", *flags)
            if "data+tensor" in said or "on tensor" in said or "all_reduce" not in said:
                self.fault(f"with {flags} the tool names an axis of one rank:\n{said[-1500:]}")
        for mesh in ("data=2,tensor=1", "data=2"):
            plans = json.loads(self.plan(built, "--mesh", mesh, "--json"))
            named = {axis for plan in plans for node in plan["nodes"] if node.get("transition", {}).get("sent") for axis in node["transition"]["axes"]}
            if named != {"data"} or any(row["axis"] != "data" for plan in plans for phase in plan["totals"].values() for row in phase):
                self.fault(f"the JSON for {mesh} names {named} in calls")
        self.plan(built, "--mesh", "data=1", says=["per step and rank      no collective"])

        for layer in ("0", "*", "0-2"):
            self.plan(built, *both, "--why", f"blocks.{layer}.w2",
                      says=["What left it pending: matmul with blocks.*.w2 at steps.cpp:8", "all_reduce on data+tensor",
                            "The gradients of the 4 micro-batches are added first, still pending; it happens in the last of them.",
                            "12 times a step, in each of 3 layers, for each of 4 micro-batches",
                            "3 times a step, in each of 3 layers, in the last of 4 micro-batches"])
        self.plan(built, *both, "--why", "blocks.0.a_member", code=2, says=["there is no member 'blocks.0.a_member'", "blocks.*.w2"])
        for flag, path in (("--why", "blocks.9"), ("--why", "blocks.9.w2"), ("--why", "blocks.1-3"), ("--picture", "blocks.3.w2")):
            self.plan(built, *both, flag, path, code=2, says=[f"there is no member '{path}'", "blocks has 3 layers, 0 to 2"])
        self.plan(built, *both, "--program", "Accumulate", "--picture", "blocks.2.w2", says=["f32[32/tensor, 16] on", "[16:32, 0:16]"])
        self.plan(built, "--mesh", "tensor=2", "--why", "blocks.0.b2",
                  says=["all_reduce on tensor", "charged to blocks.0-2.b2"])
        self.plan(built, "--mesh", "tensor=2", "--why", "input.0",
                  says=["input.0 causes no collective on tensor=2.", "It is what the first layer takes, f32[8/data, 16]", "It leaves no sum pending", "It is data: no gradient goes back to it."])
        self.plan(built, "--mesh", "data=1", "--why", "blocks.*.b2", says=["blocks.*.b2 causes no collective on data=1.", "There is one rank", "More ranks would cause all_reduce on tensor (forward)", "all_reduce on data (backward)"])
        self.plan(built, "--mesh", "data=2", "--why", "blocks.0.w2.mean", says=["It is optimizer state"])

    def whys(self):
        stored = self.folder / "stored.cpp"
        stored.write_text("""#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct M {
  Parameter<float, Shape<16, 32>, Stored<data, Split<0>>> up;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, up))); }
};
constexpr auto& p = plan<Training<M, AdamW, Tensor<float, Shape<8 / data, 16>>>, Mesh{data = 2}>;
""")
        self.plan(stored, "--why", "up", says=["all_gather on data", "The parameter rests split on data (Stored)", "reduce_scatter on data"])
        around = self.folder / "around.cpp"
        around.write_text("""#include <parallel/parallel.hpp>
using namespace parallel;
using namespace parallel::axes;
struct M {
  Parameter<float, Shape<4, 3, 2, 2>> in;
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, in);
    return mean(attention<true, Context::ring>(take<2, 0>(all), take<2, 1>(all), take<2, 2>(all)));
  }
};
constexpr auto& p = plan<Training<M, AdamW, Tensor<float, Shape<2, 6 / sequence, 4>>>, Mesh{sequence = 3}>;
""")
        self.plan(around, "--why", "in", says=["rotate on sequence", "keys and values come around", "and the sums of their gradients behind them", "Context::gathered"])
        self.plan(stored, says=["Stored"])
        self.plan(stored, "-o", "/dev/full", code=74, says=["/dev/full"])
        self.plan(self.folder / "mlp_plans", "--mesh", "data=2,tensor=2", "--picture", "mlp.up", says=["[0:16, 32:64]"])
        self.plan(self.folder / "mlp_plans", "--mesh", "data=2,tensor=2", "--svg", "input.0", says=["<svg", "</svg>"])
        self.plan(self.folder / "mlp_plans", "--mesh", "data=2,tensor=2", "--picture", "mlp.dwn", code=2, says=["mlp.dwn", "mlp.down, "])
        self.plan(self.folder / "gpt_plans", "--program", "Training", "--mesh", "data=2,tensor=2", "--why", "blocks.0.mlp.down",
                  says=["all_reduce on tensor", "cannot take a pending sum", "rule 4", "Price: 192 KiB", "to<On<tensor, Split<d>>>"])
        self.plan(self.folder / "gpt_plans", "--program", "Training", "--mesh", "data=2,tensor=2", "--machine", "h100", says=["layers, 4 times", "rule 4, for add", "predicted step"])
        trace = json.loads(self.plan(self.folder / "gpt_plans", "--program", "Training", "--mesh", "data=2,tensor=2", "--machine", "h100", "--timeline"))
        tracks = {}
        for e in trace["traceEvents"]:
            if e["ph"] == "X":
                tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["dur"]))
        for slices in tracks.values():  # on a track nothing overlaps, or the viewer would spill it
            slices.sort()
            if any(a + d > b + 1e-6 for (a, d), (b, _) in zip(slices, slices[1:])):
                self.fault("slices of one track overlap")
        if len({rank for rank, _ in tracks}) != 4:
            self.fault("the timeline has not one process per rank")

    def pipelines(self):
        """Stages of a pipeline: each has its plan, a lock has them all, schedules that cannot run are refused."""
        source, built, lock = self.folder / "pipeline.cpp", self.folder / "pipeline.o", self.folder / "pipeline.plan"
        source.write_text(f"""#include "{self.root}/tests/pipeline_models.hpp"
using namespace pipelines;
using Step = Accumulate<4, Training<Gpt<float>, AdamW, Tokens, Tokens, Tokens>>;
inline constexpr Schedule mine{{"mine", 1, false, false, [](int, int, int m, int) {{ return schedules::in_turn(m, m); }}}};
auto first = [] {{ return derive<Step>(Mesh{{stage = 2}}); }};
auto chunks = [] {{ return derive<Pipelined<schedules::interleaved<2>, Step>>(Mesh{{stage = 2}}); }};
auto own = [] {{ return derive<Pipelined<mine, Step>>(Mesh{{stage = 2}}); }};
auto whole = [] {{ return derive<Training<Gpt<float, layers>, AdamW, Tokens, Tokens, Tokens>>(Mesh{{}}); }};
constexpr auto& second = plan<Pipelined<schedules::gpipe, Step>, Mesh{{stage = 2}}.on_stage(1)>;
""")
        self.compile(source, built, "-c")
        mine, chunks, four = ("--program", "Pipelined<mine"), ("--program", "interleaved<2>"), ("--mesh", "stage=4,tensor=2")
        step = ("--program", next(line for line in self.plan(built, "--mesh", "stage=2", *chunks).splitlines() if line.startswith("Pipelined")).replace("Pipelined<interleaved<2>, ", "").replace(">>>(", ">>("))
        self.plan(built, *four, *step, says=["8 ranks; stage 0 of 4 with layers 0-1, one_forward_one_backward, 4 micro-batches, at most 4 in flight"])
        self.plan(built, *four, *step, "--stage", 3, says=["stage 3 of 4 with layers 6-7", "4 micro-batches, F0 B0 F1 B1 F2 B2 F3 B3", "<- receive on stage"], never=["-> send on stage  f32[4/data, 8, 16] At"])
        self.plan(built, "--program", "gpipe", says=["stage=2: 2 ranks; stage 1 of 2 with layers 4-7, gpipe"])  # as the compiler planned it
        self.plan(built, "--program", "gpipe", "--stage", 0, says=["stage 0 of 2 with layers 0-3, gpipe"])
        for arguments, code, says in [
            ((*four, *chunks, "--stage", 4), 78, ["a plan is asked of a stage that the mesh does not have", "Pipelined<interleaved<2>"]),
            (("--mesh", "stage=3", *step), 78, ["the mesh does not divide a dimension", "valid extents of stage: 1, 2, 4, 8"]),
            (("--mesh", "stage=8", *chunks), 78, ["stage=8 gives each stage 1 of 8 layers, for interleaved<2> in 2 chunks"]),
            (("--mesh", "data=2", *step, "--schedule"), 2, ["has no stages on data=2"]),
            (("--mesh", "stage=2", *mine), 65, ["its schedule 'mine' is a function of its own, which no file carries", "naive, gpipe, one_forward_one_backward"]),
            (("--mesh", "stage=2", *step, "--stage", -1), 2, ["--stage"]),
            (("--mesh", "stage=2", *step, "--schedule", "--json"), 2, ["--json and --schedule are two answers"]),
            (("--mesh", "data=2", "--program", "8, 16", "--stage", 1), 2, ["no program is called"]),
        ]:
            self.plan(built, *arguments, code=code, says=says)
        odd = self.folder / "odd.cpp"
        odd.write_text(source.read_text().replace("Accumulate<4", "Accumulate<3"))
        self.plan(odd, "--mesh", "stage=2", *chunks, code=78, says=["its micro-batches go in groups of as many as there are stages; choose a multiple of the stages: stages 2, micro_batches 3, for stage=2"])
        for more in ((), ("--check", "--lock-file", f"{self.root}/examples/mlp.plan"), ("--lock",)):
            self.plan(self.examples / "mlp", "--stage", 1, *more, code=2, says=["--stage 1: Training<Regression, AdamW>", "has no stages"])
        beside = self.folder / "beside.cpp"
        beside.write_text("".join(line for line in source.read_text().splitlines(keepends=True) if "mine" not in line) + """
struct Small {
  Parameter<float, Shape<4>> w;
  constexpr auto operator()(Distributed auto x) const { return mean(square(x * w)); }
};
auto small = [] { return derive<Training<Small, Sgd, Tensor<float, Shape<4>>>>(Mesh{}); };
""")
        self.plan(beside, "--mesh", "stage=2", "--stage", 1, says=["stage 1 of 2 with layers 4-7, one_forward_one_backward", "stage 1 of 2 with layers 2-3,6-7, interleaved<2>"], never=["Small"])

        both = (built, "--lock-file", lock)
        self.plan(*both, "--lock", "--mesh", "stage=2", *step)
        self.plan(*both, "--lock", "--mesh", "stage=2", *chunks)
        titles = [line[line.rindex(" on ") :] for line in lock.read_text().splitlines() if line.startswith("[")]
        if titles != [" on stage=2; stage 0]", " on stage=2; stage 1]"] * 2:
            self.fault(f"a lock of two pipelines holds {titles}")
        self.plan(*both, "--check", *step)
        self.plan(*both, "--check", *chunks)
        self.plan(*both, "--check", "--stage", 1, *chunks)
        whole = lock.read_text()
        at = whole.rindex("in flight 3")
        lock.write_text(whole[:at] + "in flight 2" + whole[at + 11 :])
        self.plan(*both, "--check", "--stage", 0, *chunks)
        self.plan(*both, "--check", *chunks, code=76, says=["; stage 1]\n! schedule  interleaved<2>  layers 2-3,6-7  F0a ", "in flight 2  became  tasks 16  in flight 3"], never=["; stage 0]"])
        self.plan(*both, "--lock", "--mesh", "stage=2", "--stage", 1, *chunks)
        if lock.read_text() != whole:
            self.fault("a lock whose one stage was written anew is another than the whole one")

        self.plan(built, "--mesh", "stage=2", *step, "--schedule",
                  says=["stage=2; one_forward_one_backward, 4 micro-batches, were forward, backward and weights equally long", "\nstage 0  F0 F1 .. .. B0    F2 B1    F3 B2    .. B3\n",
                        "\nstage 1  .. F0 B0    F1 B1    F2 B2    F3 B3    .. ..\n", "bubble 20.0 %"])
        self.plan(built, "--mesh", "stage=2", *step, "--schedule", "--machine", "h100", says=["4 micro-batches on h100", "\nstage 1  .. ", "bubble "])
        self.plan(built, "--mesh", "stage=2", *step, "--schedule-svg", says=["<svg ", ">stage 1</text>", "<title>B3</title>"])
        self.plan(built, "--mesh", "stage=2", *step, "--machine", "h100", says=["predicted step ", "the pipeline ", "bubble "])
        stages = [json.loads(self.plan(built, "--mesh", "stage=2", *step, "--json", "--machine", "h100", "--stage", k)) for k in (0, 1)]
        if [[t["work"][0] + str(t["micro_batch"]) for t in s["pipeline"]["tasks"]] for s in stages] != ["f0 f1 b0 f2 b1 f3 b2 b3".split(), "f0 b0 f1 b1 f2 b2 f3 b3".split()]:
            self.fault("the JSON has other tasks than the schedule")
        if stages[0]["seconds"] != stages[1]["seconds"] or max(s["end"] for p in stages for s in p["timeline"]) > stages[0]["seconds"] + 1e-12:
            self.fault("stages of one step end at different times")
        for k in (0, 1):  # a node has a price where the stage runs it, and that of its events
            plan = json.loads(self.plan(built, "--mesh", "stage=2", *chunks, "--json", "--machine", "h100", "--stage", k))
            ran = {e["node"] for e in plan["events"] if e["kind"] in ("compute", "start")}
            priced = {n: node["seconds"] for n, node in enumerate(plan["nodes"]) if "seconds" in node}
            if set(priced) != ran:
                self.fault(f"stage {k} has prices of nodes {sorted(set(priced) ^ ran)} that it does not run, or none of those")
            for s in plan["timeline"]:
                if plan["events"][s["event"]]["kind"] == "compute" and s["end"] - s["begin"] > priced.get(s["node"], 0) * (1 + 1e-6) + 1e-12:
                    self.fault(f"stage {k}: node {s['node']} takes {s['end'] - s['begin']} s, and its price is {priced.get(s['node'])} s")
        trace = json.loads(self.plan(built, "--mesh", "stage=2,tensor=2", *step, "--timeline", "--machine", "h100"))
        names = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
        if names != {f"rank {2 * s + t} (stage {s}, tensor {t})" for s in (0, 1) for t in (0, 1)}:
            self.fault(f"the timeline of a pipeline shows {names}")
        self.plan(built, "--mesh", "stage=2", *chunks, "--dot", says=["digraph"])
        self.plan(built, "--mesh", "stage=2", *chunks, "--html", says=["<html", "interleaved\\u003c2>", "schedule_svg"])
        self.plan(built, "--mesh", "stage=2", *step, "--picture", "gain", says=["stage=0", "0  -", "1  [0:16]", "-   nothing"])
        self.plan(built, "--mesh", "stage=2", *step, "--picture", "token", never=["nothing"])
        self.plan(built, "--mesh", "stage=2", *step, "--picture", "blocks.5.gain1", says=["0  -", "1  [0:16]"])
        self.plan(built, "--mesh", "stage=2", *chunks, "--picture", "blocks.5.gain1", says=["0  [0:16]", "1  -"])
        self.plan(built, "--mesh", "stage=2", *chunks, "--picture", "blocks.*.gain1", says=["0  [0:2 and 4:6, 0:16]", "1  [2:4 and 6:8, 0:16]"])
        self.plan(built, "--mesh", "stage=2", *chunks, "--svg", "blocks.*.gain1", says=["2:4 and 6:8"])
        self.plan(built, "--mesh", "stage=2", *step, "--why", "blocks.0.bias", says=["stage=2; stage 0\n", "goes to the next one."])

    def links(self):
        """What goes through each link where a rank serves the others: in text, in JSON, and drawn; elsewhere links are alike, and nothing is said."""
        served, ring = self.examples / "ladder/9_servers", self.examples / "ladder/4_data"
        self.plan(served, "--mesh", "data=4", says=["per step and link      axis         rank                received   sent", "0                   200 KiB    396 KiB", "1-3                 132 KiB"])
        links = json.loads(self.plan(served, "--mesh", "data=4", "--json"))["links"]
        completed = 1.5 * (4 + 8)  # the loss and the norm, which a ring sums up
        server, *workers = [(link["sent"] - completed, link["received"] - completed) for link in links]
        if [(link["axis"], link["rank"]) for link in links] != [("data", rank) for rank in range(4)]:
            self.fault(f"the links of a server's plan are {links}")
        elif server != tuple(sum(worker[way] for worker in workers) for way in (1, 0)) or len(set(workers)) != 1:
            self.fault(f"through the server's link goes {server}, through the workers' {workers}")
        self.plan(served, "--mesh", "data=4", "--html", says=['<section id="links"', "function showLinks(plan)"])
        self.plan(ring, "--mesh", "data=4", never=["per step and link"])
        self.plan(ring, "--mesh", "data=4", "--json", says=['"links": []'])


def main(write, *arguments):
    test = Test(*arguments)
    with ThreadPoolExecutor(2) as pool:
        if not write:
            list(pool.map(test.same, EXAMPLES))
        list(pool.map(lambda name: test.lock(name, write), EXAMPLES | MESHES))
    if not write and not test.faults:
        test.runs()
        test.mistakes()
        test.trees()
        test.remedies()
        test.whys()
        test.pipelines()
        test.links()
    shutil.rmtree(test.folder)
    print("\n".join(test.faults) or "no faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    write = words[:1] == ["--lock"]
    sys.exit(main(write, *words[write:]))
