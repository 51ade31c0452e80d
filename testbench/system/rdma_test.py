"""The RDMA baseline, through the program itself: the same traces, the same bytes, and what each rule of order is for."""

import csv
import gzip
import json
import os
import pathlib
import re
import signal
import subprocess
import time

from system_test import RVMA, SystemTest
from calls_test import FAULTS, settings

TRACES = sorted((pathlib.Path(os.environ["RVMA_SOURCE"]) / "traces").glob("*.trace"))
CRASHES = ("node_crash", "restart")
RDMA = ["--protocol", "rdma"]

# Many puts of several packets each, from one sender to one receiver: which put fills which buffer is the sender's order.
MANY = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=48KiB
  repeat 40
    post_buffer w as=b size=48KiB
  end
  barrier
  wait b.39
rank 0
  barrier
  repeat 40
    put rank=1 mailbox=0x10 size=48KiB as=p
    wait p
  end
"""

EVERY_CALL = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0xbeef threshold=4KiB readable
  post_buffer w as=b0 size=64KiB seed=7
  init_window z mailbox=0xbee0 threshold=2op placement=managed catch_all
  post_buffer z as=z0 size=64KiB
  init_window y mailbox=0xbee1 threshold=1MiB
  post_buffer y as=y0 size=1MiB
  post_buffer y as=y1 size=1MiB
  post_one_time_buffer mailbox=0xbee2 size=16KiB as=o
  init_window k mailbox=0xbee3 threshold=1op key=5
  init_window w2 mailbox=0xbeef threshold=4KiB
  barrier
  barrier
  wait z0 o
  inc_epoch y
  get_epoch y
  get_buf_ptrs y n=1
  close_window y
  wait y1
  post_buffer y as=dead size=4KiB
  rewind z n=1
  close_window k
  barrier
  barrier
rank 0
  barrier
  get as=g0 rank=1 mailbox=0xbeef size=60000 offset=100
  get as=g1 rank=1 mailbox=0xbeef size=0
  get as=g2 rank=1 mailbox=0xbeef size=65KiB
  get as=g3 rank=1 mailbox=0xbee1 size=8
  put as=p0 rank=1 mailbox=0x777 size=100
  put as=p1 rank=1 mailbox=0x778 size=0
  put as=p2 rank=1 mailbox=0xbee1 size=0
  put as=p3 rank=1 mailbox=0xbee1 size=100000 key=7
  put as=p4 rank=1 mailbox=0xbee1 size=100000 offset=1048570
  put as=p5 rank=0 mailbox=0xbee1 size=100000
  put as=p6 rank=1 mailbox=0xbee2 size=16KiB
  put as=p7 rank=1 mailbox=0xbee3 size=16 key=4
  put as=p8 rank=1 mailbox=0xbee3 size=16 key=5
  wait all
  barrier
  barrier
  put as=q0 rank=1 mailbox=0xbee2 size=16
  put as=q1 rank=1 mailbox=0xbee1 size=16
  put as=q2 rank=1 mailbox=0xbee3 size=16
  wait all
  barrier
"""


def mutual(count):
    """Two ranks that each have `count` puts to and gets from the other under way at once."""
    lines = ["rvma-trace 1", "ranks 2"]
    for rank in (0, 1):
        lines += [f"rank {rank}", "init_window r mailbox=1 threshold=64", "init_window q mailbox=2 threshold=10op readable",
                  "post_buffer q as=q0 size=64KiB seed=3", f"repeat {count}", "post_buffer r as=b size=64", "end", "barrier",
                  f"repeat {count}", f"put as=p rank={1 - rank} mailbox=1 size=64", f"get as=g rank={1 - rank} mailbox=2 size=64",
                  "end", "wait all"]
    return "\n".join(lines) + "\n"


class RdmaTest(SystemTest):
    def completions(self, result):
        return [(row["rank"], row["window"], row["epoch"], row["buffer"], row["length"], row["crc32"])
                for row in result.rows("completions.csv")]

    def statuses(self, result):
        return {(row["rank"], row["name"]): row["status"] for row in result.rows("puts.csv")}

    def software(self, result, key):
        units = result.stats()["units"]
        return sum(unit[key] for name, unit in units.items() if name.endswith(".software"))

    def total(self, result, unit, key):
        units = result.stats()["units"]
        return sum(value[key] for name, value in units.items() if name.endswith(unit))


