#!/usr/bin/env python3
"""Lets one rank of a small job go wrong in all ways at all places: the job ends in time, not with 0, by a documented
code, and names a rank.

    faults.py FAULTY UNLIKE [--seed N] [--tries N] [LAUNCHER ...]

FAULTY is the program of tests/faulty.cpp, whose rank fails, hangs or leaves; UNLIKE that of tests/unlike.cpp, whose rank
has or does something else than the others.

LAUNCHER is mpirun with its arguments but the number of ranks.

Prints a table: what was tried, the exit codes, the longest time from the fault to the end.
"""
import argparse
import collections
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4
LIMIT = 20  # seconds, far above what is right, as machines are loaded; the table says what it took
KILLED = 128 + signal.SIGKILL

# fault: exit codes over threads, and over MPI; None: a thread cannot be stopped alone
FAULTS = {
    "throw": ({70}, {70}),
    "throw_int": ({70}, {70}),
    "bad_alloc": ({1}, {1}),
    "exit_0": ({70}, {70}),
    "exit_3": ({3}, {3}),
    "leave": ({75}, {75}),
    "kill": ({KILLED}, {KILLED}),
    "stop": (None, {75}),
    "sleep": ({75}, {75}),
    "spin": ({75}, {75}),
}
# the exit codes of what a rank has or does unlike the others
UNLIKE = {
    **dict.fromkeys(
        "seed seed_of_parameters hyperparameter text program mesh axes rate set step_more step_missing evaluation_more executor_more "
        "executors_made executors_run "
        "replica call_kind call_count call_type call_maximum call_label call_root call_order call_more".split(),
        {76},
    ),
    "call_fewer": {75},  # its last calls are never made, and no other call meets those of the others
    "nan": {1},
    "index": {65},
}
STEPS = 8
PLACES = {"threads": ["groups", "step", "end"], "mpi": ["start", "groups", "step", "end"]}


def expected(backend, fault, place):
    """The exit codes that are right, and whether a rank is named; None where that is no fault."""
    codes = FAULTS[fault][backend == "mpi"]
    if codes is None or (fault == "leave" and place in ("start", "end")):
        return None
    if place == "start":  # nobody knows its rank yet; the others wait for it in MPI's start, if mpirun does not end them
        return {75, 1} if fault == "exit_0" else codes | {75}, False
    return codes, not (backend == "threads" and fault == "kill")  # a killed process says nothing


def one(command, codes, named):
    """What is wrong with one run, its exit code, and the seconds from the fault to its end."""
    with tempfile.TemporaryFile() as log:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": log}
        process = subprocess.Popen(command, start_new_session=True, **streams)
        began, until = None, time.monotonic() + LIMIT
        while process.poll() is None and time.monotonic() < until:
            if began is None and b"[fault]" in os.pread(log.fileno(), 1 << 16, 0):
                began = time.monotonic()
            time.sleep(0.005)
        took = time.monotonic() - (began or time.monotonic())
        hangs = process.poll() is None
        if hangs:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        text = os.pread(log.fileno(), 1 << 20, 0).decode(errors="replace")
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    wrong = []
    if hangs:
        wrong.append(f"hangs, {LIMIT} s after its start")
    elif code not in codes:
        wrong.append(f"ends with {code}, not with {' or '.join(map(str, sorted(codes)))}")
    if "[fault]" not in text:
        wrong.append("had no fault")
    words = "\n".join(line for line in text.splitlines() if "[fault]" not in line)
    if named and not re.search(r"\brank \d", words):
        wrong.append("names no rank")
    return [f"{' '.join(command[-6:])}: {what}; it said: {words[-600:]}" for what in wrong], code, took


def cases(arguments, chance, launched):
    """Backend, fault, place, exit codes, whether a rank is named, deadline, and the command behind mpirun's."""
    for backend in ["threads"] + (["mpi"] if launched else []):
        for fault in FAULTS:
            for place in PLACES[backend]:
                right = expected(backend, fault, place)
                for _ in range(arguments.tries if right else 0):
                    deadline = chance.choice([800, 1200, 1600])
                    run = [arguments.faulty, backend, fault, str(chance.randrange(RANKS)), place, str(deadline)]
                    yield backend, fault, place, *right, deadline, run
        for fault, codes in UNLIKE.items():
            for _ in range(arguments.tries):
                run = [arguments.unlike, backend, fault, str(chance.randrange(RANKS)), str(chance.randrange(STEPS)), "5000"]
                yield backend, fault, "", codes, fault != "nan", 5000, run


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("faulty")
    parser.add_argument("unlike")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tries", type=int, default=1, help="of each fault at each place, with ranks and deadlines drawn")
    arguments, launcher = parser.parse_known_args()
    chance = random.Random(arguments.seed)
    rows, wrong = collections.defaultdict(lambda: ([], [])), []
    for backend, fault, place, right, named, deadline, run in cases(arguments, chance, bool(launcher)):
        faults, code, took = one(([*launcher, str(RANKS)] if backend == "mpi" else []) + run, right, named)
        wrong += faults
        codes, times = rows[backend, fault, place]
        codes.append(code)
        waited = code == 75 and (fault != "leave" or backend == "mpi")
        times.append(took - (deadline / 1000 if waited else 0))
    print(f"seed {arguments.seed}; seconds from the fault to the end, or from a deadline behind it, where ranks waited")
    print(f"{'backend':8} {'fault':18} {'place':7} {'runs':>5}  {'exit codes':12} {'median':>7} {'longest':>8}")
    for (backend, fault, place), (codes, times) in rows.items():
        shown = ", ".join(map(str, sorted(set(codes))))
        median = sorted(times)[len(times) // 2]
        print(f"{backend:8} {fault:18} {place:7} {len(codes):5}  {shown:12} {median:7.2f} {max(times):8.2f}")
    for words in wrong:
        print(words)
    print(f"{sum(len(codes) for codes, _ in rows.values())} runs, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
