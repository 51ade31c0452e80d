"""A get that has timed out, whose answer comes all the same: its window is gone, so that whoever takes it is another one."""

import unittest

from system_test import SystemTest

# Reads take longer than the gets wait; a mailbox that was closed is forgotten when the next one closes.
SLOW = ["--set", "host.pcie.read_latency=30us", "--set", "nic.closed_memory=1"]
RECORD = 32

TRACE = """rvma-trace 1
ranks 2

rank 0
  init_window w mailbox=2 threshold=1MiB readable
  post_buffer w as=b size=60000 seed=30
  barrier

rank 1
  init_window c mailbox=50 threshold=2op catch_all
  post_buffer c as=caught size=30000
  init_window y mailbox=60 threshold=1op
  init_window z mailbox=61 threshold=1op
  barrier
  get as=early rank=0 mailbox=2 size=150
  wait early
  close_window y
  get as=late rank=0 mailbox=2 size=250 offset=1000
  wait late
  close_window z
  wait caught
"""


class LateAnswers(SystemTest):
    """Names as in TRACE."""

    def test_the_askers_catch_all_window_takes_them(self):
        # With the longest time-out the answer of the first get leaves while the second one, with the same word, is open.
        for timeout_us in (1, 5, 20, 40):
            with self.subTest(timeout_us=timeout_us):
                result = self.run_text(TRACE, "--set", f"nic.get.timeout={timeout_us}us", *SLOW)
                self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["timeout", "timeout"])
                caught = [(row["window"], int(row["length"])) for row in result.rows("completions.csv")]
                self.assertEqual(caught, [("c", 2 * RECORD + 150 + 250)])
                check = result.stats()["check"]
                self.assertTrue(check["passed"])
                self.assertEqual((check["completions"], check["bytes"]), (1, 30000))


if __name__ == "__main__":
    unittest.main()
