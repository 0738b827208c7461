"""Peers of one benchmark: jobs that wait asleep for their turn, what they compute compared before anything is timed, and rows of their times."""
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

STEPS = 3
JEMALLOC = next(Path("/usr/lib").glob("*/libjemalloc.so.2"), None)
MKL_AS_ON_INTEL = Path(__file__).resolve().parents[2] / "build/bench/tools/bench/libmkl_as_on_intel.so"


def fast(jemalloc=False, mkl=True):
    """The environment in which PyTorch is fastest: pages that were touched stay, large ones are huge, as the programs by hand ask of malloc; and its MKL has its best kernels on
    every processor."""
    loaded = [JEMALLOC] if jemalloc and JEMALLOC else []
    malloc = ({"MALLOC_CONF": "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1"} if loaded else
              {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296"})
    if mkl and not intel():
        if not MKL_AS_ON_INTEL.exists():
            raise Failed(f"{MKL_AS_ON_INTEL.name} is not there, without which PyTorch is slower than it can be; run it through tools/bench/run, which builds")
        loaded.append(MKL_AS_ON_INTEL)
    return malloc | {"LD_PRELOAD": ":".join(map(str, loaded))}


def intel():
    return "GenuineIntel" in Path("/proc/cpuinfo").read_text()


class Failed(Exception):
    pass


class Peer:
    """A job that takes steps on request."""

    def __init__(self, name, command, environment=None):
        self.name = name
        self.times = []
        self.memory = 0
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=os.environ | (environment or {}))
        self.checked = {}
        while (line := self.line()) != "ready":
            name, _, value = line.rpartition(" ")
            if name:  # else the end of what gloo greets by
                self.checked[name] = float(value)

    def line(self):
        while line := self.process.stdout.readline():
            if re.fullmatch(r"ready|([a-z]\w* )?[-+.\d][-+.\de]*", line.strip()):  # gloo greets, several ranks in one line or none
                return line.strip()
        raise Failed(f"'{self.name}' ended with {self.process.wait()} before its time")

    def turn(self):
        self.process.stdin.write(f"{STEPS}\n")
        return float(self.line())

    def end(self):
        self.memory = memory_of(self.process.pid)
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise Failed(f"'{self.name}' ended with {self.process.returncode}")


def memory_of(process):
    """The most bytes that lay in memory of a process, and of those that it has started."""
    def read(name, key):
        try:
            return int(re.search(rf"^{key}:\s+(\d+)", Path(f"/proc/{name}/status").read_text(errors="replace"), re.MULTILINE)[1])
        except (OSError, TypeError):  # it has ended, or is the kernel's
            return 0

    started = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and read(entry.name, "PPid") == process]
    return 1024 * read(process, "VmHWM") + sum(map(memory_of, started))


def compare(peers, tolerance):
    """A peer that computes nothing, as a limit, names nothing."""
    first = peers[0]
    for peer in filter(lambda peer: peer.checked, peers[1:]):
        if peer.checked.keys() != first.checked.keys():
            raise Failed(f"'{peer.name}' names other gradients than '{first.name}'")
        for name, value in first.checked.items():
            if not abs(peer.checked[name] - value) <= tolerance * abs(value):
                raise Failed(f"'{peer.name}' has {peer.checked[name]:.9g} for {name}, '{first.name}' {value:.9g}: one of them is wrong")


def text(value):
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3}f}"


def row(benchmark, what, values, unit):
    print(f"| {benchmark:14} | {what:66} | {text(statistics.median(values)):>8} | {unit:24} | {text(min(values))} to {text(max(values))} |", flush=True)


def find_python(benchmark, what, wanted, statement):
    """A python that has `what`, PyTorch or JAX, with all that a statement imports, and NumPy: `wanted`, or the first of several places."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    named = [wanted] if wanted else [os.environ.get("PYTHON"), sys.executable, *(folder / "python3" for folder in folders)]
    for python in dict.fromkeys(shutil.which(str(name)) for name in named if name):
        if python and subprocess.run([python, "-c", "import numpy; " + statement], stderr=subprocess.DEVNULL).returncode == 0:
            return python
    if wanted:
        raise Failed(f"{wanted} has no {what} that can do '{statement}'")
    print(f"tools/bench/{benchmark}: no python here has {what}, so this peer is left out; name one by an option, or by PYTHON", file=sys.stderr)
    return None


def by_turns(makers, rounds, tolerance=1e-4):
    """The peers that `makers` start, each with its times; the others are compared with the first."""
    peers = [make() for make in makers]
    compare(peers, tolerance)
    for _ in range(rounds):
        for peer in peers:
            peer.times.append(peer.turn())
    for peer in peers:
        peer.end()
    return peers


def ratio(benchmark, case, one, other):
    row(benchmark, f"{case}: {one.name} / {other.name}", [a / b for a, b in zip(one.times, other.times)], "of the time")


def measure(benchmark, case, makers, rounds, tolerance=1e-4, rivals=None):
    """Rows of one case: each peer's time, and the first one's over those of so many rivals (all). Gives the peers."""
    peers = by_turns(makers, rounds, tolerance)
    for peer in peers:
        row(benchmark, f"{case}: {peer.name}", peer.times, "ms")
    for peer in peers[1:][:rivals]:
        ratio(benchmark, case, peers[0], peer)
    return peers