class Rdma(RdmaTest):
    def test_shipped_traces_pass_their_checks(self):
        ran = 0
        for trace in TRACES:
            if any(word in trace.read_text() for word in CRASHES):
                continue
            with self.subTest(trace=trace.name):
                result = self.run_file(trace, *RDMA)
                self.assertEqual(set(self.statuses(result).values()), {"ok"})
                ran += 1
        self.assertGreaterEqual(ran, 4)

    def test_reads_beyond_those_that_may_be_open_wait_their_turn(self):
        gets = "".join(f"  get rank=1 mailbox=7 size=1MiB offset={i} as=g{i}\n" for i in range(4))
        text = ("rvma-trace 1\nranks 2\nrank 0\n  barrier\n" + gets + "  wait g0 g1 g2 g3\n  barrier\n"
                "rank 1\n  init_window w mailbox=7 threshold=4MiB readable\n  post_buffer w as=b size=32MiB seed=3\n"
                "  barrier\n  barrier\n")
        ends = []
        for reads in (1, 2, 4):
            result = self.run_text(text, *RDMA, "--set", f"rdma.open_reads={reads}")
            self.assertEqual(set(self.statuses(result).values()), {"ok"})
            ends.append([float(row["ack_ns"]) for row in result.rows("puts.csv")])
        one, two, all_four = ends
        # Alone, each begins a round trip after the one before has ended; else its request is there by then.
        alone = one[1] - one[0]
        self.assertGreater(alone, 25_000)  # 1 MiB at 400 Gb/s takes 21 us
        for earlier, later in zip(one, one[1:]):
            self.assertAlmostEqual(later - earlier, alone, delta=1)
        for overlapping in (two, all_four):
            self.assertEqual(overlapping[0], one[0])
            self.assertLess(overlapping[1] - overlapping[0], alone - 3_000)
            self.assertLess(overlapping[3], one[3] - 10_000)

    def test_every_call_has_the_same_outcome_as_on_rvma(self):
        """Statuses, values, lengths and bytes; but for rewind, which the baseline does not have."""
        rvma = self.run_text(EVERY_CALL)
        for completion in ("write_imm", "ack_then_send", "last_byte"):
            for extra in [[], ["--set", "rdma.ooo_tracking=on"]]:
                with self.subTest(completion=completion, extra=extra):
                    rdma = self.run_text(EVERY_CALL, *RDMA, *extra, *settings([("rdma.completion", completion),
                                                                               ("host.pcie.relaxed_ordering", "off")]))
                    self.assertEqual(self.statuses(rdma), self.statuses(rvma))
                    calls = [[(row["op"], row["window"], row["status"], row["value"]) for row in result.rows("calls.csv")
                              if row["op"] != "rewind"] for result in (rvma, rdma)]
                    self.assertEqual(*calls)
                    rewinds = [row["status"] for row in rdma.rows("calls.csv") if row["op"] == "rewind"]
                    self.assertEqual(rewinds, ["unsupported"])
                    # In catch-all records stands the number of the message, which the protocols count differently.
                    same = [sorted(row for row in self.completions(result) if row[1] != "z") for result in (rvma, rdma)]
                    self.assertEqual(*same)

    def test_the_same_bytes_under_both_protocols(self):
        for faults in ([], FAULTS):
            rvma = self.run_text(MANY, *settings(faults))
            rdma = self.run_text(MANY, *RDMA, *settings(faults))
            self.assertEqual(self.completions(rdma), self.completions(rvma))
            self.assertEqual(len(self.completions(rdma)), 40)
            self.assertGreater(rdma.stats()["sim"]["time_ns"], rvma.stats()["sim"]["time_ns"])

    def test_more_requests_than_receives_keep_their_order(self):
        """A request that finds no receive comes again; those behind it neither overtake it nor use the receives up."""
        traces = [("incast", self.generate("incast", "--ranks", 16, "--count", 40), [("rdma.receives", 100)]),
                  ("stream", self.generate("stream", "--count", 40), [("rdma.receives", 1)])]
        for name, trace, few in traces:
            rvma = self.run_file(trace)
            for extra in ([], [("rdma.ooo_tracking", "on")]):
                with self.subTest(name, extra=extra):
                    rdma = self.run_file(trace, *RDMA, "--limit", "50ms", *settings(few + extra))
                    self.assertEqual(set(self.statuses(rdma).values()), {"ok"})
                    self.assertGreater(sum(unit.get("refused_not_ready", 0) for unit in rdma.stats()["units"].values()), 50)
                    self.assertEqual(sorted(self.completions(rdma)), sorted(self.completions(rvma)))
        few = [("rdma.receives", 3), ("rdma.ooo_tracking", "on"), ("fabric.faults.jitter", "2us"), ("fabric.faults.drop", "0.02")]
        rdma = self.run_file(traces[1][1], *RDMA, "--limit", "50ms", *settings(few))
        self.assertEqual(set(self.statuses(rdma).values()), {"ok"})

    def test_few_receives_cost_one_packet_a_pause_and_client(self):
        clients, messages = 12, 16
        trace = self.generate("incast", "--ranks", clients + 1, "--count", messages, "--size", "2KiB", "--shared")
        for tracking in ("off", "on"):
            result = self.run_file(trace, *RDMA, "--set", "rdma.receives=4", "--set", f"rdma.ooo_tracking={tracking}")
            self.assertEqual(set(self.statuses(result).values()), {"ok"})
            pauses = result.stats()["sim"]["time_ns"] / 5000
            # Beside those that ask, every message may be refused as often as it was sent at the wrong time.
            self.assertLess(self.total(result, ".transmit", "retries"), clients * (pauses + messages))

    # ------------------------------------------------------------------------------------------ rules of order

    def test_auto_takes_the_fastest_that_is_right(self):
        """Ordered path: the write tells by itself. Otherwise: a send behind the acknowledgement, or a tracking NIC."""
        cases = [
            ([], 0),
            (FAULTS, 40),
            ([("fabric.faults.jitter", "1us")], 40),
            ([("fabric.faults.reverse", "4")], 40),
            ([("fabric.topology", "torus"), ("fabric.torus.dims", "2x1"), ("fabric.routing", "adaptive")], 40),
            ([("fabric.topology", "torus"), ("fabric.torus.dims", "2x1")], 0),
            ([*FAULTS, ("rdma.ooo_tracking", "on")], 0),
        ]
        for pairs, notices in cases:
            with self.subTest(pairs=pairs):
                result = self.run_text(MANY, *RDMA, *settings(pairs))
                self.assertEqual(self.software(result, "notices"), notices)
                # Its name is the same wherever it is read or written.
                self.assertEqual(result.stats()["config"]["rdma"]["completion"], "auto")
                named = self.run_text(MANY, *RDMA, *settings([*pairs, ("rdma.completion", "auto")]))
                self.assertEqual(named.rows("puts.csv"), result.rows("puts.csv"))

    def test_wrong_choices_are_found_by_the_check(self):
        """What is right on an ordered path completes too early on one that is not."""
        for completion in ("write_imm", "last_byte"):
            with self.subTest(completion=completion):
                pairs = [("rdma.completion", completion), ("host.pcie.relaxed_ordering", "off")]
                self.run_text(MANY, *RDMA, *settings(pairs))
                wrong = self.run_text(MANY, *RDMA, *settings([*pairs, *FAULTS]), status=1)
                self.assertRegex(wrong.stderr, r"was counted after \d+ of 12 packets")
                # The same fabric, the right way.
                for right in ("ack_then_send", "write_imm_tracked"):
                    tracking = [("rdma.ooo_tracking", "on")] if right == "write_imm_tracked" else []
                    self.run_text(MANY, *RDMA, *settings([*FAULTS, ("rdma.completion", right), *tracking]))

    def test_each_way_to_lose_order_is_found(self):
        """Routing and a fabric that turns packets round, without any loss: the paper's case."""
        trace = self.generate("alltoall", "--ranks", 16, "--iterations", 4, "--size", "64KiB")
        torus = [("fabric.topology", "torus"), ("host.pcie.relaxed_ordering", "off")]
        for fabric in ([*torus, ("fabric.routing", "adaptive")], [*torus, ("fabric.routing", "spray")], [("fabric.faults.reverse", 16)]):
            for completion in ("write_imm", "last_byte"):
                with self.subTest(fabric=fabric, completion=completion):
                    wrong = self.run_file(trace, *RDMA, *settings([*fabric, ("rdma.completion", completion)]), status=1)
                    self.assertRegex(wrong.stderr, r"was counted after \d+ of 16 packets|byte \d+ is 0x00, expected 0x")
            for right in ([], [("rdma.ooo_tracking", "on")]):
                self.run_file(trace, *RDMA, *settings([*fabric, *right]))
        # In order the same way is right.
        self.run_file(trace, *RDMA, *settings([*torus, ("fabric.routing", "static"), ("rdma.completion", "write_imm")]))

    def test_the_last_byte_tells_nothing_where_the_host_reorders(self):
        """Memory channels that are behind: a page waits for one, while the last byte, in another page, does not."""
        mailboxes = range(12)
        text = "rvma-trace 1\nranks 2\nrank 1\n"
        text += "".join(f"  init_window w{i} mailbox={i} threshold=1op\n  post_buffer w{i} as=b{i} size=8KiB\n" for i in mailboxes)
        text += "  barrier\n" + "".join(f"  wait b{i}\n" for i in mailboxes) + "rank 0\n  barrier\n"
        text += "".join(f"  put rank=1 mailbox={i} size=4097 as=p{i}\n" for i in mailboxes)
        text += "".join(f"  wait p{i}\n" for i in mailboxes)
        slow = [("host.memory.channels", 64), ("host.memory.channel_rate", "2Gbps")]
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                polls = settings([*slow, ("rdma.completion", "last_byte")])
                wrong = self.run_text(text, *RDMA, *polls, "--seed", seed, status=1)
                self.assertRegex(wrong.stderr, r"of epoch 0: byte \d+ is 0x00, expected 0x")
                self.assertIn("changed after its completion", wrong.stderr)
                # Payload in order, or another way to tell.
                self.run_text(text, *RDMA, *polls, "--set", "host.pcie.relaxed_ordering=off", "--seed", seed)
                self.run_text(text, *RDMA, *settings([*slow, ("rdma.completion", "write_imm")]), "--seed", seed)

    def test_messages_that_end_at_the_same_byte(self):
        """Whoever polls that byte sees the first of them twice; automatic choice does not poll it."""
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=2op
  post_buffer w as=b size=30000
  barrier
  wait b
rank 0
  barrier
  put as=p rank=1 mailbox=1 size=30000
  put as=q rank=1 mailbox=1 size=30000
  wait all
"""
        in_order = ["--set", "host.pcie.relaxed_ordering=off"]
        self.run_text(text, *RDMA, *in_order)
        wrong = self.run_text(text, *RDMA, *in_order, "--set", "rdma.completion=last_byte", status=1)
        self.assertIn("was written before the payload", wrong.stderr)

    def test_a_get_is_whole_on_any_nic(self):
        """Whoever reads knows how much it has asked for."""
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1MiB readable
  post_buffer w as=b size=64KiB seed=3
  barrier
  barrier
rank 0
  barrier
  repeat 40
    get as=g rank=1 mailbox=0x10 size=16000
    wait g
  end
  barrier
"""
        for tracking in ("off", "on"):
            result = self.run_text(text, *RDMA, *settings([*FAULTS, ("rdma.ooo_tracking", tracking)]))
            self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["ok"] * 40)

    def test_a_translation_that_misses_is_not_overtaken_by_the_last_packet(self):
        """The second put's last page is translated at once, its first two wait for their line of the page list."""
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=2op
  post_buffer w as=b size=64KiB
  barrier
  wait b
rank 0
  barrier
  put rank=1 mailbox=0x10 size=16KiB offset=48KiB as=p
  wait p
  put rank=1 mailbox=0x10 size=12KiB offset=24KiB as=q
  wait q
