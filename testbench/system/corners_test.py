"""The corners of puts (semantics, sections 3 and 4): each with packets of the same window in flight in any order, doubled,
damaged and lost, and with everything spilled to host memory."""

import itertools
import struct
import unittest

from corners import BUSY_TRIES, MTU, SLOW_LINK, CornersTest, epoch_of, ns
from system_test import crc, payload


class CornersOfEpochs(CornersTest):
    """What ends an epoch, and with which length."""

    def test_a_message_outlives_the_retirement_of_its_buffer(self):
        sizes = {"long": 60000, "middle": 20000, "short": 301, "one": 1, "two": 302}
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold={threshold}
  repeat 5
    post_buffer w as=b size=64KiB
  end
  barrier
  wait b.0 b.1 b.2 b.3 b.4
  get_epoch w
  get_buf_ptrs w n=5
rank 1
  barrier
  put as=long rank=0 mailbox=1 size=60000 seed=1
  put as=short rank=0 mailbox=1 size=301 seed=1
  put as=one rank=0 mailbox=1 size=1 seed=1
rank 2
  barrier
  put as=middle rank=0 mailbox=1 size=20000 seed=1
  put as=two rank=0 mailbox=1 size=302 seed=1
"""
        early = []

        def expect(result):
            rows = result.rows("completions.csv")
            # One message an epoch, in the order in which their first packets came.
            self.assertEqual(sorted(self.lengths(result)), sorted(sizes.values()))
            for row in rows:
                self.assertEqual(row["crc32"], crc(payload(1, int(row["length"]))))
            self.assertEqual(self.values(result, "get_epoch"), [("ok", "5")])
            history = " ".join(f"{row['epoch']}:{row['length']}" for row in reversed(rows))
            self.assertEqual(self.values(result, "get_buf_ptrs"), [("ok", history)])
            # Counted whole while an earlier epoch waited for its message.
            acknowledged = {int(row["size"]): ns(row, "ack_ns") for row in result.rows("puts.csv")}
            for earlier, later in itertools.combinations(rows, 2):
                if acknowledged[int(later["length"])] < ns(earlier):
                    early.append(later)

        for threshold in ("1op", "1"):
            self.everywhere(text.replace("{threshold}", threshold), expect)
        self.assertGreater(len(early), 10)

    # Both messages of a round are under way together; the next round begins when both have been counted.
    ROUNDS = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold={threshold} placement={placement}
  repeat 3
    post_buffer w as=b size={size}
  end
  barrier
  wait b.0 b.1 b.2
  get_epoch w
rank 1
  barrier
{first}
rank 2
  barrier
{second}
"""

    def rounds(self, threshold, placement, size, first, second):
        """`first` and `second`: (bytes, offset) of the puts of ranks 1 and 2 in each of three rounds, seeds 10 + round and
        20 + round."""
        programs = []
        for base, puts in ((10, first), (20, second)):
            lines = []
            for turn in range(3):
                lines += [f"  put rank=0 mailbox=1 size={length} offset={offset} seed={base + turn}"
                          for length, offset in puts]
                lines += ["  wait all", "  barrier"]
            programs.append("\n".join(lines))
        # Rank 0 passes the barriers of the rounds before it waits.
        text = self.ROUNDS.format(threshold=threshold, placement=placement, size=size, first=programs[0],
                                  second=programs[1])
        return text.replace("  wait b.0", "  barrier\n" * 3 + "  wait b.0")

    def test_overshoot_of_bytes_completes_with_all_that_was_bound(self):
        for threshold in (6001, 10000, 12000):
            text = self.rounds(threshold, "steered", 12000, [(6000, 0)], [(6000, 6000)])
            expected = [epoch_of(turn, (10 + turn, 6000), (20 + turn, 6000)) for turn in range(3)]
            self.everywhere(text, lambda result: self.assertEqual(self.contents(result), expected), seeds=1)

    def test_overshoot_of_bytes_in_a_managed_window(self):
        text = self.rounds(10000, "managed", 12000, [(6000, 7)], [(6000, 0xffffffffffffffff)])

        def expect(result):
            for turn, row in enumerate(self.contents(result)):
                first, second = (10 + turn, 6000), (20 + turn, 6000)
                self.assertIn(row, [epoch_of(turn, first, second), epoch_of(turn, second, first)])
            self.assertEqual(len(self.contents(result)), 3)

        self.everywhere(text, expect)

    def test_ops_count_when_their_last_byte_is_there(self):
        text = self.rounds("3op", "steered", 20000, [(7000, 0), (257, 7000)], [(9000, 7257)])
        expected = [(turn, 16257, crc(payload(10 + turn, 7000) + payload(10 + turn, 257) + payload(20 + turn, 9000)))
                    for turn in range(3)]

        def expect(result):
            rows = result.rows("completions.csv")
            # The buffer is longer than what was put: the rest of it is still 0.
            self.assertEqual([(int(row["epoch"]), int(row["length"]), row["crc32"]) for row in rows], expected)

        self.everywhere(text, expect)

    def test_what_is_delivered_does_not_decide(self):
        """19,900 bytes bound, then 30,000: the second alone passes the threshold long before the first is whole."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=20000
  post_buffer w as=a size=50000
  post_buffer w as=b size=50000
  barrier
  barrier
  inc_epoch w
  wait a b
rank 1
  barrier
  put rank=0 mailbox=1 size=19900 seed=1
  wait all
  barrier
rank 2
  barrier
  put rank=0 mailbox=1 size=30000 offset=20000 seed=2
  wait all
  barrier
"""
        both = payload(1, 19900) + bytes(100) + payload(2, 30000)
        together = [(0, 49900, crc(both[:49900])), (1, 0, crc(b""))]
        apart = [(0, 30000, crc(bytes(20000) + payload(2, 30000)[:10000])), (1, 19900, crc(payload(1, 19900)))]
        met = []

        def expect(result):
            self.assertIn(self.contents(result), [together, apart])
            met.append(self.contents(result) == together)

        self.everywhere(text, expect, seeds=4)
        self.assertEqual(set(met), {True, False}, "both orders of arrival were tried")

    def test_two_puts_over_the_same_bytes_both_count(self):
        text = self.rounds(20000, "steered", 10000, [(10000, 0)], [(10000, 0)])
        # The same bytes from both, so that their order does not show.
        text = text.replace("seed=2", "seed=1")
        expected = [(turn, 20000, crc(payload(10 + turn, 10000))) for turn in range(3)]
        self.everywhere(text, lambda result: self.assertEqual(self.contents(result), expected))

    def test_a_threshold_above_the_buffer_is_met_by_none_of_its_managed_messages(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=1MiB placement=managed
  repeat 5
    post_buffer w as=b size=10000
  end
  barrier
  wait b.0 b.1 b.2 b.3
  barrier
  inc_epoch w
  wait b.4
rank 1
  barrier
  repeat 5
    put rank=0 mailbox=1 size=4000 seed=3
  end
  wait all
  barrier
rank 2
  barrier
  repeat 5
    put rank=0 mailbox=1 size=4000 seed=3
  end
  wait all
  barrier
"""
        expected = [epoch_of(epoch, (3, 4000), (3, 4000)) for epoch in range(5)]
        self.everywhere(text, lambda result: self.assertEqual(self.contents(result), expected))

    def test_empty_puts_count_one_operation(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=4op placement={placement}
  repeat 3
    post_buffer w as=b size=5000
  end
  barrier
  barrier
  barrier
  wait b.0 b.1 b.2
rank 1
  barrier
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0 offset=5000
  wait all
  barrier
  put rank=0 mailbox=1 size=5000 seed=3
  wait all
  barrier
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0
rank 2
  barrier
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0 offset=1
  wait all
  barrier
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0
  wait all
  barrier
  put rank=0 mailbox=1 size=0
  put rank=0 mailbox=1 size=0
"""
        expected = [epoch_of(0), epoch_of(1, (3, 5000)), epoch_of(2)]

        def expect(result):
            self.assertEqual(self.contents(result), expected)
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

        for placement in ("steered", "managed"):
            self.everywhere(text.replace("{placement}", placement), expect, seeds=1)

    def test_empty_puts_count_no_bytes(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=5000
  init_window none mailbox=2 threshold=5000
  post_buffer w as=a size=5000
  post_buffer w as=b size=5000
  barrier
  wait a
  barrier
  inc_epoch w
  wait b
rank 1
  barrier
  repeat 5
    put as=empty rank=0 mailbox=1 size=0
  end
  put as=unposted rank=0 mailbox=2 size=0
  put as=unknown rank=0 mailbox=3 size=0
  wait all
  barrier
rank 2
  barrier
  put as=full rank=0 mailbox=1 size=5000 seed=6
  put as=last rank=0 mailbox=1 size=0 offset=5000
  wait all
  barrier
"""

        def expect(result):
            self.assertEqual(self.contents(result), [epoch_of(0, (6, 5000)), epoch_of(1)])
            statuses = self.statuses(result)
            self.assertEqual((statuses.pop("unposted"), statuses.pop("unknown")), ("no_buffer", "no_mailbox"))
            self.assertEqual(set(statuses.values()), {"ok"})

        self.everywhere(text, expect)


class CornersOfPlacement(CornersTest):
    """Bounds, and what fits into a managed buffer."""

    def test_what_touches_a_byte_outside_is_refused_whole(self):
        outside = [(5001, 0), (1, 5000), (2, 4999), (5000, 1), (300, 4800), (100000, 0), (1, 2**64 - 1), (2, 2**64 - 1),
                   (5000, 2**64 - 5000), (300, 2**64 - 100), (4999, 2**64 - 2)]
        inside = [(2500, 0), (2499, 2500), (1, 4999)]
        lines = [[f"  put as=bad{i} rank=0 mailbox=1 size={size} offset={offset} seed=77"
                  for i, (size, offset) in enumerate(outside)][rank::2] +
                 [f"  put as=good{i} rank=0 mailbox=1 size={size} offset={offset} seed={i}"
                  for i, (size, offset) in enumerate(inside)] for rank in range(2)]
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=10000
  post_buffer w as=a size=5000
  post_buffer w as=b size=5000
  barrier
  barrier
  inc_epoch w
  wait a b
rank 1
  barrier
{0}
  wait all
  barrier
rank 2
  barrier
{1}
  wait all
  barrier
""".format("\n".join(lines[0]), "\n".join(reversed(lines[1])))

        def expect(result):
            for row in result.rows("puts.csv"):
                self.assertEqual(row["status"], "ok" if row["name"].startswith("good") else "bounds", row)
                self.assertEqual(row["tries"], "1")
            data = payload(0, 2500) + payload(1, 2499) + payload(2, 1)
            self.assertEqual(self.contents(result), [(0, 10000, crc(data)), (1, 0, crc(b""))])

        self.everywhere(text, expect)

    def test_a_managed_message_longer_than_any_buffer_is_refused_bounds(self):
        """Whatever the state of the active buffer, and whether another is posted: nothing is retired by it."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=5000 placement=managed
  repeat 4
    post_buffer w as=b size=5000
  end
  barrier
  wait b.0 b.1 b.2
  barrier
  inc_epoch w
  wait b.3
rank 1
  barrier
  repeat 3
    put as=good rank=0 mailbox=1 size=2500 seed=4
    put as=bad rank=0 mailbox=1 size=5001
  end
  wait all
  barrier
rank 2
  barrier
  repeat 3
    put as=bad rank=0 mailbox=1 size=100000
    put as=good rank=0 mailbox=1 size=2500 seed=4
  end
  wait all
  barrier
"""
        expected = [epoch_of(epoch, (4, 2500), (4, 2500)) for epoch in range(3)] + [epoch_of(3)]

        def expect(result):
            self.assertEqual(self.contents(result), expected)
            for row in result.rows("puts.csv"):
                self.assertEqual(row["status"], "ok" if row["name"].startswith("good") else "bounds", row)

        self.everywhere(text, expect)

    # Each put waits for the one before it; the fabric doubles, delays and reverses their packets.
    STEPS = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1MiB placement=managed
{posts}
  barrier
  barrier
{end}
rank 1
  barrier
{puts}
  barrier
"""

    def steps(self, posts, puts, end):
        lines = [f"  put as=p{i} rank=0 mailbox=1 size={size} seed={i}\n  wait p{i}" for i, size in enumerate(puts)]
        return self.STEPS.format(posts="\n".join(f"  post_buffer w as=b{i} size={size}" for i, size in enumerate(posts)),
                                 puts="\n".join(lines), end="\n".join("  " + line for line in end))

    def test_each_case_of_what_does_not_fit(self):
        empty = ["inc_epoch w"]
        cases = [
            # Active buffer empty: bounds, though the next would take it.
            ([5000, 9000], [6000, 5000], ["bounds", "ok"], empty, [epoch_of(0, (1, 5000))]),
            # It fits into the next: that is bound to, and the active one is complete with less than its threshold.
            ([5000, 9000], [1000, 5000, 4000], ["ok"] * 3, empty, [epoch_of(0, (0, 1000)), epoch_of(1, (1, 5000), (2, 4000))]),
            # It fits even if the active one could never have taken it.
            ([5000, 9000], [1000, 9000], ["ok"] * 2, empty, [epoch_of(0, (0, 1000)), epoch_of(1, (1, 9000))]),
            # It does not fit into the next: bounds, and nothing is retired.
            ([5000, 3000], [2500, 3001, 2500], ["ok", "bounds", "ok"], empty, [epoch_of(0, (0, 2500), (2, 2500))]),
            # Nor does the one behind the next help.
            ([5000, 3000, 9000], [2500, 3001, 2500], ["ok", "bounds", "ok"], empty, [epoch_of(0, (0, 2500), (2, 2500))]),
            # No next, longer than the active one's size: bounds, nothing is retired.
            ([5000], [2500, 5001, 2500], ["ok", "bounds", "ok"], empty, [epoch_of(0, (0, 2500), (2, 2500))]),
            # No next, not longer: the active one makes way, and the put finds no buffer, nor does any other.
            ([5000], [2500, 5000, 10], ["ok", "no_buffer", "no_buffer"], ["wait b0", "inc_epoch w"], [epoch_of(0, (0, 2500))]),
            # A message that fills the buffer to its last byte fits; one of length 0 fits behind it.
            ([5000], [2500, 2500, 0], ["ok"] * 3, empty, [epoch_of(0, (0, 2500), (1, 2500))]),
        ]
        for posts, puts, statuses, end, expected in cases:

            def expect(result):
                self.assertEqual(list(self.statuses(result).values()), statuses)
                self.assertEqual(self.contents(result), expected)

            with self.subTest(posts=posts, puts=puts):
                self.everywhere(self.steps(posts, puts, end), expect, seeds=1,
                                names=["clean", "reverse", "torus", "loss", "all"])

    def test_what_made_the_active_buffer_go_finds_the_one_that_is_posted_then(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=1MiB placement=managed
  post_buffer w as=a size=5000
  barrier
  wait a
  post_buffer w as=b size=5000
  barrier
  inc_epoch w
  wait b
rank 1
  barrier
  put as=p rank=0 mailbox=1 size=3000 seed=8
  wait p
  barrier
rank 2
  barrier
  put as=q rank=0 mailbox=1 size=3000 seed=8
  wait q
  barrier
"""

        def expect(result):
            self.assertEqual(self.statuses(result), {"p": "ok", "q": "ok"})
            self.assertEqual(self.contents(result), [epoch_of(0, (8, 3000)), epoch_of(1, (8, 3000))])
            tries = sorted(int(row["tries"]) for row in result.rows("puts.csv"))
            self.assertGreater(tries[-1], 1)

        self.everywhere(text, expect, rnr_tries=BUSY_TRIES)


class CornersOfRefusals(CornersTest):
    """Why a message is refused, and that nothing is left of it."""

    def test_a_wrong_key_changes_nothing(self):
        text = """rvma-trace 1
ranks 4
rank 0
  init_window w mailbox=1 threshold=15000 key=7
  init_window open mailbox=2 threshold=2op
  post_buffer w as=a size=5000
  post_buffer w as=b size=5000
  post_buffer open as=o size=5000
  barrier
  wait a o
  barrier
  inc_epoch w
  wait b
rank 1
  barrier
  repeat 3
    put as=right rank=0 mailbox=1 size=5000 key=7 seed=3
    put as=wrong rank=0 mailbox=1 size=5000 key=8
  end
  put as=any rank=0 mailbox=2 size=5000 key=0xffffffff seed=5
  wait all
  barrier
rank 2
  barrier
  repeat 6
    put as=wrong rank=0 mailbox=1 size=5000
  end
  put as=any rank=0 mailbox=2 size=5000 seed=5
  wait all
  barrier
rank 3
  barrier
  repeat 6
    put as=wrong rank=0 mailbox=1 size=1 key=0x80000007
  end
  wait all
  barrier
"""

        def expect(result):
            for row in result.rows("puts.csv"):
                self.assertEqual(row["status"], "bad_key" if row["name"].startswith("wrong") else "ok", row)
            self.assertEqual(self.contents(result, "w"), [(0, 15000, crc(payload(3, 5000))), (1, 0, crc(b""))])
            self.assertEqual(self.contents(result, "open"), [(0, 10000, crc(payload(5, 5000)))])

        self.everywhere(text, expect)

    def test_the_first_reason_that_applies(self):
        """Rank 3 dies in the midst of a message, which keeps the only binding entry and what it reserved."""
        text = """rvma-trace 1
ranks 4
rank 0
  init_window empty mailbox=1 threshold=8 key=7
  init_window w mailbox=2 threshold=1MiB key=7
  init_window shut mailbox=3 threshold=8 key=7
  post_buffer w as=a size=500000
  close_window shut
  barrier
  compute 60us
  barrier
  barrier
  inc_epoch w
rank 1
  barrier
  barrier
{0}
  barrier
rank 2
  barrier
  barrier
{1}
  barrier
rank 3
  barrier
  put rank=0 mailbox=2 size=500000 key=7
"""
        long = 5000
        wraps = 2**64 - 1
        rows = [
            ("no_mailbox", f"mailbox=4 size={long} key=8 offset={wraps}"),
            ("closed", f"mailbox=3 size={long} key=8 offset={wraps}"),
            ("bad_key", f"mailbox=1 size={long} key=8 offset={wraps}"),
            ("bad_key", f"mailbox=2 size={long} key=8 offset={wraps}"),
            ("no_buffer", f"mailbox=1 size={long} key=7 offset={wraps}"),
            ("bounds", f"mailbox=2 size={long} key=7 offset={wraps}"),
            ("bounds", f"mailbox=2 size={long} key=7 offset=495001"),
            ("busy", f"mailbox=2 size={long} key=7 offset=495000"),
            ("busy", f"mailbox=2 size={MTU + 1} key=7"),
            ("ok", f"mailbox=2 size={MTU} key=7 offset=499000"),
        ]
        puts = [[f"  put as={status}{i} rank=0 {rest}" for i, (status, rest) in enumerate(rows)] + ["  wait all"]
                for _ in range(2)]

        def expect(result):
            for row in result.rows("puts.csv"):
                if row["rank"] != "3":
                    self.assertEqual(row["status"], row["name"].rstrip("0123456789"), row)
            self.assertEqual(result.rows("completions.csv"), [], "the dead message's epoch never ends")

        self.everywhere(text.format("\n".join(puts[0]), "\n".join(puts[1])), expect,
                        more=SLOW_LINK + [("nic.binding.on_chip", 1)], arguments=CRASH_OF_3)

    def test_a_refused_message_leaves_no_trace_whatever_is_posted_meanwhile(self):
        """Buffers come while messages of 79 packets are being refused: half a message would bind and never end."""
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=20000 placement={placement}
  barrier
  repeat 6
    compute {pause}
    post_buffer w as=b size=20000
  end
  barrier
  barrier
  repeat 6
    inc_epoch w
  end
rank 1
  barrier
  repeat 5
    put rank=0 mailbox=1 size=20000 seed=4
  end
  wait all
  barrier
  barrier
rank 2
  barrier
  repeat 5
    put rank=0 mailbox=1 size=20000 seed=4
  end
  wait all
  barrier
  barrier
"""
        seen = {"ok": 0, "no_buffer": 0}

        def expect(result):
            statuses = [row["status"] for row in result.rows("puts.csv")]
            self.assertLessEqual(set(statuses), {"ok", "no_buffer"})
            for status in statuses:
                seen[status] += 1
            counted = statuses.count("ok")
            self.assertEqual(self.contents(result), [epoch_of(epoch, (4, 20000)) for epoch in range(counted)] +
                             [epoch_of(epoch) for epoch in range(counted, 6)])

        names = ["clean", "jitter", "reverse", "torus", "loss"]
        for placement, pause in itertools.product(("steered", "managed"), ("900ns", "3us")):
            self.everywhere(text.replace("{placement}", placement).replace("{pause}", pause), expect, names=names)
        self.assertGreater(min(seen.values()), 20, seen)

    def test_a_one_time_window_refuses_closed_from_its_retirement_on(self):
        text = """rvma-trace 1
ranks 4
rank 0
  repeat 3
    post_one_time_buffer mailbox=7 size=30000 threshold={threshold} as=b
    barrier
    wait b
    barrier
  end
""" + "".join(f"""rank {rank}
  repeat 3
    barrier
    put as=p rank=0 mailbox=7 size=10000 offset={10000 * rank - 10000} seed={rank}
    wait p
    barrier
  end
""" for rank in (1, 2, 3))

        for threshold, fits in (("1", 1), ("10000", 1), ("1op", 1), ("10001", 2), ("2op", 2), ("3op", 3)):

            def expect(result):
                statuses = sorted(row["status"] for row in result.rows("puts.csv"))
                self.assertEqual(statuses, ["closed"] * 3 * (3 - fits) + ["ok"] * 3 * fits)
                self.assertEqual([(row["window"], row["epoch"], int(row["length"])) for row in result.rows("completions.csv")],
                                 [(f"b.{turn}", "0", 10000 * fits) for turn in range(3)])
                # Unlike no_buffer it is not tried again.
                self.assertEqual({row["tries"] for row in result.rows("puts.csv") if row["status"] == "closed"} - {"1"}, set())

            with self.subTest(threshold=threshold):
                names = ["clean", "jitter", "reverse", "loss", "torus"]
                self.everywhere(text.replace("{threshold}", threshold), expect, seeds=1, names=names, rnr_tries=50)


class CornersOfCatchAll(CornersTest):
    """Messages to mailboxes that nobody has, each behind a record, whatever the order of their packets."""

    SENDERS = ((1, 0xabcdef0123456789, 5000), (2, 5, 700), (3, 0, 1))

    @staticmethod
    def unit(rank, mailbox, length, message=0):
        return struct.pack("<4Q", rank, mailbox, length, message) + payload(rank, length)

    def text(self, threshold, posts, end, senders):
        lines = ["rvma-trace 1", "ranks 4", "rank 0", f"  init_window w mailbox=1 threshold={threshold} catch_all"]
        lines += [f"  post_buffer w as=b{i} size={size}" for i, size in enumerate(posts)]
        lines += ["  barrier", "  barrier", *end]
        for rank, mailbox, size in senders:
            lines += [f"rank {rank}", "  barrier", f"  put as=p rank=0 mailbox={mailbox} size={size} seed={rank}", "  wait p",
                      "  barrier"]
        return "\n".join(lines) + "\n"

    def test_records_stand_before_their_messages(self):
        units = [self.unit(*sender) for sender in self.SENDERS]
        text = self.text("1MiB", [10000], ["  inc_epoch w", "  wait b0"], self.SENDERS)
        expected = {crc(b"".join(order)) for order in itertools.permutations(units)}
        met = set()

        def expect(result):
            [(_, length, found)] = self.contents(result)
            self.assertEqual(length, 5701 + 3 * 32)
            self.assertIn(found, expected)
            met.add(found)

        self.everywhere(text, expect, seeds=4)
        self.assertGreater(len(met), 2, "several orders were met")

    def test_record_and_message_are_one_unit_for_fit_and_threshold(self):
        same = [(rank, 40 + rank, 3000) for rank in (1, 2, 3)]
        cases = [
            # Room for one unit: the next one retires the buffer by not fitting, or finds it retired by the threshold.
            ("1MiB", [3032] * 3, 1), ("3032", [9000] * 3, 1), ("1op", [3032] * 3, 1),
            # One byte more in the threshold: two units an epoch.
            ("3033", [9096] * 2, 2), ("2op", [9096] * 2, 2), ("1MiB", [6064] * 2, 2),
        ]
        for threshold, posts, together in cases:

            def expect(result):
                self.assertEqual(set(self.statuses(result).values()), {"ok"})
                whole = [3032 * together] * (3 // together)
                self.assertEqual(self.lengths(result), whole + ([3032 * (3 % together)] if 3 % together else []))
                if together == 1:
                    found = {row["crc32"] for row in result.rows("completions.csv")}
                    self.assertEqual(found, {crc(self.unit(*sender)) for sender in same})

            with self.subTest(threshold=threshold, posts=posts):
                self.everywhere(self.text(threshold, posts, ["  inc_epoch w"], same), expect, seeds=1,
                                names=["clean", "reverse", "torus", "loss", "all"])

    def test_a_message_that_fits_without_its_record_does_not_fit(self):
        def expect(result):
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"bounds"})
            self.assertEqual(self.contents(result), [epoch_of(0)])

        for size in (3000, 2969):
            same = [(rank, 40 + rank, size) for rank in (1, 2, 3)]
            self.everywhere(self.text("1MiB", [3000, 9000], ["  inc_epoch w", "  wait b0"], same), expect, seeds=1)


# Rank 3's node stops while its message of 500 kB is under way, some 400 us long.
CRASH_OF_3 = ("--set", 'fabric.faults.events=[{"at":"30us","kind":"node_crash","where":"3"}]')


if __name__ == "__main__":
    unittest.main()
