"""Fabrics that disturb a run in different ways, and what must hold in any run whatever they do.

RVMA_CORNERS_SEEDS: seeds of each fabric that draws any (2); a failure names fabric and seed.
"""

import os

from calls_test import CallsTest, settings
from system_test import crc, payload

SEEDS = int(os.environ.get("RVMA_CORNERS_SEEDS", "2"))
MTU = 256

# Messages of a few kB have many packets; a rank that waits for a time-out does not wait for long.
COMMON = [("nic.mtu", f"{MTU}B"), ("nic.reliability.rto", "20us"), ("nic.reliability.quiet", "50us")]
# At 1.25 B/ns messages of 50 kB are under way for longer than it takes to call.
SLOW_LINK = [("fabric.link.rate", "10Gbps")]

SPRAY = [("fabric.topology", "fat_tree"), ("fabric.fat_tree.levels", 3), ("fabric.fat_tree.arity", 2),
         ("fabric.routing", "spray")]
LOSS = [("fabric.faults.drop", "0.1"), ("fabric.faults.duplicate", "0.1"), ("fabric.faults.corrupt", "0.02")]
# A catch-all window and those with messages under way keep their slots; all else spills to host memory.
SPILLED = [(f"nic.{key}.on_chip", 1) for key in ("buffers", "counters", "peers", "page_cache")]
FABRICS = {
    "clean": [],
    "jitter": [("fabric.faults.jitter", "4us")],
    "reverse": [("fabric.faults.reverse", 64)],
    "spray": SPRAY,
    # Not the shortest ways: they differ in length.
    "torus": [("fabric.topology", "torus"), ("fabric.torus.dims", "3x3"), ("fabric.routing", "valiant")],
    "loss": LOSS,
    "all": SPRAY + LOSS + SPILLED + [("fabric.faults.jitter", "3us"), ("fabric.faults.reverse", 16),
                                     ("nic.windows.on_chip", 3)],
}
# Where little is on the NIC messages are refused `busy` on the way to what they end with.
BUSY_TRIES = 300

REFUSALS = {"no_mailbox", "closed", "bad_key", "stale", "no_buffer", "bounds", "busy"}
CALL_STATUSES = {"ok", "exists", "full", "no_window", "no_buffer", "closed", "history", "bad_argument"}

# Calls that the program does not wait for: their rows say when a failure was seen.
ANSWERED_LATE = {"post_buffer", "post_one_time_buffer", "put", "get"}


class Fabric:
    """One condition under which a corner is tried."""

    def __init__(self, name, seed):
        self.name = name
        self.seed = seed
        self.is_clean = name == "clean"

    def __str__(self):
        return f"{self.name}, seed {self.seed}"

    def arguments(self, more, rnr_tries):
        if self.name == "all":
            rnr_tries = max(rnr_tries, BUSY_TRIES)
        retries = [("nic.reliability.rnr_tries", rnr_tries), ("nic.reliability.rnr_delay", "1us")]
        return [*settings(COMMON + FABRICS[self.name] + retries + list(more)), "--seed", self.seed]


def fabrics(seeds=SEEDS, names=FABRICS):
    return [Fabric(name, seed) for name in names for seed in range(1, 2 if name == "clean" else seeds + 1)]


def events(*listed):
    """Fault events (at, kind, where) as a setting."""
    text = ",".join(f'{{"at":"{at}","kind":"{kind}","where":"{where}"}}' for at, kind, where in listed)
    return [("fabric.faults.events", f"[{text}]")]


def ns(row, key="time_ns"):
    return float(row[key])


def over(rewind):
    """A time by which all is visible that completed before a rewind, and nothing that completed after it. Its answer comes
    behind the earlier words, and its program goes on 151 ns after that; a message that was let in at once takes longer than
    6 ns to complete."""
    return ns(rewind) - 145


