#!/usr/bin/env python3
"""The rungs of examples/ladder are one program: each differs from the rung that its head names in the lines marked `// changed`, and in no other, and
all print the same losses. A rung that needs what no other has adds the lines marked `// added`. Its losses are its own, and those of the same program on
one rank: --one-rank runs it so and compares. A function that a change makes too long for its line stands on three, each of them marked, and counts as one.

    ladder.py FOLDER
    ladder.py --one-rank SOURCE PROGRAM
"""
import re
import subprocess
import sys
from pathlib import Path

DIFFERS = re.compile(r"differs? from rung (\d+)")
COUNT = {"One line differs": 1, "Two lines differ": 2, "Three lines differ": 3, "five differ": 5, "Ten lines differ": 10, "Eleven lines differ": 11}
ADDS = re.compile(r"(\d+) lines? (?:are|is) added")
MARK, ADDED = "// changed", "// added"
THREE = re.compile(r"^(.*\{) *// changed\n *(.*?) *// changed\n *\} *// changed$", re.MULTILINE)


def code(text):
    """The lines between the head and the expected output, without the name of the program and those that are added; which of them are marked; and how many
    are added."""
    body = THREE.sub(rf"\1 \2 }}  {MARK}", text[text.index("#include") : text.index("// Expected output:")]).splitlines()
    body = [re.sub(r'>\("\w+", mesh', ">(mesh", line) for line in body]
    shared = without_added(body)
    return [line.removesuffix(MARK).rstrip() for line in shared], [line.endswith(MARK) for line in shared], sum(line.endswith(ADDED) for line in body)


def without_added(body):
    """The lines that are not marked as added, and of the empty line behind such lines none."""
    return [line for before, line in zip(["", *body], body) if not line.endswith(ADDED) and (line or not before.endswith(ADDED))]


def losses(text):
    return re.findall(r"^(?:// )?(step .*)$", text, re.MULTILINE)


def one_rank(source, program):
    """A rung's losses on one rank are those that stand in it."""
    expected = losses(source.read_text("utf-8"))
    printed = losses(subprocess.run([program, "--one-rank"], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout)
    if expected and printed == expected:
        return 0
    print(f"{source.name}: on one rank it prints {printed}, and not {expected}")
    return 1


def main(folder):
    rungs = {int(path.name.split("_")[0]): path for path in sorted(folder.glob("[0-9]*_*.cpp"))}
    texts = {number: path.read_text("utf-8") for number, path in rungs.items()}
    faults = []
    for number, text in texts.items():
        name, (lines, marked, added) = rungs[number].name, code(text)
        if not losses(text) or (not added and losses(text) != losses(texts[1])):
            faults.append(f"{name}: other losses than rung 1's")
        if number == 1:
            continue
        head = " ".join(line.removeprefix("//").strip() for line in text[: text.index("#include")].splitlines())
        base = DIFFERS.search(head)
        if not base:
            faults.append(f"{name}: its head does not say from which rung it differs")
            continue
        before = code(texts[int(base[1])])[0]
        if len(lines) != len(before):
            faults.append(f"{name}: other lines than rung {base[1]}")
            continue
        for line, was, mark in zip(lines, before, marked):
            if (line != was) != mark:
                faults.append(f"{name}: {'differs, but is not marked' if line != was else 'is marked, but does not differ'}: {line}")
        said = [n for words, n in COUNT.items() if words in head]
        if said != [sum(marked)]:
            faults.append(f"{name}: {sum(marked)} lines are marked, its head says otherwise")
        if [int(n) for n in ADDS.findall(head)] != [added] * (added > 0):
            faults.append(f"{name}: {added} lines are added, its head says otherwise")
    print("\n".join([*faults, f"{len(rungs)} rungs, {len(faults)} faults"]))
    return 1 if faults or len(rungs) < 2 else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one-rank"] and len(sys.argv) == 4:
        sys.exit(one_rank(Path(sys.argv[2]), sys.argv[3]))
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
