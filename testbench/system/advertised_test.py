"""Buffers that RDMA's receivers advertise to the rank that uses them, and memory that stays registered."""

from calls_test import FAULTS, settings
from rdma_test import CRASHES, EVERY_CALL, MANY, TRACES, RdmaTest

ADVERTISED = ["--protocol", "rdma", "--set", "rdma.exchange=advertised"]
CACHED = [*ADVERTISED, "--set", "rdma.registration_cache=64"]

# The epoch that rank 1 ends by hand, and the window that it closes, have buffers that rank 0 knows of.
TAKEN_BACK = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op
  post_buffer w as=b0 size=4KiB
  post_buffer w as=b1 size=4KiB
  post_buffer w as=b2 size=4KiB
  post_buffer w as=b3 size=4KiB
  barrier
  wait b0
  barrier
  barrier
  inc_epoch w
  wait b1
  barrier
  wait b2
  close_window w
  wait b3
  barrier
rank 0
  barrier
  put rank=1 mailbox=0x10 size=1000 as=p0
  wait p0
  barrier
  compute 20us
  barrier
  barrier
  put rank=1 mailbox=0x10 size=2000 as=p1
  wait p1
  barrier
  put rank=1 mailbox=0x10 size=3000 as=p2
  wait p2
"""

# A window that one rank fills, until another comes.
TWO_SENDERS = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=0x10 threshold=1op
  repeat 12
    post_buffer w as=b size=4KiB
  end
  barrier
  wait b.11
rank 1
  barrier
  repeat 6
    put rank=0 mailbox=0x10 size=100 as=p
    wait p
  end
rank 2
  barrier
  compute 60us
  repeat 6
    put rank=0 mailbox=0x10 size=200 as=p
    wait p
  end
"""

# Puts that fill their buffers, then one that does not, one of nothing, one that does not fit.
MISFITS = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1000
  repeat 8
    post_buffer w as=b size=2000
  end
  barrier
  wait b.7
rank 0
  barrier
  repeat 3
    put rank=1 mailbox=0x10 size=1500 offset=500 as=full
    wait full
  end
  put rank=1 mailbox=0x10 size=1500 offset=501 as=beyond
  wait beyond
  put rank=1 mailbox=0x10 size=0 as=nothing
  put rank=1 mailbox=0x10 size=600 as=half
  put rank=1 mailbox=0x10 size=600 offset=600 as=other_half
  wait nothing half other_half
  repeat 4
    put rank=1 mailbox=0x10 size=1500 as=again
    wait again
  end
"""

# A window that only rank 1 is told of (its mailbox says so) and that closes itself, and rank 2, who asks for it.
ONE_TIME = """rvma-trace 1
ranks 3
rank 0
  post_one_time_buffer mailbox=0x4d50000010000000 size=1MiB as=o
  barrier
  wait o
rank 1
  barrier
  put as=p rank=0 mailbox=0x4d50000010000000 size=1MiB
  wait p
rank 2
  barrier
  compute {pause}us
  put as=q rank=0 mailbox=0x4d50000010000000 size=64
  wait q
"""

# A window whose buffers are advertised, next to a catch-all window that takes what names no window: before the window's
# first message, between its messages, and when it has ended an epoch or closed.
CATCH_ALL = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=0x10 threshold=1op
  repeat 4
    post_buffer w as=b size=64
  end
  init_window c mailbox=0x11 threshold=2op placement=managed catch_all
  post_buffer c as=c0 size=20000
  post_buffer c as=c1 size=20000
  barrier
  barrier
  wait b.1 c0
  {end} w
  barrier
  wait c1
rank 1
  barrier
  put as=early rank=0 mailbox=99 size=100
  wait early
  put as=p0 rank=0 mailbox=0x10 size=64
  put as=p1 rank=0 mailbox=0x10 size=64
  put as=between rank=0 mailbox=98 size=9000
  wait all
  barrier
  barrier
  put as=p2 rank=0 mailbox=0x10 size=64
  wait p2
rank 2
  barrier
  barrier
  put as=late rank=0 mailbox=99 size=0
  wait late
  put as=last rank=0 mailbox=97 size=9000
  wait last
  barrier
"""


