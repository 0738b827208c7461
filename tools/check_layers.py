#!/usr/bin/env python3
"""Checks that a header includes only what its folder may include.

    check_layers.py INCLUDE/PARALLEL
"""
import re
import sys
from pathlib import Path

# folder: the folders that its row names; it may include what those may include, too
LAYERS = {
    "meta": [],
    "file": ["meta"],
    "algebra": ["meta"],
    "graph": ["algebra"],
    "operation": ["graph"],
    "model": ["operation"],
    "schedule": ["meta"],
    "account": ["operation"],
    "program": ["model", "schedule"],
    "plan": ["program", "account"],
    "question": ["plan"],
    "cost": ["plan"],
    "object": ["plan"],
    "device": ["account"],
    "communicator": ["algebra"],
    "data": ["plan", "device", "file"],
    "run": ["question", "device", "communicator", "file"],
}
PURE = ["meta", "file", "algebra", "graph", "operation", "model", "schedule", "account", "program", "plan", "question", "cost", "object"]  # these never see what BACKEND matches
BACKEND = re.compile(r"(unsupported/)?Eigen/|mpi\.h$|boost/mpi|cu(da|blas|rand|b/|tensor|tlass)|nccl|nvtx")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def allowed(folder):
    return {folder}.union(*map(allowed, LAYERS[folder]))


def faults(header, root):
    folder = header.relative_to(root).parts[0]
    if folder not in LAYERS:
        yield f"folder {folder}/ has no row in {Path(__file__).name}"
        return
    for bracket, name in INCLUDE.findall(header.read_text()):
        part = name.split("/")
        if bracket == '"':
            yield f'includes "{name}"; write <parallel/folder/file.hpp>'
        elif part[0] == "parallel" and (len(part) < 3 or part[1] not in allowed(folder)):
            yield f"includes <{name}>; {folder}/ may include {', '.join(sorted(allowed(folder)))}"
        elif name == "boost/hana.hpp":
            yield "includes all of Boost.Hana; include the granular headers"
        elif folder in PURE and BACKEND.match(name):
            yield f"includes <{name}>; {folder}/ never sees Eigen, MPI or CUDA"


def main(root):
    headers = sorted(header for header in root.rglob("*.[hi]pp") if header.parent != root)
    count = 0
    for header in headers:
        for fault in faults(header, root):
            print(f"{header.relative_to(root)} {fault}")
            count += 1
    print(f"{len(headers)} headers, {count} faults")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
