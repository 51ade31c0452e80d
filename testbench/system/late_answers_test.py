"""A get that has timed out, whose answer comes all the same: its window is gone, so that whoever takes it is another one."""

import unittest

from system_test import SystemTest

# Reads take longer than the gets wait; the mailbox of a get that failed is forgotten when the next one fails.
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
  barrier
  get as=early rank=0 mailbox=2 size=150
  wait early
  get as=never rank=0 mailbox=2 size=70000
  wait never
  get as=late rank=0 mailbox=2 size=250 offset=1000
  wait late
  get as=again rank=0 mailbox=2 size=70000
  wait again
  wait caught
"""


class LateAnswers(SystemTest):
    """Names as in TRACE."""

    def test_the_askers_catch_all_window_takes_them(self):
        # With the longest time-out the answer of the first get leaves while the second one, with the same word, is open.
        for timeout_us in (1, 5, 20, 40):
            with self.subTest(timeout_us=timeout_us):
                result = self.run_text(TRACE, "--set", f"nic.get.timeout={timeout_us}us", *SLOW)
                self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["timeout", "bounds", "timeout", "bounds"])
                caught = [(row["window"], int(row["length"])) for row in result.rows("completions.csv")]
                self.assertEqual(caught, [("c", 2 * RECORD + 150 + 250)])
                check = result.stats()["check"]
                self.assertTrue(check["passed"])
                self.assertEqual((check["completions"], check["bytes"]), (1, 30000))

    def test_who_remembers_the_get_refuses_them(self):
        """Nothing that the host closes makes the NIC forget it."""
        trace = TRACE.replace("  get as=never rank=0 mailbox=2 size=70000\n  wait never\n", "") \
                     .replace("  get as=again rank=0 mailbox=2 size=70000\n  wait again\n", "  close_window other\n") \
                     .replace("  barrier\n  get", "  init_window other mailbox=60 threshold=1op\n  barrier\n  get") \
                     .replace("  wait caught\n", "  compute 200us\n").replace("size=150", "size=70000")
        arguments = ["--set", "nic.get.timeout=5us", *SLOW]
        result = self.run_text(trace, *arguments)
        self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["bounds", "timeout"])
        self.assertEqual(result.rows("completions.csv"), [])
        self.assertEqual(result.stats()["totals"]["refusals"]["closed"], 1)


class ClosedByTheHost(SystemTest):
    """What close_window closed is remembered whatever gets do meanwhile."""

    def test_gets_that_fail_push_nothing_out(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window x mailbox=50 threshold=64
  close_window x
{catch_all}  barrier
  barrier
  repeat 70
    get rank=0 mailbox=51 size=65
    wait all
  end
  barrier
rank 0
  init_window r mailbox=51 threshold=64 readable
  post_buffer r size=64
  barrier
  put as=early rank=1 mailbox=50 size=64
  wait early
  barrier
  barrier
  put as=late rank=1 mailbox=50 size=64
  wait late
"""
        catch_all = "  init_window c mailbox=99 threshold=1MiB catch_all\n  post_buffer c size=4KiB\n"
        for memory in (1, 64):
            for caught in ("", catch_all):
                with self.subTest(memory=memory, caught=bool(caught)):
                    result = self.run_text(text.format(catch_all=caught), "--set", f"nic.closed_memory={memory}")
                    statuses = [(row["name"], row["status"]) for row in result.rows("puts.csv")]
                    self.assertEqual([status for name, status in statuses if name in ("early", "late")], ["closed"] * 2)
                    self.assertEqual([status for _, status in statuses].count("bounds"), 70)


if __name__ == "__main__":
    unittest.main()