class Judge:
    """Holds a result against the rules that do not depend on what its trace does."""

    def __init__(self, test, result, restarted=(), broken=()):
        """`restarted`: ranks whose node came back; `broken`: windows that were closed with an epoch that never ended."""
        self.test = test
        self.restarted = {str(rank) for rank in restarted}
        self.broken = broken
        self.completions = result.rows("completions.csv")
        self.puts = result.rows("puts.csv")
        self.calls = result.rows("calls.csv")
        self.totals = result.stats()["totals"]

    def judge(self):
        for rank, window in {(row["rank"], row["window"]) for row in self.completions + self.calls if row["window"]}:
            completions = [row for row in self.completions if (row["rank"], row["window"]) == (rank, window)]
            calls = [row for row in self.calls if (row["rank"], row["window"]) == (rank, window)]
            if rank not in self.restarted:
                self.judge_epochs(window, completions, calls)
                self.judge_get_epoch(rank, completions, calls)
                self.judge_history(completions, calls)
        for row in self.completions:
            if row["seen_ns"]:
                self.test.assertGreaterEqual(ns(row, "seen_ns"), ns(row), row)
        self.judge_outcomes()

    def judge_epochs(self, window, completions, calls):
        """One completion an epoch and rewind, in order, none after the window was closed."""
        rewinds = [row for row in calls if (row["op"], row["status"]) == ("rewind", "ok")]
        due = 0
        for row in completions:
            while rewinds and over(rewinds[0]) < ns(row):
                self.test.assertLessEqual(int(rewinds[0]["value"]), due, f"a rewind leads back: {rewinds[0]}")
                due = int(rewinds.pop(0)["value"])
            if window not in self.broken:
                self.test.assertEqual(int(row["epoch"]), due, f"epochs of {window}: {row}")
            self.test.assertGreaterEqual(int(row["epoch"]), due, f"epochs of {window}: {row}")
            due = int(row["epoch"]) + 1
        for closed in (row for row in calls if (row["op"], row["status"]) == ("close_window", "ok")):
            for row in completions:
                self.test.assertLessEqual(ns(row), ns(closed), f"{window} was closed before {row}")

    def judge_get_epoch(self, rank, completions, calls):
        """Never behind a word that was visible when the call began: not before the answer of the rank's last call."""
        answers = [ns(row) for row in self.calls if row["rank"] == rank and row["op"] not in ANSWERED_LATE]
        floor, since = 0, 0.0
        for row in calls:
            if row["status"] != "ok":
                continue
            if row["op"] == "rewind":
                floor, since = int(row["value"]), over(row)
            if row["op"] != "get_epoch":
                continue
            begun = max((time for time in answers if time < ns(row)), default=0.0)
            visible = [int(done["epoch"]) + 1 for done in completions if since < ns(done) <= begun]
            self.test.assertGreaterEqual(int(row["value"]), max(visible, default=floor), f"{row} is behind a word")
            self.test.assertLessEqual(int(row["value"]), max([floor] + [int(done["epoch"]) + 1 for done in completions]),
                                      f"{row} counts what never completes")

    def judge_history(self, completions, calls):
        """Newest first, and of epochs that have completed with that length."""
        done = {(int(row["epoch"]), int(row["length"])) for row in completions}
        for row in calls:
            if row["op"] != "get_buf_ptrs" or row["status"] != "ok":
                continue
            pairs = [tuple(map(int, pair.split(":"))) for pair in row["value"].split()]
            for newer, older in zip(pairs, pairs[1:]):
                self.test.assertEqual(newer[0], older[0] + 1, row)
            self.test.assertLessEqual(set(pairs), done, row)

    def judge_outcomes(self):
        self.test.assertLessEqual({row["status"] for row in self.calls}, CALL_STATUSES)
        self.test.assertLessEqual({row["status"] for row in self.puts}, REFUSALS | {"ok", "timeout", "unfinished"})
        # A message that ended ok was counted whole; of a timeout nobody knows; of a refusal nothing was.
        least = sum(int(row["size"]) for row in self.puts if row["status"] == "ok")
        most = least + sum(int(row["size"]) for row in self.puts if row["status"] in ("timeout", "unfinished"))
        self.test.assertGreaterEqual(self.totals["bytes_delivered"], least)
        self.test.assertLessEqual(self.totals["bytes_delivered"], most)
        completed = sum(int(row["length"]) for row in self.completions)
        records = 32 * self.totals["messages_delivered"]
        self.test.assertLessEqual(completed, self.totals["bytes_delivered"] + records)


class CornersTest(CallsTest):
    """A corner: a trace, tried in all fabrics, with what must come out."""

    def run_in(self, fabric, text, more=(), rnr_tries=0, restarted=(), broken=(), arguments=()):
        result = self.run_text(text, *fabric.arguments(more, rnr_tries), *arguments)
        Judge(self, result, restarted, broken(result) if callable(broken) else broken).judge()
        return result

    def everywhere(self, text, expect, seeds=SEEDS, names=FABRICS, **options):
        """Runs `text` in each fabric and gives each result to `expect`."""
        for fabric in fabrics(seeds, names):
            with self.subTest(fabric=str(fabric)):
                expect(self.run_in(fabric, text, **options))

    def statuses(self, result, rank=None):
        """Of named puts and gets."""
        return {row["name"]: row["status"] for row in result.rows("puts.csv")
                if row["name"] and rank in (None, int(row["rank"]))}

    def values(self, result, op, window=None):
        """(status, value) of the calls `op`, in their order."""
        return [(row["status"], row["value"]) for row in result.rows("calls.csv")
                if row["op"] == op and window in (None, row["window"])]

    def lengths(self, result, window=None):
        return [int(row["length"]) for row in result.rows("completions.csv") if window in (None, row["window"])]

    def contents(self, result, window=None):
        """(epoch, length, crc32) of the completions, in their order."""
        return [(int(row["epoch"]), int(row["length"]), row["crc32"]) for row in result.rows("completions.csv")
                if window in (None, row["window"])]


def epoch_of(epoch, *messages):
    """What `contents` says of an epoch whose buffer holds (seed, size) one behind the other from its head."""
    data = b"".join(payload(seed, size) for seed, size in messages)
    return epoch, len(data), crc(data)
