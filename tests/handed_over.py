#!/usr/bin/env python3
"""What cannot be handed to a run does not compile: one error each, whose sentence says what to hand over. What can does.

    handed_over.py INCLUDE COMPILER...
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """#include <Eigen/Core>
#include <unsupported/Eigen/CXX11/Tensor>
#include <array>
#include <list>
#include <memory>
#include <vector>
#include <parallel/run/numbers.hpp>
const float two[] = {1, 2};
template <class A>
std::size_t count(A&& a) { return parallel::internals::numbers_of(a).size; }
"""
EIGEN = [f.replace("-I", "-isystem") for f in subprocess.run(["pkg-config", "--cflags", "eigen3"], capture_output=True, text=True).stdout.split()]
POINTER, COLUMNS, MEMORY, ELEMENTS = "a pointer does not say", "a column-major tensor", "must lie in memory", "the elements are none of"
REFUSED = [
    ("&two[0]", POINTER),
    ("static_cast<float*>(nullptr)", POINTER),
    ("Eigen::Tensor<float, 3>(2, 3, 4)", COLUMNS),
    ("Eigen::TensorMap<Eigen::Tensor<const float, 2>>(two, 1, 2)", COLUMNS),
    ("std::list<float>{1}", MEMORY),
    ("std::vector<bool>{true}", MEMORY),
    ("Eigen::VectorXf(2) + Eigen::VectorXf(2)", MEMORY),
    ("std::make_unique<float>(1.0F)", MEMORY),
    ("[](std::size_t) { return 1L; }", MEMORY),
    ("[](std::size_t) {}", MEMORY),
    ("std::vector<long>{1}", ELEMENTS),
    ("std::vector<unsigned char>{1}", ELEMENTS),
]
ACCEPTED = [
    "two",
    "two[0]",
    "7",
    "std::array<int, 2>{}",
    "std::vector<double>{1}",
    "[](std::size_t i) { return static_cast<float>(i); }",
    "[](std::size_t, std::span<double> run) { run[0] = 1; }",
    "[n = 0](std::size_t, std::span<int> run) mutable { run[0] = n++; }",
    "std::span<const float>(two)",
    "Eigen::VectorXf(2)",
    "Eigen::RowVectorXd(2)",
    "Eigen::Matrix<float, 2, 3, Eigen::RowMajor>()",
    "Eigen::MatrixXf(2, 3)",
    "Eigen::Map<const Eigen::MatrixXf>(two, 1, 2)",
    "Eigen::ArrayXXd(2, 3)",
    "Eigen::Matrix3f()",
    "Eigen::Tensor<float, 3, Eigen::RowMajor>(2, 3, 4)",
    "Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(two, 1, 2)",
]


def errors(compiler, include, expressions, folder):
    """The errors of a function for each expression, which are all of different types."""
    source = Path(folder) / "handed.cpp"
    source.write_text(HEAD + "".join(f"std::size_t f{i}() {{ return count({e}); }}\n" for i, e in enumerate(expressions)))
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", f"-I{include}", *EIGEN, str(source)]
    run = subprocess.run(command, capture_output=True, text=True)
    return [line for line in run.stderr.splitlines() if " error: " in line or " warning: " in line]


def main(include, compilers):
    compilers = [c for c in compilers if shutil.which(c)]
    faults = 0 if compilers else 1
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            found = errors(compiler, include, [expression for expression, _ in REFUSED], folder)
            wrong = [sentence for _, sentence in REFUSED if sum(sentence in e for e in found) != sum(s == sentence for _, s in REFUSED)]
            wrong += [e for e in found if not any(sentence in e for _, sentence in REFUSED)]
            wrong += errors(compiler, include, ACCEPTED, folder)
            faults += len(wrong)
            for what in wrong:
                print(f"{compiler}: not as often as expected: {what}")
    print(f"{len(REFUSED)} refused, {len(ACCEPTED)} accepted, {' '.join(compilers)}: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
