#!/usr/bin/env python3
"""The run of every example is its plan, call by call, as tools/plan --run lays one over the other.

    planner_runs.py ROOT PLANNER COMPILER EXAMPLES       as planner.py
"""
import shutil
import subprocess
import sys

from planner import EXAMPLES, LADDER, Test

GPT_MESHES = ["data=1", "data=4", "tensor=4", "data=2,tensor=2"]


def laid(test, name, *arguments):
    program, record = test.examples / name, test.folder / name.replace("/", "-")
    done = subprocess.run([program, "--record", record, *arguments], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        return test.fault(f"{name} {' '.join(arguments)} ends with {done.returncode}: {done.stderr[-300:]}")
    test.plan(program, "--run", record, says=["every call and byte of ", " is the plan's"])
    for file in test.folder.glob(f"{record.name}.*"):
        file.unlink()


def main(*arguments):
    test = Test(*arguments)
    for name in EXAMPLES:
        if name != "gpt":
            laid(test, name)
    for name in LADDER:
        laid(test, f"ladder/{name}")
    for mesh in GPT_MESHES:
        laid(test, "gpt", "--mesh", mesh, "--steps", "2", "--sample", "0")
    shutil.rmtree(test.folder)
    print("\n".join(test.faults) or "no faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
