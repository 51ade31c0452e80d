"""`rvma report`: what the page says, that it needs nothing else, and that its advice holds."""

import html.parser
import itertools
import json
import os
import random
import re
import shutil
import sqlite3
import sys
import unittest

import browser
from system_test import SOURCE, SystemTest

sys.path.insert(0, os.path.join(SOURCE, "scripts"))

from rvma_explore import report_charts, report_load, report_page, report_sensitivity, report_sweep  # noqa: E402


class Page(html.parser.HTMLParser):
    """A page in pieces: figures by section and key, text by section, attributes that load something."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.gains, self.texts, self.loads, self.json = {}, {}, {}, [], {}
        self.section, self.in_json, self.in_code = "", False, False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        about = dict(attributes)
        if tag == "section":
            self.section = about["id"]
        self.loads += [f"<{tag} {name}={about[name]}>" for name in ("src", "href", "data", "poster", "srcset", "action")
                       if name in about and not about[name].startswith("#")]
        if tag in ("link", "img", "iframe", "object", "embed", "base"):
            self.loads.append(f"<{tag}>")
        if tag == "data" and "data-key" in about:
            self.figures.setdefault(self.section, {}).setdefault(about["data-key"], []).append(about["value"])
        if tag == "data" and "data-gain" in about:
            self.gains.setdefault(self.section, []).append(
                (about["data-gain"], float(about["value"]), about["data-set"].split()))
        self.in_json = tag == "script" and about.get("type") == "application/json"
        self.in_code = tag in ("style", "script") and not self.in_json

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.in_json = self.in_code = False

    def handle_data(self, data):
        if self.in_json:
            self.json[self.section] = json.loads(data)
        elif not self.in_code:
            self.texts[self.section] = self.texts.get(self.section, "") + data


class ReportTest(SystemTest):
    def results(self, name, trace, *options, status=0):
        """Runs a trace into a directory of that name."""
        out = self.tmp / name
        result = self.rvma("run", trace, "--out", out, "--quiet", *options, out=out)
        self.assertEqual(result.status, status, result.stderr)
        return out

    def report(self, *directories):
        """The page about results."""
        file = self.tmp / "report.html"
        result = self.rvma("report", *directories, "--output", file)
        self.assertEqual((result.status, result.stderr), (0, ""))
        return file

    def page(self, *directories):
        return Page(self.report(*directories).read_text(encoding="utf-8"))


def stats_of(directory):
    return json.loads((directory / "stats.json").read_text())


def changed(stats, path, value):
    """A copy with another value at `path`."""
    if not path:
        return value
    name = int(path[0]) if isinstance(stats, list) else path[0]
    copy = list(stats) if isinstance(stats, list) else dict(stats)
    copy[name] = changed(stats[name], path[1:], value)
    return copy


def members(stats, path=()):
    """Paths of all members, of lists the first entries', and of units those of one node."""
    inner = stats.items() if isinstance(stats, dict) else list(enumerate(stats))[:1] if isinstance(stats, list) else ()
    for name, value in inner:
        if not (path == ("units",) and name.startswith("node1")):
            yield (*path, name)
            yield from members(value, (*path, name))


def figure_of(stats, key):
    for part in key.split("."):
        stats = stats[part]
    return stats


