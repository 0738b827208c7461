#!/usr/bin/env python3
"""Holds docs/errors/ID.md, a page for each refusal, against the lists of refusals and the program tests/refusals/ID.cpp. tools/check_docs.py runs it.

A page has its identifier, its sentence, words of its own, and below the line `<!-- from tests/refusals/ID.cpp -->` what is cut from the program,
which tests/refusals.py compiles: the code with WRONG defined, what g++ says, the code without. --write brings all but the words up to date.
"""
import re

MARK = "<!-- from tests/refusals/{}.cpp -->"
LISTS = ["algebra/refusal.hpp", "schedule/refusal.hpp"]
REFUSAL = re.compile(r'^ *reason\((\w+), *"((?:[^"\\]|\\.)*)"', re.MULTILINE)


def sentences(root):
    return dict(found for file in LISTS for found in REFUSAL.findall((root / "include/parallel" / file).read_text("utf-8")))


def branch(program, wrong):
    """The program behind its using-lines, with or without WRONG."""
    kept, taken = [], True
    for line in re.split(r"using namespace parallel(?:::axes)?;\n", program)[-1].splitlines():
        if line == "#ifdef WRONG":
            taken = wrong
        elif line == "#else":
            taken = not wrong
        elif line == "#endif":
            taken = True
        elif taken:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n") + "\n"


def cut(root, reason, sentence):
    folder = root / "tests/refusals"
    program = (folder / f"{reason}.cpp").read_text("utf-8")
    what, figures = re.match(r"((?:// .*\n)+?)// figures: (.*)\n", program).groups()
    what = " ".join(line.removeprefix("// ") for line in what.splitlines())
    others = [path.name for path in sorted(folder.glob(f"{reason}.*.cpp"))]
    more = "" if not others else "\nMore programs: " + ", ".join(f"[{name}](../../tests/refusals/{name})" for name in others) + ".\n"
    return (
        f"{MARK.format(reason)}\n\n## Wrong\n\n{what}\n\n```cpp\n{branch(program, True)}```\n\n## The message\n\n"
        f"```text\nIn instantiation of 'struct parallel::refused::{reason}<{figures}>':\nerror: static assertion failed: {sentence}\n```\n\n"
        f"## Right\n\n```cpp\n{branch(program, False)}```\n{more}"
    )


def page(root, reason, sentence, old):
    words = old.split(MARK.format(reason))[0]
    words = re.sub(r"\A# .*\n+(> .*\n)?", "", words).strip("\n")
    return f"# `{reason}`\n\n> {sentence}\n\n{words}\n\n{cut(root, reason, sentence)}"


def faults(root, write):
    known = sentences(root)
    index = (root / "docs/errors.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| \[(\w+)\]\(errors/\1\.md\) \| (.*) \|$", index, re.MULTILINE))
    for reason in rows.keys() - known.keys():
        yield f"docs/errors.md: no list has the refusal {reason}"
    for path in (root / "docs/errors").glob("*.md"):
        if path.stem not in known:
            yield f"docs/errors/{path.name}: no list has the refusal {path.stem}"
    for reason, sentence in known.items():
        if rows.get(reason) != sentence.replace("|", "\\|"):
            yield f"docs/errors.md: the table needs the row | [{reason}](errors/{reason}.md) | {sentence} |"
        path = root / f"docs/errors/{reason}.md"
        old = path.read_text("utf-8") if path.exists() else ""
        if not (root / f"tests/refusals/{reason}.cpp").exists():
            yield f"tests/refusals/{reason}.cpp is missing: docs/errors/{reason}.md is cut from it"
            continue
        new = page(root, reason, sentence, old)
        if write and new != old:
            path.write_text(new, "utf-8")
            print(f"docs/errors/{reason}.md: brought up to date")
        elif new != old:
            yield f"docs/errors/{reason}.md is not what the code says; run tools/check_docs.py with --write"
        if re.search(r"^> .*\n+<!--", new, re.MULTILINE):
            yield f"docs/errors/{reason}.md: no words on what it means"
