#!/usr/bin/env python3
"""Builds and runs the consumer of one way, in a temporary folder, with an installation of its own where it needs one.

    build.py SOURCE_ROOT meson|pkg_config|cmake|fetch_content
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command):
    subprocess.run(list(map(str, command)), check=True, stdin=subprocess.DEVNULL)


def install(source, build, prefix):
    parts = [f"-D{part}=false" for part in ("tests", "examples", "tools", "benchmarks")]
    run("meson", "setup", build, source, f"--prefix={prefix}", *parts)
    run("meson", "install", "-C", build)


def main(source, way):
    with tempfile.TemporaryDirectory() as folder:
        prefix, consumer = Path(folder, "prefix"), Path(folder, "consumer")
        shutil.copytree(source / "tests/consumers" / way, consumer)
        shutil.copy(source / "tests/consumers/main.cpp", consumer)
        os.chdir(consumer)

        if way == "meson":
            os.mkdir("subprojects")
            os.symlink(source, "subprojects/parallel")
            run("meson", "setup", "build", "--force-fallback-for=parallel")
            run("ninja", "-C", "build")
        else:
            if way != "fetch_content":
                install(source, Path(folder, "build"), prefix)
            if way == "pkg_config":
                os.environ["PKG_CONFIG_PATH"] = str(prefix / "share/pkgconfig")
                run("sh", "build.sh")
            else:
                run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DFETCHCONTENT_SOURCE_DIR_PARALLEL={source}")
                run("cmake", "--build", "build", "--verbose")
        run("build/consumer")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2])
    except subprocess.CalledProcessError as error:
        sys.exit(str(error))
