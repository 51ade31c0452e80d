"""What `rvma report` says of a sweep: which key to make bigger, what the result depends on, the Pareto front; on screen and in
print."""

import random
import re
import sqlite3
import unittest

from report_test import BrowserTest, make_sweep
from system_test import SOURCE, SystemTest

from rvma_explore import report_load, report_sensitivity, report_sweep, report_sweep_answer

EXAMPLE = SOURCE / "docs" / "examples" / "sweeps" / "stream-pcie.json"


def sweep_of(columns, points, problems=()):
    """`columns`: (name, unit, kind), all numbers but `bottleneck`."""
    return report_load.Sweep("s", [report_load.Column(name, unit, kind, name != "bottleneck") for name, unit, kind in columns],
                             [list(point) for point in points], list(problems))


def column(sweep, name):
    return next(one for one in sweep.columns if one.name == name)


def choices(sweep):
    metrics = report_sweep.metrics_of(sweep)
    numbers = metrics + [axis for axis in report_sweep.axes_of(sweep) if axis.is_number]
    return report_sweep.first_choices(sweep, metrics, numbers)


class ReportSweepAnswers(unittest.TestCase):
    def hypercube(self, seed):
        """100 points: `few`, three values, is what counts; `many`, a value a point, is noise."""
        rng = random.Random(seed)
        many = rng.sample(range(16, 1024), 100)
        points = []
        for number in range(100):
            few = (4, 8, 16)[number % 3]
            points.append((few, many[number], 1000 / few * rng.uniform(0.5, 1.5), "node1.pcie.upstream" if few < 16 else ""))
        return sweep_of([("few", "", "axis"), ("many", "", "axis"), ("time_ns", "ns", "result"), ("bottleneck", "", "result")], points)

    def test_a_key_with_a_value_a_point_is_not_first_by_chance(self):
        for seed in range(1, 21):
            with self.subTest(seed=seed):
                sweep = self.hypercube(seed)
                time_ns = column(sweep, "time_ns")
                table = report_sweep.sensitivity_table(sweep, report_sweep.axes_of(sweep), time_ns)
                self.assertEqual(re.findall("<code>(.*?)</code>", table), ["few", "many"])
                told = report_sensitivity.sensitivity(sweep, column(sweep, "many"), time_ns)
                self.assertEqual([points for _, _, points in told.means], [20] * 5)
                self.assertLess(told.explained, 0.15)
                self.assertGreater(report_sensitivity.sensitivity(sweep, column(sweep, "few"), time_ns).explained, 0.5)
                # The ranges hold the points that they say.
                for span, mean, _ in told.means:
                    figures = [point[2] for point in sweep.points if span.low <= point[1] <= span.high]
                    self.assertAlmostEqual(mean, sum(figures) / len(figures))

    def test_points_of_one_value_stay_together(self):
        pairs = [(value, 1.0) for value in [1] * 12 + list(range(2, 14))]
        groups = report_sensitivity.grouped(pairs, True)
        self.assertEqual([(tuple(span), len(figures)) for span, figures in groups], [((1, 1), 12), ((2, 7), 6), ((8, 13), 6)])
        self.assertEqual(len(report_sensitivity.grouped([(value, 1.0) for value in range(8)], True)), 8)

    def test_the_answer_is_the_gain_between_the_means(self):
        sweep = self.hypercube(1)
        text = report_sweep_answer.answer(sweep, report_sweep.axes_of(sweep), report_sweep.metrics_of(sweep))
        means = {few: [] for few in (4, 8, 16)}
        for point in sweep.points:
            means[point[0]].append(point[2])
        means = {few: sum(figures) / len(figures) for few, figures in means.items()}
        self.assertIn("<code>few</code> from 4 to <strong>16</strong>", text)
        gain = re.search('data-step="few" value="([^"]*)"', text).group(1)
        self.assertAlmostEqual(float(gain), means[4] / means[16], places=5)
        self.assertNotIn("many", text)
        self.assertIn("node*.pcie.upstream limited 67", text)

    def test_no_more_than_what_is_as_good_as_the_best(self):
        points = [(size, 100 / min(size, 4), "") for size in (1, 2, 4, 8, 16)]
        sweep = sweep_of([("entries", "", "axis"), ("time_ns", "ns", "result"), ("bottleneck", "", "result")], points)
        text = report_sweep_answer.answer(sweep, report_sweep.axes_of(sweep), report_sweep.metrics_of(sweep))
        self.assertIn("<code>entries</code> from 1 to <strong>4</strong>", text)
        flat = sweep_of([("entries", "", "axis"), ("time_ns", "ns", "result")], [(1, 100), (2, 101), (4, 100), (8, 101)])
        self.assertIn("No key of this sweep", report_sweep_answer.answer(flat, report_sweep.axes_of(flat), report_sweep.metrics_of(flat)))

    def test_keys_that_vary_together_are_told_as_one(self):
        points = [(read, write, lanes, 100 * read / lanes) for read, write in ((1, 5), (2, 6), (4, 4)) for lanes in (4, 8)]
        sweep = sweep_of([("read", "", "axis"), ("write", "", "axis"), ("lanes", "", "axis"), ("time_ns", "ns", "result")], points)
        text = report_sweep_answer.answer(sweep, report_sweep.axes_of(sweep), report_sweep.metrics_of(sweep))
        self.assertIn("<code>read</code> from 4 to <strong>1</strong> together with <code>write</code>: ", text)
        self.assertEqual(text.count("<li>"), 2)

    def test_keys_and_values_can_be_pasted(self):
        columns = [("nic.transmit.buffer_bytes", "bytes", "axis"), ("fabric.link.rate_gbps", "gbps", "axis"),
                   ("host.pcie.read_latency_ns", "ns", "axis"), ("nic.clock_mhz", "mhz", "axis"), ("nic.table.latency_cycles", "cycles", "axis"),
                   ("nic.windows.on_chip", "", "axis"), ("idle.size_bytes", "bytes", "axis"), ("time_ns", "ns", "result")]
        points = [(131072 * size, 400.0 / size, 1500.0 / size, 1000.0 * size, size, 7 * size, 64 * size, 100 / size) for size in (1, 2, 4)]
        sweep = sweep_of(columns, points)
        table = report_sweep.sensitivity_table(sweep, report_sweep.axes_of(sweep), column(sweep, "time_ns"))
        for text in ("<code>nic.transmit.buffer</code>", "128KiB: 100; 256KiB: 50; 512KiB: 25", "<code>fabric.link.rate</code>",
                     "100Gbps: 25; 200Gbps: 50; 400Gbps: 100", "<code>host.pcie.read_latency</code>", "375ns: 25; 750ns: 50; 1500ns: 100",
                     "<code>nic.clock</code>", "1GHz: 100; 2GHz: 50", "<code>nic.table.latency</code>", "1cyc: 100; 2cyc: 50",
                     "<code>nic.windows.on_chip</code>", "7: 100; 14: 50"):
            self.assertIn(text, table)
        answer = report_sweep_answer.answer(sweep, report_sweep.axes_of(sweep)[:2], report_sweep.metrics_of(sweep))
        self.assertIn("<code>nic.transmit.buffer</code> from 128KiB to <strong>512KiB</strong> together with <code>fabric.link.rate</code>", answer)
        page = report_sweep.section(sweep, 0)
        self.assertIn("keys that vary: <code>nic.transmit.buffer</code>, <code>fabric.link.rate</code>, ", page)
        flat = [(1.5, size, 5) for size in (1, 2)]
        page = report_sweep.section(sweep_of([("x_ns", "ns", "axis"), ("y_bytes", "bytes", "axis"), ("time_ns", "ns", "result")], flat +
                                             [(2.5, size, 6) for size in (1, 2)]), 0)
        self.assertIn("same figures): <code>y</code>.", page)
        self.assertIn("1500ps: 5; 2500ps: 6", page)
        span = report_sensitivity.Span(100.0, 10000.0)
        self.assertEqual(report_sensitivity.as_set(report_load.Column("x_ns", "ns", "axis"), span), "100ns..10us")

    def test_the_first_axes_of_the_front_mean_something(self):
        columns = [("gen.size_bytes", "bytes", "axis"), ("bytes_delivered", "bytes", "result"), ("time_ns", "ns", "result"),
                   ("put_to_completion_p50_ns", "ns", "result"), ("goodput_gbps", "Gb/s", "result"), ("on_chip_bytes", "bytes", "result"),
                   ("on_chip_bytes_without_peers", "bytes", "result")]
        # All of the NIC's memory varies by less than 1 %; without the contexts of peers by half.
        points = [(64, 640, 10, 100, 5, 10 ** 8, 4000), (128, 1280, 20, 120, 6, 10 ** 8 + 2000, 6000), (256, 2560, 30, 130, 7, 10 ** 8, 4000)]
        self.assertEqual(choices(sweep_of(columns, points)), ("on_chip_bytes_without_peers", "put_to_completion_p50_ns"))
        same = [(*point[:5], 10 ** 8, 4000) for point in points]
        self.assertEqual(choices(sweep_of(columns, same)), ("gen.size_bytes", "put_to_completion_p50_ns"))
        no_generator = [(64, *point[1:]) for point in same]
        self.assertEqual(choices(sweep_of(columns, no_generator)), ("goodput_gbps", "put_to_completion_p50_ns"))
        steady = [(64, point[1], point[2], 100 + 0.001 * point[3], *point[4:]) for point in same]
        self.assertEqual(choices(sweep_of(columns, steady)), ("goodput_gbps", "time_ns"))
        for name, better in (("bytes_delivered", "higher"), ("goodput_gbps", "higher"), ("gen.size_bytes", "higher"),
                             ("on_chip_bytes", "lower"), ("time_ns", "lower"), ("nic.table.rows", "lower")):
            self.assertEqual(report_sweep.better_of(name), better, name)

    def test_a_key_without_effect_and_points_that_all_failed_are_told(self):
        columns = [("x", "", "axis"), ("y", "", "axis"), ("time_ns", "ns", "result")]
        text = report_sweep.section(sweep_of(columns, [(1, 1, 5), (1, 2, 5), (2, 1, 6), (2, 2, 6)]), 0)
        self.assertIn("same figures): <code>y</code>.", text)
        self.assertNotIn("Had no effect", report_sweep.section(sweep_of(columns, [(1, 1, 5), (1, 2, 4), (2, 1, 6)]), 0))
        failed = [(0, "bad_input", "<nic> is wrong"), (1, "bad_input", "<nic> is wrong"), (2, "killed", "killed by SIGKILL")]
        text = report_sweep.section(sweep_of(columns, [], failed), 0)
        self.assertIn("No point ended well</strong>: of 3, 2 bad input, 1 killed. The reason of 2: &lt;nic&gt; is wrong", text)
        self.assertIn("no finished point yet", report_sweep.section(sweep_of(columns, [], [(0, "not_run", "")]), 0))


