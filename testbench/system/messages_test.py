"""The message layer (send, recv): the same bytes and the same layer over both protocols."""

import json

from calls_test import FAULTS, settings
from system_test import SystemTest

PROTOCOLS = ("rvma", "rdma")
ADVERTISED = settings([("rdma.exchange", "advertised"), ("rdma.registration_cache", "65536")])

# Tags out of order, messages before their receives and behind them, both protocols of the layer, none and self.
MIXED = """rvma-trace 1
ranks 3
rank 0
  recv as=self rank=0 tag=4 size=100
  send rank=0 tag=4 size=100
  send as=a rank=1 tag=1 size=40000
  send as=b rank=1 tag=2 size=1000
  send as=c rank=1 tag=1 size=0
  recv as=d rank=2 tag=7 size=64KiB
  compute 3us
  wait self d a b c
  barrier
  send as=long rank=1 tag=9 size=30000
  wait long
rank 1
  compute 20us
  recv as=b rank=0 tag=2 size=2000
  wait b
  recv as=a rank=0 tag=1 size=40000
  recv as=c rank=0 tag=1 size=16
  wait all
  recv as=late rank=0 tag=9 size=30000
  barrier
rank 2
  send rank=0 tag=7 size=50000 seed=9
  barrier
"""

# A receive that is posted before any of forty messages that come first, and more of these than there are slots.
FLOOD = """rvma-trace 1
ranks 2
rank 0
  repeat 40
    send rank=1 tag=1 size=500
  end
  send rank=1 tag=2 size=100
  wait all
rank 1
  recv as=last rank=0 tag=2 size=100
  wait last
  repeat 40
    recv rank=0 tag=1 size=500
  end
  wait all
"""


