"""Rewind, catch-all and get, and the corners of the other calls, through the program itself."""

import collections
import random
import struct
import unittest

from system_test import SystemTest, crc, payload

# Whatever the fabric may do to packets, at rates that every run meets.
FAULTS = [
    ("fabric.faults.jitter", "4us"),
    ("fabric.faults.drop", "0.02"),
    ("fabric.faults.duplicate", "0.05"),
    ("fabric.faults.reverse", "16"),
]


def settings(pairs):
    return [part for key, value in pairs for part in ("--set", f"{key}={value}")]


class CallsTest(SystemTest):
    def call_rows(self, result):
        return [(row["op"], row["window"], row["status"], row["value"]) for row in result.rows("calls.csv")]

    def epochs(self, result):
        return [(row["buffer"], int(row["epoch"]), int(row["length"])) for row in result.rows("completions.csv")]


class Rewind(CallsTest):
    """The last buffers are filled anew."""

    TRACE = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=8KiB
  post_buffer w as=a size=8KiB
  post_buffer w as=b size=8KiB
  post_buffer w as=c size=8KiB
  barrier
  wait a b
  barrier
  rewind w n=3
  rewind w n={n}
  get_epoch w
  barrier
  wait a b c
  get_buf_ptrs w n=3
  get_epoch w
rank 0
  barrier
  put rank=1 mailbox=0x10 size=8KiB seed=1
  put rank=1 mailbox=0x10 size=8KiB seed=2
  put rank=1 mailbox=0x10 size=4KiB seed=3
  wait all
  barrier
  barrier
  repeat {again}
    put rank=1 mailbox=0x10 size=6KiB offset=2KiB seed=9
    put rank=1 mailbox=0x10 size=2KiB seed=7
  end
  wait all
"""

    def test_epochs_come_again_with_what_was_put_anew(self):
        again = payload(7, 2048) + payload(9, 6144)
        for n in range(3):
            with self.subTest(n=n):
                result = self.run_text(self.TRACE.format(n=n, again=n + 1))
                rows = self.call_rows(result)
                self.assertIn(("rewind", "w", "history", ""), rows)
                self.assertIn(("rewind", "w", "ok", str(2 - n)), rows)
                self.assertEqual([row[3] for row in rows if row[0] == "get_epoch"], [str(2 - n), "3"])
                self.assertEqual(self.epochs(result), [("a", 0, 8192), ("b", 1, 8192)] +
                                 [("abc"[i], i, 8192) for i in range(2 - n, 3)])
                crcs = [row["crc32"] for row in result.rows("completions.csv")]
                self.assertEqual(crcs, [crc(payload(1, 8192)), crc(payload(2, 8192))] + [crc(again)] * (n + 1))
                self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["ok"] * (5 + 2 * n))

    def test_each_completion_is_seen_by_its_own_wait(self):
        result = self.run_text(self.TRACE.format(n=2, again=3))
        for row in result.rows("completions.csv"):
            self.assertGreaterEqual(float(row["seen_ns"]), float(row["time_ns"]))
        self.assertEqual(result.stats()["check"]["completions"], 5)

    CUT = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=2MiB
  post_buffer w as=a size=2MiB
  barrier
  compute {after}
  rewind w n=0
  barrier
  wait a
rank 0
  barrier
  put as=p rank=1 mailbox=0x10 size=1MiB seed=5
  wait p
  barrier
  put as=q rank=1 mailbox=0x10 size=1MiB seed=6
  put as=r rank=1 mailbox=0x10 size=1MiB offset=1MiB seed=7
  wait q r
"""

    def test_messages_in_the_middle_are_cut_off_and_their_put_ends_stale(self):
        for after, status in [("8us", "stale"), ("15us", "stale"), ("80us", "ok")]:
            for faults in [[], FAULTS]:
                with self.subTest(after=after, faults=bool(faults)):
                    if faults and status == "ok":
                        continue
                    result = self.run_text(self.CUT.format(after=after), *settings(faults))
                    puts = {row["name"]: row["status"] for row in result.rows("puts.csv")}
                    self.assertEqual(puts, {"p": status, "q": "ok", "r": "ok"})
                    self.assertEqual([(row["length"], row["crc32"]) for row in result.rows("completions.csv")],
                                     [("2097152", crc(payload(6, 1 << 20) + payload(7, 1 << 20)))])
                    cut = result.stats()["units"]["node1.nic.window_calls"]["messages_cut_off"]
                    self.assertEqual(cut, 1 if status == "stale" else 0)

    def test_a_window_refuses_busy_until_the_rewind_is_over(self):
        trace = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1MiB
  post_buffer w as=a size=1MiB
  barrier
  compute 2us
  rewind w n=0
