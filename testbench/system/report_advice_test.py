"""`rvma report`: "what should I make bigger?". What it says is done, and measured."""

import shutil
import unittest

from report_test import ReportTest, figure_of, stats_of
from system_test import SOURCE


class ReportAdvice(ReportTest):
    """What the report says to change is changed, and must help as much as it said."""

    FIGURES = {"rate": lambda stats: stats["bandwidth_gbps"]["goodput"],
               "time": lambda stats: 1 / stats["latency_ns"]["put_to_completion"]["mean"]}
    LINES = 3  # of a run's advice that are tried

    # name: trace (a generator's arguments, or a shipped file), options of the run, keys that are to be named first
    OTHERS = {
        "stream on PCIe with 8 lanes": ("stream.trace", ["--set", "host.pcie.lanes=8"], "host.pcie.lanes"),
        "stream on the 400 Gb/s preset": ("stream.trace", ["--config", "model/platform/presets/nic-400g.json"],
                                          "fabric.link.rate host.pcie.generation"),
        "stream when the link is wide enough": ("stream.trace", ["--set", "fabric.link.rate=800Gbps"], "host.pcie.generation"),
        "stream when PCIe is wide enough": ("stream.trace", ["--set", "host.pcie.generation=6"], "fabric.link.rate"),
        "incast when PCIe is wide enough": ("incast.trace", ["--set", "host.pcie.generation=6"], "fabric.link.rate"),
        "stream on a slow NIC": ("stream.trace", ["--set", "nic.clock=500MHz"], "nic.clock"),
        "messages of 64 B": (["stream", "--size", "64", "--count", "20000"], [], "fabric.link.rate"),
        "messages of 64 B on a slow NIC": (["stream", "--size", "64", "--count", "20000"], ["--set", "nic.clock=200MHz"],
                                           "nic.clock"),
        "a transmit buffer that is too small": ("stream.trace", ["--set", "nic.transmit.buffer=8KiB"], "nic.transmit.buffer"),
        "too few reads under way": ("stream.trace", ["--set", "nic.dma.reads=2"], "nic.dma.reads"),
        "nearly enough reads under way": ("stream.trace", ["--set", "nic.dma.reads=6"], "nic.dma.reads"),
        "too few puts open": ("random.trace", ["--set", "nic.transmit.open_puts=1"], "nic.transmit.open_puts"),
        "mailboxes that have spilled": (["mailboxes", "--mailboxes", "500", "--count", "600", "--depth", "8"],
                                        ["--set", "nic.windows.on_chip=16"], "nic.windows.on_chip"),
    }
    # Of the shipped traces with the shipped configurations: the keys that are to be named first.
    SHIPPED = {
        ("default", "stream", "rvma"): "fabric.link.rate host.pcie.generation",
        ("default", "stream", "rdma"): "fabric.link.rate host.pcie.generation",
        ("default", "incast", "rvma"): "fabric.link.rate host.pcie.generation",
        ("default", "incast", "rdma"): "fabric.link.rate",
        ("default", "random", "rvma"): "host.pcie.generation",
        ("default", "random", "rdma"): "host.pcie.read_latency",
        ("default", "pingpong", "rvma"): "host.pcie.read_latency",
        ("default", "pingpong", "rdma"): "host.pcie.write_latency",
        ("connectx-100g", "stream", "rvma"): "fabric.link.rate",
        ("connectx-100g", "stream", "rdma"): "fabric.link.rate host.pcie.generation",
        ("connectx-100g", "incast", "rvma"): "fabric.link.rate",
        ("connectx-100g", "incast", "rdma"): "fabric.link.rate",
        ("connectx-100g", "random", "rvma"): "host.pcie.generation",
        ("connectx-100g", "random", "rdma"): "host.pcie.write_latency",
        ("connectx-100g", "pingpong", "rvma"): "host.pcie.write_latency",
        ("connectx-100g", "pingpong", "rdma"): "host.pcie.write_latency",
        ("aurora", "stream", "rvma"): "fabric.link.rate",
        ("aurora", "stream", "rdma"): "fabric.link.rate",
        ("aurora", "incast", "rvma"): "fabric.link.rate",
        ("aurora", "incast", "rdma"): "fabric.link.rate",
        ("aurora", "random", "rvma"): "fabric.link.rate",
        ("aurora", "random", "rdma"): "fabric.link.rate",
        ("aurora", "pingpong", "rvma"): "fabric.switch.latency",
        ("aurora", "pingpong", "rdma"): "fabric.switch.latency",
    }

    def check_advice(self, trace, options, first, points=0.03, share=0.2):
        """Each of the first lines is tried by itself; off by at most `share` of what was measured, or `points` of small gains."""
        before = self.results("before", trace, *options)
        lines = self.page(before).gains["run0"]
        self.assertEqual(" ".join(setting.split("=")[0] for setting in lines[0][2]), first)
        for number, (kind, gain, settings) in enumerate(lines[1:self.LINES + 1]):  # the first stands above the table, too
            words = [word for setting in settings for word in ("--set", setting)]
            after = self.results(f"after{number}", trace, *options, *words)
            measured = self.FIGURES[kind](stats_of(after)) / self.FIGURES[kind](stats_of(before))
            said = f"{settings}: said {gain:.4f}, measured {measured:.4f}"
            self.assertGreater(gain, 1.0, said)
            self.assertLess(abs(measured - gain), share * measured, said)
            if gain < 1.2:  # 7 % said and nothing got is wrong, though it is within 20 % of the rate
                self.assertLess(abs(measured - gain), points, said)
        for directory in self.tmp.iterdir():
            if directory.is_dir():
                shutil.rmtree(directory)

    @staticmethod
    def preset(name, trace):
        if name == "default":
            return []
        more = ["--set", "fabric.topology=star"] if name == "aurora" and trace in ("incast", "random") else []
        return ["--config", SOURCE / f"model/platform/presets/{name}.json", *more]

    def test_shipped_configurations_gain_what_it_said(self):
        for (preset, trace, protocol), first in self.SHIPPED.items():
            with self.subTest(preset=preset, trace=trace, protocol=protocol):
                # Of what waits for RDMA's software less is known.
                points = 0.05 if (trace, protocol) == ("random", "rdma") else 0.03
                # Where a slow PCIe makes queues, those of the link come in their place.
                share = 0.25 if (preset, trace) == ("connectx-100g", "random") else 0.2
                self.check_advice(SOURCE / f"traces/{trace}.trace", [*self.preset(preset, trace), "--protocol", protocol], first, points,
                                  share)

    def test_other_runs_gain_what_it_said(self):
        for name, (trace, options, first) in self.OTHERS.items():
            with self.subTest(name):
                file = SOURCE / "traces" / trace if isinstance(trace, str) else self.generate(*trace)
                self.check_advice(file, [SOURCE / option if option.endswith(".json") else option for option in options], first,
                                  points=0.05)

    def test_the_exchange_of_rdma_is_told_from_the_doorbell(self):
        pages = [self.page(self.results(protocol, SOURCE / "traces/pingpong.trace", "--protocol", protocol))
                 for protocol in ("rvma", "rdma")]
        self.assertIn("2 messages more than the put's own", pages[1].texts["run0"])
        self.assertNotIn("than the put's own", pages[0].texts["run0"])

    def test_what_is_not_predicted_is_said(self):
        settings = ("fabric.topology=star", "nic.transmit.buffer=1MiB", "rdma.exchange=per_put", "rdma.registration_cache=0",
                    "rdma.software.registration=1us", "rdma.software.registration_page=20ns")
        run = self.results("window", SOURCE / "traces/incast.trace", "--config", "aurora", "--protocol", "rdma",
                           *[word for setting in settings for word in ("--set", setting)])
        self.assertEqual(stats_of(run)["bottleneck"], "latency: window")
        page = self.page(run)
        self.assertEqual(page.gains.get("run0", []), [])
        self.assertIn("not predicted", page.texts["run0"])
        self.assertIn("fabric.link.switch-0.wire, 57.4%", page.texts["run0"])

    def test_what_refuses_messages_is_named(self):
        """By how much more places help is not predicted, but they do."""
        for key, setting, (verdict, first), trace in (
                ("nic.binding.on_chip", 1, ("node0.nic.bindings", 2), ["incast", "--ranks", "12", "--size", "16KiB", "--count", "20"]),
                ("nic.windows.on_chip", 2048, ("node0.nic.contexts", 3001),
                 ["mailboxes", "--ranks", "8", "--mailboxes", "3000", "--count", "300"])):
            with self.subTest(key):
                file = self.generate(*trace)
                patient = ("--set", "nic.reliability.rnr_tries=10000")  # or puts end busy, and buffers are waited for in vain
                before = self.results(f"few-{key}", file, *patient, "--set", f"{key}={setting}")
                self.assertEqual(stats_of(before)["bottleneck"], verdict)
                page = self.page(before)
                self.assertIn(f"{key} from {setting} to {first}", page.texts["run0"])
                self.assertIn("by how much is not predicted", page.texts["run0"])
                self.assertEqual(page.gains.get("run0", []), [])
                after = self.results(f"more-{key}", file, *patient, "--set", f"{key}={first}")
                self.assertGreater(self.FIGURES["time"](stats_of(after)), 1.2 * self.FIGURES["time"](stats_of(before)))

    def test_every_unit_that_can_limit_says_what_widens_it(self):
        """Each key is one of the configuration, and each unit has one."""
        for protocol in ("rvma", "rdma"):
            run = self.results(protocol, SOURCE / "traces/random.trace", "--protocol", protocol)
            stats = stats_of(run)
            for limit in stats["limits"]:
                self.assertNotEqual(limit["widened_by"], [], limit["unit"])
                for widening in limit["widened_by"]:
                    figure_of(stats["config"], widening["key"])
                    self.assertIn(widening["key"], stats["key_ranges"])
            for shortening in stats["shortened_by"]:
                figure_of(stats["config"], shortening["key"])
                self.assertIn(shortening["stage"], stats["breakdown_ns"])

    def test_spilled_structures_are_listed(self):
        trace = self.generate("mailboxes", "--mailboxes", 100, "--count", 300)
        page = self.page(self.results("few", trace, "--set", "nic.windows.on_chip=8"))
        self.assertIn("What did not fit on the NIC", page.texts["run0"])
        self.assertIn("node0.nic.contexts", page.texts["run0"])
        page = self.page(self.results("many", trace))
        self.assertNotIn("What did not fit on the NIC", page.texts["run0"])


if __name__ == "__main__":
    unittest.main()
