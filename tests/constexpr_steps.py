#!/usr/bin/env python3
"""Holds how many steps clang's evaluation of constants takes for the longest pass of a program: its limit is 1,048,576 unless told otherwise, and a
program of a user's is larger than these.

    constexpr_steps.py INCLUDE EXAMPLES CLANG

What is held is a tenth above what was measured.
"""
import subprocess
import sys

STEPS = {"gpt.cpp": 230_000, "llama.cpp": 295_000, "ladder/7_hybrid.cpp": 195_000}


def compiles(include, source, clang, steps):
    command = [clang, "-std=c++20", f"-I{include}", "-isystem", "/usr/include/eigen3", "-DPARALLEL_LIBRARY", "-fsyntax-only", f"-fconstexpr-steps={steps}"]
    return subprocess.run([*command, source], capture_output=True, text=True)


def main(include, examples, clang):
    over = 0
    for name, steps in STEPS.items():
        result = compiles(include, f"{examples}/{name}", clang, steps)
        if result.returncode != 0:
            over += 1
            why = "takes more steps" if "step limit" in result.stderr else "does not compile"
            print(f"{name}: {why} with -fconstexpr-steps={steps}\n{result.stderr[:2000]}")
        if compiles(include, f"{examples}/{name}", clang, steps // 2).returncode == 0:
            over += 1
            print(f"{name}: takes less than half of the {steps} steps that are held; hold fewer")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
