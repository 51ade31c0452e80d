"""More windows, buffers, counters and peers than the NIC has room for, through the program itself: what does not fit
spills to host memory and comes back."""

import random

from system_test import SOURCE, SystemTest, crc, payload
from calls_test import FAULTS, settings

ROOM = ["--set", "nic.buffers.on_chip=100000", "--set", "nic.counters.on_chip=100000"]


class Spill(SystemTest):
    def contexts(self, result, node=0):
        return result.stats()["units"][f"node{node}.nic.contexts"]

    def mailboxes(self, *options, count=600):
        return self.generate("mailboxes", "--mailboxes", 500, "--count", count, *options)

    def test_fewer_slots_cost_time_and_nothing_else(self):
        for skew in ("0", "0.99"):
            trace = self.mailboxes("--skew", skew)
            plenty = self.run_file(trace, *ROOM)
            few = self.run_file(trace, *ROOM, "--set", "nic.windows.on_chip=16")
            self.assertEqual(self.contexts(plenty)["misses"], 0)
            self.assertEqual(self.contexts(plenty)["spilled"], 0)
            self.assertGreater(self.contexts(few)["misses"], 100)
            self.assertGreater(self.contexts(few)["evictions"], 500 - 16)
            self.assertLessEqual(self.contexts(few)["resident"], 16)
            for result in (plenty, few):
                self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
            same = [sorted((row["window"], row["epoch"], row["length"], row["crc32"]) for row in result.rows("completions.csv"))
                    for result in (plenty, few)]
            self.assertEqual(*same)
            self.assertGreater(few.stats()["sim"]["time_ns"], plenty.stats()["sim"]["time_ns"])

    def test_the_report_names_the_wait(self):
        trace = self.mailboxes("--size", 64)
        result = self.run_file(trace, *ROOM, "--set", "nic.windows.on_chip=128", "--set", "nic.windows.misses=64")
        self.assertEqual(result.stats()["bottleneck"], "latency: context (node0.nic.contexts)")
        self.assertNotIn("Refused", result.stdout)
        # With fewer searches at a time messages are refused and wait to be sent again, and others behind them.
        result = self.run_file(trace, *ROOM, "--set", "nic.windows.on_chip=8")
        busy = result.stats()["totals"]["refusals"]["busy"]
        self.assertEqual(result.stats()["bottleneck"], "node0.nic.contexts")
        self.assertIn(f"Refused: {busy} busy; most because of node0.nic.contexts ({busy})", result.stdout)
        retry = result.stats()["units"]["node1.nic.transmit"]["retry_wait_ns"]
        self.assertEqual(retry, busy * 5000)

    def test_frequent_mailboxes_stay(self):
        """With a few hot mailboxes, keeping what was used lately misses less than dropping what came first."""
        trace = self.mailboxes("--skew", "1.2", count=2000)
        misses = {}
        for policy in ("lru", "pseudo_lru", "fifo", "random"):
            result = self.run_file(trace, *ROOM, "--set", "nic.windows.on_chip=32", "--set",
                                   f"nic.windows.policy={policy}")
            misses[policy] = self.contexts(result)["fetches"]
        self.assertLess(misses["lru"], misses["fifo"])
        self.assertLess(misses["pseudo_lru"], misses["fifo"])
        self.assertEqual(len(set(misses.values())), 4, misses)

    def test_a_full_search_tells_a_stranger_nothing(self):
        """`busy` of a search is decided before mailbox and key are known: with nack off it opens no context."""
        trace = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=1op key=9
  init_window w2 mailbox=2 threshold=1op key=9
  post_buffer w as=b size=8
  barrier
rank 0
  barrier
  put rank=1 mailbox=77 size=8
  put rank=1 mailbox=78 size=8
  put rank=1 mailbox=79 size=8
