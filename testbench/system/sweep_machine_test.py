"""What the machine may do to a sweep: a full disk, outputs that cannot be written, another program in the place of the one that
it began with, an end without warning."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time
import unittest

from sweep_test import SweepTest
from system_test import RVMA

from rvma_explore.mistakes import Mistakes
from rvma_explore.program import Program

# What a run meets on a full disk: no byte can be written to any file. A pipe, such as stderr, is none.
FULL_DISK = "trap '' XFSZ; ulimit -f 0; exec \"{rvma}\" \"$@\""


def wait_until(test, happened, seconds=250):
    end = time.monotonic() + seconds
    while not happened():
        test.assertLess(time.monotonic(), end, "it did not happen in time")
        time.sleep(0.02)


def with_files_up_to(size):
    """Before the program starts: files of at most `size` bytes. Python is told of it by an OSError (EFBIG)."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class SweepDisk(SweepTest):
    def limited(self, size, *arguments, module="sweep", stdout=subprocess.PIPE):
        command = self.command(*arguments)
        command[2] = f"rvma_explore.{module}"
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=280, cwd=self.tmp,
                              env=self.environment(RVMA=str(pathlib.Path(RVMA).absolute())), preexec_fn=with_files_up_to(size))

    def is_told(self, done, said):
        """A message and exit status 2, and nothing half-written."""
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "(?m)^rvma: error: .*" + said)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual([str(path) for path in self.tmp.rglob("*.partial.*")], [])

    def test_a_run_that_cannot_write_its_results_is_tried_again(self):
        self.doom(1, FULL_DISK.format(rvma=pathlib.Path(RVMA).absolute()))
        spec = self.spec(seeds=[1, 2], retries=1)
        for engine in ("local", "snakemake") if shutil.which("snakemake") else ("local",):
            with self.subTest(engine=engine):
                self.log.write_text("")
                done = self.sweep(spec, "--engine", engine, "--out", engine, status=1)
                self.assertRegex(done.stderr, r"seed=1: killed: .*/\S+: error: cannot be \w+: File too large")
                self.assertEqual((self.runs_of(1), self.runs_of(2)), (2, 1))
        pathlib.Path(f"{self.log}.1").unlink()
        self.sweep(spec, "--engine", "local", "--out", "local")
        self.assertEqual([row["status"] for row in self.results("local")], ["ok", "ok"])

    def test_a_directory_that_cannot_be_written_ends_the_sweep_with_a_message(self):
        self.rvma("gen", "pingpong", "--output", self.tmp / "t.trace")
        spec = self.spec(seeds=[1, 2, 3], traces=["t.trace"])
        self.is_told(self.limited(100, spec, "--engine", "local", "--out", "o"), r"o/\S+: File too large")
        (self.tmp / "file").touch()
        self.is_told(self.limited(10 ** 7, spec, "--engine", "local", "--out", "file/x"), "Not a directory")

    def test_gathering_where_there_is_no_room_keeps_what_was_there(self):
        self.sweep(self.spec(seeds=[1, 2]), "--engine", "local", "--out", "o")
        held = {path.name: path.read_bytes() for path in (self.tmp / "o").glob("[rch]*.*")}
        sizes = {name: len(data) for name, data in held.items()}
        self.assertEqual(sorted(sizes), ["columns.csv", "host.csv", "results.csv", "results.sqlite"])
        below = max(size for name, size in sizes.items() if name.endswith(".csv")) + 1
        self.assertLess(below, sizes["results.sqlite"])
        for size, said in ((500, r"results\.csv: File too large"), (below, r"results\.sqlite: cannot be written: ")):
            with self.subTest(size=size):
                self.is_told(self.limited(size, "--gather", "o"), said)
                self.assertEqual({name: (self.tmp / "o" / name).read_bytes() for name in held}, held)

    def test_an_output_that_cannot_be_written_is_told(self):
        spec = self.spec(seeds=[1, 2])
        for module, arguments in (("sweep", [spec, "--dry-run"]), ("regress", ["--list"])):
            with self.subTest(module=module, arguments=arguments), open(self.tmp / "out", "w") as out:
                done = self.limited(10 ** 5, *arguments, module=module, stdout=out)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.is_told(self.limited_output(module, arguments), "cannot write: ")

    def limited_output(self, module, arguments):
        """With a standard output that takes nothing more: a file at its greatest size."""
        with open(self.tmp / "full", "w") as out:
            out.write("x" * 10 ** 5)
            out.flush()
            return self.limited(10 ** 5, *arguments, module=module, stdout=out)