"""
        for completion in ("auto", "write_imm", "last_byte"):
            for tracking in ("off", "on"):
                with self.subTest(completion=completion, tracking=tracking):
                    pairs = [("rdma.completion", completion), ("rdma.ooo_tracking", tracking),
                             ("host.pcie.relaxed_ordering", "off")]
                    if completion == "last_byte" and tracking == "on":
                        continue  # nobody tracks for software that polls
                    result = self.run_text(text, *RDMA, *settings(pairs))
                    units = result.stats()["units"]
                    self.assertGreater(units["node1.nic.receive"]["translation_wait_ns"], 0)

    def test_a_tracking_nic_makes_write_imm_right(self):
        wrong = [("rdma.completion", "write_imm"), *FAULTS]
        self.run_text(MANY, *RDMA, *settings(wrong), status=1)
        self.run_text(MANY, *RDMA, *settings([*wrong, ("rdma.ooo_tracking", "on")]))

    def test_catch_all_windows_of_software_need_no_place_on_the_nic(self):
        """One for each process. The RNIC keeps all of a node's in its table, beside one of another window."""
        text = "rvma-trace 1\nranks 4\n" + "".join(
            f"rank {rank}\n  init_window w mailbox=0x10 threshold=1KiB catch_all\n  post_buffer w as=b size=4KiB\n"
            f"  barrier\n  put rank={(rank + 1) % 4} mailbox=0x99 size=900 as=p\n  wait p\n" for rank in range(4))
        pairs = [("nic.windows.on_chip", 2), ("workload.ranks_per_node", 4)]
        result = self.run_text(text, *RDMA, *settings(pairs))
        self.assertEqual(set(self.statuses(result).values()), {"ok"})
        calls = [row["status"] for row in self.run_text(text, *settings(pairs)).rows("calls.csv")]
        self.assertEqual(calls.count("full"), 3)

    # ------------------------------------------------------------------------------------------------ soundness

    def test_a_run_that_is_stopped_passes_the_check(self):
        """Whatever is under way then: a sender may know of what its receiver has not counted."""
        stream = self.generate("stream", "--count", 40, "--size", "16KiB")
        alltoall = self.generate("alltoall", "--ranks", 6, "--iterations", 4, "--size", 3000)
        told = [("rdma.completion", "ack_then_send")]
        for arguments in ([], RDMA, [*RDMA, *settings(told)], [*RDMA, *settings([*told, *FAULTS])], settings(FAULTS)):
            for trace in (stream, alltoall):
                end_ns = self.run_file(trace, *arguments).stats()["sim"]["time_ns"]
                for part in range(1, 26):
                    limit = f"{end_ns * part / 26:.3f}ns"
                    with self.subTest(arguments=arguments, trace=trace.name, limit=limit):
                        result = self.run_file(trace, *arguments, "--limit", limit, status=1)
                        self.assertTrue(result.stats()["run"]["partial"])
                        self.assertTrue(result.stats()["check"]["passed"], result.stderr)

    def test_a_get_that_is_stopped_before_its_bytes_are_visible_passes_the_check(self):
        text = """rvma-trace 1
ranks 2
rank 0
  barrier
  get as=g rank=1 mailbox=1 size=64
  wait g
rank 1
  init_window w mailbox=1 threshold=1op readable
  post_buffer w as=b size=64 seed=3
  barrier
"""
        for arguments in ([], RDMA):
            end_ns = self.run_text(text, *arguments).stats()["sim"]["time_ns"]
            for part in range(1, 60):
                with self.subTest(arguments=arguments, part=part):
                    result = self.run_text(text, *arguments, "--limit", f"{end_ns * part / 60:.3f}ns", status=1)
                    self.assertTrue(result.stats()["check"]["passed"], result.stderr)

    def test_random_traffic_over_a_bad_fabric(self):
        for seed in range(1, 7):
            for tracking in ("on", "off"):
                with self.subTest(seed=seed, tracking=tracking):
                    trace = self.generate("random", "--ranks", 6, "--count", 60, "--size", "32KiB", "--seed", seed)
                    result = self.run_file(trace, *RDMA, *settings([*FAULTS, ("rdma.ooo_tracking", tracking)]), "--seed",
                                           seed)
                    self.assertEqual(set(self.statuses(result).values()), {"ok"})

    def test_runs_repeat_byte_for_byte(self):
        trace = self.generate("random", "--ranks", 4, "--count", 40, "--size", "16KiB")
        results = [self.run_file(trace, *RDMA, *settings(FAULTS)) for _ in range(2)]
        for name in ("completions.csv", "puts.csv", "calls.csv", "links.csv"):
            self.assertEqual(*[(result.out / name).read_bytes() for result in results])

    def test_ranks_of_one_node_and_of_one_rank(self):
        trace = self.generate("alltoall", "--ranks", 6, "--iterations", 2)
        for per_node in (1, 3, 6):
            result = self.run_file(trace, *RDMA, *settings([("workload.ranks_per_node", per_node)]))
            self.assertEqual(set(self.statuses(result).values()), {"ok"})

    def test_a_connection_is_set_up_once(self):
        result = self.run_text(MANY, *RDMA)
        self.assertEqual(self.software(result, "connections"), 2)
        self.assertEqual(self.software(result, "requests"), 40)
        # Request, reply, ready; then a request and a grant a put.
        self.assertEqual(self.software(result, "control_messages"), 3 + 2 * 40)

    def test_a_missing_buffer_is_asked_for_again(self):
        text = """rvma-trace 1
ranks 3
rank 1
  init_window w mailbox=0x10 threshold=1op
  barrier
  barrier
  post_buffer w as=b size=64
  wait b
rank 0
  barrier
  put as=p rank=1 mailbox=0x10 size=64
  barrier
  wait p
rank 2
  barrier
  compute 45us
  barrier
"""
        result = self.run_text(text, *RDMA)
        self.assertEqual(self.statuses(result)["0", "p"], "ok")
        self.assertGreater(int(result.rows("puts.csv")[0]["tries"]), 1)
        never = self.run_text(text.replace("  post_buffer w as=b size=64\n  wait b\n", ""), *RDMA)
        self.assertEqual(self.statuses(never)["0", "p"], "no_buffer")
        self.assertEqual(never.rows("puts.csv")[0]["tries"], "8")

    def test_software_waits_for_a_computing_core(self):
        """Without a progress thread a put waits until its receiver makes a call; the RNIC needs nobody."""
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op
  post_buffer w as=b size=64
  barrier
  compute 100us
  wait b
rank 0
  barrier
  put as=p rank=1 mailbox=0x10 size=64
  wait p
