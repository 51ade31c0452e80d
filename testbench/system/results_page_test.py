"""docs/reference/results.md, held against the files that the program writes."""

import json
import re
import unittest

from system_test import SOURCE, SystemTest

MESSAGE = """rvma-trace 1
ranks 2
rank 0
  send rank=1 tag=3 size=100kB
rank 1
  recv rank=0 tag=3 size=100kB
"""
CALLS = SOURCE / "docs/examples/packets/calls.trace"


class ResultsPage(SystemTest):
    def setUp(self):
        super().setUp()
        self.page = (SOURCE / "docs/reference/results.md").read_text(encoding="utf-8")

    def section(self, heading):
        return self.page.split(f"\n## {heading}\n")[1].split("\n## ")[0]

    def columns(self, heading):
        """What stands in the first column of the section's table."""
        return [name for row in re.findall(r"^\| (`.*?) \|", self.section(heading), re.MULTILINE)
                for name in re.findall(r"`([^`]+)`", row)]

    def written(self, trace, *options):
        self.runs += 1
        out = self.tmp / f"out{self.runs}"
        self.assertEqual(self.rvma("run", trace, "--out", out, "--quiet", *options).status, 0)
        return out

    def test_tables_have_the_columns_that_it_names(self):
        (self.tmp / "message.trace").write_text(MESSAGE)
        calls, message = self.written(CALLS), self.written(self.tmp / "message.trace")
        for directory, name in ((calls, "completions.csv"), (calls, "puts.csv"), (calls, "calls.csv"), (calls, "links.csv"),
                                (message, "messages.csv")):
            header = (directory / name).read_text().splitlines()[0].split(",")
            named = self.columns(name)
            # A column that only some runs have stands last.
            self.assertEqual(named[:len(header)], header, name)
            self.assertLessEqual(set(named[len(header):]), {"data_crc32"})

    def test_series_have_the_queues_that_it_names(self):
        named = re.findall(r"`([\w.]+)`", self.section("series.csv"))
        for protocol in ("rvma", "rdma"):
            out = self.written(SOURCE / "traces/incast.trace", "--protocol", protocol)
            header = (out / "series.csv").read_text().splitlines()[0].split(",")
            self.assertEqual(header[:6], self.columns("series.csv")[:6])
            for column in header[6:]:
                tail = column.removeprefix("node.nic.")
                self.assertTrue(column in named or any(tail == name or tail.endswith(name) for name in named
                                                       if name.startswith(".") or name in (tail, "outstanding")), column)

    def test_a_comparison_has_the_keys_that_it_names(self):
        out = self.tmp / "compare"
        self.assertEqual(self.rvma("compare", CALLS, "--out", out).status, 0)
        named = [name.removeprefix("runs[].").replace("*", r"\w+") for name in self.columns("compare.json")]
        told = json.loads((out / "compare.json").read_text())
        for key in [*told["runs"][0], *(key for key in told if key != "runs")]:
            self.assertTrue(any(re.fullmatch(name, key) for name in named), key)

    def test_a_timeline_has_the_members_that_it_names(self):
        self.written(CALLS, "--timeline", self.tmp / "timeline.json")
        timeline = json.loads((self.tmp / "timeline.json").read_text())
        row = re.search(r"^\| `otherData` \|(.*)$", self.section("The timeline"), re.MULTILINE).group(1)
        self.assertEqual(set(timeline["otherData"]), set(re.findall(r"`(\w+)`", row)) - {"null"} - {"stats"})

    def test_what_is_zero_under_rdma_is_zero(self):
        """The stages after the count: waits of epochs for each other are not, the rest is."""
        waited = set()
        for trace in ("random", "pingpong", "stream"):
            stats = json.loads((self.written(SOURCE / f"traces/{trace}.trace", "--protocol", "rdma") / "stats.json").read_text())
            self.assertEqual(stats["breakdown_ns"]["visible"], 0)
            waited.add(stats["breakdown_ns"]["completion_write"] > 0)
        self.assertEqual(waited, {False, True})


if __name__ == "__main__":
    unittest.main()
