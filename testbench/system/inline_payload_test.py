"""Payload that is written to the NIC with its descriptor: the same results, without a read of host memory."""

import unittest

from system_test import SystemTest
from calls_test import FAULTS, settings

INLINE = ["--set", "nic.command.inline_payload=256B"]


class InlinePayload(SystemTest):
    def protocols(self):
        return ("rvma", []), ("rdma", ["--protocol", "rdma"]), ("advertised", ["--protocol", "rdma", "--set", "rdma.exchange=advertised"])

    def test_a_short_put_reads_nothing_and_a_longer_one_does(self):
        for name, options in self.protocols():
            for size, reads in ((256, 0), (257, 1)):
                with self.subTest(name, size=size):
                    trace = self.generate("pingpong", "--size", size, "--iterations", 10)
                    without = self.run_file(trace, *options).stats()
                    stats = self.run_file(trace, *options, *INLINE).stats()
                    command = stats["units"]["node0.nic.command"]
                    gain = without["latency_ns"]["put_to_completion"]["mean"] - stats["latency_ns"]["put_to_completion"]["mean"]
                    if reads == 0:
                        self.assertGreaterEqual(command["inline_payloads"], 10)
                        # A read of host memory, less the bytes on the way to the NIC.
                        self.assertGreater(gain, 450)
                        if name == "rvma":
                            self.assertEqual(stats["breakdown_ns"]["payload_read"], 0)
                    elif name == "rvma":
                        self.assertEqual(command["inline_payloads"], 0)
                        self.assertEqual(gain, 0)

    def test_bytes_and_outcomes_are_the_same_over_a_bad_fabric(self):
        for name, options in self.protocols():
            for seed in range(1, 5):
                with self.subTest(name, seed=seed):
                    trace = self.generate("random", "--ranks", 4, "--count", 60, "--size", 600, "--seed", seed)
                    runs = [self.run_file(trace, *options, *settings(FAULTS), *inline, "--seed", seed) for inline in ([], INLINE)]
                    # Which message falls into which epoch is a matter of time; that all do is not, and --check has their bytes.
                    sums = [sum(int(row["length"]) for row in run.rows("completions.csv")) for run in runs]
                    self.assertEqual(*sums)
                    self.assertEqual({row["status"] for row in runs[1].rows("puts.csv")}, {"ok"})
                    self.assertGreater(runs[1].stats()["units"]["node1.nic.command"]["inline_payloads"], 0)

    def test_a_put_that_is_refused_is_sent_again_with_its_bytes(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op
  barrier
  compute 30us
  post_buffer w as=b size=256
  wait b
rank 0
  barrier
  put rank=1 mailbox=0x10 size=200 as=p
  wait p
"""
        row, = self.run_text(text, *INLINE).rows("puts.csv")
        self.assertEqual(row["status"], "ok")
        self.assertGreater(int(row["tries"]), 1)

    def test_mistakes(self):
        trace = self.generate("pingpong", "--size", 64)
        for pairs, message in (([("nic.command.inline_payload", "128B"), ("nic.mtu", "64B")],
                                "nic.command.inline_payload: 128 B is more than nic.mtu = 64 B"),
                               ([("nic.command.inline_payload", "2KiB")], "1024B|1kB|1KiB")):
            self.assertRegex(self.run_file(trace, *settings(pairs), status=2).stderr, message)
        ring = self.run_file(trace, *INLINE, "--set", "nic.command.mode=ring")
        self.assertIn("nic.command.inline_payload has no effect in this run: nic.command.mode is ring", ring.stderr)

    def test_the_software_of_rdma_writes_inline_in_either_mode(self):
        """So the payload's length has an effect, and mode and fetch have none."""
        trace = self.generate("pingpong", "--size", 64, "--iterations", 5)
        for extra, lines in (([], []), (["--set", "nic.command.fetch=4"],
                             ["rvma: warning: nic.command.fetch has no effect in this run: RDMA's software writes its descriptors inline"])):
            ring = self.run_file(trace, "--protocol", "rdma", *INLINE, "--set", "nic.command.mode=ring", *extra)
            self.assertEqual(ring.stderr.splitlines(), [
                *lines, "rvma: warning: nic.command.mode has no effect in this run: the protocol is rdma"])
        plain = self.run_file(trace, "--protocol", "rdma", *INLINE)
        self.assertGreater(plain.stats()["units"]["node1.nic.command"]["inline_payloads"], 0)
        self.assertEqual(ring.stats()["units"], plain.stats()["units"])


if __name__ == "__main__":
    unittest.main()