class SweepProgram(SweepTest):
    """All points of a sweep are run by the program whose hash they have."""

    def test_a_program_that_is_replaced_meanwhile_is_not_what_runs(self):
        for engine in ("local", "snakemake") if shutil.which("snakemake") else ("local",):
            for how in ("in place", "anew", "forbidden"):
                with self.subTest(engine=engine, how=how):
                    self.replaced_meanwhile(engine, how, f"{engine} {how}")

    def replaced_meanwhile(self, engine, how, out):
        self.log.write_text("")
        self.program.unlink(missing_ok=True)
        self.make_program(pause=0.3)
        spec = self.spec(seeds=list(range(1, 6)))
        sweep = subprocess.Popen(self.command(spec, "--out", out, "--jobs", "1", "--engine", engine), cwd=self.tmp,
                                 env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(self, lambda: self.runs_of() >= 1)
        if how == "anew":
            self.program.unlink()
        if how == "forbidden":
            self.program.chmod(0)
        else:
            self.program.write_text("#!/bin/sh\necho 'rvma: error: the new program' >&2\nexit 3\n")
            self.program.chmod(0o755)
        said, _ = sweep.communicate(timeout=200)
        self.assertEqual(sweep.returncode, 0, said)
        self.assertEqual([row["status"] for row in self.results(out)], ["ok"] * 5)
        self.assertEqual(self.runs_of(), 5)

    def test_a_program_that_changes_before_the_first_run_is_told(self):
        program = Program(self.program)
        self.program.write_text(self.program.read_text() + "# another\n")
        with self.assertRaises(Mistakes) as told:
            program.copy_to(self.tmp / "program" / "rvma")
        self.assertIn("has changed meanwhile", told.exception.lines[0])

    def test_a_program_that_cannot_be_started_leaves_the_points_for_the_next_time(self):
        # As where the directory is lost for a while: the copy goes away after the first run.
        self.doom(1, f'rm "{self.tmp}/o/program/rvma"')
        spec = self.spec(seeds=[1, 2, 3])
        done = self.sweep(spec, "--engine", "local", "--jobs", "1", "--out", "o", status=2)
        self.assertRegex(done.stderr, "rvma: error: sweep: .*program/rvma: No such file.* goes on where it stopped")
        self.assertNotIn("Traceback", done.stderr)
        pathlib.Path(f"{self.log}.1").unlink()
        self.assertIn("2 to run, 1 finished", self.sweep(spec, "--engine", "local", "--out", "o").stdout)
        self.assertEqual([row["status"] for row in self.results("o")], ["ok"] * 3)


class SweepParent(SweepTest):
    """A sweep that is killed alone takes with it all that it has started."""

    def killed_alone(self, engine):
        for seed in range(3, 9):
            self.doom(seed, "sleep 90")
        spec = self.spec(seeds={"from": 1, "to": 8})
        command = self.command(spec, "--out", "o", "--jobs", "2", "--engine", engine)
        sweep = subprocess.Popen(command, cwd=self.tmp, env=self.environment(), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.addCleanup(sweep.wait)
        self.addCleanup(sweep.kill)
        wait_until(self, lambda: self.runs_of() >= 3)
        sweep.kill()
        sweep.wait()
        wait_until(self, lambda: not self.left_over(), seconds=60)
        begun = self.runs_of()
        self.assertLess(begun, 8)
        told = subprocess.run([*command[:2], "rvma_explore.report", "o"], capture_output=True, text=True, cwd=self.tmp,
                              env=self.environment())
        self.assertEqual(told.returncode, 2)
        self.assertIn("rvma sweep --gather o does it", told.stderr)
        for seed in range(3, 9):
            pathlib.Path(f"{self.log}.{seed}").unlink()
        done = self.sweep(spec, "--out", "o", "--engine", engine)
        self.assertRegex(done.stdout, r"\d to run, [12] finished in o")
        self.assertIn("Points: 8 ok", done.stdout)

    def left_over(self):
        """Processes that work in the sweep's directory, but for the `sleep` of a run that was killed."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if self.tmp.resolve() in [place := pathlib.Path(os.readlink(entry / "cwd")), *place.parents]:
                    found.append((entry / "cmdline").read_bytes())
            except OSError:  # it has ended, or is another user's
                continue
        return [words for words in found if words and not words.startswith(b"sleep\0")]

    def test_processes_of_this_machine(self):
        self.killed_alone("local")

    @unittest.skipUnless(shutil.which("snakemake"), "snakemake is not installed: scripts/setup does it")
    def test_snakemake(self):
        self.killed_alone("snakemake")

    def interrupted(self, engine, number, *, deaf=False):
        """The sweep alone gets signal `number`. `deaf`: SIGINT is ignored when it starts, as of a script's background jobs."""
        self.make_program(pause=0.5)
        self.log.write_text("")
        out = f"{engine} {number}"
        command = self.command(self.spec(seeds={"from": 1, "to": 50}), "--out", out, "--jobs", "1", "--engine", engine)
        sweep = subprocess.Popen(["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command] if deaf else command, cwd=self.tmp,
                                 env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(sweep.kill)
        wait_until(self, lambda: self.runs_of() >= 2)
        before = self.runs_of()
        sweep.send_signal(number)
        said, errors = sweep.communicate(timeout=60)
        self.assertEqual(sweep.returncode, 1)
        self.assertLessEqual(self.runs_of(), before + 2)  # the one that had ended when the signal came, and the next
        self.assertRegex(said, r"Points: \d+ ok, \d+ not run")
        self.assertNotIn("seed=", errors)
        self.assertLessEqual(len(errors.splitlines()), 3, errors)
        self.assertIn("goes on where it stopped", errors.splitlines()[-1])
        wait_until(self, lambda: not self.left_over(), seconds=10)

    def test_an_interrupt_ends_it_soon_and_says_how_to_go_on(self):
        for engine in ("local", "snakemake") if shutil.which("snakemake") else ("local",):
            for number, deaf in ((signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)):
                with self.subTest(engine=engine, number=number, deaf=deaf):
                    self.interrupted(engine, number, deaf=deaf)

    @unittest.skipUnless(shutil.which("snakemake"), "snakemake is not installed: scripts/setup does it")
    def test_a_stop_from_the_terminal_stops_what_it_has_started(self):
        self.make_program(pause=0.3)
        spec = self.spec(seeds={"from": 1, "to": 12})
        sweep = subprocess.Popen(self.command(spec, "--out", "o", "--jobs", "1", "--quiet"), cwd=self.tmp, env=self.environment())
        self.addCleanup(sweep.kill)
        wait_until(self, lambda: self.runs_of() >= 2)
        sweep.send_signal(signal.SIGTSTP)
        wait_until(self, lambda: pathlib.Path(f"/proc/{sweep.pid}/stat").read_text().split()[2] == "T", seconds=20)
        begun = self.runs_of()
        time.sleep(1.5)
        self.assertEqual(self.runs_of(), begun)
        self.assertLess(begun, 12)
        sweep.send_signal(signal.SIGCONT)
        self.assertEqual(sweep.wait(60), 0)
        self.assertEqual(self.runs_of(), 12)


if __name__ == "__main__":
    unittest.main()
