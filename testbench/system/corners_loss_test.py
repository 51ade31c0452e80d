"""The corners of senders, receivers and links that fail (semantics, section 6), and of untold refusals, in every fabric."""

import unittest

from corners import BUSY_TRIES, SLOW_LINK, CornersTest, epoch_of, events, ns
from system_test import crc, payload

# A message of 100 kB takes 80 us or more on the slow link: it is under way at 30 us.
CRASH = "30us"
RESTART = "60us"
# A sender that has lost its peer gives up within 47 x rto; a receiver waits longer for a silent one.
IDLE = [("nic.reliability.idle", "12ms")]


class CornersOfDeadSenders(CornersTest):
    """A sender dies in the midst of a message: what is bound is cut off, by its next life or by its silence."""

    # Rank 1 dies while `dead` is under way, comes back and says so; rank 2 goes on.
    TEXT = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold={threshold} placement={placement}
  init_window back mailbox=2 threshold=1op
  post_buffer back as=notice size=64
  repeat {buffers}
    post_buffer w as=b size={size}
  end
  barrier
  wait notice
{receiver}
rank 1
  barrier
  put as=dead rank=0 mailbox=1 size=100000 seed=90
  wait dead
rank 1 restart
  put as=notice rank=0 mailbox=2 size=0
  wait notice
{restarted}
rank 2
  barrier
{other}
"""

    def run_everywhere(self, expect, receiver=(), restarted=(), other=(), threshold="100000", placement="steered", buffers=1,
                       size=100000, **options):
        lines = ["\n".join("  " + line for line in program) for program in (receiver, restarted, other)]
        text = self.TEXT.format(threshold=threshold, placement=placement, buffers=buffers, size=size, receiver=lines[0],
                                restarted=lines[1], other=lines[2])
        crash = events((CRASH, "node_crash", "1"), (RESTART, "node_restart", "1"))

        def judge(result):
            [dead] = [row for row in result.rows("puts.csv") if row["name"] == "dead"]
            self.assertEqual(dead["status"], "unfinished")
            self.assertEqual(result.stats()["units"]["node0.nic.delivery"]["cut_off"], 1)
            expect(result)

        options.setdefault("seeds", 1)
        self.everywhere(text, judge, more=SLOW_LINK + crash + IDLE, rnr_tries=BUSY_TRIES, restarted=[1], **options)

    def test_an_active_steered_buffer_goes_on(self):
        """What the dead message had reserved and delivered is subtracted: the epoch ends with the others' bytes."""

        def expect(result):
            data = payload(1, 100000) + payload(2, 100000)
            self.assertEqual(self.contents(result, "w"), [(0, 200000, crc(data))])

        self.run_everywhere(expect, receiver=["barrier", "wait b.0"], size=200000, threshold="200000",
                            restarted=["barrier", "put rank=0 mailbox=1 size=100000 seed=1"],
                            other=["barrier", "put rank=0 mailbox=1 size=100000 offset=100000 seed=2"])

    def test_operations_are_subtracted_too(self):
        def expect(result):
            # Two over the same bytes, the shorter one with the beginning of the longer one.
            self.assertEqual(self.contents(result, "w"), [(0, 150000, crc(payload(2, 100000))), (1, 0, crc(b""))])

        self.run_everywhere(expect, receiver=["barrier", "wait b.0", "inc_epoch w", "wait b.1"], threshold="2op", buffers=2,
                            restarted=["barrier", "put as=p rank=0 mailbox=1 size=50000 seed=2", "wait p"],
                            other=["barrier", "put as=q rank=0 mailbox=1 size=100000 seed=2", "wait q"])

    def test_a_retired_buffer_holds_the_later_ones_back_until_a_rewind(self):
        def expect(result):
            self.assertEqual(self.values(result, "get_epoch"), [("ok", "0"), ("ok", "0")])
            self.assertEqual(self.values(result, "rewind"), [("ok", "0")])
            self.assertEqual(self.contents(result, "w"), [epoch_of(epoch, (5, 3000)) for epoch in range(3)])
            self.assertEqual(set(self.statuses(result, 2).values()), {"ok"})

        self.run_everywhere(expect, threshold="1op", buffers=3,
                            receiver=["barrier", "get_epoch w", "rewind w n=0", "get_epoch w", "barrier",
                                      "wait b.0 b.1 b.2"],
                            # Both are counted whole, in vain.
                            other=["compute 25us", "put as=p rank=0 mailbox=1 size=20000 seed=6",
                                   "put as=q rank=0 mailbox=1 size=300 seed=7", "wait p q", "barrier", "barrier"],
                            restarted=["barrier", "barrier"] +
                            [f"put as=r{i} rank=0 mailbox=1 size=3000 seed=5" for i in range(3)])

    def test_a_retired_buffer_holds_the_later_ones_back_until_the_window_closes(self):
        def expect(result):
            self.assertEqual(self.values(result, "get_epoch", "w"), [("ok", "0")])
            self.assertEqual(self.values(result, "get_buf_ptrs"), [("ok", ""), ("history", "")])
            rows = [row for row in result.rows("completions.csv") if row["window"] == "w"]
            self.assertEqual([row["buffer"] for row in rows], ["b.1", "b.2"], "those behind it complete in order")
            self.assertEqual([(int(row["length"]), row["crc32"]) for row in rows], [epoch_of(0, (6, 20000))[1:]] * 2)
            [closed] = [row for row in result.rows("calls.csv") if row["op"] == "close_window"]
            for row in rows:
                self.assertGreater(ns(row), ns(closed) - 1000, "not before the window closes")

        self.run_everywhere(expect, threshold="1op", buffers=4, broken=["w"],
                            receiver=["barrier", "get_epoch w", "get_buf_ptrs w n=0", "get_buf_ptrs w n=1", "close_window w",
                                      "wait b.0 b.1 b.2 b.3"],
                            other=["compute 25us", "put as=p rank=0 mailbox=1 size=20000 seed=6",
                                   "put as=q rank=0 mailbox=1 size=20000 seed=6", "wait p q", "barrier"],
                            restarted=["barrier"])

    def test_a_managed_buffer_with_a_hole_counts_as_retired(self):
        """The messages before and behind the hole are in a buffer that never completes; the next one fills."""

        def expect(result):
            self.assertEqual(self.statuses(result, 2), {"behind": "ok", "next": "ok"})
            self.assertEqual(self.values(result, "inc_epoch"), [("ok", ""), ("no_buffer", "")])
            self.assertEqual(self.values(result, "get_epoch", "w"), [("ok", "0"), ("ok", "0")])
            rows = [row for row in result.rows("completions.csv") if row["window"] == "w"]
            self.assertEqual([(row["buffer"], int(row["length"]), row["crc32"]) for row in rows],
                             [("b.1", 4000, crc(payload(8, 4000)))])

        self.run_everywhere(expect, threshold="1MiB", placement="managed", buffers=2, size=150000, broken=["w"],
                            receiver=["barrier", "barrier", "get_epoch w", "inc_epoch w", "inc_epoch w", "get_epoch w",
                                      "close_window w", "wait b.0 b.1"],
                            other=["compute 25us", "put as=behind rank=0 mailbox=1 size=4000 seed=7", "wait behind",
                                   "barrier", "put as=next rank=0 mailbox=1 size=4000 seed=8", "wait next", "barrier"],
                            restarted=["barrier", "barrier"])

    def test_a_window_that_closes_gives_back_what_the_dead_message_was_for(self):
        """Closed between the crash and the cut-off: nothing completes, and nothing is broken that somebody waits for."""

        def expect(result):
            self.assertEqual(self.contents(result, "w"), [])
            [closed] = [row for row in result.rows("calls.csv") if row["op"] == "close_window"]
            self.assertEqual(closed["status"], "ok")

        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1MiB placement={placement}
  repeat 2
    post_buffer w as=b size=150000
  end
  barrier
  compute 35us
  close_window w
  wait b.0 b.1