class ReportSweepExample(BrowserTest):
    """The 100 points of the README, from the sweep to the page."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.example = SystemTest("rvma")
        cls.example.setUp()
        cls.addClassCleanup(cls.example.doCleanups)
        cls.sweep = cls.example.tmp / "stream-pcie.sweep"
        done = cls.example.rvma("sweep", EXAMPLE, "--engine", "local", "--out", cls.sweep, "--quiet")
        assert done.status == 0, done.stderr

    def test_the_strongest_key_is_first_and_the_answer_is_its(self):
        page = self.page(self.sweep)
        text = page.texts["sweep0"]
        self.assertRegex(text, r"For a higher rate:\s*host\.pcie\.lanes from 4 to 16: ×")
        self.assertRegex(text, r"For less time:\s*host\.pcie\.lanes from 4 to 16: ×")
        with sqlite3.connect(self.sweep / "results.sqlite") as base:
            means = dict(base.execute('select "host.pcie.lanes", avg(goodput_gbps) from points group by 1'))
        self.assertIn(f"×{means[16] / means[4]:.2f}", text)

    def test_on_screen(self):
        page = self.open(self.sweep)
        self.assertEqual(page.evaluate('["x", "x-better", "y", "y-better"].map(r => document.querySelector(`select[data-role="${r}"]`).value)'),
                         ["on_chip_bytes_without_peers", "lower", "put_to_completion_p50_ns", "lower"])
        shown = "[...document.querySelectorAll('[data-metric]')].find(e => !e.hidden)"
        self.assertEqual(page.evaluate(f"{shown}.querySelector('tbody th').textContent"), "host.pcie.lanes")
        self.assertEqual(page.evaluate(f"{shown}.querySelectorAll('tbody td')[1].textContent"), "-0.71")
        ticks = page.evaluate("[...document.querySelectorAll('.scatter .tick')].map(e => e.textContent)")
        self.assertGreater(len(ticks), 6)
        self.assertEqual(len(set(ticks)), len(ticks), ticks)
        # A choice brings its own direction.
        page.evaluate("""(() => { const e = document.querySelector('select[data-role="x"]'); e.value = "goodput_gbps";
            e.dispatchEvent(new Event("change")); })()""")
        self.assertEqual(page.evaluate("document.querySelector('select[data-role=\"x-better\"]').value"), "higher")

    def test_the_front_is_listed_on_screen_and_in_print(self):
        page = self.open(self.sweep)
        for medium in ("screen", "print"):
            page.media("light", medium)
            rows = page.evaluate("document.querySelectorAll('div.front tbody tr').length")
            self.assertEqual(rows, page.evaluate("document.querySelectorAll('rect.point.front').length"))
            self.assertGreater(rows, 2)
            self.assertGreater(page.evaluate("document.querySelector('div.front tbody').getBoundingClientRect().height"), 20)
            self.assertIn(f"{rows} of 100 points", page.evaluate("document.querySelector('div.front .chosen').textContent"))

    def test_in_print_nothing_is_cut_and_the_result_is_named(self):
        page = self.open(self.sweep)
        page.media("light", "print")
        # A4 less the browser's margins, in CSS pixels.
        page.call("Emulation.setDeviceMetricsOverride", width=718, height=1000, deviceScaleFactor=1, mobile=False)
        right = page.evaluate("""[...document.querySelectorAll("main table")].filter(e => e.offsetWidth)
            .map(e => e.getBoundingClientRect().right)""")
        self.assertGreater(len(right), 3)
        self.assertLessEqual(max(right), 718, right)
        named = "[...document.querySelectorAll('.printed')].filter(e => e.offsetHeight).map(e => e.textContent)"
        self.assertEqual(page.evaluate(named), ["Result: put_to_completion_p50_ns"])
        page.media("light", "screen")
        self.assertEqual(page.evaluate(named), [])

    def test_tooltips_have_the_keys_as_they_were(self):
        make_sweep(self.tmp / "sweep", 1)
        with sqlite3.connect(self.tmp / "sweep" / "results.sqlite") as base:
            base.execute('update points set "nic.windows.on_chip" = "nic.windows.on_chip" + 131008')
        page = self.open(self.tmp / "sweep")
        tips = page.evaluate("[...document.querySelectorAll('.point')].map(e => e.dataset.tip)")
        values = {re.search(r"nic\.windows\.on_chip: (.*)", tip).group(1) for tip in tips}
        self.assertEqual(values, {"131072", "131136", "131264", "131520"})
        self.assertIn("131072", page.evaluate("document.querySelector('table.points').textContent"))


if __name__ == "__main__":
    unittest.main()
