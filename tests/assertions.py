#!/usr/bin/env python3
"""Compiles every program of tests/assertions as it is, where its assertion holds, and with -DWRONG, where it fails: with exactly one error, whose
line is the sentence of the failure that the file names, with the figures that it names in the lines beside it, and with a note that leads to the
file.

    assertions.py INCLUDE FOLDER COMPILER...
"""
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from refusals import compile, precompiled


def sentences(include):
    text = (include / "parallel/plan/assertion.hpp").read_text()
    return dict(re.findall(r'^PARALLEL_FAILURE\((\w+), "([^"]*)"', text, re.MULTILINE))


def plain(output):
    """A compiler's spelling without namespaces: g++ writes (& parallel::axes::tensor), clang &parallel::axes::tensor or &tensor."""
    for pattern, text in [(r"\bparallel::(assertion::|axes::)?", ""), (r"\(& ?(\w+)\)", r"&\1"), (r" +>", ">")]:
        output = re.sub(pattern, text, output)
    return output


def failure_of(source):
    """The type that a program says its failure is; lines that begin with three spaces go on with it."""
    found = re.search(r"^// failure: (.*(?:\n//   .*)*)", source.read_text(), re.MULTILINE)
    return " ".join(line.lstrip("/ ") for line in found[1].splitlines()) if found else ""


def faults(compiler, flags, source, sentences):
    """What is wrong with one program under one compiler, as lines of text."""
    failure = failure_of(source)
    name = failure.partition("<")[0]
    if name not in sentences:
        return ["names no failure"]
    found = []
    status, output = compile(compiler, *flags, source)
    if status != 0 or output:
        found.append("what holds fails:\n" + output[:2000])
    status, output = compile(compiler, *flags, "-DWRONG", source)
    errors = [line for line in output.splitlines() if "error:" in line]
    if status == 0:
        return found + ["does not fail"]
    if len(errors) != 1:
        found.append(f"{len(errors)} errors instead of one:\n" + "\n".join(line[:300] for line in errors[:5]))
    if not errors or sentences[name] not in errors[0]:
        found.append(f"the first error is not the sentence of {name}:\n" + "\n".join(line[:300] for line in errors[:1]))
    if failure not in plain(output):
        seen = re.search(rf"\b{name}<.*", plain(output))
        found.append(f"{failure} is not in the notes, but {seen[0][:500] if seen else 'none'}")
    if not re.search(rf"{re.escape(source.name)}:\d+:\d+: *(note|required|  required)", output):
        found.append("no note leads to the program")
    return found


def main(include, folder, compilers):
    known = sentences(include)
    sources = sorted(folder.glob("*.cpp"))
    compilers = [c for c in compilers if shutil.which(c)]
    if not compilers or not sources:
        print("no compiler or no program")
        return 1
    failures = 0
    missing = known.keys() - {failure_of(s).partition("<")[0] for s in sources}
    if missing:
        failures += 1
        print("failures without a program:", ", ".join(sorted(missing)))
    jobs = [(compiler, source) for source in sources for compiler in compilers]
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as headers:
        headers = Path(headers)
        shutil.copytree(include, headers / "include")  # clang refuses a precompiled header if somebody edits one of its files meanwhile
        flags = dict(zip(compilers, pool.map(lambda compiler: precompiled(compiler, headers / "include", headers), compilers)))
        for (compiler, source), found in zip(jobs, pool.map(lambda job: faults(job[0], flags[job[0]], job[1], known), jobs)):
            failures += bool(found)
            for fault in found:
                print(f"{source.name} with {compiler}: {fault}")
    print(f"{len(sources)} programs, {' '.join(compilers)}: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
