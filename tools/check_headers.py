#!/usr/bin/env python3
"""Compiles every header alone and included twice, then links all to see that nothing is defined twice.

    check_headers.py INCLUDE BUILD               with the compiler and the flags of the tests
    check_headers.py INCLUDE BUILD --nvcc NVCC   parallel.hpp and the headers of CUDA and NCCL, with nvcc

The headers of MPI are left out where the build is without MPI, those of NCCL where nccl.h is missing.
"""
import itertools
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
    kept = [re.sub("^-isystem", "--system-include=", flag) for flag in flags if re.match("-I|-D|-isystem", flag)]
    return [nvcc, "-std=c++20", "-x", "cu", "--expt-relaxed-constexpr", *kept]


def run(command, build):
    done = subprocess.run(command, cwd=build, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"{shlex.join(command)}\n{done.stdout}")
    return done.returncode == 0


def main(include, build, nvcc=None):
    plain, mpi = flags_of("tests/main.cpp", build), flags_of("tests/mpi_main.cpp", build)
    if nvcc:
        plain, mpi = for_nvcc(plain, nvcc), mpi and for_nvcc(mpi, nvcc)
    folder = build / ("headers-nvcc" if nvcc else "headers")
    folder.mkdir(exist_ok=True)
    has_nccl = subprocess.run([*plain, "-E", "-"], input="#include <nccl.h>", text=True, capture_output=True).returncode == 0

    def flags_for(name):
        cuda = name.startswith(("device/cuda", "communicator/nccl", "run/nccl_on_gpu", "run/threads_on_gpu"))
        if cuda != bool(nvcc) and name != "parallel.hpp":
            return None
        if name.startswith(("communicator/nccl", "run/nccl")) and not has_nccl:
            return None
        return mpi if name.startswith(("communicator/mpi", "communicator/nccl_mpi")) else plain

    def compiles(name):
        unit = folder / (name.replace("/", "-").removesuffix(".hpp") + (".cu" if nvcc else ".cpp"))
        text = f"#include <parallel/{name}>\n" * 2
        if not unit.exists() or unit.read_text() != text:
            unit.write_text(text)
        target = str(unit.with_suffix(".o"))
        return target if run([*flags_for(name), "-c", str(unit), "-o", target], build) else None

    names = sorted(str(header.relative_to(include / "parallel")) for header in include.glob("parallel/**/*.hpp"))
    chosen = [name for name in names if flags_for(name)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        objects = list(pool.map(compiles, chosen))
    good = all(objects)
    if good and objects and not nvcc:
        compiler = itertools.takewhile(lambda word: not word.startswith("-"), plain)
        good = run([*compiler, "-nostdlib", "-r", *objects, "-o", str(folder / "all.o")], build)
    left_out = [name for name in names if name not in chosen] if not nvcc else []
    print(f"{len(chosen)} headers" + (f", left out: {' '.join(left_out)}" if left_out else ""))
    return 0 if good else 1


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--nvcc"]
    sys.exit(main(*map(Path, arguments[:2]), *arguments[2:]))
