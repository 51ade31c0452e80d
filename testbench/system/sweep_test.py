"""`rvma sweep`: what a specification expands to, what it is told to be wrong, and what becomes of points that are run,
killed, found again. Most tests run the Python package with a program that counts its runs before it becomes rvma."""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
import unittest
from unittest import mock

from system_test import RVMA, SOURCE, SystemTest

# Where the program finds its packages.
PACKAGES = pathlib.Path(RVMA).absolute().parent.parent / "share" / "rvma" / "python"
sys.path.insert(0, str(PACKAGES))

from rvma_explore import quantities, sampling, sweep, sweep_columns, sweep_effects, sweep_engines  # noqa: E402
from rvma_explore.mistakes import Mistakes  # noqa: E402
from rvma_explore.program import Program  # noqa: E402
from rvma_explore.sweep_plan import make_plan  # noqa: E402

# $RUNS gets a line for each run. A file beside it that has the name of a seed tells what becomes of runs with that seed.
COUNTING = """#!/bin/sh
if [ "$1" = run ]; then
  seed=$(echo "$*" | sed 's/.*--seed \\([0-9]*\\).*/\\1/')
  echo "$seed" >>"{runs}"
  sleep {pause}
  if [ -f "{runs}.$seed" ]; then . "{runs}.$seed"; fi
fi
exec "{rvma}" "$@"
"""

PINGPONG = {"gen": "pingpong --size 64 --iterations 2", "name": "pp"}


# Of nic.table.stash 0..64 and host.pcie.read_latency 100ns..10us (log), four points, seed 3.
RANDOM_POINTS = [("52", "7.205us"), ("12", "204ns"), ("5", "3.68us"), ("52", "119ns")]
HYPERCUBE_POINTS = [("29", "921ns"), ("35", "3.778us"), ("1", "2.463us"), ("61", "104ns")]


class SweepTest(SystemTest):
    def setUp(self):
        super().setUp()
        self.log = self.tmp / "runs"
        self.log.touch()
        self.program = self.tmp / "counting"
        self.make_program()

    def make_program(self, pause=0):
        self.program.write_text(COUNTING.format(runs=self.log, rvma=pathlib.Path(RVMA).absolute(), pause=pause))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def runs_of(self, seed=None):
        """Runs so far; of one seed or of all."""
        seeds = self.log.read_text().split()
        return len(seeds) if seed is None else seeds.count(str(seed))

    def doom(self, seed, script):
        """What the shell does instead of a run with this seed."""
        pathlib.Path(f"{self.log}.{seed}").write_text(script)

    def spec(self, name="s.json", **parts):
        path = self.tmp / name
        path.write_text(json.dumps({"traces": [PINGPONG], **parts}))
        return path

    def command(self, *arguments):
        return [sys.executable, "-m", "rvma_explore.sweep", *map(str, arguments)]

    def environment(self, **more):
        return {**os.environ, "RVMA": str(self.program), "PYTHONPATH": str(PACKAGES), **more}

    def sweep(self, *arguments, status=0, environment=None, timeout=280):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=timeout, cwd=self.tmp,
                              env=environment or self.environment())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def results(self, out):
        with open(self.tmp / out / "results.csv", newline="") as file:
            return list(csv.DictReader(file))

    def same_results(self, one, other):
        for name in ("results.csv", "results.sqlite", "columns.csv"):
            self.assertEqual((self.tmp / one / name).read_bytes(), (self.tmp / other / name).read_bytes(), name)


class SweepQuestions(SystemTest):
    """What sweeps ask the program about keys and configurations."""

    def test_keys_as_json_are_those_of_describe(self):
        keys = json.loads(self.rvma("config", "--describe", "--json").stdout)
        table = self.rvma("config", "--describe").stdout.splitlines()[1:]
        self.assertEqual(len(keys), len(table))
        for entry, line in zip(keys, table):
            words = [entry["key"], entry["type"], entry["default"]]
            words += [f"{entry['min']}..{entry['max']}"] if "min" in entry else []
            self.assertEqual("".join("".join(words + [entry["meaning"]]).split()), "".join(line.split()))
        self.assertTrue(any(entry.get("max") == "32KiB" for entry in keys))

    def test_a_batch_answers_each_line_by_itself(self):
        trace = self.generate("alltoall", "--ranks", "4", "--size", "64")
        lines = [["nic.mtu=1024"], ["nic.mtu=1", "nic.mtv=2"], ["nic.table.rows=100"], ["fabric.topology=p2p"],
                 ["rdma.completion_queue=100"], ["fabric.torus.wrap=off"], []]
        answers = {}
        for protocol in ("rvma", "rdma"):
            done = self.rvma("config", "--batch", "-", "--set", "nic.history=3", "--trace", trace, "--protocol", protocol,
                             stdin="\n".join(map(json.dumps, lines)).encode())
            self.assertEqual(done.status, 0, done.stderr)
            answers[protocol] = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual(len(answers[protocol]), len(lines))
        good, two, power, shape, queue, idle, empty = answers["rvma"]
        self.assertEqual((good["config"]["nic"]["mtu"], good["config"]["nic"]["history"], good["warnings"]), ("1KiB", 3, []))
        self.assertEqual(empty["config"], json.loads(self.rvma("config", "--set", "nic.history=3").stdout))
        self.assertEqual([error["what"] for error in two["errors"]],
                         ["--set nic.mtu: value 1B is out of range", "--set nic.mtv: unknown key"])
        self.assertTrue(two["values"])
        self.assertFalse(power["values"])
        self.assertIn("p2p holds 2 nodes, not 4", shape["errors"][0]["what"])
        self.assertIn("config", queue)
        self.assertIn("rdma.completion_queue", answers["rdma"][4]["errors"][0]["what"])
        self.assertEqual(idle["warnings"], ["fabric.torus.wrap has no effect in this run: the topology is star"])

    def test_what_is_no_batch_is_an_error(self):
        self.expect_error(self.rvma("config", "--batch", "-", stdin=b'[]\n{"nic.mtu": 1}\n'), "<stdin>:2:1: error: ")
        self.expect_error(self.rvma("config", "--batch", "-", stdin=b"[1]\n"), "<stdin>:1:1: error: ")
        self.expect_error(self.rvma("config", "--batch", self.tmp / "nope"), "nope:1:1: error: the file cannot be read")
        self.expect_error(self.rvma("config", "--batch", "-", "--trace", "nope"), "nope:1:1: error: ")


