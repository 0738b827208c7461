#!/usr/bin/env python3
"""Checks README.md, docs/*.md and docs/parallelism/*.md against the code that they speak of.

    check_docs.py ROOT PRINT_TABLES [--write]

PRINT_TABLES is the program of tests/docs/print_tables.cpp. Every block of code stands in a source that is compiled (or, of a build, in a
consumer that is built; of Python, in a test); a line `// ...` or `# ...` leaves lines out. Every printed block is what PRINT_TABLES prints: --write brings it up to
date. Links and files that are named exist. docs/errors.md has a row for every refusal and every exit code, and no other;
docs/errors has a page for every refusal (error_pages.py). docs/options.md has a row for every option of the build, macro and variable of the
environment. Public names that examples use stand in a document.
"""
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import dedent

import error_pages

SOURCES = {  # where a block of a language may stand
    "cpp": [("examples", "**/*.cpp"), ("tests", "**/*.cpp"), ("tests", "**/*.hpp")],
    "python": [("tests", "*.py")],
    "meson": [("tests/consumers", "**/meson.build")],
    "cmake": [("tests/consumers", "**/CMakeLists.txt")],
}
UNCHECKED = ["", "text", "sh", "md"]
FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^<!-- printed: (.+?) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED_FILE = re.compile(r"`\.?/?((?:include|examples|tests|tools|docs)/[\w./-]+)`")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
EXIT_CODE = re.compile(r"^inline constexpr int (\w+) = (\d+);", re.MULTILINE)


def without_fences(text):
    return FENCE.sub("", text)


def anchors(text):
    slugs = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(without_fences(text)))
    return set(slugs)


def pieces(block):
    """The lines of a block between those that leave lines out."""
    parts = [[]]
    for line in block.splitlines():
        if line.strip() in ("// ...", "# ..."):
            parts.append([])
        else:
            parts[-1].append(line.rstrip())
    parts = ["\n".join(part).strip("\n") for part in parts]
    return [dedent(part).splitlines() for part in parts if part]


def stands_in(parts, lines):
    """Whether a source has all parts, one behind the other, each indented as a whole."""
    at = 0
    for part in parts:
        for start in range(at, len(lines) - len(part) + 1):
            if lines[start].lstrip() == part[0] and dedent("\n".join(lines[start : start + len(part)])).splitlines() == part:
                at = start + len(part)
                break
        else:
            return False
    return True


@cache
def sources_of(root, language):
    paths = sorted({path for folder, pattern in SOURCES[language] for path in root.glob(f"{folder}/{pattern}")})
    return [[line.rstrip() for line in path.read_text("utf-8").splitlines()] for path in paths]


def code_faults(root, name, text):
    for _, language, block in FENCE.findall(text):
        if language in UNCHECKED:
            continue
        first = next((line.strip() for line in block.splitlines() if line.strip()), "")
        if language not in SOURCES:
            yield f"{name}: a block of '{language}', which nothing checks; it begins: {first}"
            continue
        parts = pieces(dedent(block))
        if not any(stands_in(parts, lines) for lines in sources_of(root, language)):
            folders = ", ".join(sorted({folder for folder, _ in SOURCES[language]}))
            yield f"{name}: this block stands in no source of {folders}; cut it from one. It begins: {first}"


def link_faults(root, name, text):
    for target in LINK.findall(without_fences(text)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (root / name).parent / file if file else root / name
        if not path.exists():
            yield f"{name}: the link {target} leads nowhere"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text("utf-8")):
            yield f"{name}: the link {target} leads to no heading of that file"
    for file in NAMED_FILE.findall(without_fences(text)):
        if not (root / file).exists():
            yield f"{name}: the file `{file}` does not exist"


