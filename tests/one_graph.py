"""A program has one graph, whatever compiler made it and however it optimizes. Lines and spellings of types are no part of it.

    one_graph.py INCLUDE SOURCE COMPILER...    a COMPILER may have options behind it: 'g++-12 -O2'
"""
import subprocess
import sys
import tempfile
from pathlib import Path


def hashes(command, include, source, folder):
    """What the program prints that this command makes of the source."""
    program = folder / "program"
    compiler, *options = command.split()
    if Path(compiler).name == "nvcc":
        options += ["--expt-relaxed-constexpr", "-x", "cu"]
    subprocess.run([compiler, "-std=c++20", *options, f"-I{include}", source, "-o", program], check=True)
    return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


def main(include, source, *commands):
    with tempfile.TemporaryDirectory() as folder:
        made = {command: hashes(command, include, source, Path(folder)) for command in commands}
    first = made[commands[0]]
    if len(first.splitlines()) < 5:
        sys.exit(f"{commands[0]}: too few programs:\n{first}")
    for command, lines in made.items():
        if lines != first:
            sys.exit(f"the graphs of '{commands[0]}'\n{first}are not those of '{command}'\n{lines}")


main(*sys.argv[1:])
