#!/usr/bin/env python3
"""Runs tools/gpu over programs that only seem to be tests, a sanitizer and benchmarks: what fails is named and ends it with 1, what is not there is a
row that says so, and no more is claimed than what ran.

    gpu_tool.py ROOT BUILD      BUILD: a folder of Meson's with the tests of this project
"""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, REAL_BUILD = Path(sys.argv[1]), Path(sys.argv[2])
STEP = """gpu {gpu}
product_rate 8e+14
memory_bandwidth 3e+12
memory 2e+10
loss 10.8
tokens_per_second {tokens}
flops_per_token 860000000
flops_per_token_halved 803000000
kernel 12 0.002 0.0005 0.001 matmul+add"""
PEER = "version 9.9\nloss 10.8\ntokens_per_second {tokens}"
HOPPER = "NVIDIA H100 80GB HBM3"
FOLDER = tempfile.TemporaryDirectory()
faults = 0


def check(right, what, said=""):
    global faults
    if not right:
        faults += 1
        print(f"wrong: {what}\n{said}")


class Place:
    """A checkout with nothing in it but tools/gpu and programs that print what they are told."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(dir=FOLDER.name)).resolve()
        self.path = self.root / "path"
        shutil.copy(ROOT / "tools/gpu", self.file("tools/gpu"))
        self.file("docs/x")
        self.table = {}
        self.program("path/nvidia-smi", "a GPU, 80 GB, 600")
        self.program("path/python3", PEER.format(tokens=500000))
        self.program("build/gpu/tools/bench/gpt_step_gpu", STEP.format(gpu=HOPPER, tokens=600000))
        self.test("cuda-device_reduce")

    def file(self, name):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        return self.root / name

    def program(self, name, prints="", then="exit 0"):
        """A script of the shell's own commands: the path has no others."""
        lines = "".join(f"echo '{line}'\n" for line in prints.splitlines())
        self.file(name).write_text(f"#!/bin/sh\n{lines}{then}\n")
        self.file(name).chmod(0o755)

    def test(self, name, then="exit 0", environment=None):
        self.program(f"build/gpu/tests/cuda/{name}", then=then)
        self.table[name] = environment or {}
        self.file("build/gpu/tests/cuda/programs.json").write_text(json.dumps({"commit": "abc", "programs": self.table}))

    def run(self, *arguments):
        environment = {"PATH": str(self.path), "CUDA_HOME": str(self.root / "nowhere")}
        done = subprocess.run([sys.executable, self.root / "tools/gpu", *arguments], env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr


def expect(place, code, printed=(), errors=(), arguments=("--run",)):
    got, out, err = place.run(*arguments)
    missing = [text for text in printed if text not in out] + [text for text in errors if text not in err]
    check(got == code and not missing, f"exit code {got} where {code} was expected, or without {missing}", out + err)
    return out


# all passes; what is not there is said, and is no failure
place = Place()
out = expect(place, 0, ["- Commit: abc\n", "- GPUs: 1;", "1 of 1 tests passed; compute-sanitizer was not run: compute-sanitizer is not installed", "| cuda-device_reduce |", "| passed |"])
check("0 of 0" not in out, "no runs of the sanitizer are no clean runs", out)
# 6e5 tokens of 8.6e8 operations are 52.2 % of an H100's peak and 64.5 % of the products measured
check("| this library | 600000 | 52.2 % | 48.7 % | 64.5 % | |" in out, "utilization", out)
check("| PyTorch, eager 9.9 | 500000 | 43.5 % | 40.6 % | 53.8 % | 1.20 |" in out, "a peer's row", out)
check("| matmul+add | 12 | 2.000 | 0.500 | 1.000 | 0.50 |" in out, "a kernel beside its floors", out)
place.program("build/gpu/tools/bench/gpt_step_gpu", STEP.format(gpu="NVIDIA A30", tokens=600000))
expect(place, 0, ["| this library | 600000 | peak unknown | peak unknown | 64.5 % | |"])

# the better of two runs counts, for the library and for a peer alike
place = Place()
once = 'if [ -e "{0}" ]; then echo tokens_per_second {2}; else echo tokens_per_second {1}; fi; : >"{0}"'
place.program("path/python3", "loss 1", once.format(f"{place.root}/once$2$3", 300000, 400000))
place.program("build/gpu/tools/bench/gpt_step_gpu", STEP.format(gpu=HOPPER, tokens=1), once.format(f"{place.root}/once", 600000, 500000))
expect(place, 0, ["| this library | 600000 |", "| PyTorch, eager | 400000 |", "| 1.50 |"])

# tests that fail, whatever they print, and their environment
place = Place()
place.test("cuda-killed", "kill -9 $$")
place.test("cuda-silent", "exit 3")
place.test("cuda-fixture", '[ "$PARALLEL_FIXTURE" = "' + str(place.root) + '/tests/some.fixture" ]', {"PARALLEL_FIXTURE": "{root}/tests/some.fixture"})
expect(place, 1, ["| failed: killed by SIGKILL |", "| failed: exit code 3 |", "2 of 4 tests passed"],
       ["cuda-killed failed: killed by SIGKILL", "cuda-silent failed: exit code 3"])
place = Place()
place.test("cuda-lost")
(place.root / "build/gpu/tests/cuda/cuda-lost").unlink()
expect(place, 1, ["1 of 2 tests passed"], ["cuda-lost failed:", "No such file"])
place = Place()
place.file("tests/programs_nccl.cpp").write_text("")
expect(place, 0, ["1 of 1 tests passed, 1 were not run;", "| cuda-programs_nccl | 0.0 | not run: nvcc found no NCCL"])

# the sanitizer
place = Place()
place.program("path/compute-sanitizer", then='[ "$2" = racecheck ] && exit 9; exit 0')
expect(place, 1, ["2 of 3 runs under compute-sanitizer were clean"], ["racecheck cuda-device_reduce failed: exit code 9"])

# benchmarks and peers
place = Place()
place.program("build/gpu/tools/bench/gpt_step_gpu", then="kill -11 $$")
expect(place, 1, ["| this library | failed: killed by SIGSEGV |", "The kernels were not measured"], ["this library failed: killed by SIGSEGV"])
place.program("build/gpu/tools/bench/gpt_step_gpu", "loss 1\ntokens_per_second 1")
expect(place, 1, ["| PyTorch, eager 9.9 | 500000 | | | | |"],
       ["this library failed: it prints no gpu, product_rate", "this library, kernels failed: it prints no kernel"])
place = Place()
place.program("path/python3", "out of memory", "exit 1")
expect(place, 1, ["| PyTorch, eager | failed: exit code 1 |"], ["PyTorch, eager failed: exit code 1", "out of memory"])
place.program("path/python3", "nothing of use")
expect(place, 1, [], ["PyTorch, eager failed: it prints no loss, tokens_per_second"])
place.program("path/python3", "tokens_per_second 5e5\nloss nan")
expect(place, 1, [], ["PyTorch, eager failed: its loss is nan"])
place.program("path/python3", "it has no PyTorch", "exit 69")
expect(place, 0, ["| PyTorch, eager | not run: it has no PyTorch |"])
(place.path / "python3").unlink()
expect(place, 0, ["| PyTorch, eager | not run: there is no python3 |"])
expect(place, 0, ["| PyTorch, eager | not run: --quick |", "compute-sanitizer was not run: --quick"], arguments=["--run", "--quick"])

# a document is written, also of what failed
place.test("cuda-silent", "exit 3")
expect(place, 1, arguments=["--run", "--write"])
check("| failed: exit code 3 |" in (place.root / "docs/gpu-results.md").read_text(), "docs/gpu-results.md")

# where there is nothing
(place.root / "build/gpu/tests/cuda/programs.json").unlink()
expect(place, 69, errors=["holds no tests"])
(place.path / "nvidia-smi").unlink()
expect(place, 69, errors=["there is no GPU here"])
expect(place, 69, errors=["there is no nvcc here"], arguments=["--build"])
expect(place, 2, errors=["--build only builds"], arguments=["--build", "--run"])

# what is built for, here and elsewhere; the table is what Meson says
place = Place()
info = place.file("build/gpu/meson-info/intro-tests.json")
here = place.root
info.write_text(json.dumps([{"name": "bf16", "env": {"PARALLEL_FIXTURE": f"{here}/tests/fixtures/gpt2.fixture"}}]))
place.file("build/gpu/meson-info/intro-targets.json").write_text(json.dumps([
    {"name": "cuda-invariance_mlp", "type": "custom", "filename": [f"{here}/build/gpu/tests/cuda/cuda-invariance_mlp"]},
    {"name": "cuda-bf16", "type": "custom", "filename": [f"{here}/build/gpu/tests/cuda/cuda-bf16"]},
    {"name": "cuda-object-bf16", "type": "custom", "filename": [f"{here}/build/gpu/tests/cuda/bf16.o"]},
    {"name": "cuda-bench", "type": "alias", "filename": [f"{here}/build/gpu/cuda-bench"]}]))
place.program("path/nvcc")
place.program("path/ninja")
place.program("path/meson", then=f'echo "$@" >"{place.root}/asked"')
for arguments, architecture in ((["--build"], "sm_90"), (["--build", "sm_80"], "sm_80"), (["--quick"], "native")):
    got, out, err = place.run(*arguments)
    asked = (place.root / "asked").read_text()
    check(f"-Dgpu_architecture={architecture}" in asked, f"built for {architecture}", asked + err)
    check(f"-Dnative={'true' if architecture == 'native' else 'false'}" in asked, f"for this CPU or for any, {architecture}", asked + err)
built = json.loads((place.root / "build/gpu/tests/cuda/programs.json").read_text())
table = built["programs"]
check(built["commit"] == "unknown", "the commit of a folder without git", str(built))
check(table == {"cuda-invariance_mlp": {}, "cuda-bf16": {"PARALLEL_FIXTURE": "{root}/tests/fixtures/gpt2.fixture"}}, "the table", str(table))
place.program("path/ninja", then="exit 1")
expect(place, 1, errors=["the build failed"], arguments=["--build"])

# a program that never ends, with a child that holds its output
loader = importlib.machinery.SourceFileLoader("gpu", str(ROOT / "tools/gpu"))
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_loader("gpu", loader)
gpu = importlib.util.module_from_spec(spec)
sys.modules["gpu"] = gpu
loader.exec_module(gpu)
late = gpu.execute("late", ["/bin/sh", "-c", "echo begun; sleep 600 & sleep 600"], 0.5)
check(late.verdict == "failed: no end in 0.5 s" and late.seconds < 10 and "begun" in late.output, "a program that never ends", str(late))
# the short tests are tests, and the fixtures those of this build's own
listed = (ROOT / "tests/cuda/meson.build").read_text()
for name in gpu.QUICK:
    check(f"  '{name.removeprefix('cuda-')}': " in listed, f"--quick names {name}, which is no test")
real = json.loads((REAL_BUILD / "meson-info/intro-tests.json").read_text())
for test, fixture in (("bf16", "gpt2"), ("parity", "gpt2"), ("parity_llama", "transformers")):
    made = gpu.table(real, [{"name": f"cuda-{test}", "type": "custom", "filename": [f"/x/cuda-{test}"]}])
    check(made[f"cuda-{test}"].get("PARALLEL_FIXTURE", "").endswith(f"/tests/fixtures/{fixture}.fixture"), f"the fixture of {test}", str(made))
    check(os.path.exists(made[f"cuda-{test}"]["PARALLEL_FIXTURE"].replace("{root}", str(ROOT))), f"it is there: {made}")

print(f"{faults} faults")
sys.exit(1 if faults else 0)
