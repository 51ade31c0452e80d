"""Fault tolerance: a sender dies in the middle of an epoch, its receiver rewinds, and the sender repeats."""

import json
import unittest

from system_test import SOURCE, SystemTest, crc, payload

KIB = 1024
PUT = 128 * KIB
EPOCH = 1024 * KIB
PUTS = EPOCH // PUT
CRASH_NS = 65_000
RESTART_NS = 265_000


def epoch_crc(first_seed):
    return crc(b"".join(payload(first_seed + i, PUT) for i in range(PUTS)))


class Recovery(SystemTest):
    """traces/sender-crash.trace beside traces/sender-stays.trace."""

    TRACE = SOURCE / "traces" / "sender-crash.trace"
    EVENTS = ("--config", SOURCE / "traces" / "sender-crash.json")

    def epochs(self, result, window="data"):
        return [(int(row["epoch"]), int(row["length"]), row["crc32"]) for row in result.rows("completions.csv")
                if row["window"] == window]

    def completed_ns(self, result, epoch):
        """When the epoch was completed for the last time."""
        return max(float(row["time_ns"]) for row in result.rows("completions.csv")
                   if (row["window"], row["epoch"]) == ("data", str(epoch)))

    def twice(self, result):
        """Bytes counted that are in no epoch as it stands at the end."""
        useful = sum({(row["window"], row["epoch"]): int(row["length"])
                      for row in result.rows("completions.csv")}.values())
        return result.stats()["totals"]["bytes_delivered"] - useful

    def expect_recovered(self, result):
        # Seeds count the puts of a program: 8 an epoch before the crash; after it, one control message, then from 1 on.
        before = [(epoch, EPOCH, epoch_crc(PUTS * epoch)) for epoch in range(2)]
        again = [(1 + i, EPOCH, epoch_crc(1 + PUTS * i)) for i in range(3)]
        self.assertEqual(self.epochs(result), before + again)
        calls = [(row["op"], row["status"], row["value"]) for row in result.rows("calls.csv")]
        self.assertEqual([call for call in calls if call[0] == "rewind"], [("rewind", "ok", "1")])
        check = result.stats()["check"]
        self.assertTrue(check["passed"])
        self.assertEqual(check["completions"], 2 + 3 + 2, "two of the programs' own messages")

    def test_the_rewound_epochs_come_again_with_the_right_bytes(self):
        result = self.run_file(self.TRACE, *self.EVENTS)
        self.expect_recovered(result)
        # The crash came in the middle of an epoch.
        first, second = [float(row["time_ns"]) for row in result.rows("completions.csv")][1:3]
        self.assertLess(first, CRASH_NS)
        self.assertGreater(second, CRASH_NS)
        self.assertGreater(result.stats()["units"]["node1.nic.delivery"]["cut_off"], 0)

    def test_what_the_recovery_costs(self):
        stays = self.run_file(SOURCE / "traces" / "sender-stays.trace")
        self.assertEqual(self.epochs(stays), [(epoch, EPOCH, epoch_crc(PUTS * epoch)) for epoch in range(4)])
        self.assertEqual(self.twice(stays), 0)
        self.assertEqual(stays.stats()["totals"]["packets"]["retransmitted"], 0)
        undisturbed = self.completed_ns(stays, 2)
        self.assertLess(undisturbed, 100_000)
        # The RNIC that comes back is deaf for `quiet`; the message that waits for it is sent again after at most the
        # time-out, which has doubled three times by then; then two epochs are repeated.
        for quiet_us in (20, 1000):
            with self.subTest(quiet_us=quiet_us):
                crash = self.run_file(self.TRACE, *self.EVENTS, "--set", f"nic.reliability.quiet={quiet_us}us")
                self.expect_recovered(crash)
                recovered = self.completed_ns(crash, 2)
                deaf_until = RESTART_NS + 1000 * quiet_us
                self.assertGreater(recovered, deaf_until)
                self.assertLess(recovered, deaf_until + 800_000 + 3 * undisturbed)
                # Epoch 1 whole, and what had been counted of epoch 2.
                twice = self.twice(crash)
                self.assertGreater(twice, EPOCH)
                self.assertLess(twice, 2 * EPOCH)
                self.assertEqual(twice % PUT, 0)
                retransmitted = crash.stats()["totals"]["packets"]["retransmitted"]
                self.assertGreater(retransmitted, 0)
                self.assertLess(retransmitted, 32)

    def test_the_run_reports_what_the_recovery_costs(self):
        result = self.run_file(self.TRACE, *self.EVENTS)
        stats = result.stats()
        recovery = stats["recovery"]
        self.assertEqual(recovery["crashes"], [{"node": 0, "crash_ns": CRASH_NS, "restart_ns": RESTART_NS}])
        rewind, = recovery["rewinds"]
        self.assertEqual({key: rewind[key] for key in ("node", "pid", "mailbox", "crash", "first_epoch", "last_epoch")},
                         {"node": 1, "pid": 0, "mailbox": "0x0000000000000010", "crash": 0, "first_epoch": 1,
                          "last_epoch": 2})
        self.assertEqual(rewind["first_again_ns"], self.completed_ns(result, 1))
        self.assertEqual(rewind["last_again_ns"], self.completed_ns(result, 2))
        called, = [float(row["time_ns"]) for row in result.rows("calls.csv") if row["op"] == "rewind"]
        self.assertLess(rewind["begin_ns"], rewind["end_ns"])
        self.assertLess(called - 1000, rewind["begin_ns"])
        self.assertLess(rewind["end_ns"], called)
        # What was written to memory and is in no epoch as it stands at the end; two messages of the programs' own.
        mtu = 4096
        self.assertEqual(stats["config"]["nic"]["mtu"], "4KiB")
        stands = 4 * EPOCH // mtu + 2
        self.assertEqual(rewind["lost_packets"], stats["totals"]["packets"]["delivered"] - stands)
        self.assertEqual(rewind["lost_bytes"], rewind["lost_packets"] * mtu)
        self.assertGreaterEqual(rewind["lost_bytes"], self.twice(result))
        self.assertLess(rewind["lost_bytes"], self.twice(result) + PUT)
        self.assertEqual(rewind["resent_packets"], stats["totals"]["packets"]["retransmitted"])
        self.assertGreater(rewind["resent_wire_bytes"], 0)
        lines = result.stdout.splitlines()
        self.assertIn("Crash: node 0 at 65000 ns, back after 200000 ns", lines)
        costs = [line for line in lines if line.startswith("Rewind: node 1, 0x0000000000000010: took ")]
        self.assertEqual(len(costs), 1)
        self.assertTrue(costs[0].endswith(f"caught up {rewind['last_again_ns'] - CRASH_NS:.3f} ns after the crash"),
                        costs[0])

    def test_without_a_crash_nothing_is_reported(self):
        result = self.run_file(SOURCE / "traces" / "sender-stays.trace")
        self.assertNotIn("recovery", result.stats())
        self.assertNotIn("Rewind:", result.stdout)

    def test_what_does_not_come_again_is_null(self):
        # The sender stays dead; its receiver rewinds, once it knows that, and nobody sends any more.
        text = self.TRACE.read_text().replace("  wait is_back\n", "  compute 300us\n")
        events = [{"at": "65us", "kind": "node_crash", "where": "0"}]
        result = self.run_text(text, "--set", "fabric.faults.events=" + json.dumps(events), status=1)
        recovery = result.stats()["recovery"]
        self.assertEqual(recovery["crashes"], [{"node": 0, "crash_ns": CRASH_NS, "restart_ns": None}])
        rewind, = recovery["rewinds"]
        self.assertEqual((rewind["crash"], rewind["first_again_ns"], rewind["last_again_ns"]), (0, None, None))
        self.assertGreater(rewind["lost_bytes"], EPOCH)
        self.assertIn("not back", result.stdout)
        self.assertIn("not caught up", result.stdout)

    def test_without_the_rewind_the_epoch_never_ends(self):
        text = self.TRACE.read_text()
        self.assertEqual(text.count("  rewind data n=1\n"), 1)
        result = self.run_text(text.replace("  rewind data n=1\n", ""), *self.EVENTS, status=1)
        self.assertEqual([epoch for epoch, _, _ in self.epochs(result)], [0, 1])
        self.assertIn("waits for epoch2", result.stdout + result.stderr)

    def test_whenever_the_sender_dies_within_the_epoch(self):
        for at_us in (60, 65, 70, 75):
            with self.subTest(at_us=at_us):
                events = [{"at": f"{at_us}us", "kind": "node_crash", "where": "0"},
                          {"at": "265us", "kind": "node_restart", "where": "0"}]
                self.expect_recovered(self.run_file(self.TRACE, "--set", "nic.reliability.quiet=20us", "--set",
                                                    "fabric.faults.events=" + json.dumps(events)))


if __name__ == "__main__":
    unittest.main()