class Messages(SystemTest):
    def variants(self):
        for protocol in PROTOCOLS:
            yield protocol, ["--protocol", protocol]
        yield "advertised", ["--protocol", "rdma", *ADVERTISED]

    def test_every_message_has_the_bytes_of_its_send(self):
        sums = []
        for name, options in self.variants():
            with self.subTest(name):
                rows = self.run_text(MIXED, *options).rows("messages.csv")
                self.assertEqual({row["status"] for row in rows}, {"ok"})
                received = {(r["rank"], r["name"]): (r["protocol"], r["crc32"]) for r in rows if r["kind"] == "recv"}
                self.assertEqual(received["1", "a"][0], "rendezvous")
                self.assertEqual(received["1", "b"][0], "eager")
                self.assertEqual(received["1", "c"], ("eager", "00000000"))
                sums.append(received)
        for other in sums[1:]:
            self.assertEqual(other, sums[0])

    def test_messages_survive_a_network_without_order(self):
        for name, options in self.variants():
            for seed in ("1", "2"):
                with self.subTest(name, seed=seed):
                    self.run_text(FLOOD, *options, *settings(FAULTS), "--seed", seed)
                    self.run_text(MIXED, *options, *settings(FAULTS), "--seed", seed)

    def test_slots_never_block_a_message_that_has_its_receive(self):
        for name, options in self.variants():
            for slots in ("1", "2", "8"):
                with self.subTest(name, slots=slots):
                    result = self.run_text(FLOOD, *options, "--set", f"workload.messages.slots={slots}")
                    self.assertEqual(result.stats()["units"]["messages"]["unexpected"], 40)

    def test_the_parts_of_the_way_add_up(self):
        costs = settings([("workload.messages.matching", "100ns"), ("workload.messages.memcpy_rate", "10GB/s")])
        for name, options in self.variants():
            with self.subTest(name):
                stats = self.run_text(MIXED, *options, *costs).stats()["units"]["messages"]
                parts = ["send_copy", "credit_wait", "handshake", "transfer", "matching", "late_receiver", "receive_copy"]
                self.assertAlmostEqual(sum(stats[f"{part}_ns"] for part in parts), stats["way_ns"], places=3)
                self.assertEqual(stats["matching_ns"], 6 * 100)
                # 100 + 1000 bytes at the sender, and at the receiver, where the long one came unexpected.
                self.assertAlmostEqual(stats["send_copy_ns"], 110)

    def test_messages_that_are_not_received_have_no_parts(self):
        """One without a receive, and, eager and long, one that does not fit: what they took is no part of the others' way."""
        text = """rvma-trace 1
ranks 2
rank 0
  send rank=1 size=1000 tag=5
  send rank=1 size=1000 tag=6
  send rank=1 size=20000 tag=7
  send as=b rank=1 size=1000
  wait b
rank 1
  recv as=short rank=0 size=500 tag=6
  recv as=shorter rank=0 size=500 tag=7
  recv as=b rank=0 size=1000
  wait short shorter b
"""
        parts = ["send_copy", "credit_wait", "handshake", "transfer", "matching", "late_receiver", "receive_copy"]
        for name, options in self.variants():
            with self.subTest(name):
                stats = self.run_text(text, *options, "--set", "workload.messages.matching=100ns").stats()["units"]["messages"]
                self.assertEqual((stats["eager"], stats["rendezvous"]), (1, 0))
                self.assertAlmostEqual(sum(stats[f"{part}_ns"] for part in parts), stats["way_ns"], places=3)
                self.assertEqual((stats["matching_ns"], stats["send_copy_ns"]), (100, 100))
                # The core time of all copies is another figure: three at the sender, and two at the receiver.
                self.assertEqual(stats["copying_ns"], 500)

    def test_eager_costs_two_copies(self):
        trace = self.generate("pingpong", "--messages", "--size", "8KiB", "--iterations", "20")
        means = []
        for rate in ("0Gbps", "10GB/s"):
            result = self.run_file(trace, "--set", f"workload.messages.memcpy_rate={rate}")
            means.append(result.stats()["units"]["messages"]["way"]["mean"])
        self.assertAlmostEqual(means[1] - means[0], 2 * 819.2, delta=1)

    def test_a_rendezvous_ends_at_its_sender_with_the_acknowledgement_or_when_it_is_issued(self):
        text = """rvma-trace 1
ranks 2
rank 0
  send as=a rank=1 size=30000
  wait a
rank 1
  recv as=a rank=0 size=30000
  wait a
"""
        for name, options in self.variants():
            for send_end, is_before in (("acknowledged", False), ("issued", True)):
                with self.subTest(name, send_end=send_end):
                    end = ["--set", f"workload.messages.send_end={send_end}"]
                    rows = {row["kind"]: row for row in self.run_text(text, *options, *end).rows("messages.csv")}
                    self.assertEqual(rows["send"]["protocol"], "rendezvous")
                    self.assertEqual(float(rows["send"]["end_ns"]) < float(rows["recv"]["end_ns"]), is_before)
                    self.run_text(MIXED, *options, *end, *settings(FAULTS))

    def test_a_message_longer_than_its_receive_is_refused(self):
        text = """rvma-trace 1
ranks 2
rank 0
  send as=a rank=1 size=SIZE
  wait a
rank 1
  recv as=a rank=0 size=50
  wait a
"""
        for size, sender in (("100", "ok"), ("20000", "bad_argument")):
            rows = self.run_text(text.replace("SIZE", size)).rows("messages.csv")
            self.assertEqual({r["kind"]: r["status"] for r in rows}, {"send": sender, "recv": "bad_argument"})

    def test_what_is_never_sent_is_waited_for(self):
        text = "rvma-trace 1\nranks 2\nrank 0\n  recv as=x rank=1 size=5\n  wait x\n"
        self.assertIn("rank 0 waits for x", self.run_text(text, status=1).stderr)

    def test_patterns(self):
        patterns = (("pingpong", "--iterations", "5"), ("halo3d", "--ranks", "8", "--iterations", "2"),
                    ("halo3d", "--shape", "2x1x1", "--periodic", "--iterations", "2"),
                    ("sweep3d", "--ranks", "6", "--compute", "1us"), ("alltoall", "--ranks", "5", "--iterations", "2"))
        for pattern in patterns:
            trace = self.generate(*pattern, "--messages")
            self.assertIn("send", trace.read_text())
            for name, options in self.variants():
                with self.subTest(pattern[0], variant=name):
                    self.run_file(trace, *options)

    def test_calls_of_the_sweep_block_one_after_the_other(self):
        lines = self.generate("sweep3d", "--messages", "--ranks", "6").read_text().split("\n")
        calls = [i for i, line in enumerate(lines) if line.split()[:1] in (["send"], ["recv"])]
        self.assertEqual(len(calls), 2 * 8 * (2 * 2 + 3))
        for i in calls:
            name = lines[i].split()[1].removeprefix("as=")
            self.assertEqual(lines[i + 1].split(), ["wait", name])

    def test_a_send_takes_up_what_has_come_before_it(self):
        """Completions that wait while a program computes must not hold up its next call until it has computed again."""
        text = """rvma-trace 1
ranks 2
rank 0
  barrier
  compute 50us
  send as=s rank=1 size=64
  compute 50us
  repeat 4
    recv rank=1 size=64
  end
  wait all
rank 1
  barrier
  repeat 4
    send rank=0 size=64
  end
  recv as=r rank=0 size=64
  wait r
"""
        # Not with rdma.exchange=per_put, where the send's put has its address only when the program has computed.
        for name, options in (("rvma", []), ("advertised", ["--protocol", "rdma", *ADVERTISED])):
            with self.subTest(name):
                rows = {row["name"]: row for row in self.run_text(text, *options).rows("messages.csv") if row["name"]}
                self.assertLess(float(rows["r"]["end_ns"]) - float(rows["s"]["issue_ns"]), 10_000)

    def test_rdma_senders_are_told_once_of_each_slot(self):
        trace = self.generate("pingpong", "--messages", "--iterations", "50")
        units = self.run_file(trace, "--protocol", "rdma", *ADVERTISED).stats()["units"]
        for node in ("node0", "node1"):
            self.assertEqual(units[f"{node}.software"]["advertisements"], 8 + 2)
            self.assertGreaterEqual(units[f"{node}.software"]["renewals"], 50)

    def test_compare_takes_the_difference_apart(self):
        trace = self.generate("pingpong", "--messages", "--size", "20000", "--iterations", "5")
        out = self.tmp / "compare"
        result = self.rvma("compare", trace, "--check", "--out", out, *ADVERTISED)
        self.assertEqual(result.status, 0, result.stderr)
        self.assertIn("rendezvous handshake", result.stdout)
        self.assertIn("Messages: 10, the same status and bytes in each", result.stdout)
        self.assertNotIn("Completions:", result.stdout)
        told = json.loads((out / "compare.json").read_text())
        self.assertEqual([told[f"same_{what}"] for what in ("completions", "statuses", "messages")], [None, None, True])
        runs = told["runs"]
        self.assertEqual([run["messages"]["rendezvous"] for run in runs], [10, 10, 10])
        # A file of messages that an earlier comparison has left is none of the next one's.
        result = self.rvma("compare", self.generate("pingpong", "--iterations", "5"), "--out", out)
        self.assertIn("Completions: 10, the same length and bytes in each", result.stdout)
        self.assertNotIn("Messages:", result.stdout)

    def test_compare_finds_messages_that_differ(self):
        """An untracked NIC on a fabric that reorders, told to trust the last packet: bytes are missing."""
        trace = self.generate("pingpong", "--messages", "--size", "40000", "--iterations", "15")
        result = self.rvma("compare", trace, *settings([("rdma.completion", "write_imm"), *FAULTS]))
        self.assertEqual(result.status, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^RDMA: \d+ of 30 messages have another status or other bytes than RVMA's")
        self.assertNotIn("RDMA tracked: ", result.stdout)
