#!/usr/bin/env python3
"""Compiles every program of tests/refusals as it is, which must be accepted, and with -DWRONG, which must be refused: with exactly one error, whose
line is the sentence of the reason that the file is named for (REASON.cpp or REASON.WHAT.cpp), with the figures that the file names, and with a note
that leads to the file.

    refusals.py INCLUDE FOLDER COMPILER...
    refusals.py --only NAME INCLUDE FOLDER COMPILER...
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path



def reasons(include):
    text = (include / "parallel/algebra/refusal.hpp").read_text()
    return dict(re.findall(r'^  reason\((\w+), "([^"]*)"', text, re.MULTILINE))


def is_nvcc(compiler):
    return Path(compiler).name == "nvcc"


def compile(compiler, *more):
    warnings = [] if is_nvcc(compiler) else ["-Wall", "-Wextra", "-Wconversion", "-Wshadow"]
    command = [compiler, "-std=c++20", *warnings, *map(str, more)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stdout


def named(figures):
    """The figures of a refusal as a compiler prints them, without the noise that differs between compilers."""
    figures = re.sub(r"parallel::(figure::|axes::)?|\s*&\s*|\(|\)", "", figures)
    return re.sub(r"(\d)L?\b", r"\1", figures).replace("> >", ">>").strip()


def precompiled(compiler, include, folder):
    """The flags that spare a compiler parsing the headers again: they are four fifths of every program."""
    if is_nvcc(compiler):  # it has no precompiled headers
        return ["--expt-relaxed-constexpr", f"-I{include}", "-x", "cu", "-c", "-o", "/dev/null"]
    header = folder / compiler / "header.hpp"
    header.parent.mkdir()
    header.write_text("#include <parallel/parallel.hpp>\n")
    target = header.with_suffix(".hpp.pch" if "clang" in compiler else ".hpp.gch")
    status, output = compile(compiler, f"-I{include}", "-x", "c++-header", header, "-o", target)
    if status != 0:
        sys.exit(output)
    return ["-fsyntax-only", f"-I{include}", "-include", header]


def faults(compiler, flags, source, sentences):
    """What is wrong with one program under one compiler, as lines of text."""
    reason = source.name.split(".")[0]
    figures = re.search(r"^// figures: (.*)$", source.read_text(), re.MULTILINE)
    if reason not in sentences or not figures:
        return ["names no reason" if figures else "names no figures"]
    found = []
    status, output = compile(compiler, *flags, source)
    if status != 0 or output:
        found.append("the accepted twin is refused:\n" + output[:2000])
    status, output = compile(compiler, *flags, "-DWRONG", source)
    errors = [line for line in output.splitlines() if "error:" in line]
    if status == 0:
        return found + ["is not refused"]
    if len(errors) != 1:
        found.append(f"{len(errors)} errors instead of one:\n" + "\n".join(line[:300] for line in errors[:5]))
    if not errors or sentences[reason] not in errors[0]:
        found.append(f"the first error is not the sentence of {reason}:\n" + "\n".join(line[:300] for line in errors[:1]))
    seen = re.search(rf"refused::{reason}<(?:Figures...> \[with Figures=<)?(.*?)>(?:['’:]|\]\")", output)
    if not seen or named(seen[1]) != figures[1]:
        found.append(f"the figures {figures[1]} are not in the notes, but {named(seen[1]) if seen else 'none'}")
    if not re.search(rf"{re.escape(source.name)}:\d+:\d+: *(note|required|  required)|at line \d+ of .*{re.escape(source.name)}", output):
        found.append("no note leads to the program")
    return found


def main(include, folder, compilers, only=None):
    sentences = reasons(include)
    sources = sorted(s for s in folder.glob("*.cpp") if only is None or only in s.name)
    missing = set(sentences) - {s.name.split(".")[0] for s in sources}
    failures = 0
    if only is None and missing:
        failures += 1
        print("reasons without a program:", ", ".join(sorted(missing)))
    compilers = [c for c in compilers if shutil.which(c)]
    if not compilers or not sources:
        print("no compiler or no program")
        return 1
    jobs = [(compiler, source) for source in sources for compiler in compilers]
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(include, folder / "include")  # clang refuses a precompiled header if somebody edits one of its files meanwhile
        flags = dict(zip(compilers, pool.map(lambda compiler: precompiled(compiler, folder / "include", folder), compilers)))
        for (compiler, source), found in zip(jobs, pool.map(lambda job: faults(job[0], flags[job[0]], job[1], sentences), jobs)):
            failures += bool(found)
            for fault in found:
                print(f"{source.name} with {compiler}: {fault}")
    print(f"{len(sources)} programs, {' '.join(compilers)}: {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    only = words.pop(1) if words and words[0] == "--only" else None
    if only is not None:
        words.pop(0)
    sys.exit(main(Path(words[0]), Path(words[1]), words[2:], only))
