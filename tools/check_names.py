#!/usr/bin/env python3
"""What is public, by header: the names that stand in namespace parallel itself and in its public namespaces.

    tools/check_names.py [--write]

Compares them with the list in docs/stability.md, or writes it there. All else stands in parallel::internals, so that no
other name can meet one of a program that says `using namespace parallel`. The format of the sources (tools/format) is
relied upon: what stands in a namespace begins in the first column."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "stability.md"
BEGIN, END = "<!-- names: tools/check_names.py -->\n", "<!-- end of names -->\n"
# of these the names are listed elsewhere: refusals in errors.md, operations' descriptions in operations.md
UNLISTED = {"refused", "figure", "operation", "assertion"}

KEYWORDS = r"(?:inline|constexpr|consteval|static|extern|explicit|PARALLEL_INLINE|\[\[\w+\]\])\s+"
PATTERNS = [
    re.compile(r"using internals::(\w+);"),
    re.compile(r"using (\w+) ="),
    re.compile(r"concept (\w+)"),
    re.compile(r"(?:struct|class|union|enum class|enum) (\w+)\b(?!\s*[(;])(?!.*\) \{$)"),
    re.compile(rf"(?:{KEYWORDS})*[\w:<>,*&\s.\[\]]*?[\s&*>](\w+)(?:<[^()]*>)?\s*[({{=;\[]"),
]


def declared(line):
    """The name that a line in the first column declares, or nothing."""
    line = re.sub(r"^template <.*?>\s*(?=\S)", "", line) if line.startswith("template <") else line
    line = re.sub(r"^requires\s*\(.*?\)\s(?=\w)", "", line)
    if not line.strip() or re.match(r"[}#/)\]:]|template\b|requires\b|namespace\b|static_assert|PARALLEL_[A-Z]+\(|extern template|friend|(?:struct|class) \w+;", line):
        return None
    for pattern in PATTERNS:
        if found := pattern.match(line):
            name = found.group(1)
            return None if name == "operator" or "operator" in line.split("(")[0] else name
    return None


def names_of(header):
    """{namespace: names}, in the order in which they stand."""
    spaces, names = [], {}
    for line in header.read_text().split("\n"):
        if opened := re.match(r"(?:inline )?namespace (?:PARALLEL_SHARED )?([\w:]+) \{$", line):
            spaces.append(opened.group(1))
        elif re.match(r"\}  // namespace", line):
            spaces.pop()
        elif spaces and not line.startswith(" "):
            where = "::".join(spaces)
            name = declared(line)
            if name and "internals" not in where and where.split("::")[0] == "parallel" and not UNLISTED & set(where.split("::")):
                inner = where[len("parallel"):].lstrip(":")
                listed = names.setdefault(inner, [])
                if name not in listed:
                    listed.append(name)
    if spaces:  # a namespace of one line, which the format closes without its name
        sys.exit(f"check_names: {header}: the namespace {spaces[-1]} is not closed with its name")
    return names


def page():
    rows = ["| header | names |\n", "|---|---|\n"]
    for header in sorted((ROOT / "include" / "parallel").rglob("*.hpp")):
        names = names_of(header)
        cells = [f"`{space}::`: " * bool(space) + ", ".join(f"`{n}`" for n in sorted(own)) for space, own in names.items() if own]
        if cells:
            rows.append(f"| `{header.relative_to(ROOT / 'include' / 'parallel')}` | {'; '.join(cells)} |\n")
    return "".join(rows)


def main():
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(f"check_names: unknown argument '{sys.argv[1]}'; say --write or nothing")
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    was, behind = rest.split(END, 1)
    now = page()
    if sys.argv[1:]:
        PAGE.write_text(before + BEGIN + now + END + behind)
        return
    for line in sorted(set(now.split("\n")) ^ set(was.split("\n"))):
        print(("not on the page: " if line in now else "not in the headers: ") + line)
    if now != was:
        sys.exit("check_names: docs/stability.md lists other public names than the headers have; put an internal name into "
                 "parallel::internals, or run tools/check_names.py --write and say it in CHANGELOG.md")


if __name__ == "__main__":
    main()