class SweepSampling(SweepTest):
    """What a specification expands to."""

    def points(self, axes, **parts):
        """The values of the points, by axis, as --dry-run lists them (twenty at most)."""
        done = self.sweep(self.spec(axes=axes, **parts), "--dry-run")
        lines = [line.split() for line in done.stdout.splitlines() if re.match(r" +\d+ ", line)]
        return [dict(word.split("=", 1) for word in line if "." in word.split("=")[0]) for line in lines], done.stdout

    def test_keys_of_one_of_two_protocols(self):
        """An axis of which half the points are alike is told; what is set for one of the protocols does its work."""
        parts = {"set": {"rdma.receives": "4"}, "axes": {"grid": {"rdma.reads": [1, 2]}}}
        said = "{} has no effect in this run: the protocol is rvma (at {} of {} points)"
        both = self.sweep(self.spec(protocols=["rvma", "rdma"], **parts), "--dry-run").stderr
        self.assertEqual(both, f"rvma: warning: {said.format('rdma.reads', 2, 4)}\n")
        one = self.sweep(self.spec(protocols=["rvma"], **parts), "--dry-run").stderr
        self.assertEqual(sorted(one.splitlines()),
                         [f"rvma: warning: {said.format(key, 2, 2)}" for key in ("rdma.reads", "rdma.receives")])

    def test_grid_has_every_combination_and_the_last_axis_varies_fastest(self):
        points, _ = self.points({"grid": {"nic.table.rows": {"from": 64, "to": 256, "scale": "power_of_two"},
                                          "nic.windows.policy": ["lru", "fifo"]}})
        self.assertEqual([(p["nic.table.rows"], p["nic.windows.policy"]) for p in points],
                         [(rows, policy) for rows in ("64", "128", "256") for policy in ("lru", "fifo")])

    def test_zip_list_and_blocks(self):
        points, text = self.points([{"zip": {"host.pcie.lanes": [4, 8], "host.page": ["4KiB", "64KiB"]}},
                                    {"list": [{"nic.history": 1}, {"nic.history": 0x20}, {"nic.history": 5}]}],
                                   protocols=["rvma", "rdma"], seeds={"from": 7, "to": 8})
        self.assertIn("24 points (1 trace, 3 axes, 2 protocols, 2 seeds)", text)
        self.assertEqual([(p["host.pcie.lanes"], p["host.page"], p["nic.history"]) for p in points[::4]],
                         [("4", "4KiB", "1"), ("4", "4KiB", "32"), ("4", "4KiB", "5"), ("8", "64KiB", "1"),
                          ("8", "64KiB", "32")])

    def test_ranges_by_step_and_by_number_of_steps(self):
        points, _ = self.points({"zip": {"nic.table.stash": {"from": 0, "to": 8, "step": 4},
                                         "host.pcie.read_latency": {"from": "100ns", "to": "1us", "steps": 3},
                                         "nic.mtu": {"from": "256B", "to": "4KiB", "steps": 3, "scale": "log"}}})
        self.assertEqual([list(p.values()) for p in points],
                         [["0", "100ns", "256B"], ["4", "550ns", "1KiB"], ["8", "1us", "4KiB"]])

    def test_samples_are_the_same_on_every_machine(self):
        # As written down when this was made: a change means that all sampled sweeps run anew.
        for kind, expected in (("random", RANDOM_POINTS), ("latin_hypercube", HYPERCUBE_POINTS)):
            points, _ = self.points({kind: {"nic.table.stash": {"from": 0, "to": 64},
                                            "host.pcie.read_latency": {"from": "100ns", "to": "10us", "scale": "log",
                                                                       "step": "1ns"}}, "count": 4, "seed": 3})
            self.assertEqual([tuple(p.values()) for p in points], expected)

    def test_another_axis_or_seed_changes_only_what_it_should(self):
        axis = sampling.Range(quantities.INTEGER, 0, 10 ** 6)
        for make in (sampling.random_points, sampling.latin_hypercube_points):
            alone = make({"a": axis}, 50, 1)
            self.assertEqual(alone, [{"a": point["a"]} for point in make({"b": axis, "a": axis}, 50, 1)])
            self.assertNotEqual(alone, make({"a": axis}, 50, 2))

    def test_latin_hypercube_has_one_point_in_each_stratum_of_each_axis(self):
        count = 40
        axes = {"linear": sampling.Range(quantities.INTEGER, 0, 40 * 1000 - 1),
                "log": sampling.Range(quantities.TIME, 10 ** 3, 10 ** 9, "log"),
                "word": sampling.Choice(["a", "b", "c", "d", "e"])}
        points = sampling.latin_hypercube_points(axes, count, seed=5)
        self.assertEqual(sorted(int(point["linear"]) // 1000 for point in points), list(range(count)))
        bounds = [10 ** (3 + 6 * i / count) for i in range(count + 1)]
        in_order = sorted(quantities.TIME.parse(point["log"]) for point in points)
        for i, value in enumerate(in_order):
            self.assertTrue(bounds[i] - 1 <= value <= bounds[i + 1] + 1, (i, value))
        self.assertEqual([sum(point["word"] == word for point in points) for word in "abcde"], [8] * 5)
        self.assertNotEqual([point["log"] for point in points], sorted(point["log"] for point in points))
        # Independent draws would leave strata empty: the test tells them apart.
        drawn = sampling.random_points(axes, count, seed=5)
        self.assertNotEqual(sorted(int(point["linear"]) // 1000 for point in drawn), list(range(count)))

    def test_samples_reach_both_ends_and_stay_within(self):
        for scale in sampling.SCALES:
            axis = sampling.Range(quantities.INTEGER, 4, 64, scale)
            seen = {int(point["a"]) for point in sampling.random_points({"a": axis}, 3000, seed=2)}
            self.assertEqual((min(seen), max(seen)), (4, 64), scale)
        self.assertEqual(seen, {4, 8, 16, 32, 64})

    def test_quantities_read_back(self):
        for family, text, value in ((quantities.SIZE, "1.5KiB", 1536), (quantities.TIME, "1.234ns", 1234),
                                    (quantities.RATE, "50GB/s", 400 * 10 ** 9), (quantities.SIZE, "0x40", 64),
                                    (quantities.CLOCK, "322.265625MHz", 322265625 * 10 ** 6),
                                    (quantities.PROBABILITY, "1e-3", 10 ** 6), (quantities.PROBABILITY, "5%", 5 * 10 ** 7),
                                    (quantities.CYCLES, "12cyc", 12), (quantities.INTEGER, "18446744073709551615", 2 ** 64 - 1)):
            self.assertEqual(family.parse(text), value)
            self.assertEqual(family.parse(family.print(value)), value)

    def test_generators_take_options_from_axes(self):
        done = self.sweep(self.spec(traces=[{"gen": "pingpong --iterations 2"}], axes={"grid": {"gen.size": ["64B", 128]}}),
                          "--engine", "local", "--out", "o")
        self.assertIn("2 points", done.stdout)
        rows = self.results("o")
        self.assertEqual([row["gen.size_bytes"] for row in rows], ["64", "128"])
        self.assertEqual([row["bytes_delivered"] for row in rows], ["256", "512"])

    def test_shipped_specifications_expand(self):
        for name, points in (("stream-pcie", 100), ("kv-caches", 100), ("message-size", 28)):
            done = self.sweep(SOURCE.absolute() / "docs" / "examples" / "sweeps" / f"{name}.json", "--dry-run")
            self.assertIn(f"{points} points", done.stdout)
            self.assertEqual(done.stderr, "")

    def test_points_that_are_the_same_run_are_there_once(self):
        done = self.sweep(self.spec(axes={"grid": {"nic.mtu": ["4KiB", "4096B", "2KiB"]}}), "--dry-run")
        self.assertIn("2 points (1 trace, 1 axis, 1 protocol, 1 seed); 1 point left out", done.stdout)


class SweepMistakes(SweepTest):
    """A specification that is wrong is told with its place before anything runs."""

    # A specification with one mistake, where it stands in it (line, column), and what is said.
    TABLE = [
        ('{"traces": ["pp.trace"], "axis": []}', (1, 26), "unknown key 'axis'; did you mean 'axes'?"),
        ('{"axes": {"grid": {"nic.history": [1]}}}', (1, 1), "there are no traces"),
        ('{"traces": []}', (1, 12), "traces: the list is empty"),
        ('{\n  "traces": ["nope.trace"]}', (2, 14), "no such file"),
        ('{"traces": ["pp.trace", "pp.trace"]}', (1, 25), "'pp.trace' is given twice"),
        ('{"traces": [{"gen": "pingpang"}]}', (1, 21), "did you mean pingpong?"),
        ('{"traces": [{"gen": "pingpong --size 0x"}]}', (1, 21), "--size"),
        ('{"traces": ["bad.trace"]}', None, "bad.trace:1:1: error: missing header"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.table.row": [64]}}}', (1, 44),
         "unknown key 'nic.table.row'; did you mean 'nic.table.rows'?"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.rows": [64]}}}', (1, 44), "did you mean 'nic.table.rows'?"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {}}}', (1, 43), "the grid is empty"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.history": []}}}', (1, 59), "nic.history: the list is empty"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.history": [1, 1]}}}', (1, 63), "'1' is given twice"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.clock": ["1GHz", "2ns"]}}}', (1, 66),
         "nic.clock: '2ns' has the unknown unit 'ns'; expected a clock in Hz, kHz, MHz or GHz, such as 1GHz"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"host.pcie.lanes": [4, 32]}}}', (1, 67), "value 32 is out of range"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.table.rows": [64, 100]}}}', (1, 67),
         "100 is not a power of two (with nic.table.rows=100)"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.table.rows": {"from": 64, "to": "2MHz", "steps": 2}}}}', (1, 81),
         "'2MHz' is not a whole number"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.mtu": {"from": "4KiB", "to": "1KiB", "steps": 2}}}}', (1, 64),
         "the range is empty"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.mtu": {"from": "1KiB", "to": "4KiB"}}}}', (1, 55),
         "how many values is not said"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.history": {"from": 0, "to": 9, "scale": "log", "steps": 3}}}}',
         (1, 68), "a log scale has no 0"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"nic.history": {"from": 1, "to": 3, "steps": 9}}}}', (1, 89),
         "9 steps give 3 different values"),
        ('{"traces": ["pp.trace"], "axes": {"random": {"nic.history": {"from": 1, "to": 3}}}}', (1, 34), "has no count"),
        ('{"traces": ["pp.trace"], "axes": {"random": {"nic.nack": {"from": "on", "to": "off"}}, "count": 2}}', (1, 58),
         "there is nothing between"),
        ('{"traces": ["pp.trace"], "axes": {"zip": {"nic.history": [1, 2], "host.pcie.lanes": [4, 8, 16]}}}', (1, 66),
         "zip of unequal lengths: host.pcie.lanes has 3 values, and nic.history has 2"),
        ('{"traces": ["pp.trace"], "axes": {"list": [{"nic.history": 1}, {"nic.history": 2, "nic.mtu": "4KiB"}]}}', (1, 83),
         "'nic.mtu' is not in every point"),
        ('{"traces": ["pp.trace"], "axes": [{"grid": {"nic.history": 1}}, {"zip": {"nic.history": 2}}]}', (1, 74),
         "nic.history is an axis already"),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"workload.seed": [1, 2]}}}', (1, 44), "expected \"seeds\""),
        ('{"traces": ["pp.trace"], "axes": {"grid": {"gen.size": [64]}}}', (1, 13), "is a file, and gen.size an axis"),
        ('{"traces": ["pp.trace"], "set": {"nic.mtu": "1"}}', (1, 45), "value 1B is out of range"),
        ('{"traces": ["pp.trace"], "set": {"nic.mtu": "1KiB"}, "axes": {"grid": {"nic.mtu": "2KiB"}}}', (1, 72),
         "is an axis, and set as well"),
        ('{"traces": ["pp.trace"], "protocols": ["rvma", "rmda"]}', (1, 48), "did you mean 'rdma'?"),
        ('{"traces": ["pp.trace"], "seeds": []}', (1, 35), "seeds: the list is empty"),
        ('{"traces": ["pp.trace"], "seeds": {"from": 2, "to": 1}}', (1, 35), "the range is empty"),
        ('{"traces": ["pp.trace"], "seeds": [-1]}', (1, 36), "'-1' is no integer"),
        ('{"traces": ["pp.trace"], "limit": "5"}', (1, 35), "'5' is no time"),
        ('{"traces": ["pp.trace"], "config": "nope.json"}', (1, 36), "no such file"),
        ('{"traces": ["pp.trace"], "config": "bad.json"}', None, "bad.json:1:2: error: unknown key 'nik'"),
        ('{"traces": ["pp.trace"], "preset": "nic-500g"}', (1, 36), "did you mean 'nic-400g'?"),
        ('{"traces": ["pp.trace"], "columns": ["units.node*.nic.parser.packets"]}', (1, 38), "may be several numbers"),
        ('{"traces": ["pp.trace"], "table": "both", "protocols": "rdma"}', (1, 26), "has no translation table"),
        ('{"traces": ["pp.trace"], "seeds": {"from": 0, "to": 9999999999}}', (1, 1), "10000000000 points; expected at most"),
        ('// twice\n{"traces": ["pp.trace"],\n "check": true, "check": true}', (3, 17), "'check' is given twice"),
        ('{"traces": ["pp.trace"] "check": true}', (1, 25), "malformed JSON"),
        ('{"traces": ["pp.trace"]', (1, 24), "ends too early"),
        ('', (1, 1), "the file is empty"),
        ('version https://git-lfs.github.com/spec/v1', (1, 1), "Git LFS pointer"),
        ('[]', (1, 1), "not an object"),
    ]

    def setUp(self):
        super().setUp()
        self.rvma("gen", "pingpong", "--size", "64", "--iterations", "2", "--output", self.tmp / "pp.trace")
        (self.tmp / "bad.trace").write_text("bogus\n")
        (self.tmp / "bad.json").write_text('{"nik": {}}')

    def test_each_mistake_has_its_place(self):
        program = Program(self.program)
        for number, (text, place, said) in enumerate(self.TABLE):
            with self.subTest(text=text):
                spec = self.tmp / f"s{number}.json"
                spec.write_text(text)
                with self.assertRaises(Mistakes) as told:
                    options = sweep.parse_arguments([str(spec)])
                    make_plan(sweep.bounded_spec(options, program), program, self.tmp / "traces")
                self.assertEqual(len(told.exception.lines), 1)
                if place is not None:
                    self.assertIn(f"s{number}.json:{place[0]}:{place[1]}: error: ", told.exception.lines[0])
                self.assertIn(said, told.exception.lines[0])

    def test_nothing_is_left_of_a_sweep_that_is_wrong(self):
        for text in ('{"traces": ["bad.trace"]}', '{"traces": ["pp.trace"], "axes": {"grid": {}}}'):
            (self.tmp / "s.json").write_text(text)
            done = self.sweep("s.json", "--out", "o", status=2)
            self.assertRegex(done.stderr, r":\d+:\d+: error: ")
            self.assertFalse((self.tmp / "o").exists())
        self.assertEqual(self.runs_of(), 0)

    def test_several_mistakes_are_told_at_once_the_first_twenty(self):
        keys = ", ".join(f'"nic.k{i}": 1' for i in range(30))
        (self.tmp / "s.json").write_text('{"traces": ["pp.trace"], "axes": {"grid": {%s}}}' % keys)
        done = self.sweep("s.json", status=2)
        self.assertEqual(len(done.stderr.splitlines()), 21)
        self.assertIn("... and 10 more errors", done.stderr)

    def test_a_trace_that_is_missing_hides_no_other_mistake(self):
        (self.tmp / "s.json").write_text(
            '{"traces": ["nope.trace", {"gen": "pingpang"}, "bad.trace", "pp.trace"], "axes": {"grid": {"nic.table.rows": [100]}}}')
        done = self.sweep("s.json", "--out", "o", status=2)
        for said in ("s.json:1:13: error: traces: no such file", "s.json:1:35: error: ", "bad.trace:1:1: error: ",
                     "100 is not a power of two"):
            self.assertIn(said, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 4)
        self.assertFalse((self.tmp / "o").exists())

    def test_comments_and_trailing_commas_are_fine(self):
        (self.tmp / "s.json").write_text('/* a */ {"traces": ["pp.trace",], // b\n}')
        self.assertIn("1 point ", self.sweep("s.json", "--dry-run").stdout)

    def test_many_points_need_yes(self):
        spec = self.spec(seeds={"from": 1, "to": 10001})
        self.sweep(spec, "--dry-run", status=2)
        self.assertIn("10001 points", self.sweep(spec, "--dry-run", "--yes").stdout)

    def test_what_takes_long_is_told(self):
        spec = self.spec(seeds=[1, 2], axes={"grid": {"nic.history": {"from": 1, "to": 200, "step": 1}}})
        program = Program(self.program)
        options = sweep.parse_arguments([str(spec)])
        for quiet in (False, True):
            said = io.StringIO()
            with contextlib.redirect_stderr(said), mock.patch.object(sweep_engines.Checked, "SECONDS", 0):
                plan = sweep.checked_plan(sweep.bounded_spec(options, program), program, self.tmp / "traces", quiet)
            self.assertEqual(len(plan.points), 400)
            told = re.findall(r"rvma sweep: (\d+) of 200 configurations checked, 0 s, about \d+ s to go\n", said.getvalue())
            self.assertEqual(told, [] if quiet else ["64", "128", "192"])

    def test_answers_of_many_points_come_one_by_one(self):
        asked = []
        answers = Program(self.program).resolve(asked.append(number) or [f"nic.history={1 + number % 4}"] for number in range(20000))
        self.assertEqual(next(answers)["config"]["nic"]["history"], 1)
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
        self.assertEqual(len(children.read_text().split()), 1)  # it has not said all that it has to
        answers.close()
        self.assertEqual(children.read_text(), "")
        with self.assertRaises(Mistakes) as told:
            list(Program(self.program).resolve([["nic.history=1"]], "--no-such-option"))
        self.assertIn("--no-such-option", told.exception.lines[0])

    def test_the_command_line(self):
        spec = self.spec()
        (self.tmp / "mine").mkdir()
        (self.tmp / "mine" / "thesis.tex").touch()
        for arguments, said in (([], "no specification given"), (["nope.json"], "nope.json:1:1: error: the file cannot be read"),
                                ([spec, "--engine", "cloud"], "cloud"), ([spec, "--output", "x"], "--output x; did you mean --out?"),
                                ([spec, "--output=x"], "did you mean --out?"), ([spec, "--outputs", "x"], "see rvma sweep --help"), ([spec, "--jobs", "0"], "no number of jobs"),
                                ([spec, "--out", "mine"], "holds other things"), ([spec, "--gather", "x"], "and --gather"),
                                (["--gather", "mine"], "expected a directory of rvma sweep"),
                                ([spec, "--engine", "local", "--profile", "slurm"], "no profiles")):
            with self.subTest(arguments=arguments):
                done = self.sweep(*arguments, status=2)
                self.assertIn(said, done.stderr)
                self.assertIn("error: ", done.stderr)


