"""rvma import through the program: samples and generated workloads of every format run with --check; bad files."""

import gzip
import pathlib
import subprocess
import sys
import tempfile
import unittest

from system_test import RVMA, SOURCE

IMPORTS = SOURCE.resolve() / "traces" / "imports"
GENERATE = SOURCE.resolve() / "scripts" / "generate-workload"
SAMPLES = {"goal": ["ring.goal"], "htsim": ["relay.cm"], "hpcc": ["racks.flow"],
           "chakra": ["pipeline.0.et", "pipeline.1.et", "pipeline.2.et"]}


def rvma(*arguments, stdin=b"", cwd=None):
    return subprocess.run([pathlib.Path(RVMA).resolve(), *map(str, arguments)], input=stdin, capture_output=True, cwd=cwd,
                          timeout=250)


def has_chakra():
    return rvma("import", "--from", "chakra", "missing.et").stderr.decode().find("without protobuf") < 0


class Import(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.dir = pathlib.Path(self.scratch.name)

    def formats(self):
        return [name for name in SAMPLES if name != "chakra" or has_chakra()]

    def check(self, *arguments):
        answer = rvma(*arguments)
        self.assertEqual(answer.returncode, 0, answer.stderr.decode())
        return answer

    def plays(self, name, files, *options, run=()):
        trace = self.dir / f"{name}.trace"
        answer = self.check("import", "--from", name, *files, "--output", trace, *options)
        self.assertEqual(answer.stderr, b"")
        said = self.check("run", trace, "--check", *run).stdout.decode()
        self.assertIn("Check: passed", said)
        self.assertNotIn("Unmatched", said)
        return trace

    def test_every_sample_plays(self):
        samples = [(name, SAMPLES[name]) for name in self.formats()]
        if has_chakra():
            samples.append(("chakra", [f"training.{rank}.et" for rank in range(4)]))
        for name, sample in samples:
            with self.subTest(name, sample=sample):
                files = [IMPORTS / file for file in sample]
                self.plays(name, files)
                self.plays(name, files, run=("--protocol", "rdma"))

    def test_generated_workloads_play(self):
        for name in self.formats():
            with self.subTest(name):
                output = self.dir / name
                subprocess.run([sys.executable, GENERATE, name, "--ranks", "6", "--rounds", "5", "--output", output],
                               check=True)
                files = sorted(self.dir.glob("chakra.*.et")) if name == "chakra" else [output]
                self.plays(name, files)

    def test_what_cannot_be_generated_is_an_error(self):
        (self.dir / "file").touch()
        for arguments, said in ((["chakra"], "expected --output PREFIX"), (["chakra", "--training"], "expected --output PREFIX"),
                                (["goal", "--output", self.dir / "no" / "x"], "/no/x: No such file or directory"),
                                (["chakra", "--output", self.dir / "no" / "x"], "/no/x.0.et: No such file or directory"),
                                (["hpcc", "--output", self.dir / "file" / "x"], "/file/x: Not a directory"),
                                (["hpcc", "--topology", self.dir / "no" / "t", "--output", self.dir / "x"], "/no/t: No such file"),
                                (["htsim", "--output", "/dev/full"], "/dev/full: No space left on device"),
                                (["goal", "--training"], "--training: goal has no such option; it is one of chakra"),
                                (["goal", "--topology", "t"], "--topology: goal has no such option; it is one of hpcc")):
            with self.subTest(arguments=arguments):
                done = subprocess.run([sys.executable, GENERATE, *map(str, arguments)], capture_output=True, text=True, cwd=self.dir)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(said, done.stderr)
                self.assertIn("generate-workload: error: ", done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_without_a_file_it_goes_to_standard_output(self):
        made = subprocess.run([sys.executable, GENERATE, "goal", "--ranks", "3"], capture_output=True, check=True).stdout
        subprocess.run([sys.executable, GENERATE, "goal", "--ranks", "3", "--output", self.dir / "goal"], check=True)
        self.assertEqual(made, (self.dir / "goal").read_bytes())
        self.assertIn(b"num_ranks 3\n", made)

    def test_collectives_play(self):
        if not has_chakra():
            self.skipTest("built without protobuf")
        subprocess.run([sys.executable, GENERATE, "chakra", "--training", "--ranks", "6", "--rounds", "3", "--size", "60000",
                        "--output", self.dir / "training"], check=True)
        trace = self.plays("chakra", sorted(self.dir.glob("training.*.et")))
        said = self.check("run", trace, "--check").stdout.decode()
        # A round: 30 messages of all-gather, 2 each of 3 all-to-alls, 60 of all-reduce, 30 of reduce-scatter.
        self.assertIn(f"Puts: {3 * (30 + 6 + 60 + 30)} ", said)

    def test_a_topology_comes_with_its_configuration(self):
        config = self.dir / "net.json"
        self.plays("hpcc", [IMPORTS / "racks.flow"], "--topology", IMPORTS / "racks.topology", "--config-output", config,
                   run=("--config", config))
        self.assertIn("link switch0 switch2 4\n", (self.dir / "net.json.links").read_text())

    def test_standard_input_and_packed_files(self):
        text = (IMPORTS / "ring.goal").read_bytes()
        plain = self.check("import", "--from", "goal", IMPORTS / "ring.goal").stdout
        packed = self.dir / "ring.gz"
        packed.write_bytes(gzip.compress(text))
        self.assertEqual(self.check("import", "--from", "goal", packed).stdout, plain)
        self.assertEqual(rvma("import", "--from", "goal", "-", stdin=text).stdout, plain)
        packed.write_bytes(gzip.compress(text)[:-9])
        self.assert_bad("1:1: error: truncated gzip file", "goal", packed)

    def assert_bad(self, expected, name, *files, options=()):
        out = self.dir / "bad.trace"
        answer = rvma("import", "--from", name, *files, "--output", out, *options)
        said = answer.stderr.decode()
        self.assertEqual(answer.returncode, 2, said)
        self.assertIn(expected, said)
        self.assertFalse(out.exists())

    def test_files_that_are_none(self):
        file = self.dir / "file"
        for name in ("goal", "htsim", "hpcc"):
            with self.subTest(name):
                file.write_bytes(b"")
                self.assert_bad("file:1:1: error: the file is empty", name, file)
                file.write_bytes(bytes(range(256)))
                self.assert_bad("file:1:1: error: this is a binary file", name, file)
                file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
                self.assert_bad("file:1:1: error: this is a Git-LFS pointer", name, file)
                self.assert_bad(":1:1: error: cannot open the ", name, self.dir / "missing")

    def test_a_sample_that_is_cut_off_is_refused(self):
        # All but the last line: within its last number no reader can tell.
        for name in self.formats():
            whole = (IMPORTS / SAMPLES[name][0]).read_bytes()
            others = [IMPORTS / file for file in SAMPLES[name][1:]]
            file = self.dir / "cut"
            for length in range(1, len(whole) - 30, max(1, len(whole) // 12)):
                with self.subTest(name, length=length):
                    file.write_bytes(whole[:length])
                    self.assert_bad(": error: ", name, file, *others)

    def test_lenient(self):
        file = self.dir / "flow"
        file.write_text((IMPORTS / "racks.flow").read_text() + "\nFirst line: # of flows\n")
        self.assert_bad("flow:10:1: error: the header promises 7 flows, this is more", "hpcc", file)
        answer = self.check("import", "--from", "hpcc", file, "--lenient")
        self.assertIn(b"flow:10:1: warning: the header promises 7 flows", answer.stderr)

    def test_the_command_line(self):
        sample = IMPORTS / "ring.goal"
        for expected, *arguments in [("--from is missing; expected one of goal, ", sample),
                                     ("did you mean 'goal'?", "--from", "gaol", sample),
                                     ("FILE is missing", "--from", "goal"),
                                     ("--topology: --from goal has no use for it", "--from", "goal", sample, "--topology", "x"),
                                     ("expected one file of --from goal", "--from", "goal", sample, sample),
                                     ("--latency: ", "--from", "goal", sample, "--latency", "soon"),
                                     ("--start-unit: unknown unit 'h'", "--from", "htsim", sample, "--start-unit", "h"),
                                     ("--config-output needs --topology", "--from", "hpcc", sample, "--config-output", "x")]:
            with self.subTest(arguments):
                answer = rvma("import", *arguments)
                self.assertEqual(answer.returncode, 2)
                self.assertIn(expected, answer.stderr.decode())


if __name__ == "__main__":
    unittest.main()