class Advertised(RdmaTest):
    def test_everything_has_the_same_outcome_as_on_rvma(self):
        rvma = self.run_text(EVERY_CALL)
        for tracking in ("off", "on"):
            rdma = self.run_text(EVERY_CALL, *CACHED, "--set", f"rdma.ooo_tracking={tracking}")
            self.assertEqual(self.statuses(rdma), self.statuses(rvma))
            same = [sorted(row for row in self.completions(result) if row[1] != "z") for result in (rvma, rdma)]
            self.assertEqual(*same)

    def test_shipped_traces_and_random_traffic(self):
        for trace in TRACES:
            if not any(word in trace.read_text() for word in CRASHES):
                with self.subTest(trace=trace.name):
                    self.assertEqual(set(self.statuses(self.run_file(trace, *CACHED)).values()), {"ok"})
        for seed in range(1, 4):
            for faults in ([], FAULTS):
                with self.subTest(seed=seed, faults=bool(faults)):
                    trace = self.generate("random", "--ranks", 5, "--count", 60, "--size", "16KiB", "--seed", seed)
                    result = self.run_file(trace, *CACHED, *settings(faults), "--seed", seed)
                    self.assertEqual(set(self.statuses(result).values()), {"ok"})

    def test_one_exchange_for_a_window(self):
        for faults in ([], FAULTS):
            rvma = self.run_text(MANY, *settings(faults))
            rdma = self.run_text(MANY, *ADVERTISED, *settings(faults))
            self.assertEqual(self.completions(rdma), self.completions(rvma))
            self.assertEqual(self.software(rdma, "requests"), 1)
            self.assertEqual(self.software(rdma, "advertised_writes"), 39)
            self.assertEqual(self.software(rdma, "advertisements"), 39)

    def test_memory_that_is_posted_again_needs_no_registration(self):
        trace = self.generate("pingpong", "--iterations", 50, "--reuse")
        regions, times = [], []
        for options in (["--protocol", "rdma"], ADVERTISED, CACHED):
            result = self.run_file(trace, *options)
            regions.append(self.software(result, "regions"))
            times.append(result.stats()["latency_ns"]["put_to_completion"]["p50"])
        self.assertEqual(regions, [100, 100, 2])
        # What remains is the write, its signal, and the software that acts on it.
        self.assertGreater(times[0], times[1])
        self.assertGreater(times[1], times[2] + 900)

    def test_a_small_cache_forgets_the_oldest(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op
  barrier
  repeat 3
    post_buffer w as=a size=64 memory=1
    barrier
    wait a
    post_buffer w as=b size=64 memory=2
    barrier
    wait b
  end
rank 0
  barrier
  repeat 6
    barrier
    put rank=1 mailbox=0x10 size=64 as=p
    wait p
  end
"""
        for entries, regions in ((0, 6), (1, 6), (2, 2)):
            result = self.run_text(text, *ADVERTISED, "--set", f"rdma.registration_cache={entries}")
            self.assertEqual(self.software(result, "regions"), regions, entries)

    def test_memory_that_is_still_posted_cannot_be_posted_again(self):
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=0x10 threshold=1op
  post_buffer w size=64 memory=1
  post_buffer w size=64 memory=1
"""
        self.assertIn("memory 1 is still posted", self.run_text(text, status=1).stderr)

    # ------------------------------------------------------------------------------------- what is taken back

    def test_a_buffer_that_is_taken_back_is_nobodys(self):
        rvma = self.run_text(TAKEN_BACK)
        for faults in ([], FAULTS):
            for tracking in ("off", "on"):
                rdma = self.run_text(TAKEN_BACK, *ADVERTISED, *settings([*faults, ("rdma.ooo_tracking", tracking)]))
                self.assertEqual(self.statuses(rdma), self.statuses(rvma))
                self.assertEqual(self.completions(rdma), self.completions(rvma))
                self.assertEqual(self.software(rdma, "revocations"), 2)

    def test_a_second_sender_ends_it(self):
        for faults in ([], FAULTS):
            result = self.run_text(TWO_SENDERS, *ADVERTISED, *settings(faults))
            self.assertEqual(set(self.statuses(result).values()), {"ok"})
            self.assertGreaterEqual(self.software(result, "advertised_writes"), 1)
            self.assertLessEqual(self.software(result, "revocations"), 1)
            self.assertEqual(len(self.completions(result)), 12)

    def test_a_catch_all_window_beside_it(self):
        for end in ("get_epoch", "inc_epoch", "close_window"):
            text = CATCH_ALL.format(end=end)
            rvma = self.run_text(text)
            for faults in ([], FAULTS):
                rdma = self.run_text(text, *ADVERTISED, *settings(faults))
                self.assertEqual(self.statuses(rdma), self.statuses(rvma))
                # A record holds the message's number, which is the protocol's own.
                lengths = [[row[:5] for row in self.completions(result)] for result in (rdma, rvma)]
                self.assertEqual(*lengths)
                self.assertEqual(self.software(rdma, "advertised_writes"), 1 if end == "close_window" else 2)

    def test_who_waits_for_a_window_that_closes_itself_gets_an_answer(self):
        for pause in (0, 5, 10, 30):
            result = self.run_text(ONE_TIME.format(pause=pause), *ADVERTISED)
            self.assertEqual(self.statuses(result), {("1", "p"): "ok", ("2", "q"): "closed"})

    def test_puts_that_do_not_fill_their_buffers(self):
        rvma = self.run_text(MISFITS)
        rdma = self.run_text(MISFITS, *ADVERTISED)
        self.assertEqual(self.statuses(rdma), self.statuses(rvma))
        self.assertEqual(self.completions(rdma), self.completions(rvma))
        self.assertEqual(self.software(rdma, "advertised_writes"), 2)

    def test_last_byte_is_refused(self):
        trace = self.generate("pingpong")
        self.expect_error(self.rvma("run", trace, *ADVERTISED, "--set", "rdma.completion=last_byte"), "last_byte")
