#!/usr/bin/env python3
"""A training on real data reaches its figure, has the same losses on every mesh, and goes on from a checkpoint on another mesh as if nothing had been.

    trainings.py REACHED TOLERANCE EPOCHS PROGRAM [ARGUMENT...] [-- MPIRUN LAUNCH...]

The program's last line has what it reached; REACHED is at least so much, or with a `-` at most. Its losses in so many EPOCHS differ by TOLERANCE at
most, relative to what one rank has. Says how long each run took.
"""
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MESHES = ["data=2", "data=4", "tensor=2", "tensor=4", "data=2,tensor=2"]


def run(*command):
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    took = time.monotonic() - begun
    print(f"{took:6.1f} s  {' '.join(map(str, command[-6:]))}", flush=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} exited with {done.returncode} and printed:\n{done.stdout}")
    lines = done.stdout.splitlines()
    return [float(number) for line in lines for number in re.findall(r"loss (\S+)", line)], lines[-1]


def differ(one, other, tolerance):
    return len(one) != len(other) or any(not abs(a - b) <= tolerance * abs(a) for a, b in zip(one, other))


def main(reached, tolerance, epochs, *command):
    launcher = list(command[command.index("--") + 1 :]) if "--" in command else []
    command = command[: command.index("--")] if "--" in command else command
    tolerance, faults = float(tolerance), []

    _, last = run(*command, "--mesh", "data=1")
    print(f"          {last}")
    figure = float(re.search(r": ([\d.]+)", last)[1])
    if figure > -float(reached) if reached.startswith("-") else figure < float(reached):
        faults.append(f"{last}: it should reach {reached.removeprefix('-')}")

    short = [*command, "--epochs", epochs]
    one, _ = run(*short, "--mesh", "data=1")
    print(f"          losses {one}")
    runs = [[*short, "--mesh", mesh] for mesh in MESHES]
    if launcher:
        runs.append([*launcher, "2", *short, "--mesh", "data=2", "--mpi"])
    for each in runs:
        losses, _ = run(*each)
        if not one or differ(one, losses, tolerance):
            faults.append(f"{' '.join(each[-6:])} has the losses {losses}, one rank has {one}")

    with tempfile.TemporaryDirectory() as folder:
        kept = [*short, "--folder", folder, "--mesh"]
        run(*kept, "data=1")
        max(Path(folder).glob("step-*.safetensors")).unlink()
        begun = time.monotonic()
        losses, _ = run(*kept, "data=2,tensor=2")
        print(f"          goes on from its checkpoint to the end of the next epoch in {time.monotonic() - begun:.1f} s")
        if differ(one[-1:], losses, tolerance):
            faults.append(f"gone on with from a checkpoint it has the losses {losses}, without it {one[-1:]}")
    return "\n".join(faults) or 0


if __name__ == "__main__":
    if len(sys.argv) < 5:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
