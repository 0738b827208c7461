"""Runs compilers on programs that must not compile, and judges what they say: one error, and its line is a sentence of the library."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def is_nvcc(compiler):
    return Path(compiler).name == "nvcc"


def compile(compiler, *more):
    """The exit status and all that the compiler says."""
    warnings = [] if is_nvcc(compiler) else ["-Wall", "-Wextra", "-Wconversion", "-Wshadow"]
    command = [compiler, "-std=c++20", *warnings, *map(str, more)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, done.stdout


def precompiled(compiler, include, folder, headers=("parallel/parallel.hpp",), defined=()):
    """The flags that spare a compiler parsing the headers again: they are four fifths of every program."""
    if is_nvcc(compiler):  # it has no precompiled headers
        return ["--expt-relaxed-constexpr", f"-I{include}", "-x", "cu", "-c", "-o", "/dev/null"]
    header = folder / compiler / "header.hpp"
    header.parent.mkdir(parents=True)
    header.write_text("".join(f"#include <{name}>\n" for name in headers))
    target = header.with_suffix(".hpp.pch" if "clang" in compiler else ".hpp.gch")
    status, output = compile(compiler, *defined, f"-I{include}", "-x", "c++-header", header, "-o", target)
    if status != 0:
        sys.exit(output)
    return ["-fsyntax-only", *defined, f"-I{include}", "-include", header]


def refused(compiler, flags, source, name, sentence):
    """What is wrong with a program that must be refused with the sentence of `name`, as lines of text, and all that the compiler says. Where it is
    not refused at all, that is None."""
    status, output = compile(compiler, *flags, source)
    errors = [line for line in output.splitlines() if "error:" in line]
    if status == 0:
        return ["is not refused"], None
    said, found = [line[:300] for line in errors[:5]], []
    if len(errors) != 1:
        found.append("\n".join([f"{len(errors)} errors instead of one:", *said]))
    if not errors or sentence not in errors[0]:
        found.append("\n".join([f"the first error is not the sentence of {name}:", *said[:1]]))
    return found, output


def accepted(compiler, flags, sources, folder):
    """Whether programs are accepted without a word: all in one unit, each in a namespace of its own, so that the compiler starts once."""
    unit = folder / f"accepted-{Path(compiler).name}.cpp"
    texts = [source.read_text() for source in sources]
    headers = dict.fromkeys(header for text in texts for header in re.findall(r"^#include .*", text, re.MULTILINE))  # none within a namespace
    programs = [f'namespace program_{i} {{\n#include "{source.resolve()}"\n}}' for i, source in enumerate(sources)]
    unit.write_text("\n".join([*headers, *programs, ""]))
    return compile(compiler, *flags, f"-I{sources[0].parent}", unit) == (0, "")


def twins(compiler, flags, source, name, sentence):
    """As `refused`, of a program that must be refused with -DWRONG, with a note that leads to it."""
    found, output = refused(compiler, [*flags, "-DWRONG"], source, name, sentence)
    if output and not re.search(rf"{re.escape(source.name)}:\d+:\d+: *(note|required|  required|in .constexpr. expansion)|at line \d+ of .*{re.escape(source.name)}", output):
        found.append("no note leads to the program")
    return found, output


def on_each(compilers, include, sources, faults):
    """Prints what is wrong with each program under each compiler that is there: that it is not accepted as it is, and what
    `faults(compiler, flags, source)` says. Returns in how many."""
    compilers = [c for c in compilers if shutil.which(c)]
    if not compilers or not sources:
        print("no compiler or no program")
        return 1
    failures = 0
    jobs = [(compiler, source) for source in sources for compiler in compilers]
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(include, folder / "include")  # clang refuses a precompiled header if somebody edits one of its files meanwhile
        flags = dict(zip(compilers, pool.map(lambda compiler: precompiled(compiler, folder / "include", folder), compilers)))
        together = dict(zip(compilers, pool.map(lambda compiler: accepted(compiler, flags[compiler], sources, folder), compilers)))

        def judge(job):
            compiler, source = job
            found = faults(compiler, flags[compiler], source)
            if not together[compiler]:  # then which of them
                status, output = compile(compiler, *flags[compiler], source)
                if status != 0 or output:
                    found = ["the accepted twin is refused:\n" + output[:2000], *found]
            return found

        for (compiler, source), found in zip(jobs, pool.map(judge, jobs)):
            failures += bool(found)
            for fault in found:
                print(f"{source.name} with {compiler}: {fault}")
        for compiler in compilers:
            if not together[compiler]:
                print(f"with {compiler} the accepted twins are not accepted in one unit")
                failures += 1
    print(f"{len(sources)} programs, {' '.join(compilers)}: {failures} failures")
    return failures
