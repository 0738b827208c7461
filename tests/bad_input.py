#!/usr/bin/env python3
"""Gives a program what users give it by mistake: each mistake is one sentence that names the thing, and its documented exit code.

    bad_input.py GPT OTHER ... -- [LAUNCHER ...]      OTHER: an example; LAUNCHER: mpirun with its arguments but the number of ranks
"""
import subprocess
import sys
import tempfile
from pathlib import Path

END = sys.argv.index("--")
GPT, OTHERS, LAUNCHER = sys.argv[1], sys.argv[2:END], sys.argv[END + 1 :]

folder = Path(tempfile.mkdtemp())
(folder / "empty").write_bytes(b"")
(folder / "short").write_bytes(b"too short a text")
(folder / "text").write_bytes(b"All work and no play makes Jack a dull boy. " * 200)

# arguments, exit code, what the sentence names
CASES = [
    (["--mesh", "data=5"], 78, ["data=5", "valid extents of data: 1, 2, 3, 4, 6, 12"]),
    (["--mesh", "tensor=3"], 78, ["tensor=3", "valid extents of tensor: 1, 2, 4"]),
    (["--mesh", "date=2"], 78, ["no axis 'date'", "data, tensor"]),
    (["--mesh", "data=two"], 78, ["'two'"]),
    (["--mesh", "data=2,data=2"], 78, ["data", "twice"]),
    (["--mesh", "data"], 78, ["axis=ranks"]),
    (["--mesh", "data=0"], 78, ["'0'"]),
    (["--text", str(folder / "missing")], 66, ["missing"]),
    (["--text", str(folder)], 66, ["directory"]),
    (["--text", str(folder / "empty")], 65, ["empty"]),
    (["--text", str(folder / "short")], 65, ["16 bytes", "context of 64"]),
    (["--text", "/dev/zero"], 66, ["/dev/zero is a device"]),
    (["--steps", "many"], 2, ["gpt: error: --steps: 'many' is no number"]),
    (["--steps", "0"], 2, ["gpt: error: --steps: '0'"]),
    (["--seed", "-1"], 2, ["gpt: error: --seed: '-1'"]),
    (["--seed", "99999999999999999999999"], 2, ["gpt: error: --seed: '99999999999999999999999'"]),
    (["--rate", "-1"], 2, ["gpt: error: --rate: '-1'"]),
    (["--rate", "nan"], 2, ["gpt: error: --rate: 'nan'"]),
    (["--warmup", "-5"], 2, ["gpt: error: --warmup: '-5'"]),
    (["--sample", "3 "], 2, ["gpt: error: --sample: '3 '"]),
    (["--mehs", "data=2"], 2, ["gpt: error: ", "--mehs"]),
    (["--gpu"], 69, ["no CUDA", "docs/gpu.md"]),
    (["--steps", "40", "--rate", "1e60", "--text", str(folder / "text")], 1, ["the loss is nan in step", "learning rate"]),
    (["--steps", "40", "--rate", "1e60", "--text", str(folder / "text"), "--check", "finite"], 1,
     ["the first numbers that are not finite in step 1 of the training made at gpt.cpp:", " were made by adamw in the optimizer "]),
    (["--check", "all"], 2, ["'all' is nothing that can be checked; write finite, or nan where infinities are meant, or inputs"]),
    (["--watch", "blocks.2.mlp.upp"], 2, ["blocks.2.mlp.upp is nothing that the training made at gpt.cpp:", "nearest names are blocks.*.mlp.up"]),
    (["--watch", "norm.gain["], 2, ["has no ] at its end"]),
]


def check(command, code, words):
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=100)
    said = run.stdout + run.stderr
    wrong = [word for word in words if word not in said]
    if run.returncode == code and not wrong:
        return 0
    print(f"{' '.join(command)}\n  exit code {run.returncode}, expected {code}; does not say {wrong}; it said:\n{said[-1500:]}")
    return 1


faults = sum(check([GPT, *arguments], code, words) for arguments, code, words in CASES)

# What is printed has been written. What is recorded may be lost, with a warning: the rest is not.
SHORT = ["--steps", "2", "--sample", "2", "--mesh", "data=1", "--text", str(folder / "text")]
for output in [">/dev/full", ">&-"]:
    faults += check(["sh", "-c", f'"$@" {output}', "sh", GPT, *SHORT], 74, ["gpt: error: the standard output cannot be written"])
    for program in OTHERS:
        faults += check(["sh", "-c", f'"$@" {output}', "sh", program], 74, ["error: the standard output cannot be written"])
for program in OTHERS:
    faults += check([program, "--recrod", "x"], 2, [f"{Path(program).name}: error: ", "argument"])
(folder / "record.0").symlink_to("/dev/full")
faults += check([GPT, *SHORT, "--record", str(folder / "record")], 0, ["warning: the record", "record.0", "No space left", "validation loss", "sampled:"])
faults += check([GPT, *SHORT, "--record", str(folder)], 74, ["the record", "is a folder; name a file in it"])
if LAUNCHER:
    faults += check([*LAUNCHER, "3", GPT, "--mpi", "--mesh", "data=2,tensor=2"], 78, ["4 ranks are expected, but 3 are running"])
    faults += check([GPT, "--mpi", "--mesh", "data=2"], 78, ["mpirun -n 2"])
    faults += check([*LAUNCHER, "2", GPT, "--mesh", "data=2"], 2, ["mpirun has started 2 processes", "say --mpi"])
    faults += check([*LAUNCHER, "2", GPT, "--mpi", "--mesh", "data=2", "--text", str(folder / "missing")], 66, ["missing"])
print(f"{faults} faults")
sys.exit(1 if faults else 0)
