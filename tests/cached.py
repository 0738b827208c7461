#!/usr/bin/env python3
"""What tools/cached finds again is what the compiler would have made: a precompiled header of a file that has changed in a comment, in a macro or in code is
made anew, and with it what uses it; a precompiled header and an object that nothing touched are found. Of g++; clang looks at times itself.

    cached.py CACHED COMPILER
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HEADER = "#pragma once\n// {comment}\n#define SIZE {macro}\ninline int one() {{ return {code}; }}\n"
FIRST = {"comment": "one", "macro": "1", "code": "1"}


def main(cached, compiler):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        env = {**os.environ, "CCACHE_DIR": f"{folder}/cache"}
        Path("made").mkdir()
        Path("all.hpp").write_text('#include "one.hpp"\n')

        def run(*command):
            return subprocess.run(command, check=True, env=env, capture_output=True, text=True).stdout

        def build(name, **changes):
            """The program that prints SIZE and one(), by a precompiled header that it includes once more; how many of two compilations were found."""
            Path("one.hpp").write_text(HEADER.format(**FIRST | changes))
            Path(f"{name}.cpp").write_text(f'#include "one.hpp"\n#include <cstdio>\nint main() {{ std::printf("%d %d", SIZE, one()); }}  // {name}\n')
            run("ccache", "--zero-stats")
            made = "made/all.hpp.gch"
            run(cached, compiler, "-std=c++20", "-I.", "-MD", "-MQ", made, "-MF", "made/all.d", "-o", made, "-c", "all.hpp")  # as Meson has it
            run(cached, compiler, "-fpch-preprocess", "-Imade", "-include", "all.hpp", "-std=c++20", "-I.", "-MD", "-MQ", f"{name}.o", "-MF", f"{name}.d", "-o", f"{name}.o", "-c", f"{name}.cpp")
            run(compiler, f"{name}.o", "-o", name)
            found = sum(int(line.split()[1]) for line in run("ccache", "--print-stats").splitlines() if line.startswith(("direct_cache_hit", "preprocessed_cache_hit")))
            return run(f"./{name}"), found

        wrong = []
        for name, changes, wanted in (("first", {}, ("1 1", 0)), ("first", {}, ("1 1", 2)), ("second", {"comment": "two"}, ("1 1", 0)), ("second", {"comment": "two", "macro": "2"}, ("2 1", 0)),
                                      ("second", {"comment": "two", "macro": "2", "code": "3"}, ("2 3", 0)), ("first", {}, ("1 1", 2))):
            if (got := build(name, **changes)) != wanted:
                wrong.append(f"{name} {changes}: prints and finds {got}, not {wanted}")
        sys.exit("\n".join(wrong) or None)


main(*sys.argv[1:])
