"""The corners of calls (semantics, section 5): each while packets of the same window are in flight in any order, doubled,
damaged and lost, and with everything spilled to host memory."""

import itertools
import unittest

from corners import BUSY_TRIES, SLOW_LINK, CornersTest, epoch_of, ns
from system_test import crc, payload

# On the slow link a message of 50 kB takes 50 us or more, so that 25 us after the barrier its first packet has come and its
# last has not, whatever the fabric does.
PAUSE = "compute 25us"


class CornersOfEpochCalls(CornersTest):
    """inc_epoch, get_epoch, get_buf_ptrs."""

    def test_inc_epoch_waits_for_what_is_bound_and_the_next_epochs_wait_behind_it(self):
        text = f"""rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1MiB
  repeat 3
    post_buffer w as=b size=50000
  end
  inc_epoch w
  post_buffer w as=last size=50000
  barrier
  {PAUSE}
  inc_epoch w
  inc_epoch w
  inc_epoch w
  get_epoch w
  get_buf_ptrs w n=1
  get_buf_ptrs w n=2
  inc_epoch w
  wait b.1
  get_epoch w
  wait last
  get_epoch w
  get_buf_ptrs w n=4
rank 1
  barrier
  put as=long rank=0 mailbox=1 size=50000 seed=5
  wait long
"""

        def expect(result):
            self.assertEqual(self.statuses(result)["long"], "ok")
            self.assertEqual(self.contents(result), [epoch_of(0), epoch_of(1, (5, 50000)), epoch_of(2), epoch_of(3)])
            self.assertEqual(self.values(result, "inc_epoch"), [("ok", "")] * 4 + [("no_buffer", "")])
            epochs = [int(value) for _, value in self.values(result, "get_epoch")]
            self.assertEqual((epochs[0], epochs[2]), (1, 4), "a call that retires does not wait for the message")
            self.assertGreaterEqual(epochs[1], 2)
            self.assertEqual(self.values(result, "get_buf_ptrs"),
                             [("ok", "0:0"), ("history", ""), ("ok", "3:0 2:0 1:50000 0:0")])
            # The call itself was answered while the message was on its way.
            answers = [ns(row) for row in result.rows("calls.csv") if row["op"] == "inc_epoch"]
            self.assertLess(answers[3], ns(result.rows("completions.csv")[1]))

        self.everywhere(text, expect, more=SLOW_LINK)

    def test_messages_before_and_after_inc_epoch(self):
        """Packets of the first message go on into their own buffer; the second binds to the next."""
        text = f"""rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=1MiB placement={{placement}}
  post_buffer w as=a size=50000
  post_buffer w as=b size=50000
  barrier
  {PAUSE}
  inc_epoch w
  barrier
  wait a
  barrier
  inc_epoch w
  wait b
rank 1
  barrier
  put as=before rank=0 mailbox=1 size=50000 seed=5
  barrier
  wait before
  barrier
rank 2
  barrier
  barrier
  put as=after rank=0 mailbox=1 size=20000 seed=6
  wait after
  barrier
"""

        def expect(result):
            self.assertEqual(self.statuses(result), {"before": "ok", "after": "ok"})
            self.assertEqual(self.contents(result), [epoch_of(0, (5, 50000)), epoch_of(1, (6, 20000))])

        for placement in ("steered", "managed"):
            self.everywhere(text.replace("{placement}", placement), expect, more=SLOW_LINK, seeds=1)

    def test_inc_epoch_at_any_time_loses_and_doubles_nothing(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold={threshold} placement={placement}
  repeat 20
    post_buffer w size=40000
  end
  barrier
  repeat 8
    compute 700ns
    inc_epoch w
    get_epoch w
    get_buf_ptrs w n=1
  end
  barrier
  inc_epoch w
rank 1
  barrier
  repeat 10
    put rank=0 mailbox=1 size=3000
    put rank=0 mailbox=1 size=0
    put rank=0 mailbox=1 size=100 offset=3000
  end
  wait all
  barrier
rank 2
  barrier
  repeat 5
    put rank=0 mailbox=1 size=6000 offset=10000
  end
  wait all
  barrier
"""
        epochs = set()

        def expect(result):
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
            self.assertEqual(sum(self.lengths(result)), 10 * 3100 + 5 * 6000)
            retired = [status for status, _ in self.values(result, "inc_epoch")].count("ok")
            self.assertGreaterEqual(len(self.lengths(result)), retired)
            epochs.add(len(self.lengths(result)))

        for threshold, placement in itertools.product(("1MiB", "20000", "7op"), ("steered", "managed")):
            self.everywhere(text.replace("{threshold}", threshold).replace("{placement}", placement), expect, seeds=1)
        self.assertGreater(len(epochs), 3)

    def test_history_of_every_length(self):
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=5000
  repeat 4
    post_buffer w as=b size=5000
  end
  get_buf_ptrs w n=0
  get_buf_ptrs w n=1
  barrier
  wait b.0 b.1 b.2 b.3
  get_buf_ptrs w n=0
  get_buf_ptrs w n={history}
  get_buf_ptrs w n={beyond}
rank 1
  barrier
  repeat 4
    put rank=0 mailbox=1 size=5000
  end
"""
        for history in (0, 1, 3, 16):
            remembered = min(history, 4)
            newest = " ".join(f"{epoch}:5000" for epoch in range(3, 3 - remembered, -1))
            expected = [("ok", ""), ("history", ""), ("ok", ""), ("ok", newest), ("history", "")]
            self.everywhere(text.format(history=remembered, beyond=remembered + 1),
                            lambda result: self.assertEqual(self.values(result, "get_buf_ptrs"), expected),
                            more=[("nic.history", history)], seeds=1, names=["clean", "jitter", "loss", "all"])


class CornersOfClosing(CornersTest):
    """close_window, and what is remembered of it."""

    TEXT = f"""rvma-trace 1
ranks 4
rank 0
  init_window w mailbox=1 threshold=2op key=3
  repeat 4
    post_buffer w as=b size=50000
  end
  barrier
  {PAUSE}
  {PAUSE}
  close_window w
  wait b.0 b.1 b.2 b.3 how={{how}}
  get_epoch w
  post_buffer w as=dead size=8
  wait dead how={{how}}
  barrier
  barrier
  init_window again mailbox=1 threshold=1op
  post_buffer again as=c size=5000
  barrier
  wait c
rank 1
  barrier
  put as=retired1 rank=0 mailbox=1 size=50000 key=3 seed=1
  wait retired1
  barrier
  put as=late1 rank=0 mailbox=1 size=5000 key=3
  put as=badkey1 rank=0 mailbox=1 size=5000 key=4 offset=0xffffffffffffffff
  wait all
  barrier
  barrier
  put as=fresh rank=0 mailbox=1 size=5000 seed=9
rank 2
  barrier
  put as=retired2 rank=0 mailbox=1 size=50000 key=3 seed=1
  wait retired2
  barrier
  put as=late2 rank=0 mailbox=1 size=0 key=3
  wait late2
  barrier
  barrier
rank 3
  barrier
  {PAUSE}
  put as=active rank=0 mailbox=1 size=50000 key=3 seed=3
  wait active
  barrier
  barrier
  barrier
"""

    def test_retired_active_and_unused_buffers(self):
        """Two messages have retired the first buffer, a third is bound to the next, two have none: all on their way."""
        compared = []

        def expect(result):
            self.assertEqual(self.statuses(result),
                             {"retired1": "ok", "retired2": "ok", "active": "ok", "late1": "closed", "late2": "closed",
                              "badkey1": "closed", "fresh": "ok"})
            self.assertEqual([(row["window"], row["buffer"], row["epoch"], row["length"], row["crc32"])
                              for row in result.rows("completions.csv")],
                             [("w", "b.0", "0", "100000", crc(payload(1, 50000))),
                              ("again", "c", "0", "5000", crc(payload(9, 5000)))])
            self.assertEqual(self.values(result, "get_epoch"), [("closed", "")])
            self.assertEqual(self.values(result, "post_buffer"), [("closed", "")])
            # The close waited for the last message. Where nothing is lost, its sender knows within 4 us.
            [closed] = [row for row in result.rows("calls.csv") if row["op"] == "close_window"]
            [active] = [row for row in result.rows("puts.csv") if row["name"] == "active"]
            self.assertEqual(closed["status"], "ok")
            if result.stats()["totals"]["packets"]["retransmitted"] == 0:
                self.assertLess(abs(ns(closed) - ns(active, "ack_ns")), 4000)
                compared.append(result)

        for how in ("mwait", "poll", "interrupt"):
            self.everywhere(self.TEXT.replace("{how}", how), expect, more=SLOW_LINK, seeds=1)
        self.assertGreater(len(compared), 0)

    def test_closing_at_any_time(self):
        """Each message is counted or refused; a buffer completes or comes back; none does both."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=9000 placement={placement}
  repeat 12
    post_buffer w as=b size=9000
  end
  barrier
  compute {after}
  close_window w
  init_window again mailbox=1 threshold=3000
  post_buffer again as=c size=3000
  barrier
  wait c
""" + "".join(f"""rank {rank}
  barrier
  repeat 12
    put as=p rank=0 mailbox=1 size=3000 seed=6
  end
  wait all
  barrier
  put as=fresh rank=0 mailbox=1 size=3000 seed=7
  wait fresh
""" for rank in (1, 2))
        seen = {"ok": 0, "closed": 0}

        def expect(result):
            puts = result.rows("puts.csv")
            statuses = [row["status"] for row in puts if row["name"].startswith("p.")]
            # The mailbox is initialised again while puts for the first window are still on their way.
            self.assertLessEqual(set(statuses), {"ok", "closed", "no_buffer"})
            for status in ("ok", "closed"):
                seen[status] += statuses.count(status)
            whole = len(self.lengths(result, "w"))
            self.assertEqual(self.lengths(result, "w"), [9000] * whole)
            self.assertLessEqual(3 * whole, statuses.count("ok"))
            [again] = [row for row in result.rows("completions.csv") if row["window"] == "again"]
            self.assertIn(again["crc32"], {crc(payload(6, 3000)), crc(payload(7, 3000))})

        for placement, after in itertools.product(("steered", "managed"), ("2us", "3us")):
            self.everywhere(text.replace("{placement}", placement).replace("{after}", after), expect, seeds=1)
        self.assertGreater(min(seen.values()), 20, seen)

    def test_the_last_few_closed_windows_are_remembered(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window a mailbox=1 threshold=8
  init_window b mailbox=2 threshold=8
  init_window c mailbox=3 threshold=8
{catch_all}  close_window a
  close_window b
  close_window c
  post_one_time_buffer mailbox=4 size=3000 as=once
  barrier
  wait once
  barrier
  barrier
  init_window again mailbox=4 threshold=8
  barrier
rank 1
  barrier
  put as=once rank=0 mailbox=4 size=3000
  wait once
  barrier
  put as=p1 rank=0 mailbox=1 size=3000
  put as=p2 rank=0 mailbox=2 size=3000
  put as=p3 rank=0 mailbox=3 size=3000
  put as=p4 rank=0 mailbox=4 size=3000
  wait all
  barrier
  barrier
  put as=again rank=0 mailbox=4 size=3000
  wait again
rank 2
  barrier
  barrier
  put as=q3 rank=0 mailbox=3 size=0
  put as=q2 rank=0 mailbox=2 size=0
  put as=q1 rank=0 mailbox=1 size=0
  wait all
  barrier
  barrier
"""
        catch_all = "  init_window all_others mailbox=99 threshold=1MiB catch_all\n  post_buffer all_others size=10000\n"
        for memory, caught in itertools.product((1, 2, 3, 64), (False, True)):
            forgotten = "ok" if caught else "no_mailbox"
            closed = {4: "closed", 3: "closed" if memory >= 2 else forgotten, 2: "closed" if memory >= 3 else forgotten,
                      1: "closed" if memory >= 4 else forgotten}

            def expect(result):
                statuses = self.statuses(result)
                self.assertEqual([statuses[f"p{mailbox}"] for mailbox in (1, 2, 3, 4)], [closed[m] for m in (1, 2, 3, 4)])
                self.assertEqual([statuses[f"q{mailbox}"] for mailbox in (1, 2, 3)], [closed[m] for m in (1, 2, 3)])
                self.assertEqual((statuses["once"], statuses["again"]), ("ok", "no_buffer"))

            with self.subTest(memory=memory, caught=caught):
                self.everywhere(text.format(catch_all=catch_all if caught else ""), expect, seeds=1,
                                names=["clean", "torus", "loss", "all"], more=[("nic.closed_memory", memory)])


class CornersOfRewind(CornersTest):
    """rewind: what has been filled is filled anew, what is under way is cut off."""

    def test_retired_and_active_buffers_with_messages_under_way(self):
        """Epochs 0 and 1 are complete, 2 and 3 retired with half a message each, 4 is active with one."""
        text = f"""rvma-trace 1
ranks 4
rank 0
  init_window w mailbox=1 threshold=40000 placement={{placement}}
  repeat 5
    post_buffer w as=b size=60000
  end
  barrier
  wait b.0 b.1
  barrier
  {PAUSE}
  {PAUSE}
  get_epoch w
  rewind w n=3
  rewind w n={{n}}
  get_epoch w
  get_buf_ptrs w n={{left}}
  get_buf_ptrs w n={{toomany}}
  barrier
  wait b.1 b.2 b.3
  barrier
  inc_epoch w
  wait b.4 how=poll
  get_buf_ptrs w n=5
rank 1
  barrier
  put as=first rank=0 mailbox=1 size=40000 seed=1
  wait first
  put as=second rank=0 mailbox=1 size=40000 seed=2
  wait second
  barrier
  put as=cut1 rank=0 mailbox=1 size=60000 seed=90
  wait cut1
  barrier
  repeat {{again}}
    put as=again rank=0 mailbox=1 size=40000 seed=3
    wait again
  end
  put as=end rank=0 mailbox=1 size=300 seed=4
  wait end
  barrier
rank 2
  barrier
  barrier
  put as=cut2 rank=0 mailbox=1 size=60000 seed=91
  wait cut2
  barrier
  barrier
rank 3
  barrier
  barrier
  {PAUSE}
  put as=cut3 rank=0 mailbox=1 size=39000 seed=92
  wait cut3
  barrier
  barrier
"""
        for n, placement in itertools.product((0, 1, 2), ("steered", "managed")):
            resumed = 2 - n

            def expect(result):
                statuses = self.statuses(result)
                self.assertEqual([statuses.pop(f"cut{rank}") for rank in (1, 2, 3)], ["stale"] * 3)
                self.assertEqual(set(statuses.values()), {"ok"})
                self.assertEqual(self.contents(result), [epoch_of(0, (1, 40000)), epoch_of(1, (2, 40000))] +
                                 [epoch_of(epoch, (3, 40000)) for epoch in range(resumed, 4)] + [epoch_of(4, (4, 300))])
                self.assertEqual(self.values(result, "rewind"), [("history", ""), ("ok", str(resumed))])
                self.assertEqual(self.values(result, "get_epoch"), [("ok", "2"), ("ok", str(resumed))])
                newest = " ".join(f"{epoch}:40000" for epoch in range(resumed - 1, -1, -1))
                after = "4:300 " + " ".join(f"{epoch}:40000" for epoch in range(3, -1, -1))
                self.assertEqual(self.values(result, "get_buf_ptrs"), [("ok", newest), ("history", ""), ("ok", after)])

            with self.subTest(n=n, placement=placement):
                replaced = {"placement": placement, "n": n, "again": 4 - resumed, "left": resumed, "toomany": resumed + 1}
                self.everywhere(text.format(**replaced), expect, more=SLOW_LINK, rnr_tries=BUSY_TRIES, seeds=1)

    def test_beyond_the_history_nothing_happens(self):
        text = f"""rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1op
  repeat 5
    post_buffer w as=b size=50000
  end
  barrier
  wait b.0 b.1 b.2 b.3
  barrier
  {PAUSE}
  rewind w n=3
  rewind w n=0xffffffffffffffff
  barrier
  wait b.4
  rewind w n=2
  rewind w n=1
  get_epoch w
  get_buf_ptrs w n=0
  get_buf_ptrs w n=1
  barrier
  wait b.3 b.4
rank 1
  barrier
  repeat 4
    put rank=0 mailbox=1 size=300 seed=5
  end
  barrier
  put as=long rank=0 mailbox=1 size=50000 seed=6
  barrier
  wait long
  barrier
  repeat 2
    put rank=0 mailbox=1 size=20000 seed=7
  end
  wait all
"""

        def expect(result):
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
            self.assertEqual(self.values(result, "rewind"), [("history", "")] * 2 + [("ok", "3"), ("history", "")])
            self.assertEqual(self.values(result, "get_epoch"), [("ok", "3")])
            self.assertEqual(self.values(result, "get_buf_ptrs"), [("ok", ""), ("history", "")])
            self.assertEqual(self.contents(result), [epoch_of(epoch, (5, 300)) for epoch in range(4)] +
                             [epoch_of(4, (6, 50000)), epoch_of(3, (7, 20000)), epoch_of(4, (7, 20000))])

        self.everywhere(text, expect, more=SLOW_LINK + [("nic.history", 2)], rnr_tries=BUSY_TRIES)

    def test_rewinding_at_any_time(self):
        """Puts go on meanwhile: each is counted, or cut off (stale), or finds no buffer or a rewind under way."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=6000 placement={placement}
  repeat 6
    post_buffer w as=b size=6000
  end
  barrier
  repeat 5
    compute 900ns
    rewind w n={n}
    get_epoch w
    get_buf_ptrs w n=1
  end
  barrier
  repeat 6
    inc_epoch w
  end
""" + "".join(f"""rank {rank}
  barrier
  repeat 12
    put rank=0 mailbox=1 size=3000 seed=6
  end
  wait all
  barrier
""" for rank in (1, 2))
        seen = {"ok": 0, "stale": 0, "no_buffer": 0, "busy": 0}

        def expect(result):
            statuses = [row["status"] for row in result.rows("puts.csv")]
            self.assertLessEqual(set(statuses), set(seen))
            for status in seen:
                seen[status] += statuses.count(status)
            whole = {crc(payload(6, 3000)), crc(payload(6, 3000) * 2), crc(b"")}
            self.assertLessEqual({row["crc32"] for row in result.rows("completions.csv") if row["length"] != "3000"}, whole)
            self.assertLessEqual(set(self.lengths(result)), {0, 3000, 6000})

        # From the head on, so that what the last life left behind does not show.
        for placement, n in itertools.product(("managed",), (0, 1, 2)):
            self.everywhere(text.replace("{placement}", placement).replace("{n}", str(n)), expect, rnr_tries=3)
        self.assertGreater(min(seen.values()), 10, seen)


class CornersOfGet(CornersTest):
    """Reading a window that others write to and its owner changes."""

    def test_each_way_to_end(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=1MiB key=7 readable
  init_window shut mailbox=2 threshold=1MiB
  init_window empty mailbox=3 threshold=1MiB readable
  init_window closed mailbox=4 threshold=1MiB readable
  post_one_time_buffer mailbox=5 size=3000
  post_buffer w as=b size=9000 seed=9
  post_buffer shut size=3000
  post_buffer closed size=3000
  close_window closed
  barrier
  barrier
  inc_epoch w
  wait b
""" + "".join(f"""rank {rank}
  barrier
  get as=whole rank=0 mailbox=1 size=9000 key=7
  get as=part rank=0 mailbox=1 size=300 offset=8700 key=7
  get as=empty_end rank=0 mailbox=1 size=0 offset=9000 key=7
  get as=beyond rank=0 mailbox=1 size=301 offset=8700 key=7
  get as=wraps rank=0 mailbox=1 size=9000 offset=0xffffffffffffffff key=7
  get as=wrong rank=0 mailbox=1 size=9000 key=8 offset=0xffffffffffffffff
  get as=shut rank=0 mailbox=2 size=1
  get as=nothing rank=0 mailbox=3 size=1 offset=5
  get as=closed rank=0 mailbox=4 size=1
  get as=once rank=0 mailbox=5 size=1
  get as=nobody rank=0 mailbox=6 size=1
  wait all
  barrier
""" for rank in (1, 2))
        expected = {"whole": "ok", "part": "ok", "empty_end": "ok", "beyond": "bounds", "wraps": "bounds",
                    "wrong": "bad_key", "shut": "bad_key", "nothing": "no_buffer", "closed": "closed", "once": "bad_key",
                    "nobody": "no_mailbox"}

        def expect(result):
            for rank in (1, 2):
                self.assertEqual(self.statuses(result, rank), expected)
            # Nothing was reserved by being read.
            self.assertEqual(self.contents(result), [(0, 0, crc(b""))])

        self.everywhere(text, expect)

    def test_while_the_buffer_changes(self):
        """The active buffer is filled, retired, rewound and given back while it is read: a get ends `ok` with what left
        the target (--check), or says why not."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=20000 readable
  repeat 8
    post_buffer w size=20000 seed=4
  end
  barrier
  compute 2us
  inc_epoch w
  compute 2us
  rewind w n=0
  compute 2us
  rewind w n=1
  compute 2us
  close_window w
rank 1
  barrier
  repeat 12
    put rank=0 mailbox=1 size=10000
  end
  wait all
rank 2
  barrier
  repeat 20
    get as=g rank=0 mailbox=1 size=20000
  end
  wait all
"""
        seen = set()

        def expect(result):
            gets = {row["status"] for row in result.rows("puts.csv") if row["kind"] == "get"}
            self.assertLessEqual(gets, {"ok", "no_buffer", "closed", "timeout", "busy"})
            seen.update(gets)

        for history in (0, 16):
            self.everywhere(text, expect, more=[("nic.get.timeout", "300us"), ("nic.history", history)], rnr_tries=5)
        self.assertLessEqual({"ok", "closed", "timeout"}, seen)

    def test_what_is_sent_again_may_have_changed_meanwhile(self):
        """Packets of answers are lost, and acknowledgements: what goes out once more carries what the buffer holds by then.
        The asker has what came first, and --check takes either."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=1GiB readable
  post_buffer w size=30000
  barrier
rank 1
  barrier
  repeat 4
    put rank=0 mailbox=1 size=30000
  end
  wait all
rank 2
  barrier
  repeat 4
    get as=g rank=0 mailbox=1 size=30000
    wait g
  end
"""

        def expect(result):
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

        self.everywhere(text, expect, names=["loss"], seeds=6,
                        more=SLOW_LINK + [("nic.mtu", "64B"), ("nic.reliability.messages", 2)])

    def test_an_answer_that_is_given_up_leaves_nothing_elsewhere(self):
        """The window closes while the first bytes of the answer are read from memory: its number goes out empty, and is no
        message to the mailbox 0, nor one that a catch-all window takes."""
        text = """rvma-trace 1
ranks 2
rank 0
  init_window v {window}
  post_buffer v as=untouched size=30000
  barrier
  compute 3us
  get as=g rank=1 mailbox=1 size=30000
  wait g
  inc_epoch v
  wait untouched
rank 1
  init_window w mailbox=1 threshold=1MiB readable
  post_buffer w size=30000 seed=3
  barrier
  compute {after}
  close_window w
"""
        given_up = []

        def expect(result):
            self.assertEqual(self.contents(result), [epoch_of(0)])
            self.assertEqual(self.values(result, "inc_epoch"), [("ok", "")])
            given_up.append(result.stats()["units"]["node1.nic.transmit"]["answers_given_up"])

        for window in ("mailbox=0 threshold=1op", "mailbox=50 threshold=1op catch_all"):
            for after in ("5200ns", "6us", "7us", "8us"):
                self.everywhere(text.replace("{window}", window).replace("{after}", after), expect, seeds=1,
                                names=["clean", "jitter", "loss"], more=[("host.pcie.read_latency", "2us"),
                                                                        ("nic.get.timeout", "200us"), ("nic.history", 0)])
        self.assertGreater(sum(given_up), 5)


class CornersOfWaiting(CornersTest):
    """Every way of waiting sees every end."""

    TEXT = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=10000
  init_window v mailbox=2 threshold=1MiB
  post_buffer w as=a size=10000
  post_buffer w as=b size=10000
  post_buffer v as=returned size=50000
  post_buffer v as=unused size=8
  barrier
  wait a b how={how}
  close_window v
  wait returned unused how={how}
  barrier
rank 1
  barrier
  put as=p rank=0 mailbox=1 size=10000 seed=3
  put as=refused rank=0 mailbox=9 size=5000
  put as=full rank=0 mailbox=1 size=10001
  put as=bound rank=0 mailbox=2 size=50000
  wait refused full p bound how={how}
  barrier
rank 2
  barrier
  put as=q rank=0 mailbox=1 size=10000 seed=3
  wait q how={how}
  get as=got rank=0 mailbox=2 size=1
  wait got how={how}
  barrier
"""

    def test_buffers_that_complete_or_come_back_and_puts_that_end(self):
        for how in ("mwait", "poll", "interrupt"):

            def expect(result):
                statuses = self.statuses(result)
                self.assertIn(statuses.pop("full"), ("bounds", "no_buffer"))
                self.assertIn(statuses.pop("bound"), ("ok", "closed"))
                self.assertIn(statuses.pop("got"), ("bad_key", "closed"))
                self.assertEqual(statuses, {"p": "ok", "q": "ok", "refused": "no_mailbox"})
                self.assertEqual(self.contents(result), [epoch_of(0, (3, 10000)), epoch_of(1, (3, 10000))])
                for row in result.rows("completions.csv"):
                    self.assertNotEqual(row["seen_ns"], "")

            with self.subTest(how=how):
                self.everywhere(self.TEXT.replace("{how}", how), expect, seeds=1)


class CornersOfPlaces(CornersTest):
    """Own rank, own node, many ranks a node: the same mailbox number of each is another mailbox."""

    RANKS = 6

    def program(self, rank):
        puts = [f"    put as=p{dest} rank={dest} mailbox=1 size=3000 offset={3000 * rank} key={dest + 1} "
                f"seed={10 * rank + dest}" for dest in range(self.RANKS)]
        # With the key of another rank's window of that number.
        puts.append(f"    put as=x rank={(rank + 1) % self.RANKS} mailbox=1 size=3000 key={rank + 1}")
        return "\n".join([f"rank {rank}", f"  init_window w mailbox=1 threshold={self.RANKS}op key={rank + 1}", "  repeat 3",
                          f"    post_buffer w as=b size={3000 * self.RANKS}", "  end", "  barrier", "  repeat 3", *puts,
                          "    wait all", "    barrier", "  end", "  wait b.0 b.1 b.2", "  get_epoch w"])

    def test_all_ranks_put_to_all(self):
        text = "\n".join(["rvma-trace 1", f"ranks {self.RANKS}"] + [self.program(rank) for rank in range(self.RANKS)])

        def expect(result):
            for row in result.rows("puts.csv"):
                self.assertEqual(row["status"], "bad_key" if row["name"].startswith("x") else "ok", row)
            for rank in range(self.RANKS):
                data = b"".join(payload(10 * source + rank, 3000) for source in range(self.RANKS))
                rows = [row for row in result.rows("completions.csv") if row["rank"] == str(rank)]
                self.assertEqual([(row["epoch"], row["length"], row["crc32"]) for row in rows],
                                 [(str(epoch), str(len(data)), crc(data)) for epoch in range(3)])
            self.assertEqual(self.values(result, "get_epoch"), [("ok", "3")] * self.RANKS)

        for together in (1, 2, 3, 6):
            with self.subTest(ranks_per_node=together):
                self.everywhere(text, expect, seeds=1, more=[("workload.ranks_per_node", together)])


if __name__ == "__main__":
    unittest.main()