rank 1
  barrier
  put as=dead rank=0 mailbox=1 size=100000 seed=90
  wait dead
rank 1 restart
  compute 1us
"""
        crash = events((CRASH, "node_crash", "1"), (RESTART, "node_restart", "1"))
        for placement in ("steered", "managed"):
            with self.subTest(placement):
                self.everywhere(text.replace("{placement}", placement), expect, more=SLOW_LINK + crash + IDLE,
                                rnr_tries=BUSY_TRIES, restarted=[1], seeds=1)

    def test_packets_of_the_dead_life_come_after_the_new_one_has_put(self):
        """The node is back at once: what it sent before is still in the fabric."""
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1MiB
  post_buffer w as=a size=1MiB
  barrier
  compute 2ms
  inc_epoch w
  wait a
rank 1
  barrier
  repeat 8
    put as=dead rank=0 mailbox=1 size=100000 offset=100000 seed=90
  end
  wait all
rank 1 restart
  put as=p rank=0 mailbox=1 size=50000 seed=1
  put as=q rank=0 mailbox=1 size=50000 offset=50000 seed=2
  wait p q
"""

        def expect(result):
            counted = sum(row["status"] == "ok" for row in result.rows("puts.csv") if row["name"].startswith("dead"))
            [(_, length, _)] = self.contents(result)
            self.assertEqual(self.statuses(result)["p"], "ok")
            self.assertEqual(self.statuses(result)["q"], "ok")
            # Those that were counted may not have been told in time.
            self.assertGreaterEqual(length, 100000 * (counted + 1))
            self.assertEqual(length % 100000, 0)

        for crash in ("6us", "11us", "16us"):
            restart = f"{int(crash[:-2])}500ns"
            self.everywhere(text, expect, more=IDLE + events((crash, "node_crash", "1"), (restart, "node_restart", "1")),
                            rnr_tries=BUSY_TRIES, restarted=[1], seeds=1)


