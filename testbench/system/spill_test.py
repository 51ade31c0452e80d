"""More windows than the NIC has room for, through the program itself: contexts spill to host memory and come back."""

import random

from system_test import SystemTest
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
        result = self.run_file(self.mailboxes("--size", 64), *ROOM, "--set", "nic.windows.on_chip=8")
        self.assertEqual(result.stats()["bottleneck"], "latency: context")

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