rank 0
  barrier
  repeat 100
    put rank=1 mailbox=0x10 size=8
    compute 100ns
  end
  wait all
"""
        # PCIe writes are slow: it takes as long until what was written is known to be visible.
        result = self.run_text(trace, "--set", "host.pcie.write_latency=1us")
        self.assertGreater(result.stats()["totals"]["refusals"]["busy"], 5)
        self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    def test_a_broken_window_is_freed_by_a_rewind_of_nothing(self):
        trace = """rvma-trace 1
ranks 3
rank 1
  init_window w mailbox=0x100 threshold=64KiB
  post_buffer w as=b size=64KiB
  post_buffer w as=c size=64KiB
  barrier
  compute 8ms
  get_epoch w
  rewind w n=0
  barrier
  wait b c
rank 2
  barrier
  compute 2us
  put rank=1 mailbox=0x100 size=64KiB seed=3
  barrier
  put rank=1 mailbox=0x100 size=64KiB seed=4
  put rank=1 mailbox=0x100 size=64KiB seed=5
rank 0
  barrier
  put as=p0 rank=1 mailbox=0x100 size=64KiB
  wait p0
  barrier
"""
        events = 'fabric.faults.events=[{"at":"3us","kind":"node_crash","where":"0"}]'
        result = self.run_text(trace, "--set", events, "--set", "nic.reliability.idle=5ms")
        self.assertIn(("get_epoch", "w", "ok", "0"), self.call_rows(result))
        self.assertEqual(result.stats()["units"]["node1.nic.delivery"]["silences"], 1)
        self.assertEqual([(int(row["epoch"]), row["crc32"]) for row in result.rows("completions.csv")],
                         [(0, crc(payload(4, 65536))), (1, crc(payload(5, 65536)))])

    def test_every_history_length(self):
        for history in [0, 1, 2]:
            result = self.run_text(self.TRACE.format(n=0, again=1).replace("rewind w n=3", f"rewind w n={history + 1}"),
                                   "--set", f"nic.history={history}")
            self.assertIn(("rewind", "w", "history", ""), self.call_rows(result))


class CatchAll(CallsTest):
    """Messages to mailboxes that nobody has opened."""

    def test_the_one_that_would_take_the_last_context_is_refused(self):
        """Its context never leaves the NIC: the other windows need at least one place to come to."""
        trace = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1op
  init_window any mailbox=2 threshold=1op catch_all
  init_window v mailbox=3 threshold=1op
  post_buffer v as=b size=64
  barrier
  wait b
rank 1
  barrier
  put rank=0 mailbox=3 size=64
  wait all
"""
        for contexts, status in ((1, "full"), (2, "ok")):
            result = self.run_text(trace, "--set", f"nic.windows.on_chip={contexts}")
            opened = {row["window"]: row["status"] for row in result.rows("calls.csv") if row["op"] == "init_window"}
            self.assertEqual(opened, {"w": "ok", "any": status, "v": "ok"}, contexts)
            self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["ok"], contexts)

    @staticmethod
    def record(rank, mailbox, length, message):
        return struct.pack("<4Q", rank, mailbox, length, message)

    def test_records_tell_who_sent_what(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=0x10 threshold=64 catch_all key=5
  init_window other mailbox=0x11 threshold=100
  post_buffer w as=b size=4KiB
  post_buffer other as=o size=100
  barrier
  compute 30us
  inc_epoch w
  wait b
  barrier
rank 1
  barrier
  put as=a rank=0 mailbox=0xabcdef0123456789 size=100 key=5 seed=1 offset=77
  wait a
  put as=wrong rank=0 mailbox=0x99 size=10 key=6
  put as=own rank=0 mailbox=0x10 size=20 key=5 seed=2
  wait wrong own
  put as=open rank=0 mailbox=0x11 size=100 seed=3
  wait open
  barrier
rank 2
  barrier
  barrier
  put as=none rank=1 mailbox=0x99 size=10
  wait none
"""
        # The threshold is passed by record and payload of the first message, so the second finds no buffer.
        result = self.run_text(trace.replace("threshold=64 ", "threshold=1KiB "), "--set", "workload.ranks_per_node=2")
        puts = {row["name"]: row["status"] for row in result.rows("puts.csv")}
        self.assertEqual(puts, {"a": "ok", "wrong": "bad_key", "own": "ok", "open": "ok", "none": "no_mailbox"})
        rows = {row["buffer"]: row for row in result.rows("completions.csv")}
        wanted = (self.record(1, 0xabcdef0123456789, 100, 0) + payload(1, 100) + self.record(1, 0x10, 20, 2) +
                  payload(2, 20))
        self.assertEqual((int(rows["b"]["length"]), rows["b"]["crc32"]), (len(wanted), crc(wanted)))
        self.assertEqual(rows["o"]["crc32"], crc(payload(3, 100)))

    def test_record_and_payload_are_one_unit(self):
        trace = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold={threshold} catch_all
  post_buffer w as=b size=128
  post_buffer w as=c size=128
  barrier
  barrier
  inc_epoch w
  inc_epoch w
rank 1
  barrier
  put as=p0 rank=0 mailbox=7 size={first}
  wait p0
  put as=p1 rank=0 mailbox=7 size=0
  wait p1
  barrier
"""
        # 96 + 32 fills the buffer exactly; one byte more fits none; the next message needs 32 bytes itself.
        for first, threshold, status, lengths in [(96, "1000", "ok", [128, 32]), (97, "1000", "bounds", [32, 0]),
                                                  (64, "1000", "ok", [128, 0]), (65, "1000", "ok", [97, 32]),
                                                  (10, "42", "ok", [42, 32]), (10, "43", "ok", [74, 0]),
                                                  (10, "2op", "ok", [74, 0])]:
            with self.subTest(first=first, threshold=threshold):
                result = self.run_text(trace.format(first=first, threshold=threshold))
                puts = {row["name"]: row["status"] for row in result.rows("puts.csv")}
                self.assertEqual(puts, {"p0": status, "p1": "ok"})
                self.assertEqual([int(row["length"]) for row in result.rows("completions.csv")], lengths)

    def test_one_a_process_and_closed_mailboxes_are_not_caught(self):
        trace = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=1KiB catch_all
  init_window v mailbox=2 threshold=1KiB catch_all
  init_window u mailbox=3 threshold=8
  close_window u
  post_buffer w as=b size=1KiB
  barrier
  barrier
  close_window w
  init_window x mailbox=2 threshold=8 catch_all
  post_buffer x as=c size=64
  barrier
  wait c
rank 1
  barrier
  put as=closed rank=0 mailbox=3 size=8
  wait closed
  barrier
  barrier
  put as=again rank=0 mailbox=4 size=8
  wait again
"""
        result = self.run_text(trace)
        self.assertEqual([row[2] for row in self.call_rows(result) if row[0] == "init_window"],
                         ["ok", "exists", "ok", "ok"])
        self.assertEqual({row["name"]: row["status"] for row in result.rows("puts.csv")},
                         {"closed": "closed", "again": "ok"})

    def test_many_packets_in_any_order(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold={total} catch_all
  post_buffer w as=b size=1MiB
  barrier
  wait b
rank 1
  barrier
  repeat 6
    put rank=0 mailbox=50 size=10000
  end
  wait all
rank 2
  barrier
  repeat 6
    put rank=0 mailbox=60 size=5000
  end
  wait all
"""
        total = 6 * (10032 + 5032)
        for seed in range(4):
            result = self.run_text(trace.format(total=total), *settings(FAULTS), "--set", "nic.mtu=1KiB", "--set",
                                   "host.page=4KiB", "--set", "nic.page_cache.on_chip=1", "--seed", seed)
            [row] = result.rows("completions.csv")
            self.assertEqual(int(row["length"]), total)
            self.assertEqual(result.stats()["units"]["node0.nic.payload_writer"]["records"], 12)


class Get(CallsTest):
    """Reading a readable window."""

    def test_of_a_buffer_that_is_being_written_under_loss(self):
        """A lost answer packet is read again when it is sent again, by then with what messages have changed."""
        trace = """rvma-trace 1
ranks 3
rank 1
  init_window w mailbox=1 threshold=100op readable
  post_buffer w as=b size=64KiB
  barrier
rank 0
  barrier
  repeat 20
    get rank=1 mailbox=1 size=64KiB
    wait all
  end
rank 2
  barrier
  repeat 90
    put rank=1 mailbox=1 size=64KiB
  end
  wait all
"""
        for seed in range(1, 7):
            with self.subTest(seed=seed):
                result = self.run_text(trace, "--seed", seed, "--set", "fabric.faults.drop=0.1")
                self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    TRACE = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=100000 key=7 readable
  init_window shut mailbox=0x11 threshold=1000
  init_window empty mailbox=0x12 threshold=1000 readable
  post_buffer w as=b size=20000 seed=9
  post_buffer shut size=1000
  barrier
  barrier
rank 0
  barrier
{gets}
  wait all
  barrier
"""

    def gets(self, lines, *arguments):
        text = "\n".join("  " + line for line in lines)
        result = self.run_text(self.TRACE.format(gets=text), *arguments)
        return result, {row["name"]: row for row in result.rows("puts.csv")}

    def test_status_of_each_kind(self):
        lines = [
            "get as=whole rank=1 mailbox=0x10 size=20000 key=7", "get as=part rank=1 mailbox=0x10 size=5000 offset=15000 key=7",
            "get as=nothing rank=1 mailbox=0x10 size=0 offset=20000 key=7",
            "get as=far rank=1 mailbox=0x10 size=1 offset=20000 key=7",
            "get as=wraps rank=1 mailbox=0x10 size=2 offset=0xffffffffffffffff key=7",
            "get as=key rank=1 mailbox=0x10 size=1 key=8", "get as=shut rank=1 mailbox=0x11 size=1",
            "get as=empty rank=1 mailbox=0x12 size=1", "get as=nobody rank=1 mailbox=0x13 size=1"
        ]
        result, rows = self.gets(lines)
        self.assertEqual({name: row["status"] for name, row in rows.items()},
                         {"whole": "ok", "part": "ok", "nothing": "ok", "far": "bounds", "wraps": "bounds",
                          "key": "bad_key", "shut": "bad_key", "empty": "no_buffer", "nobody": "no_mailbox"})
        self.assertEqual({row["kind"] for row in rows.values()}, {"get"})
        self.assertEqual(int(rows["empty"]["tries"]), 8)
        self.assertEqual([int(rows[name]["tries"]) for name in ("whole", "nothing", "key")], [1, 1, 1])
        totals = result.stats()["totals"]
        self.assertEqual(totals["bytes_delivered"], 25000)
        self.assertEqual(totals["completions"], 0)
        units = result.stats()["units"]
        self.assertEqual(units["node0.nic.gets"]["ended_ok"], 3)
        # Windows of the answers are closed whatever their gets ended with.
        self.assertEqual(units["node0.nic.window_calls"]["windows_released"], len(lines))

    def test_any_order_loss_duplicates_and_the_own_node(self):
        for seed in range(6):
            lines = [f"get rank={seed % 2} mailbox=0x10 size={size} offset={offset} key=7"
                     for size, offset in [(20000, 0), (1, 19999), (7777, 1234), (0, 0), (4096, 100)] * 4]
            trace = self.TRACE.replace("rank 0\n", "rank 0\n  init_window w mailbox=0x10 threshold=100000 key=7 readable\n"
                                       "  post_buffer w size=20000 seed=3\n")
            result = self.run_text(trace.format(gets="\n".join("  " + line for line in lines)), *settings(FAULTS),
                                   "--set", "nic.mtu=1KiB", "--set", "nic.reliability.rto=20us", "--seed", seed)
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    def test_a_full_queue_refuses_busy_and_is_asked_again(self):
        lines = ["get rank=1 mailbox=0x10 size=20000 key=7"] * 12
        result, _ = self.gets(lines, "--set", "nic.get.queue=1", "--set", "nic.reliability.rnr_tries=50")
        rows = result.rows("puts.csv")
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertGreater(max(int(row["tries"]) for row in rows), 1)
        self.assertGreater(result.stats()["totals"]["refusals"]["busy"], 0)
        self.assertEqual(result.stats()["units"]["node1.nic.gets"]["serving"], 1)

    @staticmethod
    def mutual(ranks, operations, seed):
        """Every rank reads and writes the windows of all, itself included."""
        rng = random.Random(seed)
        lines = ["rvma-trace 1", f"ranks {ranks}"]
        for rank in range(ranks):
            lines += [
                f"rank {rank}", "  init_window r mailbox=1 threshold=1000000op readable",
                "  post_buffer r as=rb size=64KiB seed=3", "  init_window m mailbox=2 threshold=1GiB placement=managed",
                "  post_buffer m size=1MiB", "  barrier"
            ]
            for _ in range(operations):
                other, size = rng.randrange(ranks), rng.choice([0, 10, 1000, 5000])
                lines.append(f"  get rank={other} mailbox=1 size={size} offset={rng.choice([0, 100])}" if rng.random() < 0.6
                             else f"  put rank={other} mailbox=2 size={size}")
            lines.append("  wait all")
        return "\n".join(lines) + "\n"

    def test_two_that_ask_each_other_both_get_their_answers(self):
        """A request that waits to be sent again holds nothing that the answer to the other's needs."""
        mutual = """rvma-trace 1
ranks 2
"""
        for rank in (0, 1):
            mutual += f"""rank {rank}
  init_window r mailbox=1 threshold=10op readable
  post_buffer r size=64KiB seed=3
  barrier
  repeat GETS
    get rank={1 - rank} mailbox=1 size=64
  end
  wait all
"""
        tries = ("nic.reliability.rnr_tries", 1000)
        cases = [(3000, [("nic.transmit.open_puts", 64)], 200),
                 (4, [("nic.transmit.open_puts", 1), ("nic.get.queue", 1), tries], 50),
                 (3000, [("nic.get.open", 4096), tries], 3000)]
        for gets, pairs, most_us in cases:
            with self.subTest(pairs=pairs):
                result = self.run_text(mutual.replace("GETS", str(gets)), *settings(pairs))
                self.assertEqual(collections.Counter(row["status"] for row in result.rows("puts.csv")), {"ok": 2 * gets})
                self.assertLess(result.stats()["sim"]["time_ns"], most_us * 1000)

    def test_mutual_gets_and_puts_with_one_of_everything(self):
        one = ["nic.transmit.open_puts", "nic.get.queue", "nic.get.open", "nic.reliability.messages",
               "nic.reliability.window", "nic.binding.on_chip"]
        shortages = [one, one[:1], one[:2], one[1:], one[:1] + one[3:]]
        for seed, keys in enumerate(shortages, 1):
            with self.subTest(keys=keys):
                pairs = [(key, 1) for key in keys]
                pairs += [("nic.transmit.buffer", 64), ("nic.reliability.rnr_tries", 1000000)]
                result = self.run_text(self.mutual(4, 60, seed), "--limit", "20ms", *settings(pairs))
                self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    def test_a_target_without_a_context_for_the_asker_refuses_busy(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  init_window r mailbox=1 threshold=10op readable
  post_buffer r size=64KiB seed=3
  barrier
  put rank=1 mailbox=2 size=64
  wait all
  barrier
rank 1
  init_window w mailbox=2 threshold=1op
  post_buffer w size=64
  barrier
  barrier
rank 2
  barrier
  barrier
  get rank=0 mailbox=1 size=64
  wait all
"""
        for places, status in ((1, "busy"), (2, "ok")):
            with self.subTest(places=places):
                result = self.run_text(trace, *settings([("nic.peers.spill", "off"), ("nic.peers.on_chip", places)]))
                self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["ok", status])
                self.assertLess(result.stats()["sim"]["time_ns"], 100_000)

    def test_the_own_limits(self):
        lines = ["get rank=1 mailbox=0x10 size=2000 key=7"] * 20
        result, _ = self.gets(lines, "--set", "nic.get.open=2")
        self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
        self.assertEqual(result.stats()["units"]["node0.nic.gets"]["open"], 2)
        few = ("--set", "nic.windows.on_chip=3", "--set", "nic.windows.spill=false", "--set")
        result, _ = self.gets(lines, *few, "nic.reliability.rnr_tries=0")
        statuses = [row["status"] for row in result.rows("puts.csv")]
        self.assertIn("busy", statuses)
        self.assertIn("ok", statuses)
        result, _ = self.gets(lines, *few, "nic.reliability.rnr_tries=20")
        self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    def test_windows_of_answers_spill_like_any(self):
        lines = ["get rank=1 mailbox=0x10 size=2000 key=7"] * 20
        for seed in range(3):
            result, _ = self.gets(lines, *settings(FAULTS), "--set", "nic.windows.on_chip=3", "--set",
                                  "nic.reliability.rnr_tries=200", "--seed", seed)
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})

    def test_an_earlier_wait_sees_the_bytes_by_every_way_of_waiting(self):
        for how in ["mwait", "poll", "interrupt"]:
            lines = ["get as=g rank=1 mailbox=0x10 size=20000 key=7", f"wait g how={how}"]
            _, rows = self.gets(lines)
            self.assertEqual(rows["g"]["status"], "ok")

    def test_puts_and_gets_of_one_buffer(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=64KiB readable
  repeat 8
    post_buffer w size=64KiB
  end
  barrier
rank 1
  barrier
  repeat 40
    put rank=0 mailbox=1 size=8KiB offset=8KiB
  end
  wait all
rank 2
  barrier
  repeat 40
    get rank=0 mailbox=1 size=30000 offset=5
  end
  wait all
"""
        for seed in range(3):
            result = self.run_text(trace, *settings(FAULTS), "--set", "nic.reliability.rto=20us", "--set",
                                   "nic.get.timeout=300us", "--seed", seed)
            statuses = {row["status"] for row in result.rows("puts.csv") if row["kind"] == "get"}
            self.assertLessEqual(statuses, {"ok", "no_buffer"})
            self.assertIn("ok", statuses)

    def test_a_buffer_that_goes_while_it_is_read_ends_the_answer(self):
        trace = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=8MiB readable
  post_buffer w size=4MiB seed=4
  barrier
  compute {after}
  close_window w
rank 1
  barrier
  get as=g rank=0 mailbox=1 size=4MiB
  wait g
"""
        for after, status in [("20us", "timeout"), ("1ms", "ok")]:
            result = self.run_text(trace.format(after=after), "--set", "nic.get.timeout=500us")
            [row] = result.rows("puts.csv")
            self.assertEqual(row["status"], status)
            given_up = result.stats()["units"]["node0.nic.transmit"]["answers_given_up"]
            self.assertEqual(given_up, 1 if status == "timeout" else 0)

    def test_a_target_that_dies_ends_the_get_in_timeout(self):
        trace = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=8MiB readable
  post_buffer w size=4MiB seed=4
  barrier
rank 1
  barrier
  get as=g rank=0 mailbox=1 size=4MiB
  wait g
"""
        for crash in ["1us", "3us", "30us"]:
            for restart in ["", ',{"at":"60us","kind":"node_restart","where":"0"}']:
                events = 'fabric.faults.events=[{"at":"' + crash + '","kind":"node_crash","where":"0"}' + restart + "]"
                result = self.run_text(trace, "--set", events, "--set", "nic.get.timeout=500us", "--set",
                                       "nic.reliability.rto=10us")
                [row] = result.rows("puts.csv")
                self.assertEqual(row["status"], "timeout")
                self.assertEqual(result.stats()["units"]["node1.nic.window_calls"]["windows_released"], 1)

    def test_a_get_costs_the_reads_of_a_put(self):
        _, rows = self.gets(["get as=g rank=1 mailbox=0x10 size=20000 key=7"])
        fast = float(rows["g"]["ack_ns"]) - float(rows["g"]["issue_ns"])
        result, rows = self.gets(["get as=g rank=1 mailbox=0x10 size=20000 key=7"], "--set",
                                 "host.pcie.read_latency=3us")
        slow = float(rows["g"]["ack_ns"]) - float(rows["g"]["issue_ns"])
        self.assertGreater(slow, fast + 2000)
        self.assertEqual(result.stats()["units"]["node1.nic.dma_engine"]["read_bytes"] >= 20000, True)


def random_calls(rng):
    """Ranks 1.. put into windows of rank 0, which calls whatever it can call meanwhile."""
    senders = rng.randint(1, 3)
    windows = rng.randint(1, 2)
    size = rng.choice([300, 4096, 60000])
    lines = ["rvma-trace 1", f"ranks {senders + 1}", "rank 0"]
    keys = [rng.choice([0, 7]) for _ in range(windows)]
    managed = [rng.random() < 0.4 for _ in range(windows)]
    for w in range(windows):
        threshold = rng.choice([f"{size}", f"{size // 2}", "1op", "3op"])
        lines.append(f"  init_window w{w} mailbox={w + 1} threshold={threshold} key={keys[w]}"
                     f" placement={'managed' if managed[w] else 'steered'}{' readable' if rng.random() < 0.7 else ''}")
        for _ in range(rng.randint(0, 6)):
            lines.append(f"  post_buffer w{w} size={size} seed={rng.randint(1, 99)}")
    if rng.random() < 0.5:
        lines.append("  init_window caught mailbox=99 threshold=2000 catch_all")
        lines += ["  post_buffer caught size=5000"] * rng.randint(1, 8)
    lines.append("  barrier")
    for _ in range(rng.randint(5, 40)):
        w = rng.randrange(windows)
        lines.append(rng.choice([
            f"  post_buffer w{w} size={size}", f"  post_buffer w{w} size={size}", f"  inc_epoch w{w}",
            f"  get_epoch w{w}", f"  get_buf_ptrs w{w} n={rng.randint(0, 4)}", f"  rewind w{w} n={rng.randint(0, 4)}",
            f"  rewind w{w} n={rng.randint(0, 2)}", f"  compute {rng.randint(1, 9000)}ns",
            f"  compute {rng.randint(1, 9000)}ns",
            f"  post_one_time_buffer mailbox={rng.randint(10, 12)} size={size}",
        ]))
        if rng.random() < 0.03:
            lines.append(f"  close_window w{w}")
    for rank in range(1, senders + 1):
        lines += [f"rank {rank}", "  barrier"]
        for _ in range(rng.randint(5, 40)):
            w = rng.randrange(windows)
            mailbox, key = (w + 1, keys[w]) if rng.random() < 0.85 else (rng.randint(9, 12), 0)
            length = rng.choice([0, 1, 64, size // 3, size // 2, size, size])
            offset = rng.choice([0, 0, size // 2, size - length, size])
            if rng.random() < 0.05:
                key = 8
            if rng.random() < 0.25:
                lines.append(f"  get rank=0 mailbox={mailbox} size={length} offset={offset} key={key}")
            else:
                lines.append(f"  put rank=0 mailbox={mailbox} size={length} offset={offset} key={key}")
            if rng.random() < 0.2:
                lines.append(f"  compute {rng.randint(1, 9000)}ns")
        lines.append("  wait all")
    return "\n".join(lines) + "\n"


class CallsSoak(CallsTest):
    """Calls of every kind while packets of the same windows are in flight, in any order and under loss."""

    def test_random_calls_under_faults(self):
        totals = {"rewound": 0, "cut": 0, "completions": 0}
        for seed in range(40):
            rng = random.Random(seed)
            faults = [pair for pair in FAULTS if rng.random() < 0.7]
            arguments = settings(faults + [("nic.mtu", rng.choice(["256B", "1KiB", "4KiB"])),
                                           ("nic.reliability.rto", "20us"),
                                           ("nic.get.timeout", "300us"),
                                           ("nic.reliability.rnr_tries", rng.choice([0, 3])),
                                           ("workload.ranks_per_node", rng.choice([1, 2])),
                                           ("nic.history", rng.choice([0, 2, 16]))])
            with self.subTest(seed=seed):
                result = self.run_text(random_calls(rng), *arguments, "--seed", seed)
                stats = result.stats()
                calls = stats["units"]["node0.nic.window_calls"]
                totals["rewound"] += calls["windows_rewound"]
                totals["cut"] += calls["messages_cut_off"]
                totals["completions"] += stats["check"]["completions"]
        # A soak that met nothing would prove nothing.
        self.assertGreater(totals["rewound"], 50)
        self.assertGreater(totals["cut"], 10)
        self.assertGreater(totals["completions"], 200)


if __name__ == "__main__":
    unittest.main()
