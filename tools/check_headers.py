#!/usr/bin/env python3
"""Compiles parallel.hpp and the headers of CUDA and NCCL with nvcc, each alone and included twice. The others are targets of the build
(tests/header_units.py).

    check_headers.py INCLUDE BUILD --nvcc NVCC   with the flags of the tests

The headers of NCCL are left out where nccl.h is missing, those of NCCL over MPI where the build is without MPI.
"""
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def flags_of(source, build):
    """The compiler, and the flags that the build gives to a source; None where it does not compile it."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not entry["file"].endswith(source):
            continue
        words = shlex.split(entry["command"])
        with_value = [i for i, word in enumerate(words) if word in ("-o", "-MF", "-MQ", "-c")]
        dropped = {*with_value, *(i + 1 for i in with_value), *(i for i, word in enumerate(words) if word == "-MD")}
        return [word for i, word in enumerate(words) if i not in dropped]
    return None


def for_nvcc(flags, nvcc):
    kept = [re.sub("^-isystem", "--system-include=", flag) for flag in flags if re.match("-I|-D|-isystem", flag) and flag != "-DPARALLEL_LIBRARY"]
    return [nvcc, "-std=c++20", "-x", "cu", "--expt-relaxed-constexpr", *kept]


def run(command, build):
    done = subprocess.run(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"{shlex.join(command)}\n{done.stdout}")
    return done.returncode == 0


def main(include, build, nvcc):
    plain, mpi = flags_of("tests/main.cpp", build), flags_of("tests/mpi_main.cpp", build)
    plain, mpi = for_nvcc(plain, nvcc), mpi and for_nvcc(mpi, nvcc)
    folder = build / "headers-nvcc"
    folder.mkdir(exist_ok=True)
    has_nccl = subprocess.run([*plain, "-E", "-"], input="#include <nccl.h>", text=True, capture_output=True).returncode == 0

    def flags_for(name):
        if not name.startswith(("device/cuda", "communicator/nccl", "run/cuda")) and name != "parallel.hpp":
            return None
        if name.startswith(("communicator/nccl", "run/nccl")) and not has_nccl:
            return None
        return mpi if name.startswith("communicator/nccl_mpi") else plain

    def compiles(name):
        unit = folder / (name.replace("/", "-").removesuffix(".hpp") + ".cu")
        unit.write_text(f"#include <parallel/{name}>\n" * 2)
        return run([*flags_for(name), "-c", str(unit), "-o", str(unit.with_suffix(".o"))], build)

    names = sorted(str(header.relative_to(include / "parallel")) for header in include.glob("parallel/**/*.hpp"))
    chosen = [name for name in names if flags_for(name)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        good = all(list(pool.map(compiles, chosen)))
    print(f"{len(chosen)} headers")
    return 0 if good and chosen else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    if len(words) != 4 or words[2] != "--nvcc":
        sys.exit(__doc__)
    sys.exit(main(Path(words[0]), Path(words[1]), words[3]))
