#!/usr/bin/env python3
"""Compiles every program of tests/refusals as it is, which must be accepted, and with -DWRONG, which must be refused: with exactly one error, whose
line is the sentence of the reason that the file is named for (REASON.cpp or REASON.WHAT.cpp), with the figures that the file names, and with a note
that leads to the file.

    refusals.py INCLUDE FOLDER COMPILER...
    refusals.py --only NAME INCLUDE FOLDER COMPILER...
    refusals.py --half 1|2 INCLUDE FOLDER COMPILER...
"""
import argparse
import re
import sys
from pathlib import Path

from compilers import on_each, twins


def reasons(include):
    text = "".join((include / "parallel" / room / "refusal.hpp").read_text() for room in ("algebra", "schedule"))
    return dict(re.findall(r'^  reason\((\w+), "([^"]*)"', text, re.MULTILINE))


def named(figures):
    """The figures of a refusal as a compiler prints them, without the noise that differs between compilers."""
    figures = re.sub(r"parallel::(figure::|axes::)?|\s*&\s*|\(|\)", "", figures)
    figures = re.sub(r"'(.)'(, ?(?='))?", r"\1", figures)  # a name, letter by letter
    return re.sub(r"(\d)L?\b", r"\1", figures).replace("> >", ">>").strip()


def faults(compiler, flags, source, sentences):
    """What is wrong with one program under one compiler, as lines of text."""
    reason = source.name.split(".")[0]
    figures = re.search(r"^// figures: (.*)$", source.read_text(), re.MULTILINE)
    if reason not in sentences or not figures:
        return ["names no reason" if figures else "names no figures"]
    found, output = twins(compiler, flags, source, reason, sentences[reason])
    seen = output and re.search(rf"refused::{reason}<(?:Figures...> \[with Figures=<)?(.*?)>(?:['’:]|\]\")", output)
    if output and (not seen or named(seen[1]) != figures[1]):
        found.append(f"the figures {figures[1]} are not in the notes, but {named(seen[1]) if seen else 'none'}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--half", type=int, choices=(1, 2))
    parser.add_argument("include", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("compilers", nargs="+", metavar="compiler")
    words = parser.parse_args()
    sentences = reasons(words.include)
    sources = sorted(words.folder.glob("*.cpp"))
    missing = set(sentences) - {s.name.split(".")[0] for s in sources}
    if missing:
        print("reasons without a program:", ", ".join(sorted(missing)))
    if words.half:
        sources = sources[words.half - 1 :: 2]
    sources = [s for s in sources if words.only in s.name]
    failures = on_each(words.compilers, words.include, sources, lambda compiler, flags, source: faults(compiler, flags, source, sentences))
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main())
