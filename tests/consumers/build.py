#!/usr/bin/env python3
"""Builds and runs the consumer of one way, in a temporary folder, with an installation of its own where it needs one.

    build.py SOURCE_ROOT meson|fetch_content|installed|strict|headers [PRODUCTS]

`installed` is by pkg-config and by find_package, against what `meson install` leaves; `headers` without anything compiled ahead. Meson and CMake
take the headers for the system's: a warning that they give, and that the consumer turns on, is none of its project. `strict` compiles a training with
headers that are not, at the level of optimization at which g++ sees most; `headers` likewise. PRODUCTS is another library than Eigen for matrix products.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LEVEL = "x86-64-v3"
STRICT = "-Wfloat-equal -Werror"
STRICTEST = ["-O3", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast", "-Werror"]
LIBRARIES = {"openblas": "libopenblas", "onednn": "libdnnl", "mkl": "libmkl"}  # of matrix products, as their files are called
FAST = ["-Doptimization=1", "-Ddebug=false"]  # without the folder's name in it, a compilation is found again by ccache


def run(*command, env=None):
    subprocess.run(list(map(str, command)), check=True, stdin=subprocess.DEVNULL, env=env)


def install(source, build, prefix, products):
    """Installs, and looks at what is there: headers, what is compiled ahead, and how it is found; nothing else."""
    options = ["--libdir=lib", *FAST, "-Dtools=false", "-Dmpi=disabled", f"-Dlevels={LEVEL}", f"-Dproducts={products}"]
    run("meson", "setup", build, source, f"--prefix={prefix}", *options)
    run("meson", "install", "-C", build, "--quiet")
    there = {str(path.relative_to(prefix)) for path in prefix.glob("**/*") if not path.is_dir()}
    headers = {f"include/{path.relative_to(source / 'include')}" for path in (source / "include").glob("**/*") if path.is_file()}
    headers.remove("include/parallel/library/meson.build")
    kernels = "libparallel_kernels.so"
    compiled = {f"lib/{name}" for name in ("libparallel.a", kernels, f"{kernels}.0", f"{kernels}.0.1.0")}
    found = {f"lib/pkgconfig/{name}.pc" for name in ("parallel", "parallel-headers")}
    found |= {f"lib/cmake/parallel/parallel-config{name}.cmake" for name in ("", "-version")}
    if os.uname().machine == "x86_64":
        compiled.add(f"lib/glibc-hwcaps/{LEVEL}/{kernels}.0")
    wanted = headers | compiled | found
    if there != wanted:
        sys.exit(f"an installation lacks {sorted(wanted - there)} and has besides {sorted(there - wanted)}")


def loads(program, name):
    """The files with this in their name that the dynamic linker loads for a program."""
    said = subprocess.run([program], env={**os.environ, "LD_DEBUG": "libs"}, capture_output=True, text=True, check=True).stderr
    return {line.split()[-1] for line in said.splitlines() if "calling init" in line and name in Path(line.split()[-1]).name}


def links_with_another(prefix):
    """Whether a program of another compiler than the library's links; what it says otherwise names the compiler."""
    other = shutil.which("clang++-14") if os.environ["CXX"].split()[-1].startswith("g++") else shutil.which("g++")
    if other is None:
        return False
    env = {**os.environ, "CXX": other, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    built = subprocess.run(["sh", "build.sh"], capture_output=True, text=True, env=env)
    return built.returncode == 0 or "library_is_compiled_by_" not in built.stderr


def searches(level):
    """Whether the dynamic linker looks for libraries of a level on this machine."""
    linker = Path("/lib64/ld-linux-x86-64.so.2")
    return linker.exists() and f"{level} (supported" in subprocess.run([linker, "--help"], capture_output=True, text=True).stdout


def main(source, way, products="eigen"):
    compiler = os.environ.setdefault("CXX", "g++").split()
    with tempfile.TemporaryDirectory() as folder:
        prefix, consumer = Path(folder, "prefix"), Path(folder, "consumer")
        if way in ("strict", "headers"):
            eigen = subprocess.run(["pkg-config", "--cflags-only-I", "eigen3"], capture_output=True, text=True, check=True).stdout.replace("-I", "-isystem").split()
            command = [*compiler, "-std=c++20", f"-I{source / 'include'}", *eigen, "-pthread", *STRICTEST]
            if way == "strict":
                run(*command, "-DPARALLEL_LIBRARY", "-c", source / "tests/docs/own_loop.cpp", "-o", Path(folder, "own_loop.o"))
            else:
                run(*command, source / "tests/consumers/main.cpp", "-o", Path(folder, "main"))
                run(Path(folder, "main"))
            return
        shutil.copytree(source / "tests/consumers" / way, consumer)
        shutil.copy(source / "tests/consumers/main.cpp", consumer)
        os.chdir(consumer)
        strict = {**os.environ, "CXXFLAGS": STRICT}

        if way == "meson":
            os.mkdir("subprojects")
            os.symlink(source, "subprojects/parallel")
            run("meson", "setup", "build", "--force-fallback-for=parallel", f"-Dparallel:products={products}", *FAST, env=strict)
            run("ninja", "-C", "build")
        else:
            if way == "installed":
                install(source, Path(folder, "build"), prefix, products)
                run("sh", "build.sh", env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")})
                run("./main")
                has_level = searches(LEVEL)
                best = prefix / (f"lib/glibc-hwcaps/{LEVEL}" if has_level else "lib") / "libparallel_kernels.so.0"
                if loads("./main", "parallel_kernels") != {str(best)}:
                    sys.exit(f"it does not load {best} but {loads('./main', 'parallel_kernels')}")
                if links_with_another(prefix):
                    sys.exit("a program of another compiler than the library's links, or is not told why it does not")
            run("cmake", "-G", "Ninja", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DFETCHCONTENT_SOURCE_DIR_PARALLEL={source}", f"-DPARALLEL_PRODUCTS={products}", env=strict)
            run("cmake", "--build", "build", "--verbose")
        run("build/consumer")
        library = LIBRARIES.get(products, "")
        if library and not loads("build/consumer", library):
            sys.exit(f"it does not load {library}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except subprocess.CalledProcessError as error:
        sys.exit(str(error))
