#!/usr/bin/env python3
"""Where tools/plan and records write and what they leave behind: links, writes that fail, signals, its own input, names with a newline.

    planner_files.py ROOT PLANNER COMPILER EXAMPLES       as planner.py
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from planner import Test

SOURCE = """#include <parallel/parallel.hpp>
using namespace parallel;
inline constexpr Axis ranks{"ranks_of_a_mesh_with_a_long_name"};
struct Mean {
  Parameter<float, Shape<16, 32 / ranks>> up;
  constexpr auto operator()(Distributed auto x) const { return mean(square(matmul(x, up))); }
};
constexpr auto& one = plan<Training<Mean, AdamW, Tensor<float, Shape<8, 16>>>, Mesh{ranks = 2}>;
"""


def small_files():
    """Writes fail behind the first page, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def signals_that_end():
    """As a shell in the foreground starts programs; in the background, or behind nohup, some are ignored."""
    for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ending, signal.SIG_DFL)


class Files(Test):
    def expect(self, holds, words):
        if not holds:
            self.fault(words)

    def run(self, *command, **more):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **more)

    def names(self, folder):
        return sorted(file.name for file in folder.iterdir())

    def links(self):
        """A link in the file's own place is followed, however long the chain; one that lies where a temporary file might is not."""
        mlp = self.examples / "mlp"
        folder, victim = self.folder / "links", self.folder / "victim"
        (folder / "deep").mkdir(parents=True)
        victim.write_text("mine")
        for name in ("plan.json.new", "lock.plan.new", "run.0.new"):
            (folder / name).symlink_to(victim)
        (folder / "first").symlink_to("second")
        (folder / "second").symlink_to(folder / "deep/plan.json")  # which is not there yet
        for _ in range(2):
            self.plan(mlp, "--json", "-o", folder / "first")
            self.plan(mlp, "--json", "-o", folder / "plan.json")
        self.expect((folder / "first").is_symlink() and (folder / "second").is_symlink(), "a link that stood for the output is gone")
        self.expect((folder / "deep/plan.json").read_text() == (folder / "plan.json").read_text() != "", "a link that stood for the output was not followed")
        self.plan(mlp, "--lock", "--lock-file", folder / "lock.plan")
        self.plan(mlp, "--check", "--lock-file", folder / "lock.plan")
        (folder / "run.1").symlink_to("deep/run.1")
        self.expect(self.run(mlp, "--record", folder / "run").returncode == 0, "mlp --record fails")
        self.expect((folder / "run.1").is_symlink() and (folder / "deep/run.1").exists(), "a link that stood for a record was not followed")
        self.plan(mlp, "--run", folder / "run")
        self.expect(victim.read_text() == "mine", "a file was overwritten through a link in the place of a temporary one")
        (folder / "ring").symlink_to("ring")
        self.plan(mlp, "--json", "-o", folder / "ring", code=74, says=["ring' cannot be written", "symbolic links"])
        wanted = ["deep", "first", "lock.plan", "lock.plan.new", "plan.json", "plan.json.new", "ring", "run.0", "run.0.new", "run.1", "run.2", "run.3", "second"]
        self.expect(self.names(folder) == wanted and self.names(folder / "deep") == ["plan.json", "run.1"], f"there are left {self.names(folder)}")
        (folder / "plan.json").chmod(0o640)
        self.plan(mlp, "--json", "-o", folder / "plan.json")
        self.expect((folder / "plan.json").stat().st_mode & 0o777 == 0o640, "an output may be read by others than before")

    def failed_writes(self):
        mlp, folder = self.examples / "mlp", self.folder / "full"
        folder.mkdir()
        before = "what was there"
        for name in ("plan.json", "lock.plan", "run.0"):
            (folder / name).write_text(before)
        for arguments, file in [(("--json", "-o", folder / "plan.json"), "plan.json"), (("--html", "-o", folder / "new.html"), "new.html")]:
            done = self.run(self.planner, mlp, *arguments, preexec_fn=small_files)
            self.expect(done.returncode == 74 and f"{file}' cannot be written: File too large" in done.stderr, f"a failed write of {file} ends with {done.returncode}: {done.stderr}")
        done = self.run(mlp, "--record", folder / "run", preexec_fn=small_files)
        warned = re.search(r"warning: the record '.*run\.\d' cannot be written: File too large", done.stderr)
        self.expect(done.returncode == 0 and warned, f"a failed record ends with {done.returncode}: {done.stderr}")  # the run goes on
        left = {name: (folder / name).read_text() for name in self.names(folder)}
        self.expect(left == {"lock.plan": before, "plan.json": before, **{f"run.{rank}": "" for rank in range(4)}}, f"failed writes leave {left}")
        self.plan(mlp, "--run", folder / "run", code=65, says=["run.0' is empty"])
        self.plan(mlp, "--json", "-o", "/dev/full", code=74, says=["'/dev/full' cannot be written: No space left"])

    def own_input(self):
        program, source = self.folder / "x.plan", self.folder / "own.cpp"
        shutil.copy(self.examples / "mlp", program)
        source.write_text(SOURCE)
        whole = program.read_bytes()
        (self.folder / "other").symlink_to(program)
        self.plan(program, "--lock", code=2, says=["x.plan' is the file that the plan is read from", "--lock-file"])
        self.plan(program, "--lock", "--mesh", "data=2", code=2, says=["is the file that the plan is read from"])
        self.plan(program, "--json", "-o", self.folder / "other", code=2, says=["is the file that the plan is read from", "-o"])
        self.plan(source, "--lock", "--lock-file", source, code=2, says=["is the file that the plan is read from"])
        self.expect(program.read_bytes() == whole and source.read_text() == SOURCE, "the input was overwritten")

    def newlines(self):
        """A source whose name or folder has a newline is planned, and shown in one line."""
        source = self.folder / "a\nb/c\nd.cpp"
        source.parent.mkdir()
        source.write_text(SOURCE)
        self.plan(source, says=["c?d.cpp:6", "ranks_of_a_mesh_with_a_long_name=2: 2 ranks", "on ranks_of_a_mesh_with_a_long_name"])
        self.plan(source, "--lock")
        self.plan(source, "--check")
        self.plan(source, "--mesh", "ranks_of_a_mesh_with_a_long_name=4", "--html", says=["c?d.cpp"])

    def signals(self):
        """Ended while it compiles, it leaves no folder and no process, and says by how it ends what ended it."""
        source, pids = self.folder / "signal.cpp", self.folder / "pids"
        source.write_text(SOURCE)
        compiler = self.folder / "compiler"  # and, as g++ has, a child of its own
        for ignores in ("", "trap '' TERM INT HUP\n"):
            compiler.write_text(f"#!/bin/sh\n{ignores}sleep 600 &\necho $$ $! > {pids}.new\nmv {pids}.new {pids}\nwait\nwait\n")
            compiler.chmod(0o755)
            for ending in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                scratch = self.folder / "scratch"
                scratch.mkdir()
                tool = subprocess.Popen([self.planner, source, "--compiler", compiler], env={**os.environ, "TMPDIR": str(scratch)},
                                        stderr=subprocess.PIPE, text=True, preexec_fn=signals_that_end)
                while not pids.exists() and tool.poll() is None:
                    time.sleep(0.01)
                self.expect(self.names(scratch) != [], "the compiler has no folder of its own")
                tool.send_signal(ending)
                said = tool.communicate(timeout=60)[1]
                self.expect(tool.returncode == -ending and said == "", f"ended by {ending}, it ends with {tool.returncode} and says {said!r}")
                self.expect(self.names(scratch) == [], f"ended by {ending}, it leaves {self.names(scratch)}")
                left = [pid for pid in pids.read_text().split() if self.runs(pid)]
                self.expect(left == [], f"ended by {ending}, it leaves the processes {left}")
                pids.unlink()
                shutil.rmtree(scratch)
        self.plan(source, "--compiler", "false", code=65, says=["does not compile"])
        nowhere = self.run(self.planner, source, env={**os.environ, "TMPDIR": "/no such folder"})
        self.expect(nowhere.returncode == 74 and "TMPDIR" in nowhere.stderr, f"without a temporary folder it ends with {nowhere.returncode}: {nowhere.stderr}")

    def runs(self, pid):
        for _ in range(100):  # until init has waited for it
            try:
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    return False
            except OSError:
                return False
            time.sleep(0.01)
        return True


def main(*arguments):
    test = Files(*arguments)
    for part in [test.links, test.failed_writes, test.own_input, test.newlines, test.signals]:
        try:
            part()
        except (OSError, subprocess.SubprocessError) as error:
            test.fault(f"{part.__name__}: {error!r}")
    shutil.rmtree(test.folder)
    print("\n".join(test.faults) or "no faults")
    return 1 if test.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