class SweepRuns(SweepTest):
    """What becomes of points in the engine of this machine's own processes."""

    def test_what_is_finished_is_not_run_again(self):
        spec = self.spec(seeds=[1, 2, 3])
        self.sweep(spec, "--engine", "local", "--out", "o")
        self.assertEqual(self.runs_of(), 3)
        again = self.sweep(spec, "--engine", "local", "--out", "o")
        self.assertIn("0 to run, 3 finished", again.stdout)
        self.assertIn("rvma report o\n", again.stdout)
        self.assertEqual(self.runs_of(), 3)
        # A larger specification runs what is new, one with another option all of it.
        self.sweep(self.spec(seeds=[0, 1, 2, 3]), "--engine", "local", "--out", "o")
        self.assertEqual(self.runs_of(), 4)
        self.assertEqual([row["seed"] for row in self.results("o")], ["0", "1", "2", "3"])
        self.sweep(self.spec(seeds=[0, 1, 2, 3], check=True), "--engine", "local", "--out", "o")
        self.assertEqual(self.runs_of(), 8)

    def test_another_program_trace_or_configuration_is_another_run(self):
        self.rvma("gen", "pingpong", "--size", "64", "--output", self.tmp / "t.trace")
        config = self.tmp / "c.json"
        config.write_text('{"nic": {"history": 3}}')
        spec = self.spec(traces=["t.trace"], config="c.json")

        def runs():
            before = self.runs_of()
            self.sweep(spec, "--engine", "local", "--out", "o")
            return self.runs_of() - before

        self.assertEqual(runs(), 1)
        config.write_text('{"nic": {"history": 4}}')
        self.assertEqual(runs(), 1)
        config.write_text('{\n"nic": {"history": 4}}')  # the same, resolved
        self.assertEqual(runs(), 0)
        self.rvma("gen", "pingpong", "--size", "65", "--output", self.tmp / "t.trace")
        self.assertEqual(runs(), 1)
        self.program.write_text(self.program.read_text() + "# another\n")
        self.assertEqual(runs(), 1)
        self.assertEqual(runs(), 0)

    def test_a_point_that_fails_is_listed_and_stops_no_other(self):
        self.doom(2, "echo 'rvma: error: nic.x: seed 2 is wrong' >&2; exit 2")
        self.doom(3, "echo 'rvma: internal error: seed 3' >&2; exit 3")
        done = self.sweep(self.spec(seeds=[1, 2, 3, 4], retries=3), "--engine", "local", "--out", "o", status=1)
        self.assertIn("Points: 2 ok, 1 bad_input, 1 model_error".replace("_", " "), done.stdout)
        self.assertIn("pp rvma seed=2: bad_input: rvma: error: nic.x: seed 2 is wrong", done.stderr)
        self.assertIn("pp rvma seed=3: model_error: rvma: internal error: seed 3", done.stderr)
        self.assertEqual([row["status"] for row in self.results("o")], ["ok", "bad_input", "model_error", "ok"])
        self.assertEqual(self.runs_of(2), 1)  # a mistake is not tried again

    def test_a_run_that_cannot_end_is_a_result(self):
        trace = self.tmp / "stuck.trace"
        trace.write_text("rvma-trace 1\nranks 2\nrank 1\n  init_window w mailbox=1 threshold=64\n"
                         "  post_buffer w as=b size=64\n  wait b\n")
        self.sweep(self.spec(traces=["stuck.trace", PINGPONG]), "--engine", "local", "--out", "o", status=1)
        rows = self.results("o")
        self.assertEqual([row["status"] for row in rows], ["failed", "ok"])
        self.assertRegex(rows[0]["reason"], r"stuck\.trace:6:3: error: rank 1 waits for b$")
        self.assertEqual(rows[0]["completions"], "0")
        self.sweep(self.spec(traces=["stuck.trace", PINGPONG]), "--engine", "local", "--out", "o", status=1)
        self.assertEqual(self.runs_of(), 2)

    def test_what_the_machine_killed_is_tried_again_now_and_the_next_time(self):
        self.doom(1, f'[ $(grep -c "^1$" "{self.log}") -gt 2 ] || kill -9 $$')
        self.doom(2, "kill -9 $$")
        spec = self.spec(seeds=[1, 2, 3], retries=2)
        done = self.sweep(spec, "--engine", "local", "--out", "o", status=1)
        self.assertEqual((self.runs_of(1), self.runs_of(2), self.runs_of(3)), (3, 3, 1))
        self.assertIn("seed=2: killed: killed by SIGKILL", done.stderr)
        pathlib.Path(f"{self.log}.2").unlink()
        self.sweep(spec, "--engine", "local", "--out", "o")
        self.assertEqual((self.runs_of(1), self.runs_of(2), self.runs_of(3)), (3, 4, 1))
        # Having been killed leaves no trace in the results.
        self.sweep(spec, "--engine", "local", "--out", "other")
        self.same_results("o", "other")

    def test_a_run_stopped_by_its_wall_limit_counts_as_killed(self):
        trace = {"gen": "stream --count 100000", "name": "long"}
        done = self.sweep(self.spec(traces=[trace], wall_limit="1ms", retries=1), "--engine", "local", "--out", "o", status=1)
        self.assertIn("killed: --wall-limit reached", done.stderr)
        self.assertEqual(self.runs_of(), 2)
        self.assertEqual(self.results("o")[0]["completions"], "")

    def test_a_limit_of_simulated_time_is_a_result(self):
        self.sweep(self.spec(limit="1us"), "--engine", "local", "--out", "o", status=1)
        row = self.results("o")[0]
        self.assertEqual((row["status"], row["partial"], row["time_ns"]), ("failed", "1", "1000"))
        self.assertEqual(self.runs_of(), 1)

    def test_columns_hold_the_numbers_of_the_runs(self):
        self.sweep(self.spec(traces=[{"gen": "kv --ranks 4 --count 5", "name": "kv"}], protocols=["rvma", "rdma"],
                             axes={"grid": {"host.pcie.read_latency": ["250.5ns"], "nic.table.seed": [2 ** 64 - 1]}},
                             columns=["units.node0.pcie.upstream.busy_ns", {"sum": "units.node*.core0.polls"},
                                      {"max": "latency_ns.*.max"}, "units.node0.nothing"]),
                   "--engine", "local", "--out", "o")
        compared = {}
        self.rvma("gen", "kv", "--ranks", "4", "--count", "5", "--output", self.tmp / "kv.trace")
        self.rvma("compare", self.tmp / "kv.trace", "--set", "host.pcie.read_latency=250.5ns", "--set",
                  f"nic.table.seed={2 ** 64 - 1}", "--out", self.tmp / "compared")
        for run in json.loads((self.tmp / "compared" / "compare.json").read_text())["runs"]:
            compared[run["name"]] = run
        for row in self.results("o"):
            other = compared[row["protocol"]]
            for name in ("goodput_gbps", "put_to_completion_p99_ns", "wire_bytes", "pcie_up_bytes", "pcie_down_bytes",
                         "connection_ends", "exchanges", "exchange_mean_ns", "control_messages", "control_bytes",
                         "completions"):
                self.assertAlmostEqual(float(row[name] or 0), other[name], delta=0.06, msg=name)  # rounded there
            stats = json.loads((self.tmp / "o" / "points" / row["id"] / "stats.json").read_text())
            self.assertEqual(row["host.pcie.read_latency_ns"], "250.5")
            self.assertEqual(row["nic.table.seed"], str(2 ** 64 - 1))
            self.assertEqual(float(row["units.node0.pcie.upstream.busy_ns"]),
                             stats["units"]["node0.pcie"]["upstream"]["busy_ns"])
            self.assertEqual(int(row["sum.units.node*.core0.polls"]),
                             sum(stats["units"][f"node{n}.core0"]["polls"] for n in range(4)))
            self.assertEqual(float(row["max.latency_ns.*.max"]),
                             max(span["max"] for span in stats["latency_ns"].values()))
            self.assertEqual(row["units.node0.nothing"], "")
            parser = max(limit["share"] for limit in stats["limits"] if limit["unit"].endswith(".nic.parser.parse"))
            if row["protocol"] == "rvma":
                self.assertEqual(float(row["share.nic.parser.parse"]), parser)
            on_chip = stats["on_chip_bytes"]
            for name, expected in (("", on_chip["total"]), ("_without_peers", on_chip["total"] - on_chip["peers"]),
                                   ("_windows", on_chip["windows"])):  # RDMA's NIC has other structures
                self.assertEqual(row[f"on_chip_bytes{name}"], str(expected) if row["protocol"] == "rvma" else "")

    def test_every_figure_of_the_whole_run_has_a_column(self):
        self.sweep(self.spec(), "--engine", "local", "--out", "o")
        stats = json.loads((next((self.tmp / "o" / "points").glob("*/stats.json"))).read_text())
        sources = {column.source for column in sweep_columns.RESULTS}
        for section in ("totals", "latency_ns", "breakdown_ns", "bandwidth_gbps", "message_rate_mpps", "bottleneck", "next",
                        "on_chip_bytes"):
            for path in sweep_columns.flatten(stats[section], section):
                self.assertIn(path, sources)
        for column in sweep_columns.RESULTS:
            if isinstance(column.source, str):
                self.assertIn(column.source, sweep_columns.flatten(stats), column.name)

    def test_csv_and_sqlite_hold_the_same_with_types_and_units(self):
        self.sweep(self.spec(seeds=[1, 2], axes={"grid": {"nic.windows.policy": ["lru", "fifo"], "nic.clock": ["1GHz"]}}),
                   "--engine", "local", "--out", "o")
        base = sqlite3.connect(self.tmp / "o" / "results.sqlite")
        base.row_factory = sqlite3.Row
        columns = {row["name"]: dict(row) for row in base.execute("select * from columns")}
        points = [dict(row) for row in base.execute("select * from points")]
        rows = self.results("o")
        self.assertEqual(len(points), 4)
        self.assertEqual(list(columns), list(rows[0]))
        for point, row in zip(points, rows):
            for name, column in columns.items():
                kind = {"INTEGER": int, "REAL": float, "TEXT": str}[column["type"]]
                if point[name] is None:
                    self.assertEqual(row[name], "")
                else:
                    self.assertIs(type(point[name]), kind, name)
                    self.assertEqual(point[name], kind(row[name]), name)
        self.assertEqual((columns["nic.clock_mhz"]["unit"], columns["nic.clock_mhz"]["kind"]), ("mhz", "axis"))
        self.assertEqual(columns["put_to_completion_p50_ns"]["unit"], "ns")
        self.assertEqual((columns["on_chip_bytes_buffers"]["unit"], columns["on_chip_bytes_buffers"]["type"]),
                         ("bytes", "INTEGER"))
        self.assertTrue(all(column["meaning"] for column in columns.values()))
        # What differs from machine to machine and from run to run is elsewhere.
        self.assertFalse({"wall_s", "peak_rss_bytes"} & set(columns))
        with open(self.tmp / "o" / "host.csv", newline="") as file:
            self.assertEqual([float(row["wall_s"]) > 0 for row in csv.DictReader(file)], [True] * 4)

    def test_a_key_that_changes_nothing_is_told(self):
        # nic.receive.parse_latency, 4 cycles, has the look-up's latency in it.
        done = self.sweep(self.spec(axes={"grid": {"nic.table.latency": ["1cyc", "2cyc", "3cyc"],
                                                   "host.pcie.read_latency": ["250ns", "500ns"]}}),
                          "--engine", "local", "--out", "o")
        self.assertIn("warning: nic.table.latency had no effect", done.stderr)
        self.assertNotIn("read_latency", done.stderr)
        # Of sampled points none differ in one key alone: nothing is said of them.
        self.assertEqual(self.idle([("a", 1), ("b", 2)], [5, 5]), [])
        self.assertEqual(self.idle([("a", 1), ("a", 2)], [5, 5]), ["y"])
        self.assertEqual(self.idle([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [5, 5, 7, 7]), ["y"])
        self.assertEqual(self.idle([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [5, 5, 7, 8]), [])

    def test_a_key_that_decides_whether_a_point_ends_well_has_an_effect(self):
        # Without loss the number of tries is no matter. At a loss of 30 % one try is not enough; of all packets, no number is.
        done = self.sweep(self.spec(traces=[{"gen": "pingpong --size 64 --iterations 20"}],
                                    axes={"grid": {"fabric.faults.drop": ["0", "0.3", "1"], "nic.reliability.max_tries": [1, 8]}}),
                          "--engine", "local", "--out", "o", status=1)
        self.assertEqual([row["status"] for row in self.results("o")], ["ok", "ok", "failed", "ok", "failed", "failed"])
        self.assertNotIn("no effect", done.stderr)
        self.assertEqual(self.rvma("report", self.tmp / "o", "--output", self.tmp / "page.html").status, 0)
        self.assertNotIn("Had no effect", (self.tmp / "page.html").read_text())
        values = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        self.assertEqual(self.idle(values, [5, 5, 7, 7], ["ok", "ok", "failed", "ok"]), [])
        self.assertEqual(self.idle(values, [5, 5, 7, 8], ["ok", "ok", "failed", "failed"]), [])
        self.assertEqual(self.idle(values, [5, 5, 7, 7], ["ok", "ok", "failed", "failed"]), ["y"])
        # What the machine killed tells nothing, and nor do points that all failed in the same way.
        self.assertEqual(self.idle(values, [5, 5, None, 7], ["ok", "ok", "killed", "ok"]), ["y"])
        self.assertEqual(self.idle(values, [None] * 4, ["bad_input"] * 4), [])

    def idle(self, values, figures, states=("ok",) * 4):
        columns = [sweep_columns.Column(name, "", "", kind, "") for name, kind in
                   (("x", "axis"), ("y", "axis"), ("time_ns", "result"), ("events", "result"), ("status", "point"))]
        return sweep_effects.idle_axes(columns, [[*at, figure, number, state] for number, (at, figure, state)
                                                 in enumerate(zip(values, figures, states))])

    def test_gather_takes_what_there_is(self):
        self.sweep(self.spec(seeds=[1, 2, 3]), "--engine", "local", "--out", "o")
        gone = self.results("o")[1]["id"]
        (self.tmp / "o" / "points" / f"{gone}.json").unlink()
        done = self.sweep("--gather", "o", status=1)
        self.assertIn("Points: 2 ok, 1 not run", done.stdout)
        rows = self.results("o")
        self.assertEqual([row["status"] for row in rows], ["ok", "not_run", "ok"])
        self.assertEqual(rows[1]["completions"], "")

    def test_a_damaged_result_is_not_finished(self):
        spec = self.spec(seeds=[1, 2, 3])
        for engine in ("local", "snakemake") if shutil.which("snakemake") else ("local",):
            self.sweep(spec, "--engine", engine, "--out", engine)
            held = {path.name: path.read_bytes() for path in (self.tmp / engine).glob("results.*")}
            point = self.tmp / engine / "points" / self.results(engine)[1]["id"]
            stats, outcome = point / "stats.json", point.with_suffix(".json")
            whole = stats.read_bytes()
            for damaged, text in ((stats, whole[:500]), (stats, b"{}"), (stats, b"\xff"), (stats, None), (outcome, b"[]"),
                                  (outcome, b'{"schema": "rvma-sweep-outcome/1"}')):
                with self.subTest(engine=engine, damaged=damaged.name, text=text):
                    damaged.unlink()
                    if text is not None:
                        damaged.write_bytes(text)
                    done = self.sweep("--gather", engine, status=1)
                    self.assertIn("Points: 2 ok, 1 not run", done.stdout)
                    self.assertIn(f"results of {engine}/points/{point.name} are damaged", done.stderr)
                    before = self.runs_of()
                    done = self.sweep(spec, "--engine", engine, "--out", engine)
                    self.assertIn("1 to run, 2 finished", done.stdout)
                    self.assertNotIn("damaged", done.stderr)
                    self.assertEqual(self.runs_of() - before, 1)
                    self.assertEqual({path.name: path.read_bytes() for path in (self.tmp / engine).glob("results.*")}, held)

    def test_two_sweeps_do_not_share_a_directory_at_a_time(self):
        self.make_program(pause=3)
        spec = self.spec()
        first = subprocess.Popen(self.command(spec, "--engine", "local", "--out", "o", "--quiet"), cwd=self.tmp,
                                 env=self.environment())
        self.wait_until(lambda: self.runs_of() == 1)
        self.assertIn("in use by another", self.sweep(spec, "--engine", "local", "--out", "o", status=2).stderr)
        self.assertEqual(first.wait(60), 0)

    def wait_until(self, happened, seconds=120):
        end = time.monotonic() + seconds
        while not happened():
            self.assertLess(time.monotonic(), end, "it did not happen in time")
            time.sleep(0.05)

    def test_through_the_program_itself(self):
        done = self.rvma("sweep", self.spec(seeds=[1, 2]), "--engine", "local", "--out", self.tmp / "o", "--jobs", "2")
        self.assertEqual(done.status, 0, done.stderr)
        self.assertEqual([row["status"] for row in self.results("o")], ["ok", "ok"])


class KilledSweep(SweepTest):
    """A sweep that is killed, all of it and without warning, goes on with what was left."""
    SEEDS = 8

    def finished(self, out):
        return len(list((self.tmp / out / "points").glob("*.json")))

    def kill_in_the_middle(self, *arguments):
        self.make_program(pause=0.5)
        spec = self.spec(seeds={"from": 1, "to": self.SEEDS})
        sweep = subprocess.Popen(self.command(spec, "--out", "o", "--jobs", "2", "--quiet", *arguments), cwd=self.tmp,
                                 env=self.environment(), start_new_session=True)
        end = time.monotonic() + 200
        while self.finished("o") < 3:
            self.assertIsNone(sweep.poll(), "it ended by itself")
            self.assertLess(time.monotonic(), end, "it did not get anywhere")
            time.sleep(0.02)
        os.killpg(sweep.pid, signal.SIGKILL)
        sweep.wait()
        time.sleep(1)  # for what may have outlived it to do harm
        survived = self.finished("o")
        self.assertLess(survived, self.SEEDS)
        # Partial results are results.
        self.sweep("--gather", "o", status=1)
        self.assertEqual(sum(row["status"] == "ok" for row in self.results("o")), survived)
        before = self.runs_of()
        done = self.sweep(spec, "--out", "o", "--jobs", "2", *arguments)
        self.assertIn(f"{self.SEEDS - survived} to run, {survived} finished", done.stdout)
        self.assertEqual(self.runs_of() - before, self.SEEDS - survived)
        self.assertEqual([path.name for path in (self.tmp / "o" / "points").glob(".*")], [])
        self.sweep(spec, "--engine", "local", "--out", "whole")
        self.same_results("o", "whole")


class SweepKills(KilledSweep):
    def test_the_same_command_goes_on_after_a_kill(self):
        self.kill_in_the_middle("--engine", "local")

    def test_an_interrupt_ends_it_soon_and_says_how_to_go_on(self):
        self.make_program(pause=0.5)
        spec = self.spec(seeds={"from": 1, "to": self.SEEDS})
        sweep = subprocess.Popen(self.command(spec, "--out", "o", "--jobs", "1", "--engine", "local"), cwd=self.tmp,
                                 env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 100
        while self.finished("o") < 2 and time.monotonic() < end:
            time.sleep(0.02)
        sweep.send_signal(signal.SIGTERM)
        out, errors = sweep.communicate(timeout=60)
        self.assertEqual(sweep.returncode, 1)
        self.assertIn("goes on where it stopped", errors)
        self.assertIn("not run", out)
        self.assertNotIn("killed", out)


@unittest.skipUnless(shutil.which("snakemake"), "snakemake is not installed: scripts/setup does it")
class SweepSnakemake(KilledSweep):
    def test_the_same_command_goes_on_after_a_kill(self):
        self.kill_in_the_middle()

    def test_both_engines_leave_the_same_bytes(self):
        self.doom(2, "exit 3")
        self.doom(3, f'[ $(grep -c "^3$" "{self.log}") -gt 1 ] || kill -9 $$')
        spec = self.spec(seeds=[1, 2, 3], protocols=["rvma", "rdma"], axes={"grid": {"nic.history": [1, 2]}}, check=True)
        self.sweep(spec, "--out", "s", status=1)
        self.assertEqual((self.runs_of(1), self.runs_of(2), self.runs_of(3)), (4, 4, 5))
        self.log.write_text("")
        self.sweep(spec, "--engine", "local", "--out", "l", status=1)
        self.assertEqual((self.runs_of(1), self.runs_of(2), self.runs_of(3)), (4, 4, 5))
        self.same_results("s", "l")
        again = self.sweep(spec, "--out", "s", status=1)
        self.assertIn("0 to run", again.stdout)

    def test_a_job_that_dies_is_tried_again(self):
        # Not the run but what runs it, as when a batch system takes a node away.
        self.doom(1, f'[ $(grep -c "^1$" "{self.log}") -gt 1 ] || {{ kill -9 $PPID; sleep 1; exit 1; }}')
        self.sweep(self.spec(seeds=[1, 2]), "--out", "o")
        self.assertEqual((self.runs_of(1), self.runs_of(2)), (2, 1))

    def test_what_snakemake_does_not_take_is_told_before_anything_is_planned(self):
        (self.tmp / "wrong.json").write_text("[]")  # would be told second
        for words, said in ((["--profile", "nope"], "no config.yaml found"),
                            (["--", "--bogus-option"], "unrecognized arguments: --bogus-option")):
            for more in ([], ["--dry-run"]):
                done = self.sweep("wrong.json", "--out", "o", *more, *words, status=2)
                self.assertRegex(done.stderr, "^rvma: error: sweep: snakemake says: .*" + said)
                self.assertFalse((self.tmp / "o").exists())
        self.sweep(self.spec(), "--dry-run", "--profile", "slurm", "--", "--set-resources", "points:mem_mb=8000")

    def test_what_goes_wrong_in_snakemake_is_told(self):
        bare = self.tmp / "profile"
        bare.mkdir()
        (bare / "config.yaml").write_text("cluster: 'echo the cluster is away >&2; exit 7 #'\njobs: 2\n")
        done = self.sweep(self.spec(), "--out", "o", "--profile", bare, status=1)
        self.assertIn("1 point has no outcome: see o/snakemake.log", done.stderr)
        self.assertIn("Error submitting jobscript (exit code 7)", done.stderr)
        self.assertNotIn("rvma report", done.stdout)

    def test_without_snakemake_it_says_what_to_do(self):
        bare = self.tmp / "bin"
        bare.mkdir()
        done = self.sweep(self.spec(), environment=self.environment(PATH=str(bare)), status=2)
        self.assertIn("snakemake is not installed; expected Debian's package snakemake", done.stderr)