"""
        ack = {}
        for protocol in ("rvma", "rdma"):
            result = self.run_text(text, "--protocol", protocol)
            ack[protocol] = float(result.rows("puts.csv")[0]["ack_ns"])
        self.assertLess(ack["rvma"], 10_000)
        self.assertGreater(ack["rdma"], 100_000)

    def test_a_run_without_payload_takes_as_long(self):
        """What the software says is carried, and the program's bytes are not."""
        trace = self.generate("pingpong", "--size", "10000", "--iterations", 5)
        times = [self.run_file(trace, *RDMA, "--set", f"workload.payload={payload}").stats()["sim"]["time_ns"]
                 for payload in ("bytes", "none")]
        self.assertEqual(times[0], times[1])

    # ----------------------------------------------------------------------------------------- finite hardware

    def test_many_clients_do_not_fit_on_chip(self):
        """One server, 60 clients: state that no longer fits costs reads of host memory and time, never bytes."""
        trace = self.generate("incast", "--ranks", 61, "--count", 4, "--size", "2KiB")
        star = ["--set", "fabric.star.ports=64"]
        fits = self.run_file(trace, *RDMA, *star)
        spills = self.run_file(trace, *RDMA, *star, *settings([("rdma.queue_pairs.on_chip", 8),
                                                                ("rdma.regions.on_chip", 2)]))
        server = [result.stats()["units"]["node0.nic.receive.queue_pairs"] for result in (fits, spills)]
        self.assertEqual(server[0]["misses"], 0)
        self.assertGreater(server[1]["fetches"], 100)
        self.assertGreaterEqual(server[1]["evictions"], server[1]["fetches"])
        self.assertLessEqual(server[1]["resident"], 8)
        self.assertEqual(server[0]["entries"], 61)
        self.assertGreater(spills.stats()["units"]["node0.pcie"]["dma_reads"],
                           fits.stats()["units"]["node0.pcie"]["dma_reads"] + 100)
        for result in (fits, spills):
            self.assertEqual(set(self.statuses(result).values()), {"ok"})

    # -------------------------------------------------------------------------------------------------- errors

    def test_bad_choices_are_errors(self):
        trace = self.tmp / "many.trace"
        trace.write_text(MANY)
        cases = [
            (["--protocol", "rdmb"], "--protocol: 'rdmb' is unknown"),
            ([*RDMA, "--set", "rdma.completion=write_imm_tracked"], "needs a NIC that tracks packets out of order"),
            ([*RDMA, "--set", "rdma.completion=last_byte", "--set", "workload.payload=none"], "last_byte polls the payload"),
            ([*RDMA, "--set", "rdma.completion=automatic"],
             "'automatic' is unknown; expected one of auto, last_byte, write_imm, write_imm_tracked, ack_then_send"),
            ([*RDMA, "--set", "rdma.completion_queue=1000"], "1000 is not a power of two"),
            ([*RDMA, "--table", "rtl"], "the RDMA baseline has no translation table"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                self.expect_error(self.rvma("run", trace, *arguments), message)
        config = self.tmp / "crash.json"
        config.write_text('{"fabric": {"faults": {"events": [{"at": "1us", "kind": "node_crash", "where": "1"}]}}}')
        self.expect_error(self.rvma("run", trace, *RDMA, "--config", config), "nodes do not crash with --protocol rdma")


# Rank 1 is asked while its program computes, and answers when the link is down.
LOST = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op readable
  post_buffer w as=b size=64
  post_buffer w as=c size=64
  post_buffer w as=d size=64
  barrier
  wait b
  compute 200us
  get_epoch w
rank 0
  barrier
  put as=first rank=1 mailbox=0x10 size=64
  wait first
  compute 20us
  {op} as=lost rank=1 mailbox=0x10 size=64
  wait lost
  {op} as=next rank=1 mailbox=0x10 size=64
  wait next
"""


class KeysOfTheOther(SystemTest):
    """What is set for a protocol that does not run is warned about, and changes nothing."""

    def warned(self, result):
        """The keys that are said to have no effect for the protocol's sake."""
        lines = re.findall(r"^rvma: warning: (.*) ha(?:s|ve) no effect in this run: the protocol is \w+$", result.stderr, re.M)
        self.assertLessEqual(len(lines), 1)
        return lines[0].split(", ") if lines else []

    def keys(self):
        return json.loads(self.rvma("config", "--describe", "--json").stdout)

    @staticmethod
    def others(key):
        """Values that it does not have by default, the ends of its range among them."""
        kind, default = key["type"], key["default"]
        if kind == "on or off":
            values = ["on", "off"]
        elif kind.startswith("one of "):
            values = kind.split()[2:]
        elif "min" in key:
            values = [key["min"], key["max"]]
        else:
            values = ["1", "12345"]
        return [value for value in values if value != default]

    def figures(self, trace, *arguments):
        """All that a run leaves, but for its configuration and what says how long it took."""
        result = self.run_file(trace, *arguments)
        stats = result.stats()
        for part in ("config", "on_chip_bytes", "key_ranges"):
            del stats[part]
        for name in ("wall_s", "packets_per_wall_s", "peak_rss_bytes"):
            del stats["sim"][name]
        tables = {path.name: path.read_bytes() for path in sorted(result.out.glob("*.csv"))}
        return self.warned(result), stats, tables

    def test_one_line_names_them_all(self):
        trace = self.generate("pingpong", "--iterations", 2)
        both = ["--set", "rdma.receives=4", "--set", "nic.table.latency=1cyc", "--set", "rdma.reads=3", "--set", "nic.mtu=1KiB"]
        result = self.rvma("run", trace, *both)
        self.assertEqual((result.status, result.stderr),
                         (0, "rvma: warning: rdma.receives, rdma.reads have no effect in this run: the protocol is rvma\n"))
        result = self.rvma("run", trace, *RDMA, *both)
        self.assertEqual((result.status, result.stderr),
                         (0, "rvma: warning: nic.table.latency has no effect in this run: the protocol is rdma\n"))
        config = self.tmp / "own.json"
        config.write_text('{"nic": {"get": {"queue": 3}}, "rdma": {"receives": 4}}')
        self.assertEqual(self.warned(self.rvma("run", trace, "--config", config)), ["rdma.receives"])
        self.assertEqual(self.warned(self.rvma("run", trace, *RDMA, "--config", config)), ["nic.get.queue"])

    def test_a_preset_is_for_both(self):
        trace = self.generate("pingpong", "--iterations", 2)
        file = pathlib.Path(os.environ["RVMA_SOURCE"]) / "model/platform/presets/aurora.json"
        for preset in ("aurora", file):
            for protocol in ("rvma", "rdma"):
                result = self.rvma("run", trace, "--config", preset, "--protocol", protocol)
                self.assertEqual((result.status, self.warned(result)), (0, []))
            result = self.rvma("run", trace, "--config", preset, "--set", "rdma.exchange=per_put")
            self.assertEqual(self.warned(result), ["rdma.exchange"])

    def test_a_comparison_is_of_both(self):
        trace = self.generate("pingpong", "--iterations", 2)
        result = self.rvma("compare", trace, "--set", "rdma.receives=4", "--set", "nic.get.queue=3")
        self.assertEqual((result.status, result.stderr), (0, ""))

    def test_they_change_nothing(self):
        """Every key that is said to have no effect, at the ends of its range; every call, loss, and many ranks."""
        calls = self.tmp / "calls.trace"
        calls.write_text(EVERY_CALL)
        random = self.generate("random", "--ranks", 6, "--count", 30, "--size", "16KiB")
        keys = {key["key"]: key for key in self.keys()}
        for protocol, others, count in (("rvma", "rdma.", 19), ("rdma", "nic.", 29)):
            runs = [(trace, ["--protocol", protocol, *settings(FAULTS)]) for trace in (calls, random)]
            every = settings((name, key["default"]) for name, key in keys.items() if name.startswith(others))
            idle, *_ = self.figures(random, *runs[0][1], *every)
            self.assertEqual(len(idle), count, idle)
            bases = [self.figures(trace, *arguments) for trace, arguments in runs]
            for name in idle:
                for value in self.others(keys[name]):
                    # The table has to hold the windows, on either protocol.
                    own = [("nic.windows.on_chip", 1)] if name.startswith("nic.table.") else []
                    for (trace, arguments), base in zip(runs, bases):
                        with self.subTest(protocol=protocol, key=name, value=value):
                            found = self.figures(trace, *arguments, *settings([*own, (name, value)]))
                            self.assertIn(name, found[0])
                            self.assertEqual(found[1:], base[1:])

    def test_a_batch_says_it_of_each(self):
        trace = self.generate("pingpong", "--iterations", 2)
        done = self.rvma("config", "--batch", "-", "--trace", trace, stdin=b'["rdma.receives=4", "rdma.reads=3"]')
        self.assertEqual(json.loads(done.stdout)["warnings"],
                         [f"rdma.{key} has no effect in this run: the protocol is rvma" for key in ("receives", "reads")])


class LostAnswers(RdmaTest):
    """A link is down while one end answers, and its NIC gives up; the other end must not wait for ever."""

    def fault(self, *events):
        self.runs += 1
        config = self.tmp / f"fault{self.runs}.json"
        config.write_text(json.dumps({"fabric": {"faults": {"events": [
            {"at": at, "kind": kind, "where": "0-1"} for at, kind in events]}}}))
        return [*RDMA, "--config", config]

    def down_for(self, until="20ms"):
        return self.fault(("100us", "link_down"), (until, "link_up"))

    def by_name(self, result):
        return {row["name"]: row["status"] for row in result.rows("puts.csv")}

    def test_a_put_or_get_whose_answer_was_lost_ends(self):
        for op in ("put", "get"):
            for tracking in ("off", "on"):
                with self.subTest(op=op, tracking=tracking):
                    result = self.run_text(LOST.format(op=op), *self.down_for(), "--set",
                                           f"rdma.ooo_tracking={tracking}")
                    self.assertEqual(self.by_name(result), {"first": "ok", "lost": "timeout", "next": "ok"})
                    lost = result.rows("puts.csv")[1]
                    # It is asked after by idle time, and said to be lost.
                    self.assertAlmostEqual(float(lost["ack_ns"]), float(lost["issue_ns"]) + 100e6, delta=20e3)

    def test_gets_end_when_links_are_gone_for_good(self):
        """What the peer had sent before its answers is given up, and holds none of them back."""
        text = """rvma-trace 1
ranks 2
rank 0
  barrier
  repeat 40
    get rank=1 mailbox=4096 size=30000
  end
  wait all
rank 1
  init_window w mailbox=4096 threshold=1op readable
  post_buffer w as=b size=40000 seed=3
  barrier
  compute 100us
  repeat 40
    get rank=1 mailbox=4096 size=30000
  end
  wait all
"""
        for receives, at in ((16, 190), (4, 180), (4, 220)):
            for tracking in ("off", "on"):
                with self.subTest(receives=receives, at=at, tracking=tracking):
                    keys = [("rdma.receives", receives), ("rdma.ooo_tracking", tracking), ("fabric.topology", "star"),
                            ("fabric.faults.events", json.dumps([{"at": f"{at}us", "kind": "link_down", "where": "0-switch"}]))]
                    result = self.run_text(text, *RDMA, *settings(keys))
                    self.assertLessEqual({row["status"] for row in result.rows("puts.csv")}, {"ok", "timeout"})

    # More puts are given up than there are receives: on one queue pair, or on one of two between the nodes.
    GIVEN_UP = """rvma-trace 1
ranks 4
rank 2
  init_window w mailbox=1 threshold=1op
  repeat 40
    post_buffer w as=b size=12KiB
  end
  barrier
rank 0
  barrier
  {first}
  barrier
  compute 2ms
  repeat 12
    put rank=2 mailbox=1 size={size}
  end
  wait all
  compute 40ms
  repeat 12
    put as=last rank=2 mailbox=1 size={size}
  end
  wait last.11
rank 1
  barrier
  put as=others rank=2 mailbox=1 size=64
  wait others
  barrier
  compute 60ms
  put as=others_last rank=2 mailbox=1 size=64
  wait others_last
"""
    FIRST = "put as=first rank=2 mailbox=1 size=64\n  wait first"

    def test_what_was_given_up_holds_no_receives(self):
        for size in (64, 12288):
            for first in (self.FIRST, "compute 1us"):
                text = self.GIVEN_UP.format(size=size, first=first)
                node = ["--set", "workload.ranks_per_node=2"]
                rvma = self.run_text(text, "--config", self.fault(("1ms", "link_down"), ("20ms", "link_up"))[-1], *node)
                good = len(rvma.rows("completions.csv"))
                for tracking in ("off", "on"):
                    with self.subTest(size=size, first=first, tracking=tracking):
                        rdma = self.run_text(text, *self.fault(("1ms", "link_down"), ("20ms", "link_up")), *node, "--limit", "2s",
                                             "--set", "rdma.receives=4", "--set", f"rdma.ooo_tracking={tracking}")
                        self.assertEqual(self.statuses(rdma), self.statuses(rvma))
                        self.assertEqual(len(rdma.rows("completions.csv")), good)

    CUT = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=1op
  repeat 3
    post_buffer w as=b size=4MiB
  end
  barrier
rank 0
  barrier
  put as=first rank=1 mailbox=1 size=64
  wait first
  put as=lost rank=1 mailbox=1 size=4MiB
  wait lost
  compute 200ms
  put as=last rank=1 mailbox=1 size=64
  wait last
"""

    def test_a_message_that_is_cut_off_gives_its_receive_back(self):
        """The link goes down while its packets are under way."""
        for tracking in ("off", "on"):
            options = ["--limit", "2s", "--set", "rdma.receives=1", "--set", f"rdma.ooo_tracking={tracking}"]
            row = self.run_text(self.CUT, *RDMA, *options).rows("puts.csv")[1]
            middle_us = round((float(row["issue_ns"]) + float(row["ack_ns"])) / 2000)
            down = self.fault((f"{middle_us}us", "link_down"), (f"{middle_us + 10_000}us", "link_up"))
            result = self.run_text(self.CUT, *down, *options)
            self.assertEqual(self.by_name(result), {"first": "ok", "lost": "timeout", "last": "ok"})
            self.assertEqual(self.total(result, ".delivery", "cut_off"), 1)

    # The window is closed while a put to it is under way.
    CLOSED = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=1op placement={placement}
  repeat 3
    post_buffer w as=b size={size}
  end
  barrier
  wait b.0
  compute 1us
  close_window w
  barrier
rank 0
  barrier
  put as=first rank=1 mailbox=1 size=64
  wait first
  put as=lost rank=1 mailbox=1 size={size}
  wait lost
  barrier
  put as=last rank=1 mailbox=1 size=64
  wait last
"""

    def test_a_window_closes_although_a_put_to_it_was_given_up(self):
        """Its answer was lost, or what it wrote."""
        for size, placement in ((64, "steered"), (64, "managed"), (4 << 20, "steered")):
            for options in (["rdma.ooo_tracking=off"], ["rdma.exchange=advertised"], ["rdma.completion=ack_then_send"]):
                options = [word for pair in options for word in ("--set", pair)]
                text = self.CLOSED.format(size=size, placement=placement)
                first, lost = self.run_text(text, *RDMA, *options).rows("puts.csv")[:2]
                begin_us, end_us = (int(float(row["ack_ns"]) / 1000) + 1 for row in (first, lost))
                closed = 0
                for at_us in range(begin_us, end_us + 1, max(1, (end_us - begin_us) // 8)):
                    with self.subTest(size=size, placement=placement, options=options, at_us=at_us):
                        down = self.fault((f"{at_us}us", "link_down"), (f"{at_us + 10_000}us", "link_up"))
                        result = self.run_text(text, *down, *options, "--limit", "2s")
                        puts = self.by_name(result)
                        self.assertIn(puts["lost"], ("ok", "timeout", "closed"))
                        if puts["lost"] == "timeout":
                            self.assertEqual(puts["last"], "closed")
                            closed += 1
                self.assertGreater(closed, 0)

    def test_a_link_that_stays_down_ends_all(self):
        for op in ("put", "get"):
            with self.subTest(op=op):
                result = self.run_text(LOST.format(op=op), *self.fault(("100us", "link_down")), "--set",
                                       "nic.reliability.idle=10ms")
                self.assertEqual(self.by_name(result), {"first": "ok", "lost": "timeout", "next": "timeout"})
                # The second one when its reminder was given up, the third one when its request was.
                lost, last = [float(row["ack_ns"]) - float(row["issue_ns"]) for row in result.rows("puts.csv")[1:]]
                self.assertAlmostEqual(lost, 10e6 + last, delta=1e6)

    def test_a_connection_whose_reply_was_lost_is_asked_for_again(self):
        text = LOST.format(op="put").replace("  put as=first rank=1 mailbox=0x10 size=64\n  wait first\n  compute 20us\n", "")
        text = text.replace("  wait b\n", "")
        result = self.run_text(text, *self.down_for())
        self.assertEqual(self.by_name(result), {"lost": "ok", "next": "ok"})
        self.assertGreater(float(result.rows("puts.csv")[0]["ack_ns"]), 100e6)
        result = self.run_text(text, *self.fault(("100us", "link_down")))
        self.assertEqual(self.by_name(result), {"lost": "timeout", "next": "timeout"})

    def test_a_receiver_that_computes_is_waited_for(self):
        """Nothing is lost; it has not looked yet."""
        text = LOST.format(op="put").replace("compute 200us", "compute 350ms")
        result = self.run_text(text, *RDMA)
        self.assertEqual(set(self.by_name(result).values()), {"ok"})
        self.assertGreater(float(result.rows("puts.csv")[1]["ack_ns"]), 350e6)
        self.assertEqual(self.software(result, "reminders"), 3)

    def test_news_of_completion_that_was_lost_is_told_again(self):
        """The write is acknowledged, and the link down when the news is sent behind it."""
        text = LOST.format(op="put").replace("  wait b\n", "")
        acknowledged = ["--set", "rdma.completion=ack_then_send"]
        end_ns = float(self.run_text(text, *RDMA, *acknowledged).rows("puts.csv")[0]["ack_ns"])
        result = self.run_text(text, *self.fault((f"{round(end_ns * 1000) + 1}ps", "link_down"), ("20ms", "link_up")),
                               *acknowledged)
        self.assertEqual(self.by_name(result)["first"], "ok")
        self.assertEqual(float(result.rows("puts.csv")[0]["ack_ns"]), end_ns)
        first = result.rows("completions.csv")[0]
        self.assertEqual(first["buffer"], "b")
        self.assertGreater(float(first["time_ns"]), 100e6)

    def test_without_need_nothing_is_asked(self):
        """Nor does a timer keep the run from its end."""
        result = self.run_text(LOST.format(op="put"), *RDMA)
        self.assertEqual(self.software(result, "reminders"), 0)
        self.assertLess(result.stats()["sim"]["time_ns"], 1e6)

    # ------------------------------------------------------------------------------------- advertised buffers

    ADVERTISED = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x10 threshold=1op
  post_buffer w as=b size=64
  {before}
  barrier
  wait b
  compute 100us
  {after}
rank 0
  barrier
  put as=first rank=1 mailbox=0x10 size=64
  wait first
  compute {pause}
  put as=second rank=1 mailbox=0x10 size=64
  wait second
  compute 50ms
  put as=third rank=1 mailbox=0x10 size=64
  wait third
"""
    POST = "post_buffer w as={} size=64"

    def advertised(self, before, after, pause, fault):
        text = self.ADVERTISED.format(before=before, after=after, pause=pause)
        result = self.run_text(text, *fault, "--set", "rdma.exchange=advertised", "--set", "nic.reliability.idle=10ms")
        return self.by_name(result), result

    def test_an_advertisement_that_was_lost(self):
        """Its place in the order stays empty: those behind it would never be used."""
        post = "\n  ".join(self.POST.format(name) for name in "cd")
        puts, result = self.advertised("", post, "30ms", self.down_for())
        self.assertEqual(puts, {"first": "ok", "second": "ok", "third": "ok"})
        self.assertEqual(self.software(result, "advertised_writes"), 0)

    def test_a_write_to_an_advertised_buffer_that_was_lost(self):
        """Its receiver waits for it; what comes next says that it must not."""
        post = "\n  ".join(self.POST.format(name) for name in "cd")
        puts, result = self.advertised(post, "get_epoch w", "110us", self.down_for())
        self.assertEqual(puts, {"first": "ok", "second": "timeout", "third": "ok"})
        self.assertEqual(self.software(result, "revocations"), 1)

    def test_buffers_are_taken_back_from_who_cannot_be_asked(self):
        post = "\n  ".join(self.POST.format(name) for name in "cd")
        for fault, outcome in ((self.fault(("100us", "link_down")), "timeout"), (self.down_for("10ms"), "ok")):
            with self.subTest(outcome=outcome):
                puts, result = self.advertised(post, "inc_epoch w", "60ms", fault)
                self.assertEqual(puts, {"first": "ok", "second": outcome, "third": "no_buffer" if outcome == "ok" else outcome})
                calls = [row["status"] for row in result.rows("calls.csv") if row["op"] == "inc_epoch"]
                self.assertEqual(calls, ["ok"])

    def test_the_answer_to_a_revocation_that_was_lost(self):
        """Rank 0 hears of it while it computes, and answers when the link is down."""
        post = "\n  ".join(self.POST.format(name) for name in "cd")
        for tracking in ("off", "on"):
            with self.subTest(tracking=tracking):
                text = self.ADVERTISED.format(before=post, after="inc_epoch w", pause="200us").replace("compute 100us",
                                                                                                       "compute 10us")
                result = self.run_text(text, *self.down_for(), "--set", "rdma.exchange=advertised", "--set",
                                       "nic.reliability.idle=10ms", "--set", f"rdma.ooo_tracking={tracking}")
                calls = [row["status"] for row in result.rows("calls.csv") if row["op"] == "inc_epoch"]
                self.assertEqual(calls, ["ok"])
                self.assertNotIn("unfinished", self.by_name(result).values())


class Mutual(RdmaTest):
    """Requests that find no receive hold their NIC's entries: nobody may wait in a circle for receives."""

    def end_ok(self, count, *keys):
        result = self.run_text(mutual(count), *RDMA, "--limit", "1s", *settings(keys))
        self.assertEqual(set(self.statuses(result).values()), {"ok"})

    def test_more_requests_than_receives_and_entries(self):
        self.end_ok(1500)

    def test_few_entries_and_receives(self):
        for entries in (1, 2, 16):
            for receives in (1, 2, 256):
                with self.subTest(entries=entries, receives=receives):
                    self.end_ok(100, ("nic.transmit.open_puts", entries), ("rdma.receives", receives))

    def test_few_answers(self):
        self.end_ok(100, ("nic.transmit.open_puts", 2), ("rdma.reads", 1))

    def test_advertised(self):
        self.end_ok(100, ("nic.transmit.open_puts", 2), ("rdma.receives", 2), ("rdma.exchange", "advertised"))

    def test_order_that_is_tracked(self):
        """Messages behind one that was refused take no receive that it needs."""
        for receives in (1, 2, 16):
            with self.subTest(receives=receives):
                self.end_ok(100, ("rdma.receives", receives), ("rdma.ooo_tracking", "on"))


class Compare(SystemTest):
    """rvma compare: both protocols side by side."""

    def test_messages_are_told_apart_by_their_names(self):
        """In RDMA both recvs are issued at the same time, and text has r10 before r9."""
        trace = self.tmp / "names.trace"
        trace.write_text("""rvma-trace 1
ranks 2
rank 0
  compute 100us
  recv as=r9 rank=1 tag=0 size=1
  recv as=r10 rank=1 tag=0 size=64
  recv rank=1 tag=1 size=100
  recv rank=1 tag=1 size=90
  wait all
rank 1
  send rank=0 tag=0 size=1
  send rank=0 tag=0 size=64
  send rank=0 tag=1 size=100
  send rank=0 tag=1 size=90
  wait all
""")
        result, out = self.compare(trace, "--check")
        self.assertIn("Messages: 4, the same status and bytes in each", result.stdout)
        self.assertTrue(json.loads((out / "compare.json").read_text())["same_messages"])

    def compare(self, trace, *arguments, status=0):
        self.runs += 1
        out = self.tmp / f"compare{self.runs}"
        result = self.rvma("compare", trace, "--out", out, *arguments)
        self.assertEqual(result.status, status, result.stderr + result.stdout)
        return result, out

    def test_figures_are_those_of_the_runs(self):
        trace = self.generate("pingpong", "--iterations", 20)
        result, out = self.compare(trace, "--check")
        runs = {run["name"]: run for run in json.loads((out / "compare.json").read_text())["runs"]}
        self.assertEqual(list(runs), ["rvma", "rdma", "rdma_tracked"])
        for name, protocol, extra in (("rvma", "rvma", []), ("rdma", "rdma", []),
                                      ("rdma_tracked", "rdma", ["--set", "rdma.ooo_tracking=on"])):
            alone = self.run_file(trace, "--protocol", protocol, *extra).stats()
            kept = json.loads((out / name / "stats.json").read_text())
            self.assertEqual(kept["units"], alone["units"])
            self.assertAlmostEqual(runs[name]["time_us"], alone["sim"]["time_ns"] / 1000, places=3)
            self.assertEqual(runs[name]["polls"], sum(unit.get("polls", 0) for unit in alone["units"].values()))
            self.assertEqual(runs[name]["wire_bytes"], alone["units"]["fabric"]["wire_bytes"])
            # The stages add up to the total.
            stages = dict(runs[name]["breakdown_ns"])
            total, _ = stages.pop("total"), stages.pop("samples")
            self.assertAlmostEqual(sum(stages.values()), total, places=2)
        self.assertIn("Completions: 40, the same length and bytes in each", result.stdout)
        self.assertGreater(runs["rdma"]["put_to_completion_p50_ns"], 2 * runs["rvma"]["put_to_completion_p50_ns"])

    def told(self, out):
        """What compare.json says of the runs together."""
        told = json.loads((out / "compare.json").read_text())
        return [told[f"same_{what}"] for what in ("completions", "statuses", "messages")], told["differences"]

    def test_records_are_the_same_but_for_the_numbers_of_messages(self):
        """A catch-all window's records hold these, and the two NICs number messages otherwise: the exchange is two messages."""
        trace = self.tmp / "caught.trace"
        trace.write_text("rvma-trace 1\nranks 2\nrank 1\n  init_window c mailbox=2 threshold=3op placement=managed catch_all\n"
                         "  post_buffer c as=cb size=2MiB\n  barrier\n  wait cb\nrank 0\n  barrier\n"
                         # A record, and the number in it, that straddles what is read of a buffer at a time.
                         "  put as=r rank=1 mailbox=99 size=1048516\n  wait r\n  put as=s rank=1 mailbox=98 size=64\n  wait s\n"
                         "  put as=t rank=1 mailbox=97 size=64\n  wait t\n")
        result, out = self.compare(trace, "--check")
        self.assertIn("Completions: 1, the same length and bytes in each\nPuts and gets: 3, the same status in each\n", result.stdout)
        self.assertEqual(self.told(out), ([True, True, None], []))
        rows = [csv.DictReader((out / name / "completions.csv").read_text().splitlines()) for name in ("rvma", "rdma")]
        (rvma,), (rdma,) = rows
        self.assertNotEqual(rvma["crc32"], rdma["crc32"])
        self.assertEqual(rvma["data_crc32"], rdma["data_crc32"])
        self.assertNotEqual(rvma["data_crc32"], rvma["crc32"])

    def test_what_differs_is_told(self):
        # One buffer for two puts: on RVMA the earlier one gets it, on RDMA that of the rank which has a queue pair already.
        trace = self.tmp / "who.trace"
        trace.write_text("rvma-trace 1\nranks 3\nrank 1\n  init_window w mailbox=1 threshold=1op\n  post_buffer w as=a size=64\n"
                         "  init_window v mailbox=2 threshold=1op\n  post_buffer v as=c size=64\n  barrier\n  barrier\n"
                         "  wait a c\nrank 0\n  barrier\n  put as=first rank=1 mailbox=2 size=64\n  wait first\n  barrier\n  compute 1us\n"
                         "  put as=p rank=1 mailbox=1 size=64\nrank 2\n  barrier\n  barrier\n  put as=q rank=1 mailbox=1 size=64\n")
        result, out = self.compare(trace, "--set", "nic.reliability.rnr_tries=0")
        flags, differences = self.told(out)
        self.assertEqual(flags, [False, False, None])
        self.assertEqual(differences, [f"{run}: {what}" for what in ("1 of 2 completions", "2 of 3 puts and gets")
                                       for run in ("rdma", "rdma_tracked")])
        self.assertRegex(result.stdout, r"(?m)^RDMA tracked: 2 of 3 puts and gets have another status than RVMA's: ")

    def test_a_core_sees_a_completion_when_it_has_woken_up(self):
        """On RVMA; in RDMA the waiting core has written the word itself."""
        _, out = self.compare(self.generate("pingpong", "--iterations", 20), "--set", "host.core.mwait_wakeup=300ns")
        runs = {run["name"]: run for run in json.loads((out / "compare.json").read_text())["runs"]}
        for name, later in (("rvma", 300), ("rdma", 0), ("rdma_tracked", 0)):
            stats = json.loads((out / name / "stats.json").read_text())
            completion, seen = (stats["latency_ns"][f"put_to_{what}"] for what in ("completion", "seen"))
            self.assertEqual((completion["count"], seen["count"]), (40, 40))
            for figure in ("min", "mean", "max"):
                self.assertAlmostEqual(seen[figure] - completion[figure], later, places=3)
            self.assertAlmostEqual(runs[name]["put_to_seen_mean_ns"], seen["mean"], places=1)
        # Nobody waits for a buffer.
        result, out = self.compare(self.generate("pingpong", "--messages", "--iterations", 5))
        self.assertRegex(result.stdout, r"(?m)^put to seen by core, mean \(ns\) ( +-){3}$")
        self.assertEqual({run["put_to_seen_mean_ns"] for run in json.loads((out / "compare.json").read_text())["runs"]}, {0})

    def test_what_nics_hold_is_counted_alike(self):
        """Beside queue pairs and regions RDMA has unfinished messages and receives; bitmaps are as long as what may be in flight."""
        trace = self.tmp / "many.trace"
        trace.write_text(MANY.replace("    wait p\n", "").replace("as=p\n  end\n", "as=p\n  end\n  wait all\n"))
        found = {}
        for window, receives in ((256, 256), (65536, 256), (256, 16)):
            _, out = self.compare(trace, "--set", f"nic.reliability.window={window}", "--set", f"rdma.receives={receives}")
            stats = {name: json.loads((out / name / "stats.json").read_text()) for name in ("rvma", "rdma", "rdma_tracked")}
            for run in json.loads((out / "compare.json").read_text())["runs"]:
                self.assertEqual(run["nic_state_bytes"], stats[run["name"]]["nic_state_bytes"]["all"]["total"])
            found[window, receives] = stats
        for (window, receives), stats in found.items():
            state = {name: run["nic_state_bytes"]["all"] for name, run in stats.items()}
            units = {name: run["units"] for name, run in stats.items()}
            bound = {name: sum(units[name][f"node{n}.nic.delivery"]["bound"] for n in (0, 1)) for name in units}
            # A message is bound there as long as its binding lives.
            self.assertEqual(bound["rvma"], units["rvma"]["node1.nic.window_calls"]["bindings_peak"])
            self.assertGreater(min(bound.values()), 0)
            self.assertEqual(state["rvma"]["bindings"], bound["rvma"] * (64 + window // 8))
            self.assertEqual(state["rdma"]["messages"], bound["rdma"] * 60)
            self.assertEqual(state["rdma_tracked"]["messages"], bound["rdma_tracked"] * (60 + window // 8))
            for name in ("rdma", "rdma_tracked"):
                self.assertEqual(state[name]["receives"], 2 * receives * 40)
                self.assertEqual(state[name]["windows"] + state[name]["bindings"], 0)
                self.assertEqual(state[name]["regions"],
                                 64 * sum(units[name][f"node{n}.nic.receive.regions"]["entries"] for n in (0, 1)))
            self.assertEqual(stats["rvma"]["nic_state_bytes"]["largest"], {"node": 1, **state["rvma"]})

    def test_a_wrong_choice_shows(self):
        trace = self.tmp / "many.trace"
        trace.write_text(MANY)
        pairs = settings([("rdma.completion", "write_imm"), *FAULTS])
        result, _ = self.compare(trace, "--check", *pairs, status=1)
        self.assertRegex(result.stderr, r"(?m)^rdma: check: .* was counted after \d+ of 12 packets")
        self.assertNotRegex(result.stderr, r"(?m)^rvma: check|^rdma_tracked: check")

    def test_errors_are_said_once(self):
        trace = self.tmp / "bad.trace"
        trace.write_text("rvma-trace 1\nranks 2\nrank 0\n  putt\n")
        result = self.rvma("compare", trace)
        self.expect_error(result, "unknown operation 'putt'")
        self.assertEqual(result.stderr.count("putt"), 1)
        self.expect_error(self.rvma("compare"), "no trace given; expected rvma compare TRACE")
        self.expect_error(self.rvma("compare", trace, "--protocol", "rdma"), "compare runs both")

    def test_an_option_without_its_value_is_named(self):
        trace = self.generate("pingpong", "--iterations", 2)
        for option in ("--out", "--limit", "--timeline"):
            with self.subTest(option):
                self.expect_error(self.rvma("compare", trace, option), f"{option}: cannot be used so: the required argument")

    def test_tracking_is_its_own(self):
        trace = self.generate("pingpong", "--iterations", 2)
        why = "compare runs a NIC without it and one with it"
        for value in ("on", "off"):
            result = self.rvma("compare", trace, "--set", f"rdma.ooo_tracking={value}")
            self.expect_error(result, f"rdma.ooo_tracking: {why}")
            self.assertEqual(result.stderr.count("\n"), 1)
        # A file may be for other commands, too.
        config = self.tmp / "tracks.json"
        config.write_text('{"rdma": {"ooo_tracking": "on"}}')
        result, out = self.compare(trace, "--config", config)
        self.assertEqual(result.stderr, f"rdma: rvma: warning: rdma.ooo_tracking has no effect here: {why}\n")
        self.assertEqual([json.loads((out / name / "stats.json").read_text())["config"]["rdma"]["ooo_tracking"]
                          for name in ("rvma", "rdma", "rdma_tracked")], ["off", "off", "on"])

    def test_each_run_records_a_file_of_its_own(self):
        trace = self.generate("pingpong", "--iterations", 2)
        self.compare(trace, "--timeline", self.tmp / "time.line.json", f"--pcap={self.tmp / 'packets'}")
        for name, protocol in (("rvma", "rvma"), ("rdma", "rdma"), ("rdma_tracked", "rdma")):
            told = json.loads((self.tmp / f"time.line.{name}.json").read_text())["otherData"]
            self.assertEqual(told["protocol"], protocol)
            self.assertGreater((self.tmp / f"packets.{name}").stat().st_size, 1000)
        self.assertFalse((self.tmp / "time.line.json").exists() or (self.tmp / "packets").exists())
        for arguments, why in ((["--timeline", ""], "--timeline: no file"), (["--pcap", f"{self.tmp}/"], "is a directory"),
                               (["--timeline", "x.json", "--pcap", "x.json"], "the same file as that of --timeline"),
                               (["--pcap-nodes", "0"], "expected --pcap FILE with it"),
                               (["--timeline", "x.json", "--timeline", "y.json"], "cannot be specified more than once")):
            with self.subTest(arguments):
                self.expect_error(self.rvma("compare", trace, *arguments), why)

    def test_without_out_nothing_is_left(self):
        scratch = self.tmp / "scratch"
        scratch.mkdir()
        trace = self.generate("pingpong", "--iterations", 5)
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(scratch)
        try:
            result = self.rvma("compare", trace)
        finally:
            if before is None:
                del os.environ["TMPDIR"]
            else:
                os.environ["TMPDIR"] = before
        self.assertEqual(result.status, 0, result.stderr)
        self.assertEqual(list(scratch.iterdir()), [])

    def test_partial_runs_are_not_compared(self):
        trace = self.tmp / "many.trace"
        trace.write_text(MANY)
        # 1 us: nobody has delivered anything. 30 us: RVMA alone has.
        for limit, has_breakdown in (("1us", False), ("30us", True)):
            with self.subTest(limit):
                result, _ = self.compare(trace, "--limit", limit, status=1)
                for title in ("RVMA", "RDMA", "RDMA tracked"):
                    self.assertIn(f"{title}: partial, not compared", result.stdout)
                self.assertNotIn("completions have", result.stdout)
                self.assertNotIn("Completions:", result.stdout)
                self.assertEqual("Where the time of a put goes" in result.stdout, has_breakdown)
                if has_breakdown:
                    self.assertRegex(result.stdout, r"(?m)^  total +\d+\.\d +- +- +- +-$")

    def test_those_that_are_whole_are_compared(self):
        trace = self.generate("pingpong", "--iterations", 20)
        # RDMA takes longer.
        result, out = self.compare(trace, "--limit", "60us", status=1)
        self.assertEqual({run["name"]: run["partial"] for run in json.loads((out / "compare.json").read_text())["runs"]},
                         {"rvma": False, "rdma": True, "rdma_tracked": True})
        self.assertEqual(self.told(out), ([None, None, None], []))
        self.assertNotIn("RVMA: partial", result.stdout)
        self.assertIn("RDMA: partial, not compared\nRDMA tracked: partial, not compared\n", result.stdout)
        self.assertNotIn("Completions:", result.stdout)

    @staticmethod
    def rows(text):
        """What stands before the figures of each line that has some."""
        return [line[:32].strip() for line in text.splitlines() if re.fullmatch(r"( +([-+]?[0-9.]+|-)){3,5}", line[32:])]

    def test_the_page_has_every_row(self):
        page = (pathlib.Path(os.environ["RVMA_SOURCE"]) / "docs/how-to/compare-with-rdma.md").read_text(encoding="utf-8")
        blocks = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
        commands = re.findall(r"^build/bin/rvma gen (.*) --output \S+$", page, re.MULTILINE)
        plain, _, messages = commands  # the second shows no output
        self.assertEqual(len(blocks), 2)
        for command, block in zip((plain, messages), blocks):
            with self.subTest(command):
                words = command.replace("1000", "20").split()
                printed = self.rows(self.compare(self.generate(*words))[0].stdout)
                self.assertIn("total", printed)
                # Of the second, what the first does not have.
                self.assertEqual(self.rows(block), printed[-len(self.rows(block)):] if command is messages else printed)
        self.assertEqual(self.rows(blocks[1])[:1], ["copy at the sender"])

    def test_what_overtakes_fills_other_buffers(self):
        """One sender, and no check fails: the reasons that are named must hold this one."""
        trace = self.tmp / "at_once.trace"
        trace.write_text(MANY.replace("    wait p\n", "").replace("as=p\n  end\n", "as=p\n  end\n  wait all\n"))
        result, _ = self.compare(trace, "--check", "--set", "fabric.faults.jitter=5us")
        self.assertRegex(result.stdout, r"(?m)^RDMA: \d+ of 40 completions have .*overtake one another")

    def test_without_bytes_none_are_said_to_be_the_same(self):
        trace = self.generate("pingpong", "--iterations", 5)
        result, _ = self.compare(trace, "--set", "workload.payload=none")
        self.assertIn("Completions: 10, the same length in each (bytes are not kept", result.stdout)

    def test_advice_can_be_followed(self):
        trace = self.generate("pingpong", "--iterations", 5)
        tracked = "rdma.completion=write_imm_tracked"
        result = self.rvma("compare", trace, "--set", tracked)
        self.expect_error(result, "compare also runs a NIC that does not: expected another completion")
        self.assertNotIn("expected rdma.ooo_tracking on", result.stderr)
        self.run_file(trace, "--protocol", "rdma", "--set", "rdma.ooo_tracking=on", "--set", tracked)

    def begin_long(self):
        """compare on a trace that takes minutes, and its three children."""
        trace = self.generate("pingpong", "--iterations", 3_000_000)
        process = subprocess.Popen([RVMA, "compare", trace, "--out", self.tmp / "long"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        # Each writes by now.
        self.wait_until(lambda: len(list((self.tmp / "long").glob("*/puts.csv.partial.*"))) == 3)
        children = [pid for pid, (_, parent) in processes().items() if parent == process.pid]
        self.addCleanup(self.end, children)
        self.assertEqual(len(children), 3)
        return process, children

    @staticmethod
    def end(children):
        """Those that still run, as they should not."""
        for child in children:
            if processes().get(child, ("Z", 0))[0] != "Z":
                os.kill(child, signal.SIGKILL)

    def wait_until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_children_end_with_it(self):
        process, children = self.begin_long()
        process.kill()
        process.wait()

        def are_gone():
            now = processes()
            return all(now.get(child, ("Z", 0))[0] == "Z" for child in children)

        self.wait_until(are_gone, 20)

    def test_a_signal_makes_its_results_partial(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number.name):
                process, _ = self.begin_long()
                process.send_signal(number)
                _, errors = process.communicate(timeout=60)
                self.assertEqual(process.returncode, 1, errors)
                for name in ("rvma", "rdma", "rdma_tracked"):
                    self.assertTrue((self.tmp / "long" / name / "stats.json").exists())
                self.assertIn("rvma: stopped by a signal: results are partial", errors)

    def test_a_signal_before_the_runs_begin_ends_it(self):
        trace = self.tmp / "nobody_writes.trace"
        os.mkfifo(trace)
        process = subprocess.Popen([RVMA, "compare", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.wait_until(lambda: sum(parent == process.pid for _, parent in processes().values()) == 3)
        process.terminate()
        out, errors = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (1, ""), errors)
        self.assertIn("rvma: the run was ended by signal 15", errors)

    def test_standard_input_is_read_once_for_all(self):
        trace = self.generate("pingpong", "--iterations", 5)
        text = trace.read_bytes()
        from_file = self.rvma("compare", trace)
        for name, data in (("text", text), ("gz", gzip.compress(text))):
            for path in ("-", "/dev/stdin"):
                with self.subTest(name, path=path):
                    result = self.rvma("compare", path, stdin=data)
                    self.assertEqual(result.status, 0, result.stderr)
                    self.assertEqual(result.stdout, from_file.stdout)
        result = self.rvma("compare", "-", stdin=text.replace(b"  put ", b"  putt ", 1))
        self.expect_error(result, "<stdin>:", "unknown operation 'putt'")
        self.assertEqual(result.stderr.count("putt"), 1)
        result = self.rvma("compare", "-")
        self.expect_error(result, "<stdin>:1:1: error: the file is empty")


def processes():
    """State and parent of each process, by its number."""
    found = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        found[int(stat.parent.name)] = (fields[0], int(fields[1]))
    return found