class CornersOfSilence(CornersTest):
    """Nothing is heard from a sender for longer than it would try."""

    def test_a_message_is_cut_off_when_its_sender_stays_away(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=60000
  repeat 3
    post_buffer w as=b size=100000
  end
  barrier
  compute 1ms
  get_epoch w
  compute 40ms
  get_epoch w
  rewind w n=0
  barrier
  wait b.0 b.1
rank 1
  barrier
  put as=dead rank=0 mailbox=1 size=100000 seed=90
rank 2
  barrier
  compute 25us
  put as=before rank=0 mailbox=1 size=60000 seed=3
  wait before
  barrier
  put as=p rank=0 mailbox=1 size=60000 seed=4
  put as=q rank=0 mailbox=1 size=60000 seed=4
"""

        def expect(result):
            self.assertEqual(self.statuses(result), {"dead": "unfinished", "before": "ok", "p": "ok", "q": "ok"})
            self.assertEqual(self.values(result, "get_epoch"), [("ok", "0"), ("ok", "0")])
            self.assertEqual(self.contents(result), [epoch_of(0, (4, 60000)), epoch_of(1, (4, 60000))])
            delivery = result.stats()["units"]["node0.nic.delivery"]
            self.assertEqual((delivery["cut_off"], delivery["silences"]), (1, 1))

        self.everywhere(text, expect, more=SLOW_LINK + IDLE + events((CRASH, "node_crash", "1")), rnr_tries=BUSY_TRIES)

    def test_a_sender_that_gave_up_starts_a_new_generation(self):
        """The link is down for longer than the sender tries, and comes back before the receiver has heard nothing for
        `idle`, or after. Either way what was bound is cut off, once."""
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=200000
  post_buffer w as=a size=200000
  barrier
  wait a
rank 1
  barrier
  put as=lost rank=0 mailbox=1 size=100000 seed=90
  put as=queued rank=0 mailbox=1 size=100000 seed=91
  wait lost queued
  compute {pause}
  put as=p rank=0 mailbox=1 size=100000 seed=1
  wait p
  put as=q rank=0 mailbox=1 size=100000 offset=100000 seed=2
  wait q
"""
        names = ["clean", "jitter", "reverse", "loss"]
        down = events((CRASH, "link_down", "0-1"), ("15ms", "link_up", "0-1"))
        for pause, silences in (("20ms", 0), ("40ms", 1)):

            def expect(result):
                # Both ways were down: nobody knows what became of them.
                self.assertEqual(self.statuses(result), {"lost": "timeout", "queued": "timeout", "p": "ok", "q": "ok"})
                self.assertEqual(self.contents(result), [(0, 200000, crc(payload(1, 100000) + payload(2, 100000)))])
                delivery = result.stats()["units"]["node0.nic.delivery"]
                self.assertGreaterEqual(delivery["cut_off"], 1)
                self.assertEqual(delivery["silences"], silences)

            self.everywhere(text.replace("{pause}", pause), expect, names=names,
                            more=SLOW_LINK + [("nic.reliability.idle", "30ms")] + down)


class CornersOfDeadReceivers(CornersTest):
    """A receiver dies with messages bound and under way, and comes back as another."""

    def test_open_puts_end_in_timeout_and_nothing_of_them_is_counted(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=100000
  post_buffer w as=first size=100000
  post_buffer w as=second size=600000
  post_buffer w as=third size=600000
  barrier
  wait first
  compute 1ms
  barrier
  wait second third
rank 0 restart
  init_window w mailbox=1 threshold=20000
  post_buffer w as=again size=30000
  barrier
  wait again
""" + "".join(f"""rank {rank}
  barrier
  put as=known rank=0 mailbox=1 size=50000 offset={50000 * rank - 50000} seed={rank}
  wait known
  barrier
  repeat 3
    put as=lost rank=0 mailbox=1 size=600000 seed=90
  end
  wait all
  barrier
  put as=p rank=0 mailbox=1 size=10000 offset={10000 * rank - 10000} seed={rank}
  wait p
""" for rank in (1, 2))
        # 1 to 1.4 ms to the second barrier, and 480 us at least for a message behind it.
        crash = events(("1500us", "node_crash", "0"), ("1600us", "node_restart", "0"))
        def expect(result):
            first = [row for row in result.rows("completions.csv") if row["buffer"] == "first"]
            again = [row for row in result.rows("completions.csv") if row["buffer"] == "again"]
            self.assertEqual([(row["epoch"], row["length"], row["crc32"]) for row in first],
                             [("0", "100000", crc(payload(1, 50000) + payload(2, 50000)))])
            self.assertEqual([(row["epoch"], row["length"], row["crc32"]) for row in again],
                             [("0", "20000", crc(payload(1, 10000) + payload(2, 10000)))])
            self.assertEqual(len(result.rows("completions.csv")), 2)
            for row in result.rows("puts.csv"):
                self.assertEqual(row["status"], "timeout" if row["name"].startswith("lost") else "ok", row)

        self.everywhere(text, expect, more=SLOW_LINK + crash + IDLE, rnr_tries=BUSY_TRIES,
                        restarted=[0])


class CornersOfUntoldRefusals(CornersTest):
    """nic.nack = off."""

    def test_that_put_alone_ends_in_timeout(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=7op key=7
  init_window empty mailbox=2 threshold=1op key=7
  init_window closed mailbox=3 threshold=1op
  post_buffer w as=a size=5000
  close_window closed
  barrier
  wait a
rank 1
  barrier
  put as=opens rank=0 mailbox=1 size=5000 key=7 seed=5
  wait opens
  put as=key rank=0 mailbox=1 size=5000 key=8
  put as=good0 rank=0 mailbox=1 size=5000 key=7 seed=5
  put as=nobody rank=0 mailbox=9 size=5000
  put as=good1 rank=0 mailbox=1 size=5000 key=7 seed=5
  put as=closed rank=0 mailbox=3 size=5000
  put as=beyond rank=0 mailbox=1 size=5000 key=7 offset=1
  put as=told rank=0 mailbox=2 size=5000 key=7
  put as=good2 rank=0 mailbox=1 size=5000 key=7 seed=5
  wait all
  put as=good3 rank=0 mailbox=1 size=5000 key=7 seed=5
rank 2
  barrier
  put as=stranger rank=0 mailbox=1 size=5000 key=6
  wait stranger
  put as=good4 rank=0 mailbox=1 size=5000 key=7 seed=5
  wait good4
  put as=good5 rank=0 mailbox=1 size=5000 key=7 seed=5
  wait good5
"""
        untold = {"key", "nobody", "closed", "beyond", "stranger"}

        def expect(result):
            for name, status in self.statuses(result).items():
                self.assertEqual(status, "timeout" if name in untold else "no_buffer" if name == "told" else "ok", name)
            self.assertEqual(self.contents(result), [(0, 35000, crc(payload(5, 5000)))])

        self.everywhere(text, expect, more=[("nic.nack", "off")])


if __name__ == "__main__":
    unittest.main()
