#!/usr/bin/env python3
"""Gives a program what users give it by mistake: each mistake is one sentence that names the thing, and its documented exit code.

    bad_input.py GPT [LAUNCHER ...]      LAUNCHER: mpirun with its arguments but the number of ranks
"""
import subprocess
import sys
import tempfile
from pathlib import Path

GPT, LAUNCHER = sys.argv[1], sys.argv[2:]

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
    (["--steps", "many"], 2, ["steps"]),
    (["--mehs", "data=2"], 2, ["--mehs"]),
    (["--gpu"], 69, ["no CUDA", "docs/gpu.md"]),
    (["--steps", "40", "--rate", "1e60", "--text", str(folder / "text")], 1, ["loss is", "--rate"]),
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
if LAUNCHER:
    faults += check([*LAUNCHER, "3", GPT, "--mpi", "--mesh", "data=2,tensor=2"], 78, ["4 ranks are expected, but 3 are running"])
    faults += check([GPT, "--mpi", "--mesh", "data=2"], 78, ["mpirun -n 2"])
    faults += check([*LAUNCHER, "2", GPT, "--mpi", "--mesh", "data=2", "--text", str(folder / "missing")], 66, ["missing"])
print(f"{faults} faults")
sys.exit(1 if faults else 0)
