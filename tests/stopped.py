#!/usr/bin/env python3
"""A training that a signal stops ends with 0 and a checkpoint, one whose rank is killed keeps the checkpoint before; either goes on with the losses of
one that nothing disturbed: the same on the same mesh, on another one up to rounding. Once a rank is gone nothing more is kept, whatever signal came before.

    stopped.py DIGITS DATA [-- MPIRUN LAUNCH...]

DIGITS is examples/digits, DATA the folder of its images.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 60  # seconds within which anything ends
LEAVES = 10  # those within which one is gone that a signal asks: of the 30 that Slurm and Kubernetes give unless said


def losses(printed):
    return re.findall(r"loss (\S+)", printed)


def near(some, others):
    return len(some) == len(others) and all(abs(float(a) - float(b)) <= 1e-6 * abs(float(a)) for a, b in zip(some, others))


def checkpoints(folder):
    return sorted(int(file.stem[5:]) for file in folder.glob("step-*.safetensors"))


def ranks_of(folder):
    """The processes that were started with this folder, but for the launcher."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if str(folder) in arguments and arguments[0].endswith("digits"):
            found.append(int(process.name))
    return found


def main(program, data, *launcher):
    launcher = launcher[1:]
    command = [program, "--model", "perceptron", "--epochs", "24", "--data", data]
    whole = subprocess.run([*command, "--mesh", "data=2"], stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True).stdout
    faults = []

    def disturbed(name, start, disturb, within=LIMIT):
        """Starts, disturbs when the first checkpoint is there, and goes on twice. The exit code, what was printed, and which checkpoints there were."""
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) / "kept"
            over = ["--mpi"] if start else []
            running = subprocess.Popen([*start, *command, *over, "--mesh", "data=2", "--folder", folder], stdout=subprocess.PIPE, text=True)
            begun = time.monotonic()
            while not list(folder.glob("step-*")) and running.poll() is None and time.monotonic() - begun < LIMIT:
                time.sleep(0.002)
            disturb(running, folder)
            try:
                printed, _ = running.communicate(timeout=within)
            except subprocess.TimeoutExpired:
                running.kill()
                sys.exit(f"{name}: it does not end within {within} s")
            kept = checkpoints(folder)
            if "told right" in printed:
                sys.exit(f"{name}: it ended before it was disturbed")
            shutil.copytree(folder, Path(made) / "copy")
            for mesh, which, same in [("data=2", folder, list.__eq__), ("tensor=2", Path(made) / "copy", near)]:
                rest = subprocess.run([*command, "--mesh", mesh, "--folder", which], stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True).stdout
                expected = losses(whole)[len(losses(printed)):]
                if not expected or not same(losses(rest)[-len(expected):], expected):
                    faults.append(f"{name}, gone on with on {mesh}: losses {losses(rest)}, of the whole run {expected}")
            return running.returncode, printed, kept

    def stopped(name, start, which):
        code, printed, kept = disturbed(name, start, lambda running, folder: running.send_signal(which), within=LEAVES)
        asked = re.findall(r"asked to stop behind step (\d+)", printed)
        if code != 0 or len(asked) != 1 or int(asked[0]) != kept[-1]:
            faults.append(f"{name}: it ended with {code}, has checkpoints of {kept}, and printed:\n{printed}")

    def killed(name, start, *before):
        there = []

        def kill(running, folder):
            last = max(ranks_of(folder))
            os.kill(last, signal.SIGSTOP)
            time.sleep(0.5)  # what it has done its part of is there by now
            there.extend(checkpoints(folder))
            for which in before:
                running.send_signal(which)
                time.sleep(0.5)  # the other rank has heard it
            os.kill(last, signal.SIGKILL)

        code, printed, kept = disturbed(name, start, kill)
        if code == 0 or "asked" in printed or kept != there:
            faults.append(f"{name}: it ended with {code}, has checkpoints of {kept}, before of {there}, and printed:\n{printed}")

    stopped("SIGTERM to a program of threads", [], signal.SIGTERM)
    if launcher:
        two = [*launcher, "2"]
        stopped("SIGUSR1 to mpirun", two, signal.SIGUSR1)
        killed("a rank killed", two)
        killed("a rank killed behind a signal", two, signal.SIGUSR1)
    return "\n".join(faults) or 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