"""
        arguments = ["--set", "nic.nack=off", "--set", "nic.windows.on_chip=1", "--set", "nic.windows.misses=1"]
        result = self.run_text(trace, *arguments)
        self.assertEqual([(row["status"], row["tries"]) for row in result.rows("puts.csv")], [("timeout", "1")] * 3)
        self.assertGreater(self.contexts(result, 1)["refused"], 0)
        self.assertEqual(result.stats()["units"]["node1.nic.egress"]["acknowledgements"], 0)
        # Who knows mailbox and key gets through.
        result = self.run_text(trace + "  put rank=1 mailbox=1 size=8 key=9 as=p\n  wait p\n", *arguments)
        self.assertEqual({row["name"]: row["status"] for row in result.rows("puts.csv")}["p"], "ok")

    def test_mailboxes_that_nobody_has_are_refused_after_a_search(self):
        text = ["rvma-trace 1", "ranks 2", "rank 0"]
        text += [f"  init_window w{i} mailbox={i} threshold=1op" for i in range(8)]
        text += ["  barrier", "rank 1", "  barrier", "  put rank=0 mailbox=99 size=10", "  wait all"]
        for slots, searches in ((8, 0), (4, 1)):
            result = self.run_text("\n".join(text), "--set", f"nic.windows.on_chip={slots}")
            self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["no_mailbox"])
            self.assertEqual(self.contexts(result)["unknown"], searches)

    def test_without_spilling_init_window_says_full(self):
        text = ["rvma-trace 1", "ranks 1", "rank 0"]
        text += [f"  init_window w{i} mailbox={i} threshold=1op" for i in range(5)]
        result = self.run_text("\n".join(text), "--set", "nic.windows.on_chip=4", "--set", "nic.windows.spill=off")
        self.assertEqual([row["status"] for row in result.rows("calls.csv")], ["ok"] * 4 + ["full"])
        result = self.run_text("\n".join(text), "--set", "nic.windows.on_chip=4")
        self.assertEqual([row["status"] for row in result.rows("calls.csv")], ["ok"] * 5)

    def test_every_call_finds_its_window_in_host_memory(self):
        """Random calls and puts on 24 windows, 4 of them on chip, over a fabric that loses, doubles and reorders."""
        for seed in range(1, 7):
            with self.subTest(seed=seed):
                rng = random.Random(seed)
                text = ["rvma-trace 1", "ranks 2", "rank 0"]
                text += [f"  init_window w{i} mailbox={i} threshold=3op" for i in range(24)]
                text += [f"  post_buffer w{i} as=b{i}x0 size=64KiB" for i in range(24)]
                text += ["  barrier"]
                posted = dict.fromkeys(range(24), 1)
                for _ in range(120):
                    i = rng.randrange(24)
                    call = rng.choice(["post", "post", "inc_epoch w{i}", "get_epoch w{i}", "get_buf_ptrs w{i} n=1"])
                    if call == "post":
                        text.append(f"  post_buffer w{i} as=b{i}x{posted[i]} size=64KiB")
                        posted[i] += 1
                    else:
                        text.append("  " + call.format(i=i))
                text += ["  barrier"]
                text += [f"  close_window w{i}" for i in range(24)]
                text += ["rank 1", "  barrier"]
                for n in range(300):
                    text.append(f"  put rank=0 mailbox={rng.randrange(24)} size={rng.choice([0, 64, 5000, 20000])} "
                                f"offset={rng.randrange(40000)}")
                    if n % 20 == 19:
                        text.append("  wait all")
                text += ["  wait all", "  barrier"]
                result = self.run_text("\n".join(text), *settings(FAULTS), "--seed", str(seed), "--set",
                                       "nic.windows.on_chip=4")
                self.assertLessEqual({row["status"] for row in result.rows("puts.csv")}, {"ok", "no_buffer", "busy"})
                self.assertLessEqual({row["status"] for row in result.rows("calls.csv")}, {"ok", "no_buffer", "history"})
                self.assertGreater(self.contexts(result)["fetches"], 100)


# Shape `fast` of rtl/shapes.txt: 68 places.
FAST = settings([("nic.table.banks", 2), ("nic.table.rows", 16), ("nic.table.slots", 2), ("nic.table.stash", 4),
                 ("nic.table.max_kicks", 6), ("nic.table.latency", 1)])


class CrowdedTable(SystemTest):
    """More slots than the translation table has places: its size limits what is on chip, and nobody is refused."""

    def expect_all_ok(self, trace, places, *arguments):
        result = self.run_file(trace, *ROOM, *arguments)
        self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
        self.assertEqual({row["status"] for row in result.rows("calls.csv")}, {"ok"})
        units = result.stats()["units"]
        self.assertGreater(units["node0.nic.table"]["full"], 0)
        self.assertLessEqual(units["node0.nic.contexts"]["resident"], places)
        self.assertGreater(units["node0.nic.contexts"]["resident"], 0.9 * places)
        return result

    def test_the_default_table(self):
        trace = self.generate("mailboxes", "--mailboxes", 5000, "--count", 5000, "--skew", 0)
        slots = "nic.windows.on_chip"
        for keys in ([(slots, 4000)], [(slots, 5001)], [(slots, 65536)], [("nic.table.rows", 256)],
                     [(slots, 5001), ("nic.table.stash", 0)], [(slots, 5001), ("nic.windows.policy", "random")]):
            with self.subTest(keys=keys):
                rows = dict(keys).get("nic.table.rows", 512)
                places = 8 * rows + dict(keys).get("nic.table.stash", 8)
                self.expect_all_ok(trace, places, *settings(keys))

    def test_many_more_mailboxes_than_places(self):
        trace = self.generate("mailboxes", "--mailboxes", 20000, "--count", 20000, "--skew", 0)
        self.expect_all_ok(trace, 4104, "--set", "nic.windows.on_chip=65536")

    def test_the_verilog_table(self):
        if "off in this build" in self.rvma("run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl").stderr:
            self.skipTest("built without Verilator")
        for skew in ("0", "0.99"):
            trace = self.generate("mailboxes", "--mailboxes", 500, "--count", 1000, "--skew", skew)
            arguments = [*FAST, "--set", "nic.reliability.rnr_tries=1000"]
            model = self.expect_all_ok(trace, 68, *arguments)
            both = self.expect_all_ok(trace, 68, *arguments, "--table", "both")
            for name in ("puts.csv", "completions.csv", "calls.csv"):
                self.assertEqual((model.out / name).read_bytes(), (both.out / name).read_bytes())


# Units under nodeN.nic.
CACHES = ["contexts", "buffer_cache", "counter_cache", "receive_context_cache", "transmit_context_cache"]


def tiny(entries):
    """Every structure that spills holds so many entries; messages refused busy try until they get through."""
    keys = ["buffers", "counters", "peers", "page_cache"]
    # A catch-all window and those with messages under way keep their slots.
    return settings([(f"nic.{key}.on_chip", entries) for key in keys] + [("nic.windows.on_chip", entries + 2)] +
                    [("nic.reliability.rnr_tries", 1000000), ("nic.reliability.rnr_delay", "2us"), ("host.page", "4KiB")])


class SameWhateverFits(SystemTest):
    """Sizes on the NIC change times, and nothing else."""

    def program(self, rng):
        """Three senders into windows of every kind on rank 0. The messages of a window are alike, so that their order
        shows nowhere."""
        windows = []
        for i in range(8):
            size = rng.choice([0, 1, 64, 5000, 9000, 20000])
            windows.append({
                "name": f"w{i}", "size": size, "k": rng.randint(1, 4), "epochs": rng.randint(2, 5),
                "managed": size > 0 and rng.random() < 0.4, "bytes": size > 0 and rng.random() < 0.5,
                "mailbox": 100 + i, "key": rng.choice([0, 7])})
        receiver = ["rank 0"]
        for w in windows:
            threshold = f"{w['k'] * w['size']}" if w["bytes"] else f"{w['k']}op"
            placement = "managed" if w["managed"] else "steered"
            receiver.append(f"  init_window {w['name']} mailbox={w['mailbox']} threshold={threshold} "
                            f"placement={placement} key={w['key']}")
        receiver += ["  init_window g mailbox=900 threshold=1op readable", "  post_buffer g size=30000 seed=9",
                     "  init_window c mailbox=901 threshold=4op catch_all", "  post_buffer c as=c0 size=100000",
                     "  post_one_time_buffer mailbox=902 size=5000 as=once"]
        for epoch in range(5):
            for w in windows:
                size = max(1, w["size"] * (w["k"] if w["managed"] else 1))
                if epoch < w["epochs"]:
                    receiver.append(f"  post_buffer {w['name']} as={w['name']}b{epoch} size={size}")
        receiver.append("  barrier")
        puts = [(w, f"mailbox={w['mailbox']} size={w['size']} key={w['key']} seed={w['mailbox']}")
                for w in windows for _ in range(w["k"] * w["epochs"])]
        puts += [(None, "mailbox=12345 size=700 seed=3")] * 4 + [(None, "mailbox=902 size=5000 seed=4")]
        puts += [(None, "mailbox=107 key=99 size=1"), (None, "mailbox=900 size=1 offset=30000")]
        rng.shuffle(puts)
        senders = {1: ["rank 1"], 2: ["rank 2"], 3: ["rank 3"]}
        for _, put in puts:
            senders[rng.randint(1, 3)].append(f"  put rank=0 {put}")
        if windows[7]["key"] == 0:  # an open window takes any key
            senders = {rank: [line for line in lines if "key=99" not in line] for rank, lines in senders.items()}
        for rank, lines in senders.items():
            lines.insert(1, "  barrier")
            lines.append(f"  get rank=0 mailbox=900 size={rng.choice([10, 9000, 20000])} as=got{rank}")
            lines += ["  wait all", "  barrier", "  barrier"]
        receiver.append("  barrier")
        # The last epoch of some windows comes again.
        for w in windows[:3]:
            receiver.append(f"  rewind {w['name']} n=1")
            for _ in range(w["k"]):
                senders[rng.randint(1, 3)].append(f"  put rank=0 mailbox={w['mailbox']} size={w['size']} "
                                                  f"key={w['key']} seed={w['mailbox']}")
        receiver += ["  barrier", "  barrier"]
        for rank, lines in senders.items():
            lines += ["  wait all", "  barrier"]
        for w in windows:
            receiver += [f"  get_epoch {w['name']}", f"  get_buf_ptrs {w['name']} n=1", f"  inc_epoch {w['name']}"]
        receiver += ["  inc_epoch g"] + [f"  close_window {w['name']}" for w in windows] + ["  close_window c"]
        text = ["rvma-trace 1", "ranks 4"] + receiver
        for lines in senders.values():
            text += lines
        return "\n".join(text)

    def outcome(self, result):
        """What may not depend on sizes."""
        completions = sorted((row["window"], int(row["epoch"]), row["buffer"], row["length"],
                              "-" if row["window"] == "c" else row["crc32"]) for row in result.rows("completions.csv"))
        puts = sorted((row["rank"], row["kind"], row["name"], row["mailbox"], row["size"], row["status"])
                      for row in result.rows("puts.csv"))
        calls = [(row["op"], row["window"], row["status"], row["value"]) for row in result.rows("calls.csv")]
        return completions, puts, calls

    def stats_of(self, result, node=0):
        units = result.stats()["units"]
        return {cache: units[f"node{node}.nic.{cache}"] for cache in CACHES}

    def test_all_kinds_of_windows_in_any_order(self):
        for seed in range(1, 13):
            trace = self.program(random.Random(seed))
            faults = settings(FAULTS) if seed % 3 else []
            arguments = [*faults, "--seed", str(seed), "--set", "host.page=4KiB"]
            plenty = self.run_text(trace, *arguments)
            expected = self.outcome(plenty)
            for cache, stats in self.stats_of(plenty).items():
                self.assertEqual(stats["fetches"], 0, cache)
                self.assertEqual(stats["written_bytes"], 0, cache)
            for entries in (1, 2, 4):
                with self.subTest(seed=seed, entries=entries):
                    result = self.run_text(trace, *arguments, *tiny(entries))
                    for part, expected_part in zip(self.outcome(result), expected):
                        self.assertEqual(part, expected_part)
                    for cache, stats in self.stats_of(result).items():
                        self.assertLessEqual(stats["resident"], entries + (2 if cache == "contexts" else 0), cache)
                        if entries == 1 and cache != "transmit_context_cache":
                            self.assertGreater(stats["fetches"], 0, cache)

    def test_a_table_with_few_places(self):
        """Eleven windows and the gets' own, slots for all of them, and a table of eight to ten places."""
        for seed in range(1, 13):
            trace = self.program(random.Random(seed))
            arguments = [*settings(FAULTS), "--seed", str(seed), "--set", "nic.reliability.rnr_tries=1000000"]
            expected = self.outcome(self.run_text(trace, *arguments))
            for stash in (0, 1, 2):
                with self.subTest(seed=seed, stash=stash):
                    table = [("nic.table.banks", 2), ("nic.table.rows", 4), ("nic.table.slots", 1),
                             ("nic.table.stash", stash), ("nic.table.max_kicks", 2)]
                    result = self.run_text(trace, *arguments, *settings(table))
                    for part, expected_part in zip(self.outcome(result), expected):
                        self.assertEqual(part, expected_part)
                    self.assertGreater(result.stats()["units"]["node0.nic.table"]["full"], 0)

    def test_each_policy(self):
        trace = self.program(random.Random(99))
        expected = self.outcome(self.run_text(trace, *settings(FAULTS)))
        for policy in ("lru", "pseudo_lru", "fifo", "random"):
            with self.subTest(policy=policy):
                keys = settings([(f"nic.{key}.policy", policy) for key in ("windows", "buffers", "counters", "peers")])
                self.assertEqual(self.outcome(self.run_text(trace, *settings(FAULTS), *tiny(3), *keys)), expected)

    def test_one_read_at_a_time(self):
        """The fewest reads outstanding: new messages are refused busy, others wait."""
        trace = self.program(random.Random(7))
        expected = self.outcome(self.run_text(trace))
        keys = settings([(f"nic.{key}.misses", 1) for key in ("windows", "buffers", "counters", "peers")])
        self.assertEqual(self.outcome(self.run_text(trace, *tiny(1), *keys)), expected)

    def test_a_sender_that_crashes_and_repeats(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=0x100 threshold=1MiB
  post_buffer w as=b size=1MiB
  post_buffer w as=c size=1MiB
  init_window v mailbox=0x101 threshold=4KiB
  repeat 20
    post_buffer v size=4KiB
  end
  barrier
  compute 20ms
  rewind w n=0
  barrier
  wait b c
  get_epoch v
rank 1
  barrier
  put rank=0 mailbox=0x100 size=1MiB seed=1
  wait all
rank 1 restart
  barrier
  put as=p rank=0 mailbox=0x100 size=1MiB seed=3
  wait p
  put as=q rank=0 mailbox=0x100 size=1MiB seed=4
  wait q
rank 2
  barrier
  repeat 20
    put rank=0 mailbox=0x101 size=4KiB
    compute 1us
  end
  wait all
  barrier
"""
        events = 'fabric.faults.events=[{"at":"%s","kind":"node_crash","where":"1"},' \
                 '{"at":"100us","kind":"node_restart","where":"1"}]'
        for seed, at in enumerate(["14us", "16us", "18us", "20us"], 1):
            outcomes = []
            for sizes in ([], tiny(1), tiny(2), tiny(4)):
                result = self.run_text(trace, *settings(FAULTS), *sizes, "--set", events % at, "--seed", str(seed))
                done = [row for row in result.rows("completions.csv") if row["window"] == "w"]
                outcomes.append([(row["buffer"], row["epoch"], row["length"], row["crc32"]) for row in done] +
                                [(row["op"], row["status"], row["value"]) for row in result.rows("calls.csv")])
            self.assertEqual(outcomes[0][0], ("b", "0", "1048576", crc(payload(3, 1 << 20))))
            for other in outcomes[1:]:
                self.assertEqual(other, outcomes[0], at)


class WhatItCosts(SystemTest):
    """Each structure by itself: nothing up to its size, reads and writes beyond, and the report names it."""

    WINDOWS = 12

    # Reads of host memory take long, and messages of no bytes need none but those that are tested.
    SLOW = ["--set", "host.pcie.read_latency=2us"]

    def rounds(self, ranks=2, posted=1, size=0, rounds=4):
        """Rank 0 has windows, with `posted` buffers each; the others put to all of them in turn, one at a time."""
        text = ["rvma-trace 1", f"ranks {ranks}", "rank 0"]
        for i in range(self.WINDOWS):
            text.append(f"  init_window w{i} mailbox={i} threshold={rounds * (ranks - 1)}op")
            text += [f"  post_buffer w{i} size=64"] * posted
        text.append("  barrier")
        for rank in range(1, ranks):
            text += [f"rank {rank}", "  barrier"]
            for _ in range(rounds):
                for i in range(self.WINDOWS):
                    text += [f"  put rank=0 mailbox={i} size={size} as=p{rank}x{len(text)}", "  wait all"]
        return "\n".join(text)

    def cache(self, result, name):
        return result.stats()["units"][f"node0.nic.{name}"]

    def check(self, name, key, trace, enough, bytes_of_a_miss=64):
        fits = self.run_text(trace, "--set", f"nic.{key}.on_chip={enough}")
        plenty = self.run_text(trace)
        few = self.run_text(trace, *self.SLOW, "--set", f"nic.{key}.on_chip={enough - 1}", "--set",
                            f"nic.{key}.policy=fifo")
        self.assertEqual(fits.rows("puts.csv"), plenty.rows("puts.csv"))
        self.assertEqual(self.cache(fits, name)["misses"], 0)
        self.assertEqual(self.cache(fits, name)["resident"], enough)
        stats = self.cache(few, name)
        self.assertGreater(stats["misses"], 0)
        self.assertEqual(stats["read_bytes"], bytes_of_a_miss * stats["fetches"])
        self.assertGreater(few.stats()["sim"]["time_ns"], fits.stats()["sim"]["time_ns"])
        return stats, few

    def test_descriptors(self):
        stats, few = self.check("buffer_cache", "buffers", self.rounds(), self.WINDOWS)
        # In turn through one place too few, first in first out: every use misses. In the last round each buffer
        # completes, which makes room: two more.
        self.assertEqual(stats["misses"], 3 * self.WINDOWS + 2)
        self.assertEqual(stats["write_backs"], self.WINDOWS, "each once: descriptors do not change")
        self.assertEqual(stats["written_bytes"], 64 * self.WINDOWS)
        self.assertEqual(few.stats()["bottleneck"], "latency: context (node0.nic.buffer_cache)")

    def test_posted_ahead_they_wait_in_host_memory(self):
        trace = self.rounds(posted=3)
        result = self.run_text(trace, "--set", f"nic.buffers.on_chip={self.WINDOWS + 3}")
        stats = self.cache(result, "buffer_cache")
        self.assertGreater(stats["spilled_at_once"], self.WINDOWS)
        self.assertGreater(stats["ahead"], 0)

    def test_counters(self):
        stats, few = self.check("counter_cache", "counters", self.rounds(), self.WINDOWS)
        self.assertEqual(stats["hits"] + stats["misses"], 3 * self.WINDOWS + 4 * self.WINDOWS, "bound and counted")
        self.assertEqual(few.stats()["bottleneck"], "latency: context (node0.nic.counter_cache)")

    def test_delivery_contexts(self):
        trace = self.rounds(ranks=4, rounds=1)
        few = self.run_text(trace, "--set", "nic.peers.on_chip=2")
        self.assertGreater(self.cache(few, "receive_context_cache")["misses"], 10)
        self.assertEqual({row["status"] for row in few.rows("puts.csv")}, {"ok"})
        fits = self.run_text(trace, "--set", "nic.peers.on_chip=3")
        self.assertEqual(self.cache(fits, "receive_context_cache")["misses"], 0)
        self.assertEqual(fits.rows("puts.csv"), self.run_text(trace).rows("puts.csv"))

    def test_transmit_contexts(self):
        text = ["rvma-trace 1", "ranks 5"]
        for rank in range(1, 5):
            text += [f"rank {rank}", "  init_window w mailbox=1 threshold=10op", "  post_buffer w size=64", "  barrier"]
        text += ["rank 0", "  barrier"]
        for n in range(40):
            text += [f"  put rank={n % 4 + 1} mailbox=1 size=0 as=p{n}", f"  wait p{n}"]
        trace = "\n".join(text)
        plenty = self.run_text(trace)
        fits = self.run_text(trace, "--set", "nic.peers.on_chip=4")
        self.assertEqual(fits.rows("puts.csv"), plenty.rows("puts.csv"))
        few = self.run_text(trace, *self.SLOW, "--set", "nic.peers.on_chip=3", "--set", "nic.peers.policy=fifo")
        stats = self.cache(few, "transmit_context_cache")
        self.assertEqual(self.cache(fits, "transmit_context_cache")["misses"], 0)
        self.assertGreaterEqual(stats["misses"], 36)
        self.assertEqual(few.stats()["bottleneck"], "latency: window (node0.nic.transmit_context_cache)")

    def test_without_spilling_what_does_not_fit_is_refused(self):
        off = ["--set", "nic.peers.on_chip=1", "--set", "nic.peers.spill=off", "--set", "nic.reliability.rto=1us"]
        result = self.run_text(self.rounds(ranks=3, rounds=1), *off)
        statuses = {row["rank"]: row["status"] for row in result.rows("puts.csv")}
        self.assertEqual(sorted(statuses.values()), ["ok", "timeout"], "the second source is not let in")
        text = ["rvma-trace 1", "ranks 3"]
        for rank in (1, 2):
            text += [f"rank {rank}", "  init_window w mailbox=1 threshold=1op", "  post_buffer w size=64", "  barrier"]
        text += ["rank 0", "  barrier", "  put rank=1 mailbox=1 size=64", "  put rank=2 mailbox=1 size=64", "  wait all"]
        result = self.run_text("\n".join(text), *off)
        self.assertEqual({row["dest"]: row["status"] for row in result.rows("puts.csv")}, {"1": "ok", "2": "busy"})

    def test_many_mailboxes_with_all_structures_small(self):
        for skew, verdict in (("0", "node0.nic.contexts"), ("0.99", "latency: retry")):
            trace = self.generate("mailboxes", "--mailboxes", 5000, "--count", 2000, "--skew", skew)
            small = settings([("nic.windows.on_chip", 256), ("nic.buffers.on_chip", 256), ("nic.counters.on_chip", 256)])
            result = self.run_file(trace, *small, "--set", "nic.reliability.rnr_tries=1000")
            self.assertEqual({row["status"] for row in result.rows("puts.csv")}, {"ok"})
            self.assertEqual(result.stats()["bottleneck"], verdict, skew)
        self.assertRegex(result.stdout, r"because of node\d.nic.(contexts|buffer_cache|counter_cache)")