class Report(ReportTest):
    def test_figures_are_those_of_the_runs(self):
        runs = [self.results("one", SOURCE / "traces/pingpong.trace", "--check"),
                self.results("two", SOURCE / "traces/random.trace", "--set", "fabric.link.rate=100Gbps")]
        page = self.page(*runs)
        for number, run in enumerate(runs):
            stats, figures = stats_of(run), page.figures[f"run{number}"]
            for key in ("bandwidth_gbps.goodput", "message_rate_mpps", "latency_ns.put_to_completion.p99",
                        "latency_ns.put_to_ack.p50", "latency_ns.put_to_completion.max", "breakdown_ns.fabric", "breakdown_ns.total",
                        "totals.completions", "sim.time_ns"):
                self.assertEqual([float(value) for value in set(figures[key])], [figure_of(stats, key)], key)
            self.assertIn(stats["bottleneck"], page.texts[f"run{number}"])
            for limit in stats["limits"]:
                self.assertIn(limit["unit"], page.texts[f"run{number}"])
        both = [figure_of(stats_of(run), "latency_ns.put_to_completion.mean") for run in runs]
        for section in ("summary", "comparison"):
            self.assertEqual([float(v) for v in page.figures[section]["latency_ns.put_to_completion.mean"]], both)
        self.assertIn("fabric.link.rate", page.texts["comparison"])
        self.assertNotIn("nic.clock", page.texts["comparison"])
        self.assertIn("checked", page.texts["run0"])
        self.assertNotIn("checked", page.texts["run1"])

    def test_it_needs_no_other_file(self):
        page = self.report(self.results("one", SOURCE / "traces/pingpong.trace"))
        text = page.read_text(encoding="utf-8")
        self.assertEqual(Page(text).loads, [])
        # The name space of SVG is a name, and loads nothing.
        self.assertEqual(re.findall(r"https?:(?!//www\.w3\.org/2000/svg)[^\"']*", text), [])
        self.assertNotRegex(text, r"@import|url\(|fetch\(|XMLHttpRequest|\bimport\b")

    def test_same_results_same_page(self):
        run = self.results("one", SOURCE / "traces/pingpong.trace")
        self.assertEqual(self.report(run).read_bytes(), self.report(run).read_bytes())

    def test_runs_that_did_not_end_well_are_marked(self):
        partial = self.results("partial", SOURCE / "traces/stream.trace", "--limit", "100us", status=1)
        text = ["rvma-trace 1", "ranks 1", "rank 0", "  init_window w mailbox=1 threshold=1op", "  post_buffer w as=b size=1",
                "  wait b"]
        (self.tmp / "stuck.trace").write_text("\n".join(text))
        stuck = self.results("stuck", self.tmp / "stuck.trace", status=1)
        page = self.page(partial, stuck)
        for word in ("\u26a0 partial", "\u26a0 failed"):
            self.assertIn(word, page.texts["summary"])
        self.assertIn("Partial", page.texts["run0"])
        self.assertIn("--limit reached", page.texts["run0"])
        self.assertIn("failed", page.texts["run1"])
        self.assertIn("rank 0 waits for b", page.texts["run1"])
        self.assertIn("Nothing was delivered", page.texts["run1"])

    def test_names_cannot_break_the_page(self):
        shutil.copy(SOURCE / "traces/pingpong.trace", self.tmp / "plain.trace")
        run = self.results("<b>&amp;", self.tmp / "plain.trace")
        stats = stats_of(run)
        stats["run"]["trace"] = "</script><script>alert(1)</script>"
        stats["run"]["problems"] = ["<img src=x>"]
        (run / "stats.json").write_text(json.dumps(stats))
        page = self.page(run)
        self.assertEqual(page.loads, [])
        self.assertIn("<img src=x>", page.texts["run0"])
        self.assertIn("</script><script>alert(1)</script>", page.texts["run0"])

    def test_names_that_are_no_text_are_shown_escaped(self):
        trace = os.fsencode(self.tmp) + b"/tr\xff\xc3\xa4.trace"
        with open(trace, "wb") as file:
            file.write((SOURCE / "traces/pingpong.trace").read_bytes())
        page = self.page(self.results("run", os.fsdecode(trace)))
        self.assertIn("tr\\xff\u00e4.trace", page.texts["summary"])
        self.assertIn("tr\\xff\u00e4.trace", page.texts["run0"])

    def test_times_and_sizes_are_in_units_that_read_well(self):
        one = self.results("one", SOURCE / "traces/stream.trace")
        page = self.page(one, self.results("two", SOURCE / "traces/stream.trace", "--set", "host.pcie.lanes=8"))
        self.assertIn("2.783 ms", page.texts["comparison"])
        self.assertNotRegex(" ".join(page.texts.values()), r"[0-9]e\+0[0-9]")
        self.assertNotIn("Simulated time, ns", page.texts["comparison"])
        self.assertIn("transmit.buffer_bytes, at most 64 KiB", page.texts["run0"])

    def test_lines_can_be_told_apart(self):
        several = report_charts.lines("t", [(str(number), [(1, 0), (2, number)]) for number in range(25)], "x", "y")
        styles = re.findall(r'<path class="line (c\d)" stroke-dasharray="([^"]*)" d="M1 5H33"', several)
        self.assertEqual((len(styles), len(set(styles))), (25, 25))
        # One value is an upright line, and does not lie on an axis.
        for others in ([], [("wide", [(200, 0), (9000, 100)])], [("before", [(2, 0), (100, 100)])], [("0", [(0, 0), (100, 100)])]):
            with self.subTest(others=others):
                drawn = report_charts.lines("t", [("one", [(100, 0), (100, 100)]), *others], "x", "y", x_log=True, is_step=False)
                x, again = map(float, re.search(r'd="M([\d.]+) [\d.]+L([\d.]+) [\d.]+"><title>one', drawn).groups())
                self.assertEqual(x, again)
                self.assertGreater(x, report_charts.LEFT + 10)
                self.assertLess(x, report_charts.LARGE[0] - report_charts.RIGHT - 10)

    def test_what_a_unit_did_not_count_is_left_out(self):
        run = self.results("one", SOURCE / "traces/pingpong.trace")
        stats = stats_of(run)
        self.assertNotEqual(stats["limits"][0]["share"], 0)
        stats["limits"][0].update(achieved=0, bound_gbps=0)
        (run / "stats.json").write_text(json.dumps(stats))
        self.assertNotIn("0 of 0", (self.tmp / self.report(run)).read_text())

    def test_a_comparison_brings_its_runs(self):
        out = self.tmp / "cmp"
        self.assertEqual(self.rvma("compare", SOURCE / "traces/pingpong.trace", "--out", out).status, 0)
        page = self.page(out)
        self.assertEqual([key for key in page.figures if key.startswith("run")], ["run0", "run1", "run2"])
        rows = json.loads((out / "compare.json").read_text())["runs"]
        self.assertIn("RVMA and RDMA", page.texts["protocols0"])
        self.assertNotIn("(partial)", page.texts["protocols0"])
        for row in rows:
            self.assertIn(row["name"], page.texts["protocols0"])
        self.assertEqual(float(page.figures["run1"]["bandwidth_gbps.goodput"][0]),
                         stats_of(out / "rdma")["bandwidth_gbps"]["goodput"])

    def test_a_comparison_of_messages_and_one_that_was_stopped(self):
        """They have more than figures: a table of the messages, where any were received, and a mark."""
        trace, out = self.tmp / "messages.trace", self.tmp / "cmp"
        self.assertEqual(self.rvma("gen", "pingpong", "--messages", "--iterations", 10, "--output", trace).status, 0)
        self.assertEqual(self.rvma("compare", trace, "--out", out).status, 0)
        self.assertNotIn("(partial)", self.page(out).texts["protocols0"])
        # RVMA is done by then, and RDMA has its connection at most.
        self.assertEqual(self.rvma("compare", trace, "--out", out, "--limit", "34us").status, 1)
        rows = json.loads((out / "compare.json").read_text())["runs"]
        self.assertEqual([(row["partial"], "messages" in row) for row in rows], [(False, True), (True, False), (True, False)])
        page = self.page(out).texts["protocols0"]
        self.assertEqual([f"{row['name']} (partial)" in page for row in rows], [False, True, True])

    def test_what_is_no_whole_result_is_an_error(self):
        run = self.results("one", SOURCE / "traces/pingpong.trace")
        whole = (run / "stats.json").read_text()
        cases = {}

        def case(name, wanted, **files):
            directory = self.tmp / name
            directory.mkdir()
            for file, text in files.items():
                (directory / file.replace("__", ".")).write_text(text)
            cases[directory] = wanted

        case("empty", "holds no stats.json")
        case("half", "has not ended", **{"stats.json.partial.17": whole})
        case("cut", "stats.json:", **{"stats.json": whole[:len(whole) // 2]})
        case("other", "rvma-stats/1", **{"stats.json": '{"schema":"rvma-stats/9"}'})
        case("thin", "has no run", **{"stats.json": '{"schema":"rvma-stats/1"}'})
        for path, value, wanted in (
                ("limits", None, "limits is null; expected a list"), ("latency_ns", {}, "has no latency_ns.put_to_completion"),
                ("breakdown_ns", {"x": "y"}, "has no breakdown_ns.samples"), ("config", [], "config is []; expected an object"),
                ("limits.0.share", "much", "limits.0.share is 'much'; expected a number from 0"),
                ("limits.0.widened_by.0.key", "nic.no", "has no config.nic.no"),
                ("breakdown_ns.total", 1, "breakdown_ns.total is 1; expected the sum of the stages"),
                ("latency_quantiles.put_to_ack.0", [1], "latency_quantiles.put_to_ack.0 is [..]; expected 2 entries")):
            case(f"shape-{path}", f"stats.json: {wanted}", **{"stats.json": json.dumps(changed(json.loads(whole), path.split("."), value))})
        case("deep", "stats.json: ", **{"stats.json": "[" * 100_000})
        for number, text in enumerate(("{}", '{"runs": []}', '{"runs": [{"name": 1}]}', '{"runs": [{"name": "rvma", "x": null}]}')):
            case(f"pair{number}", "compare.json: ", **{"compare.json": json.dumps({"schema": "rvma-compare/1", **json.loads(text)})})
        case("row", "series.csv:3:1", **{"stats.json": whole, "series.csv": "time_ns,goodput_gbps\n1,2\n3\n"})
        for name, line, text in (("garbage", 1, "What a lovely day.\n"), ("zeros", 1, "\0\0\0\n"), ("nothing", 1, ""),
                                 ("word", 3, "time_ns,goodput_gbps\n1,2\n3,many\n"),
                                 ("nan", 2, "time_ns,goodput_gbps\n1,nan\n"), ("minus", 2, "time_ns,goodput_gbps\n1,-2\n"),
                                 ("back", 4, "time_ns,goodput_gbps\n1,2\n3,2\n2,2\n")):
            case(f"series-{name}", f"series.csv:{line}:1: ", **{"stats.json": whole, "series.csv": text})
        case("links", "links.csv:2:1: packets is 'x'", **{"stats.json": whole, "links.csv": "link,packets\n0-1,x\n"})
        case("sweep", "not gathered", **{"sweep.json": "{}"})
        case("notsql", "results.sqlite", **{"results.sqlite": "nothing of the kind"})
        case("pair", "rvma/stats.json", **{"compare.json": '{"schema":"rvma-compare/1","runs":[{"name":"rvma"}]}'})
        cases[self.tmp / "nowhere"] = "no such directory"
        cases[run / "stats.json"] = "is not a directory"
        for directory, wanted in cases.items():
            with self.subTest(directory.name):
                output = self.tmp / "page.html"
                result = self.rvma("report", run, directory, "--output", output)
                self.expect_error(result, "rvma: error: report: ", wanted)
                self.assertFalse(output.exists())
        self.expect_error(self.rvma("report", run, "--output", self.tmp / "no" / "page.html"), "--output")
        self.expect_error(self.rvma("report"), "DIR")
        self.assertEqual(self.rvma("report", run, "--out", self.tmp / "page.html").status, 0)  # as other sub-commands have it
        self.assertEqual([entry.name for entry in self.tmp.iterdir() if "partial." in entry.name], [])


    def test_what_is_read_is_shown_or_refused(self):
        """Whatever member of stats.json is not what it should be."""
        run = self.results("one", SOURCE / "traces/pingpong.trace")
        whole = stats_of(run)
        self.assertFalse(self.is_refused(whole, run))
        refused = sum(self.is_refused(changed(whole, path, value), run)
                      for path, value in zip(members(whole), itertools.cycle([None, {}, [], "x", "x"])))
        self.assertGreater(refused, 500)

    def is_refused(self, stats, run):
        (run / "stats.json").write_text(json.dumps(stats))
        try:
            runs = [report_load.read_run(run, "one")]
        except report_load.Unreadable:
            return True
        report_page.page("title", runs, [], [])
        return False


class ReportSeries(ReportTest):
    """series.csv: bounded, whole, and the same each time."""

    def rows(self, run):
        import csv
        with open(run / "series.csv", newline="") as file:
            return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]

    def test_it_adds_up(self):
        for trace, options in (("stream", []), ("pingpong", []), ("incast", ["--set", "fabric.faults.drop=0.01"]),
                               ("sender-crash", ["--config", SOURCE / "traces/sender-crash.json"])):
            with self.subTest(trace):
                run = self.results(trace, SOURCE / f"traces/{trace}.trace", *options)
                stats, rows = stats_of(run), self.rows(run)
                self.assertLess(len(rows), 1025)
                self.assertEqual(rows[-1]["time_ns"], stats["sim"]["time_ns"])
                steps = [row["time_ns"] - before["time_ns"] for before, row in zip(rows, rows[1:])]
                self.assertTrue(all(abs(step - steps[0]) < 1e-6 for step in steps[:-1]), "one interval")
                self.assertLessEqual(steps[-1], steps[0])
                self.assertEqual(sum(row["packets"] for row in rows), stats["totals"]["packets"]["delivered"])
                self.assertEqual(sum(row["retransmitted"] for row in rows), stats["totals"]["packets"]["retransmitted"])
                self.assertGreaterEqual(sum(row["delivered_bytes"] for row in rows), stats["totals"]["bytes_delivered"])
                refused = sum(n for reason, n in stats["totals"]["refusals"].items() if reason != "timeout")
                self.assertEqual(sum(row["refusals"] for row in rows), refused)
                before = 0.0
                for row in rows:
                    rate = row["delivered_bytes"] * 8 / (row["time_ns"] - before)
                    self.assertAlmostEqual(row["goodput_gbps"], rate, delta=0.001)
                    before = row["time_ns"]

    def test_levels_stay_within_their_peaks(self):
        run = self.results("stream", SOURCE / "traces/stream.trace")
        stats, rows = stats_of(run), self.rows(run)
        most = max(row["node.nic.transmit.buffer_bytes"] for row in rows)
        self.assertGreater(most, 0)
        self.assertLessEqual(most, stats["units"]["node0.nic.transmit"]["buffer"])
        most = max(row["node.nic.dma_engine.reads_outstanding"] for row in rows)
        self.assertGreater(most, 0)
        self.assertLessEqual(most, stats["units"]["node0.nic.dma_engine"]["reads_outstanding"])

    def test_idle_time_costs_no_rows(self):
        text = ["rvma-trace 1", "ranks 1", "rank 0", "  compute 1ns", "  compute 50s", "  compute 1ns"]
        (self.tmp / "idle.trace").write_text("\n".join(text))
        run = self.results("idle", self.tmp / "idle.trace")
        rows = self.rows(run)
        self.assertLess(len(rows), 1025)
        self.assertEqual(rows[-1]["time_ns"], stats_of(run)["sim"]["time_ns"])

    def test_runs_are_the_same_with_and_without(self):
        """The series is looked at from outside: --wall-limit slices, --check and --out change nothing of it."""
        one = self.results("one", SOURCE / "traces/random.trace")
        two = self.results("two", SOURCE / "traces/random.trace", "--check", "--wall-limit", "200s")
        self.assertEqual((one / "series.csv").read_bytes(), (two / "series.csv").read_bytes())

    def test_it_says_why_a_step_may_lie_above_the_rate(self):
        page = self.page(self.results("one", SOURCE / "traces/pingpong.trace"))
        self.assertRegex(page.texts["run0"], "Each step of the goodput is the mean of .*may lie above the rate of the link")

    def test_the_page_draws_it(self):
        page = self.page(self.results("stream", SOURCE / "traces/stream.trace"))
        self.assertIn("Queues: the most that any node's had", page.texts["run0"])
        self.assertIn("transmit.buffer_bytes", page.texts["run0"])

    def test_goodput_of_traffic_that_comes_and_goes_is_a_mean(self):
        run = self.results("pingpong", SOURCE / "traces/pingpong.trace")
        rows = self.rows(run)
        self.assertGreater(len(rows), 512)
        text = self.report(run).read_text(encoding="utf-8")
        path = re.search(r'aria-label="Goodput over.*?class="line c0"[^>]* d="([^"]*)"', text).group(1)
        heights = [float(height) for height in re.findall(r"V([0-9.]+)", path)]
        self.assertLessEqual(len(heights), 256)
        # The steps between the first and the last are alike: each holds several messages.
        bottom, top = 190.0, 12.0
        highest = max(bottom - height for height in heights)
        self.assertAlmostEqual(highest, bottom - top, delta=0.1)
        self.assertGreater(min(bottom - height for height in heights[5:-1]), 0.4 * highest)

    def test_queues_show_the_most_of_each_interval(self):
        run = self.results("loss", SOURCE / "traces/incast.trace", "--set", "fabric.faults.drop=0.01")
        text = self.report(run).read_text(encoding="utf-8")
        drawn = dict(re.findall(r'aria-label="(\S+) over simulated time"><title>.*?<path class="line c0"[^>]* d="([^"]*)"', text))
        self.assertIn("retransmitted", drawn)
        rows, units = self.rows(run), json.loads((run / "stats.json").read_text())["units"]
        queues = [column for column in rows[0] if column.startswith("node.nic.")]
        self.assertGreater(len(queues), 8)
        for column in queues:
            self.assertEqual(column in drawn, any(row[column] for row in rows), column)
            self.assertLessEqual(drawn.get(column, "").count("V"), 257, column)
            # No peak of the run is missed, however short it was.
            unit, name = column.removeprefix("node.nic.").rsplit(".", 1)
            peaks = [figures[name.removesuffix("_bytes")] for path, figures in units.items()
                     if re.fullmatch(rf"node\d+\.nic\.{re.escape(unit)}", path)]
            self.assertEqual(max(row[column] for row in rows), max(peaks), column)


def make_sweep(directory, seed, bad=1):
    """A sweep's directory with random figures; returns its good points as dictionaries."""
    rng = random.Random(seed)
    columns = [("point", "INTEGER", "", "point"), ("id", "TEXT", "", "point"), ("trace", "TEXT", "", "point"),
               ("status", "TEXT", "", "point"), ("reason", "TEXT", "", "point"),
               ("nic.windows.on_chip", "INTEGER", "", "axis"), ("fabric.link.rate_gbps", "REAL", "gbps", "axis"),
               ("nic.windows.policy", "TEXT", "", "axis"), ("put_to_completion_p50_ns", "REAL", "ns", "result"),
               ("goodput_gbps", "REAL", "Gb/s", "result"), ("on_chip_bytes", "INTEGER", "bytes", "result"),
               ("bottleneck", "TEXT", "", "result")]
    directory.mkdir()
    base = sqlite3.connect(directory / "results.sqlite")
    base.execute("create table columns (name TEXT PRIMARY KEY, type TEXT, unit TEXT, kind TEXT, meaning TEXT)")
    base.executemany("insert into columns values (?, ?, ?, ?, '')", columns)
    base.execute("create table points (" + ", ".join(f'"{name}" {type_}' for name, type_, _, _ in columns) + ")")
    points = []
    grid = list(itertools.product((64, 128, 256, 512), (100.0, 200.0, 400.0), ("lru", "<b>fifo")))
    for number, (entries, rate, policy) in enumerate(grid):
        ok = number >= bad
        # Whole numbers: some are equal, where a Pareto front is easily drawn wrongly.
        figures = (float(rng.randrange(1000, 1040)), float(rng.randrange(50, 90)), 1000 + 64 * entries,
                   f"fabric.link.{number}-0.wire") if ok else (None,) * 4
        row = (number, f"h{number}", "t", "ok" if ok else "killed", "" if ok else "took <too> long", entries, rate, policy, *figures)
        base.execute(f"insert into points values ({', '.join('?' * len(row))})", row)
        if ok:
            points.append(dict(zip([name for name, *_ in columns], row)))
    base.commit()
    base.close()
    return points


class ReportSweep(ReportTest):
    def test_points_and_their_absence(self):
        points = make_sweep(self.tmp / "sweep", 1, bad=2)
        page = self.page(self.tmp / "sweep")
        self.assertIn(f"{len(points)} points", page.texts["sweep0"])
        self.assertIn("2 points have no result", page.texts["sweep0"])
        self.assertIn("took <too> long", page.texts["sweep0"])
        names = [column["name"] for column in page.json["sweep0"]["columns"]]
        self.assertEqual([dict(zip(names, point)) for point in page.json["sweep0"]["points"]], points)

    def test_sensitivities_are_those_of_their_definitions(self):
        self.assertAlmostEqual(report_sensitivity.rank_correlation([1, 2, 3, 4], [10, 20, 25, 90]), 1.0)
        self.assertAlmostEqual(report_sensitivity.rank_correlation([1, 2, 3, 4], [9, 7, 5, 1]), -1.0)
        self.assertAlmostEqual(report_sensitivity.rank_correlation([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]), 0.8207826816681233)
        self.assertIsNone(report_sensitivity.rank_correlation([1, 1, 1], [1, 2, 3]))
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                directory = self.tmp / f"sweep{seed}"
                points = make_sweep(directory, seed)
                sweep = report_load.read_sweep(directory, "s")
                axes = {axis.name: axis for axis in report_sweep.axes_of(sweep)}
                self.assertEqual(set(axes), {"nic.windows.on_chip", "fabric.link.rate_gbps", "nic.windows.policy"})
                metric = next(column for column in sweep.columns if column.name == "goodput_gbps")
                told = report_sensitivity.sensitivity(sweep, axes["nic.windows.on_chip"], metric)
                by_value = {}
                for point in points:
                    by_value.setdefault(point["nic.windows.on_chip"], []).append(point["goodput_gbps"])
                expected = {value: sum(all_) / len(all_) for value, all_ in by_value.items()}
                self.assertEqual({value: mean for value, mean, _ in told.means}, expected)
                overall = sum(point["goodput_gbps"] for point in points) / len(points)
                self.assertAlmostEqual(told.spread, (max(expected.values()) - min(expected.values())) / overall)
                self.assertIsNotNone(told.correlation)
                self.assertIsNone(report_sensitivity.sensitivity(sweep, axes["nic.windows.policy"], metric).correlation)

    def test_on_chip_bytes_come_from_the_points_where_the_sweep_has_none(self):
        make_sweep(self.tmp / "sweep", 3)
        base = sqlite3.connect(self.tmp / "sweep/results.sqlite")
        base.execute("alter table points drop column on_chip_bytes")
        base.execute("delete from columns where name = 'on_chip_bytes'")
        base.commit()
        base.close()
        run = self.results("one", SOURCE / "traces/pingpong.trace")
        stats = stats_of(run)
        self.assertGreater(stats["on_chip_bytes"]["total"], 2048 * 60)
        self.assertEqual(stats["on_chip_bytes"]["total"], sum(stats["on_chip_bytes"].values()) / 2)
        shutil.copytree(run, self.tmp / "sweep/points/h3")
        page = self.page(self.tmp / "sweep")
        at = [column["name"] for column in page.json["sweep0"]["columns"]].index("on_chip_bytes")
        self.assertEqual([point[at] for point in page.json["sweep0"]["points"] if point[1] == "h3"],
                         [stats["on_chip_bytes"]["total"]])


CHROMIUM = browser.find_chromium()


class BrowserTest(ReportTest):
    """Tests of a page in a headless Chromium."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if CHROMIUM is None:
            message = "Chromium is not installed: the report was NOT looked at in a browser (scripts/setup installs it)"
            if os.environ.get("CI"):
                raise AssertionError(message)
            print(f"\n{'*' * len(message)}\n{message}\n{'*' * len(message)}")
            raise unittest.SkipTest(message)

    def open(self, *directories):
        file = self.report(*directories)
        page = browser.Browser(CHROMIUM)
        self.addCleanup(page.close)
        page.open(file)
        self.assertEqual(page.evaluate("document.documentElement.dataset.ready"), "yes")
        self.addCleanup(lambda: self.assertEqual(page.errors, []))
        self.assertEqual([url for url in page.requests if not url.startswith("file:")], [])
        self.assertEqual(len(page.requests), 1, page.requests)
        return page


class ReportInBrowser(BrowserTest):
    """Scripts run without errors, nothing is loaded, hovering and sorting work."""

    def test_runs(self):
        page = self.open(self.results("pingpong", SOURCE / "traces/pingpong.trace"),
                         self.results("stream", SOURCE / "traces/random.trace"))
        page.hover("#run0 .track")
        self.assertIn("Gb/s", page.evaluate("document.getElementById('tip').textContent"))
        self.assertFalse(page.evaluate("document.getElementById('tip').hidden"))
        column = "[...document.querySelectorAll('#summary tbody tr')].map(r => Number(r.cells[5].querySelector('data').value))"
        page.click("#summary thead th:nth-child(6) button")
        rising = page.evaluate(column)
        self.assertEqual(rising, sorted(rising))
        page.click("#summary thead th:nth-child(6) button")
        self.assertEqual(page.evaluate(column), rising[::-1])
        self.assertEqual(page.evaluate("document.querySelector('#summary th:nth-child(6)').getAttribute('aria-sort')"), "descending")
        # Nothing is wider than the window, and text is readable on its ground in both schemes.
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), page.evaluate("innerWidth"))
        grounds = []
        for scheme in ("light", "dark"):
            page.media(scheme)
            contrast = page.evaluate("""(() => {
              const light = (text) => { const c = text.match(/[0-9.]+/g).slice(0, 3).map((v) => { v /= 255;
                return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
                return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
              const ground = light(getComputedStyle(document.body).backgroundColor);
              const ratio = (e) => { const l = light(getComputedStyle(e).color); return (Math.max(l, ground) + 0.05) / (Math.min(l, ground) + 0.05); };
              return [ground, ...["body", ".note", "nav a", "thead th", ".badge"].map((s) => ratio(document.querySelector(s)))]; })()""")
            grounds.append(contrast[0])
            self.assertGreater(min(contrast[1:]), 4.5, (scheme, contrast))
        self.assertGreater(grounds[0], 0.8)
        self.assertLess(grounds[1], 0.1)
        page.media("light", "print")
        self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('nav')).display"), "none")

    def test_what_to_change_is_in_sight(self):
        name = "results-of-the-thirtieth-of-november"
        page = self.open(self.results("pingpong", SOURCE / "traces/pingpong.trace"), self.results(name, SOURCE / "traces/stream.trace"))
        self.assertIn(" from ", page.evaluate("document.querySelector('#summary tbody tr').lastChild.textContent"))
        for width in (1000, 1050, 1100, 1240):
            with self.subTest(width=width):
                page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
                self.assertEqual(page.evaluate("innerWidth"), width)
                for box in ("table", "tbody tr td:last-child code"):
                    right = page.evaluate(f"document.querySelector('#summary {box}').getBoundingClientRect().right")
                    self.assertLessEqual(right, page.evaluate("document.querySelector('#summary .scroll').getBoundingClientRect().right"))

    @staticmethod
    def front(points, x, y, sign_x, sign_y):
        """By its definition: no other point is at least as good in both and better in one."""
        def worse(p, q):
            px, py, qx, qy = sign_x * p[x], sign_y * p[y], sign_x * q[x], sign_y * q[y]
            return qx <= px and qy <= py and (qx < px or qy < py)
        return sorted(i for i, p in enumerate(points) if not any(worse(p, q) for q in points))

    def test_sweep(self):
        for seed in (1, 2):
            with self.subTest(seed=seed):
                points = make_sweep(self.tmp / f"sweep{seed}", seed)
                page = self.open(self.tmp / f"sweep{seed}")
                shown = "[...document.querySelectorAll('.point.front')].map(e => Number(e.dataset.point)).sort((a, b) => a - b)"
                self.assertEqual(page.evaluate(shown), self.front(points, "on_chip_bytes", "put_to_completion_p50_ns", 1, 1))
                self.assertEqual(page.evaluate("document.querySelectorAll('.point').length"), len(points))
                for x, y, better_x, better_y in (("put_to_completion_p50_ns", "goodput_gbps", "lower", "higher"),
                                                 ("goodput_gbps", "fabric.link.rate_gbps", "higher", "lower")):
                    for role, value in (("x", x), ("y", y), ("x-better", better_x), ("y-better", better_y)):
                        page.evaluate(f"""(() => {{ const e = document.querySelector('select[data-role="{role}"]');
                            e.value = "{value}"; e.dispatchEvent(new Event("change")); return e.value; }})()""")
                    sign = {"lower": 1, "higher": -1}
                    self.assertEqual(page.evaluate(shown), self.front(points, x, y, sign[better_x], sign[better_y]))
                    self.assertEqual(page.evaluate("document.querySelectorAll('.front tbody tr').length"),
                                     len(self.front(points, x, y, sign[better_x], sign[better_y])))
                number = page.evaluate("Number(document.querySelector('.point').dataset.point)")
                page.hover(".point")
                text = page.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
                self.assertIn(f"nic.windows.policy: {points[number]['nic.windows.policy']}", text)
                self.assertIn(f"nic.windows.on_chip: {points[number]['nic.windows.on_chip']}\n", text)
                self.assertIn(f"fabric.link.rate: {points[number]['fabric.link.rate_gbps']:g}Gbps\n", text)
                # The sensitivity that belongs to the result chosen.
                page.evaluate("""(() => { const e = document.querySelector('select[data-role="metric"]');
                    e.value = "goodput_gbps"; e.dispatchEvent(new Event("change")); })()""")
                self.assertEqual(page.evaluate("[...document.querySelectorAll('[data-metric]')].filter(e => !e.hidden).map(e => e.dataset.metric)"),
                                 ["goodput_gbps"])
                page.click("table.points thead th:nth-child(2) button")
                column = page.evaluate("[...document.querySelectorAll('table.points tbody tr')].map(r => Number(r.cells[1].textContent))")
                self.assertEqual(column, sorted(column))


if __name__ == "__main__":
    unittest.main()
