#!/usr/bin/env python3
"""Holds how many steps clang's evaluation of constants takes for the longest pass of a program: its limit is 1,048,576 unless told otherwise, and a
program of a user's is larger than these. The steps of a Scan do not count, 4 or 512; where all parameters are stored split and layers computed again, a
plan takes at most a third more.

    constexpr_steps.py INCLUDE ROOT CLANG

What is held is a tenth above what was measured.
"""
import subprocess
import sys

OWN = "tests/constexpr_steps.cpp"
SCAN, GPT = 222_000, 420_000
# source, its PROGRAM: steps
STEPS = {
    ("examples/gpt.cpp", None): 230_000,
    ("examples/llama.cpp", None): 295_000,
    ("examples/ladder/7_hybrid.cpp", None): 195_000,
    (OWN, "Short"): SCAN,
    (OWN, "Long"): SCAN,
    (OWN, "Plain"): GPT,
    (OWN, "Again"): GPT * 4 // 3,
}


def compiles(include, source, program, clang, steps):
    command = [clang, "-std=c++20", f"-I{include}", "-isystem", "/usr/include/eigen3", "-DPARALLEL_LIBRARY", "-fsyntax-only", f"-fconstexpr-steps={steps}"]
    return subprocess.run([*command, *([f"-DPROGRAM={program}"] if program else []), source], capture_output=True, text=True)


def main(include, root, clang):
    over = 0
    for (source, program), steps in STEPS.items():
        name = f"{source} {program or ''}".strip()
        result = compiles(include, f"{root}/{source}", program, clang, steps)
        if result.returncode != 0:
            over += 1
            why = "takes more steps" if "step limit" in result.stderr else "does not compile"
            print(f"{name}: {why} with -fconstexpr-steps={steps}\n{result.stderr[:2000]}")
        if compiles(include, f"{root}/{source}", program, clang, steps // 2).returncode == 0:
            over += 1
            print(f"{name}: takes less than half of the {steps} steps that are held; hold fewer")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
