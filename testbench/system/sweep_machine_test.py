"""What the machine may do to a sweep: a full disk, outputs that cannot be written."""

import pathlib
import resource
import shutil
import subprocess
import unittest

from sweep_test import SweepTest
from system_test import RVMA

# What a run meets on a full disk: no byte can be written to any file. A pipe, such as stderr, is none.
FULL_DISK = "trap '' XFSZ; ulimit -f 0; exec \"{rvma}\" \"$@\""


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
        self.is_told(self.limited(100, spec, "--engine", "local", "--out", "o"), r"o/sweep\.json: File too large")
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


if __name__ == "__main__":
    unittest.main()
