#!/usr/bin/env python3
"""Runs a program and compares what it prints with the comment in its source after the line `// Expected output:`.

    expect.py SOURCE COMMAND [ARGUMENT...]

The block ends with the comment. In it, `...` stands for any text within a line, and a line `// ...` for any lines.
"""
import re
import subprocess
import sys
from pathlib import Path

MARKER = "// Expected output:"


def expected_lines(source):
    lines = [line.strip() for line in source.read_text().splitlines()]
    if MARKER not in lines:
        sys.exit(f"{source} has no line '{MARKER}'")
    block = []
    for line in lines[lines.index(MARKER) + 1 :]:
        if not line.startswith("//"):
            break
        block.append(line[2:].removeprefix(" ").rstrip())
    return block


def pattern(lines):
    whole = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*?".join(map(re.escape, line.split("..."))) + r"\n" for line in lines
    )
    return re.compile(whole)


def main(source, *command):
    expected = expected_lines(Path(source))
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace")
    printed = "".join(line.rstrip() + "\n" for line in run.stdout.splitlines())
    if run.returncode == 0 and pattern(expected).fullmatch(printed):
        return 0
    print(f"{' '.join(command)} exited with {run.returncode} and printed:\n{printed}", end="")
    for end in range(1, len(expected) + 1):
        if not pattern(expected[:end]).match(printed):
            return f"expected line {end} of {source} is missing or out of place: {expected[end - 1]}"
    return "it exited with a failure" if run.returncode else "all expected lines are there, but more was printed"


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(*sys.argv[1:]))
