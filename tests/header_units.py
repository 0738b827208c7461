#!/usr/bin/env python3
"""Writes a unit for each header that includes it twice and nothing else, and prints their names: of headers that anything may include, then a line
`mpi`, then those that need MPI.

    header_units.py INCLUDE FOLDER

Headers that only CUDA or NCCL can compile are left to check_headers.py.
"""
import sys
from pathlib import Path

CUDA = ("device/cuda", "communicator/nccl", "run/cuda")
MPI = ("communicator/mpi",)


def main(include, folder):
    folder.mkdir(parents=True, exist_ok=True)
    units = {False: [], True: []}
    for header in sorted((include / "parallel").glob("**/*.hpp")):
        name = str(header.relative_to(include / "parallel"))
        if name.startswith(CUDA):
            continue
        unit = folder / (name.replace("/", "-").removesuffix(".hpp") + ".cpp")
        text = f"#include <parallel/{name}>\n" * 2
        if not unit.exists() or unit.read_text() != text:
            unit.write_text(text)
        units[name.startswith(MPI)].append(unit.name)
    print("\n".join([*units[False], "mpi", *units[True]]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
