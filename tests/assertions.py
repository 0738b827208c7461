#!/usr/bin/env python3
"""Compiles every program of tests/assertions as it is, where its assertion holds, and with -DWRONG, where it fails: with exactly one error, whose
line is the sentence of the failure that the file names, with the figures that it names in the lines beside it, and with a note that leads to the
file.

    assertions.py INCLUDE FOLDER COMPILER...
"""
import re
import sys
from pathlib import Path

from compilers import on_each, twins


def sentences(include):
    text = (include / "parallel/question/assertion.hpp").read_text()
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
    found, output = twins(compiler, flags, source, name, sentences[name])
    if output and failure not in plain(output):
        seen = re.search(rf"\b{name}<.*", plain(output))
        found.append(f"{failure} is not in the notes, but {seen[0][:500] if seen else 'none'}")
    return found


def main(include, folder, compilers):
    known = sentences(include)
    sources = sorted(folder.glob("*.cpp"))
    missing = known.keys() - {failure_of(s).partition("<")[0] for s in sources}
    if missing:
        print("failures without a program:", ", ".join(sorted(missing)))
    failures = on_each(compilers, include, sources, lambda compiler, flags, source: faults(compiler, flags, source, known))
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
