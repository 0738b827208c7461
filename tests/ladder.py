#!/usr/bin/env python3
"""The rungs of examples/ladder are one program: each differs from the rung that its head names in the lines marked `// changed`, and in no other, and
all print the same losses. A function that a change makes too long for its line stands on three, each of them marked, and counts as one.

    ladder.py FOLDER
"""
import re
import sys
from pathlib import Path

DIFFERS = re.compile(r"differs? from rung (\d+)")
COUNT = {"One line differs": 1, "Two lines differ": 2, "five differ": 5, "Ten lines differ": 10, "Eleven lines differ": 11}
MARK = "// changed"
THREE = re.compile(r"^(.*\{) *// changed\n *(.*?) *// changed\n *\} *// changed$", re.MULTILINE)


def code(text):
    """The lines between the head and the expected output, without the name of the program, and which of them are marked."""
    body = THREE.sub(rf"\1 \2 }}  {MARK}", text[text.index("#include") : text.index("// Expected output:")]).splitlines()
    body = [re.sub(r'>\("\w+", mesh', ">(mesh", line) for line in body]
    return [line.removesuffix(MARK).rstrip() for line in body], [line.endswith(MARK) for line in body]


def main(folder):
    rungs = {int(path.name.split("_")[0]): path for path in sorted(folder.glob("[0-9]*_*.cpp"))}
    texts = {number: path.read_text("utf-8") for number, path in rungs.items()}
    faults = []
    for number, text in texts.items():
        name, (lines, marked) = rungs[number].name, code(text)
        losses = re.findall(r"^// step .*$", text, re.MULTILINE)
        if not losses or losses != re.findall(r"^// step .*$", texts[1], re.MULTILINE):
            faults.append(f"{name}: other losses than rung 1's")
        if number == 1:
            continue
        head = " ".join(line.removeprefix("//").strip() for line in text[: text.index("#include")].splitlines())
        base = DIFFERS.search(head)
        if not base:
            faults.append(f"{name}: its head does not say from which rung it differs")
            continue
        before, _ = code(texts[int(base[1])])
        if len(lines) != len(before):
            faults.append(f"{name}: other lines than rung {base[1]}")
            continue
        for line, was, mark in zip(lines, before, marked):
            if (line != was) != mark:
                faults.append(f"{name}: {'differs, but is not marked' if line != was else 'is marked, but does not differ'}: {line}")
        said = [n for words, n in COUNT.items() if words in head]
        if said != [sum(marked)]:
            faults.append(f"{name}: {sum(marked)} lines are marked, its head says otherwise")
    print("\n".join([*faults, f"{len(rungs)} rungs, {len(faults)} faults"]))
    return 1 if faults or len(rungs) < 2 else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(sys.argv[1])))
