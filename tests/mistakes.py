#!/usr/bin/env python3
"""Plants mistakes into the models of examples/, one at a time: each must be refused with exactly one error, a sentence of the library. Then meshes
of a command line: each must be refused at start-up with the same sentence.

    mistakes.py ROOT COMPILER...
    mistakes.py --each 2 ROOT COMPILER...        of each reason the first two
    mistakes.py --only TEXT ROOT COMPILER...     those that have the text in their name, reason or edits

tests/mistakes/NAME.txt holds the mistakes in examples/NAME.cpp. Of an example the part from `using namespace parallel;` to its first line that
runs something is compiled, with parallel.hpp only.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compilers import compile, precompiled, refused
from refusals import reasons

RUNS = {"matmul": "/// Runs a product", "mlp": "int main", "classify": "/// Trains on a mesh", "gpt": "struct Options"}
ASKS = {"classify": "constexpr auto& classify_plan = plan<Step, Mesh{data = 2, tensor = 2}>;\n"}  # what an example derives at start-up only


def model(root, name):
    text = (root / "examples" / f"{name}.cpp").read_text()
    included = "".join(f"#include <{header}>\n" for header in ("array", "string", "tuple", "vector"))
    return included + text[text.index("using namespace parallel;") : text.index(RUNS[name])] + ASKS.get(name, "")


def mistakes(root):
    """(example, line, what is wrong, reason, edits): a block has a line `# what: reason` and edits, `- before` lines that `+ after` lines replace."""
    for path in sorted((root / "tests/mistakes").glob("*.txt")):
        number, what, reason, edits = 0, None, None, []
        for at, line in enumerate([*path.read_text().splitlines(), ""], 1):
            if line.startswith("# "):
                number, (what, _, reason) = at, line[2:].rpartition(": ")
            elif line.startswith("-"):
                if not edits or edits[-1][1]:
                    edits.append(([], []))
                edits[-1][0].append(line[2:])
            elif line.startswith("+"):
                edits[-1][1].append(line[2:])
            elif not line and what:
                yield path.stem, number, what, reason, [("\n".join(before), "\n".join(after)) for before, after in edits]
                what, edits = None, []


def first(planted, each):
    """Of each reason the first `each` mistakes."""
    count = {}
    for mistake in planted:
        count[mistake[3]] = count.get(mistake[3], 0) + 1
        if count[mistake[3]] <= each:
            yield mistake


def main(root, compilers, only, each):
    sentences = reasons(root / "include")
    models = {name: model(root, name) for name in RUNS}
    planted = [m for m in mistakes(root) if only is None or any(only in str(part) for part in m)]
    planted = list(first(planted, each)) if each else planted
    compilers = [c for c in compilers if shutil.which(c)]
    if not compilers or not planted:
        print("no compiler or no mistake")
        return 1
    failures = 0
    with ThreadPoolExecutor(2) as pool, tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shutil.copytree(root / "include", folder / "include")
        flags = dict(zip(compilers, pool.map(lambda compiler: precompiled(compiler, folder / "include", folder), compilers)))

        def judge(job):
            compiler, (example, line, _, reason, edits) = job
            text = models[example]
            for before, after in edits:
                if text.count(before) != 1:
                    return [f"stands {text.count(before)} times in the example: {before}"]
                text = text.replace(before, after)
            source = folder / f"{example}-{line}-{compiler}.cpp"
            source.write_text(text)
            return refused(compiler, flags[compiler], source, reason, sentences[reason])[0]

        def whole(job):
            compiler, name = job
            source = folder / f"{name}-{compiler}.cpp"
            source.write_text(models[name])
            status, output = compile(compiler, *flags[compiler], source)
            return ["the example itself is refused:\n" + output[:1000]] if status else []

        for (compiler, name), found in zip([(c, n) for c in compilers for n in models], pool.map(whole, [(c, n) for c in compilers for n in models])):
            failures += bool(found)
            for fault in found:
                print(f"examples/{name}.cpp with {compiler}: {fault}")
        jobs = [(compiler, mistake) for mistake in planted for compiler in compilers]
        for (compiler, (example, line, what, *_)), found in zip(jobs, pool.map(judge, jobs)):
            failures += bool(found)
            for fault in found:
                print(f"mistakes/{example}.txt:{line} ({what}) with {compiler}: {fault}")
    kinds = len({m[3] for m in planted})
    print(f"{len(planted)} mistakes, {kinds} reasons, {' '.join(compilers)}: {failures} failures")
    return 1 if failures or (only is None and len(planted) < 50) else 0


def option(words, name):
    """The value of an option that stands first, which is taken away with it."""
    if words[:1] != [name]:
        return None
    value, words[:2] = words[1], []
    return value


if __name__ == "__main__":
    words = sys.argv[1:]
    only = option(words, "--only")
    each = int(option(words, "--each") or 0)
    sys.exit(main(Path(words[0]).resolve(), words[1:], only, each))
