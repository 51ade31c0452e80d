"""Many updates of one counter, through the program: with forwarding they cost nothing, without they limit the run."""

import unittest

from system_test import SystemTest


class HotSpots(SystemTest):
    MESSAGES = 64
    PACKETS = 16  # of 4 KiB each, one every 83 ns at 400 Gb/s
    LATENCY = 200

    TRACE = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=4MiB
  post_buffer w as=b size=4MiB
  barrier
  mark begin
  wait b
  mark end
rank 0
  barrier
  mark begin
  repeat 64
    put rank=1 mailbox=0x10 size=64KiB
  end
  wait all
  mark end
"""

    def counters(self, result):
        return result.stats()["units"]["node1.nic.counters"]

    def link_wait(self, result):
        return result.stats()["units"]["node0.nic.egress"]["link_wait_ns"]

    def run_hot(self, *pairs):
        arguments = [part for pair in (f"nic.counters.latency={self.LATENCY}", *pairs) for part in ("--set", pair)]
        return self.run_text(self.TRACE, *arguments)

    def test_with_forwarding_a_long_latency_is_hidden(self):
        result = self.run_hot()
        self.assertIn("Limited by: fabric.link.0-1.wire", result.stdout)
        self.assertEqual(self.counters(result)["stalls"], 0)

    def test_without_it_one_counter_limits_the_run(self):
        result = self.run_hot("nic.counters.forwarding=off")
        self.assertIn("Limited by: node1.nic.counters.update", result.stdout)
        packets = self.MESSAGES * self.PACKETS
        counters = self.counters(result)
        self.assertEqual(counters["updates"], packets)
        # All packets but the first few find the update before theirs in the pipeline.
        self.assertGreater(counters["stalls"], 0.95 * packets)
        end = float(result.rows("completions.csv")[0]["time_ns"])
        self.assertGreater(end, packets * self.LATENCY)
        self.assertLess(end, packets * self.LATENCY + 20_000)

    def test_its_queue_holds_packets_back_to_the_link(self):
        # What waits for the counters stays in the input buffer; a sender that looks at nothing else waits for credit.
        unhindered = self.link_wait(self.run_hot("nic.congestion.control=none"))
        for queue in (1, 64):
            with self.subTest(queue=queue):
                result = self.run_hot("nic.congestion.control=none", "nic.counters.forwarding=off",
                                      f"nic.counters.queue={queue}")
                self.assertGreater(self.link_wait(result), 2 * unhindered)
                # Each update waits for those that were in the queue when it came, and no longer.
                waited = self.counters(result)["waited_ns"] / (self.MESSAGES * self.PACKETS)
                self.assertLessEqual(waited, queue * self.LATENCY)
                self.assertGreater(waited, 0.5 * queue * self.LATENCY)


if __name__ == "__main__":
    unittest.main()
