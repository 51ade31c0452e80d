"""rvma regress: what is the same passes, what is not is told so that one can read it."""

import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from xml.etree import ElementTree

from system_test import RVMA

TRACE = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=4KiB
  post_buffer w as=b size=4KiB
  barrier
  wait b
rank 0
  barrier
  put rank=1 mailbox=1 size=4KiB
  wait all
"""
MANIFEST = {"schema": "rvma-regress/1",
            "runs": [{"name": "put", "trace": "put.trace", "protocols": ["rvma", "rdma"]},
                     {"name": "ping", "gen": ["pingpong", "--iterations", "5"]}]}


class Regress(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        (self.dir / "put.trace").write_text(TRACE)
        self.manifest(MANIFEST)

    def manifest(self, manifest):
        (self.dir / "regress.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest))

    def regress(self, *arguments, status=0):
        answer = subprocess.run([pathlib.Path(RVMA).resolve(), "regress", self.dir, *arguments], capture_output=True,
                                text=True, timeout=250)
        self.assertEqual(answer.returncode, status, answer.stdout + answer.stderr)
        return answer.stdout + answer.stderr

    def test_without_expectations_it_fails_and_says_how_to_make_them(self):
        said = self.regress(status=1)
        self.assertIn("put.rvma: no expectation", said)
        self.assertIn("rvma regress --update --filter '^put\\.rvma'", said)
        self.assertIn("put.rvma: new, ", self.regress("--update"))
        self.assertEqual(self.regress(), "3 runs: 3 same\n")
        self.assertIn("3 unchanged", self.regress("--update"))

    def test_jobs_change_nothing(self):
        self.regress("--update", "--jobs", "1")
        before = {path.name: path.read_bytes() for path in (self.dir / "expected").iterdir()}
        for path in (self.dir / "expected").iterdir():
            path.unlink()
        self.regress("--update", "--jobs", "3")
        self.assertEqual(before, {path.name: path.read_bytes() for path in (self.dir / "expected").iterdir()})
        manifest = json.loads(json.dumps(MANIFEST))
        for run in manifest["runs"]:
            run["set"] = ["host.pcie.read_latency=400ns"]
        self.manifest(manifest)
        self.assertEqual(self.regress("--jobs", "1", status=1), self.regress("--jobs", "3", status=1))

    def test_a_changed_key_makes_a_readable_difference_that_update_accepts(self):
        self.regress("--update")
        manifest = json.loads(json.dumps(MANIFEST))
        manifest["runs"][0]["set"] = ["fabric.link.latency=41ns"]
        self.manifest(manifest)
        said = self.regress("--all", status=1)
        # The link is 1 ns longer: so is the latency, by that much; the completion's row is told too.
        self.assertRegex(said, r"  breakdown_ns\.fabric: [0-9.]+ -> [0-9.]+ \(\+1, \+[0-9.]+ %\)\n")
        self.assertRegex(said, r"  latency_ns\.put_to_completion\.mean: [0-9.]+ -> [0-9.]+ \(\+1, \+[0-9.]+ %\)\n")
        self.assertRegex(said, r"  completions\.csv:2: time_ns [0-9.]+ -> [0-9.]+, seen_ns [0-9.]+ -> [0-9.]+\n")
        self.assertIn("3 runs: 1 same, 2 different\n", said)
        self.assertIn("2 written, 1 unchanged", self.regress("--update"))
        self.regress()

    def test_junit(self):
        self.regress("--update")
        (self.dir / "expected" / "ping.json").unlink()
        self.regress("--junit", self.dir / "junit.xml", status=1)
        suite = ElementTree.parse(self.dir / "junit.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("3", "1"))
        self.assertEqual([case.get("name") for case in suite if case.find("failure") is not None], ["ping"])

    def test_a_junit_file_that_cannot_be_written_is_told_before_anything_runs(self):
        for place, why in ((self.dir / "no" / "x", "No such file or directory"), (self.dir, "Is a directory"),
                           (self.dir / "put.trace" / "x", "Not a directory")):
            said = self.regress("--update", "--junit", place, status=2)
            self.assertIn(f"rvma: error: regress: --junit: cannot write {place}: {why}; expected", said)
            self.assertFalse((self.dir / "expected").exists())

    def test_differences_are_grouped_by_statistic(self):
        self.regress("--update")
        manifest = json.loads(json.dumps(MANIFEST))
        manifest["runs"][0]["set"] = ["fabric.link.latency=41ns"]
        self.manifest(manifest)
        said = self.regress("--filter", "put.rvma", status=1)
        lines = said.splitlines()
        each = self.regress("--filter", "put.rvma", "--all", status=1).splitlines()
        self.assertRegex(lines[0], rf"^put\.rvma: {len(each) - 2} differences in {len(lines) - 2} lines; --all shows each$")
        self.assertLess(len(lines), len(each) / 2)
        # One line a histogram, with mean and tail; its distribution folded; the units' shares last.
        self.assertEqual(len([line for line in lines if line.startswith("  latency_ns.put_to_completion")]), 1)
        self.assertRegex(said, r"  latency_ns\.put_to_completion: mean [0-9.]+ -> [0-9.]+ \(\+1, \S+ %\), p99 [0-9.]+ -> [0-9.]+ \(\+1, ")
        self.assertRegex(said, r"  latency_quantiles\.put_to_completion: [0-9]+ figures of its points\n")
        self.assertRegex(said, r"  completions\.csv:2: time_ns [0-9.]+ -> [0-9.]+, seen_ns [0-9.]+ -> [0-9.]+\n")
        starts = [next(number for number, line in enumerate(lines) if line.startswith(f"  {start}"))
                  for start in ("sim.time_ns: ", "latency_ns.", "completions.csv")]
        self.assertEqual(starts, sorted(starts))
        shares = [number for number, line in enumerate(lines) if ": busy " in line or "shares of time busy" in line]
        self.assertNotEqual(shares, [])
        self.assertEqual(shares, list(range(shares[0], len(lines) - 1)))
        self.assertFalse(any("quantiles.put_to_completion[" in line for line in lines))

    def test_what_nobody_expects_is_an_error(self):
        self.regress("--update")
        expected = self.dir / "expected"
        shutil.copy(expected / "ping.json", expected / "old.json")
        said = self.regress(status=1)
        self.assertIn("old.json: no run of the suite has this expectation", said)
        self.assertIn("1 stale", said)
        self.assertIn("old.json: removed", self.regress("--update"))
        self.assertFalse((expected / "old.json").exists())
        self.regress()

    def test_update_leaves_what_it_did_not_make(self):
        self.regress("--update")
        expected = self.dir / "expected"
        kept = {"README.txt": "Read me.", "notes.json": '{"schema": "mine"}', "broken.json": "{", "old.txt": (expected / "ping.json").read_text()}
        for name, text in kept.items():
            (expected / name).write_text(text)
        (expected / "folder.json").mkdir()
        (expected / "more").mkdir()
        shutil.copy(expected / "ping.json", expected / "old.json")
        # 1. With --filter nothing is removed, nor told of.
        said = self.regress("--update", "--filter", "ping")
        self.assertNotIn("old.json", said)
        self.assertTrue((expected / "old.json").exists())
        self.assertEqual(self.regress("--filter", "ping"), "1 runs: 1 same\n")
        # 2. Without, only what is an expectation.
        said = self.regress("--update")
        self.assertIn("old.json: removed", said)
        self.assertIn("1 removed", said)
        for name, text in kept.items():
            self.assertEqual((expected / name).read_text(), text)
        self.assertTrue((expected / "folder.json").is_dir() and (expected / "more").is_dir())
        self.regress()

    def test_update_decides_before_it_writes(self):
        self.regress("--update")
        expected = self.dir / "expected"
        (expected / "put.rvma.json").unlink()
        (expected / "put.rvma.json").mkdir()
        (expected / "ping.json").unlink()
        shutil.copy(expected / "put.rdma.json", expected / "old.json")
        said = self.regress("--update", status=2)
        self.assertIn("put.rvma.json: is no file, where an expectation belongs; nothing was written", said)
        self.assertEqual(sorted(path.name for path in expected.iterdir()), ["old.json", "put.rdma.json", "put.rvma.json"])

    def test_a_damaged_expectation_is_told(self):
        self.regress("--update")
        (self.dir / "expected" / "ping.json").write_text("{")
        said = self.regress(status=1)
        self.assertIn("ping: damaged expectation", said)
        self.assertIn("no expectation can be read from it", said)
        self.assertIn("1 damaged", said)
        said = self.regress("--update")
        self.assertIn("ping: was damaged, written anew, ", said)
        self.assertNotIn("ping: new", said)
        self.regress()

    def test_a_run_that_fails_is_not_stored(self):
        self.manifest({"schema": "rvma-regress/1", "runs": [{"name": "bad", "trace": "put.trace", "set": ["no.key=1"]}]})
        said = self.regress("--update", status=1)
        self.assertIn("bad: failed", said)
        self.assertIn("rvma run ended with status 2, expected 0", said)
        self.assertFalse((self.dir / "expected").exists())

    def test_filter(self):
        self.assertEqual(self.regress("--list", "--filter", "rdma"), "put.rdma\n")
        self.assertIn("no run's name matches", self.regress("--filter", "nothing", status=2))
        self.assertIn("--filter: ", self.regress("--filter", "(", status=2))

    def test_a_broken_manifest(self):
        path = self.dir / "regress.json"
        head = '{"schema": "rvma-regress/1", "runs": ['
        for text, expected in [("", ":1:1: error: the file is empty"),
                               ("{", ":1:2: error: "),
                               ('{"schema": "x", "runs": [{"name": "a", "trace": "put.trace"}]}', ":1:12: error: unknown schema"),
                               (head + "]}", ":1:38: error: \"runs\" is empty"),
                               (head + '\n{"name": "a", "trace": "no.trace"}]}', ":2:24: error: there is no file 'no.trace'"),
                               (head + '\n{"name": "A!", "trace": "put.trace"}]}', ":2:10: error: a run's name is 'A!'"),
                               (head + '\n{"name": "a"}]}', ":2:1: error: 'a' has nothing to run"),
                               (head + '\n{"name": "a", "trace": "put.trace", "sed": []}]}', ":2:37: error: unknown key 'sed'; did you mean"),
                               (head + '\n{"name": "a", "trace": "put.trace", "presets": ["aurroa"]}]}', "did you mean 'aurora'?"),
                               (head + '\n{"name": "a", "trace": "put.trace", "protocols": ["rdma"], "tables": ["rtl"]}]}',
                                "the RDMA baseline has no translation table"),
                               (head + '\n{"name": "a", "trace": "put.trace"},\n{"name": "a", "trace": "put.trace"}]}',
                                ":3:1: error: a second run 'a'")]:
            with self.subTest(text):
                self.manifest(text)
                self.assertIn(f"{path}{expected}" if expected.startswith(":") else expected, self.regress(status=2))


if __name__ == "__main__":
    unittest.main()