def printed_blocks(program):
    blocks = {}
    for part in subprocess.run([program], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout.split("\n@ "):
        name, _, block = part.removeprefix("@ ").partition("\n")
        blocks[name] = block.strip("\n") + "\n"
    return blocks


def printed_faults(name, text, blocks, used):
    for block, content in PRINTED.findall(text):
        used.add(block)
        if block not in blocks:
            yield f"{name}: print_tables prints no block '{block}'"
        elif content != blocks[block]:
            old, new = content.splitlines(), blocks[block].splitlines()
            differs = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
            line = new[differs] if differs < len(new) else "(nothing more)"
            yield f"{name}: the printed block '{block}' differs from the code; run tools/check_docs.py with --write. Line {differs + 1} should be: {line}"


def up_to_date(text, blocks):
    return PRINTED.sub(lambda m: f"<!-- printed: {m[1]} -->\n{blocks.get(m[1], m[2])}<!-- end -->", text)


def error_faults(root):
    name = "docs/errors.md"
    text = (root / name).read_text("utf-8")
    codes = {(number, code) for code, number in EXIT_CODE.findall((root / "include/parallel/meta/failure.hpp").read_text("utf-8"))}
    rows = set(re.findall(r"^\| (\d+) \| `(\w+)` \|", text, re.MULTILINE))
    for number, code in sorted(codes ^ rows):
        yield f"{name}: the exit code {number} `{code}` stands only {'in meta/failure.hpp' if (number, code) in codes else 'there'}"


def option_faults(root):
    """What can be set from outside: the options of the build; macros that headers ask for, or leave defined; variables that they read or set."""
    name = "docs/options.md"
    headers = "".join(path.read_text("utf-8") for path in sorted((root / "include").rglob("*.?pp")))
    options = set(re.findall(r"^option\('(\w+)'", (root / "meson_options.txt").read_text("utf-8"), re.MULTILINE))
    defined = set(re.findall(r"^#define (PARALLEL_\w+)", headers, re.MULTILINE)) - set(re.findall(r"^#undef (PARALLEL_\w+)", headers, re.MULTILINE))
    asked = {macro for line in re.findall(r"^#(?:el)?if.*", headers, re.MULTILINE) for macro in re.findall(r"PARALLEL_\w+", line)}
    variables = set(re.findall(r"\b[gs]etenv\(\"(\w+)\"", headers))
    rows = set(re.findall(r"^\| `(\w+)` \|", (root / name).read_text("utf-8"), re.MULTILINE))
    there = options | defined | asked | variables
    for missing in sorted(there ^ rows):
        yield f"{name}: `{missing}` stands only {'in the code' if missing in there else 'there'}"


def name_faults(root, pages):
    """Public names that examples use and no document explains; the list of all names, docs/stability.md, does not."""
    public = set(re.findall(r"`(\w+)`", (root / "docs/stability.md").read_text("utf-8")))
    explained = set(re.findall(r"\w+", "".join(path.read_text("utf-8") for path in pages if path.name != "stability.md")))
    for path in sorted((root / "examples").rglob("*.?pp")):
        code = re.sub(r"//.*|\"[^\"\n]*\"", "", path.read_text("utf-8"))
        for word in sorted(set(re.findall(r"\w+", code)) & public - explained):
            yield f"{path.relative_to(root)}: no document says what {word} is"


def main(root, program, write):
    documents = [root / "README.md", *sorted((root / "docs").glob("*.md")), *sorted((root / "docs/parallelism").glob("*.md"))]
    blocks, used, faults = printed_blocks(program), set(), []
    for path in documents:
        name, text = str(path.relative_to(root)), path.read_text("utf-8")
        if write and up_to_date(text, blocks) != text:
            text = up_to_date(text, blocks)
            path.write_text(text, "utf-8")
            print(f"{name}: brought up to date")
        faults += code_faults(root, name, text)
        faults += link_faults(root, name, text)
        faults += printed_faults(name, text, blocks, used)
    faults += [f"no document quotes the printed block '{name}'" for name in blocks.keys() - used]
    faults += error_faults(root)
    faults += option_faults(root)
    faults += name_faults(root, documents)
    faults += error_pages.faults(root, write)
    for path in sorted((root / "docs/errors").glob("*.md")):
        faults += link_faults(root, str(path.relative_to(root)), path.read_text("utf-8"))
    print("\n".join([*faults, f"{len(documents)} documents, {len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    sys.exit(main(Path(arguments[0]).resolve(), arguments[1], "--write" in sys.argv))
