"""Tests of the program `rvma` from outside: command line, exit status, results.

Environment: RVMA names the program, RVMA_SOURCE the project's root.
"""

import bz2
import csv
import gzip
import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest
import zlib

RVMA = os.environ.get("RVMA", "build/bin/rvma")
SOURCE = pathlib.Path(os.environ.get("RVMA_SOURCE", "."))


def payload(seed, size):
    """The payload formula of the trace format."""
    return bytes((seed * 131 + i * 7 + i // 256) % 256 for i in range(size))


def crc(data):
    return f"{zlib.crc32(data):08x}"


class Result:
    """A finished run: status, output, and what it wrote to --out."""

    def __init__(self, process, out):
        self.status = process.returncode
        self.stdout = process.stdout.decode()
        self.stderr = process.stderr.decode()
        self.out = pathlib.Path(out) if out else None

    def stats(self):
        return json.loads((self.out / "stats.json").read_text())

    def rows(self, name):
        with open(self.out / name, newline="") as file:
            return list(csv.DictReader(file))


class SystemTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.tmp = pathlib.Path(directory.name)
        self.runs = 0

    def rvma(self, *arguments, stdin=b"", out=None, timeout=240):
        process = subprocess.run([RVMA, *map(str, arguments)], input=stdin, capture_output=True, timeout=timeout)
        return Result(process, out)

    def run_text(self, text, *arguments, status=0, check=True):
        """Runs a trace given as text, with --out and (by default) --check; expects the exit status."""
        self.runs += 1
        trace = self.tmp / f"t{self.runs}.trace"
        trace.write_text(text)
        return self.run_file(trace, *arguments, status=status, check=check)

    def run_file(self, trace, *arguments, status=0, check=True):
        self.runs += 1
        out = self.tmp / f"out{self.runs}"
        checks = ["--check"] if check else []
        result = self.rvma("run", trace, "--out", out, *checks, *arguments, out=out)
        self.assertEqual(result.status, status, result.stderr + result.stdout)
        return result

    def expect_error(self, result, *parts):
        self.assertEqual(result.status, 2, result.stderr + result.stdout)
        for part in parts:
            self.assertIn(part, result.stderr)

    def generate(self, *arguments):
        self.runs += 1
        trace = self.tmp / f"g{self.runs}.trace"
        result = self.rvma("gen", *arguments, "--output", trace)
        self.assertEqual(result.status, 0, result.stderr)
        return trace


# Most resident bytes of a rank that waits (docs/explanation/cost.md says what it is).
IDLE_RANK_BYTES = 18 * 1024

PUT_ONCE = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0xbeef threshold={size}
  post_buffer w as=b size={size}
  barrier
  wait b
rank 0
  barrier
  put as=p rank=1 mailbox=0xbeef size={size}
  wait p
"""


class AnyOrder(SystemTest):
    """Right bytes, one completion an epoch, in epoch order, whatever the order of arrival."""

    INTERLEAVED = """rvma-trace 1
ranks 3
rank 2
  init_window w mailbox=0x10 threshold=64KiB placement=steered
  repeat 4
    post_buffer w as=b size=64KiB
  end
  barrier
  wait b.0 b.1 b.2 b.3
rank 0
  barrier
  repeat 4
    put rank=2 mailbox=0x10 size=32KiB offset=0 seed=5
  end
  wait all
rank 1
  barrier
  repeat 4
    put rank=2 mailbox=0x10 size=32KiB offset=32KiB seed=9
  end
  wait all
"""

    def check_epochs(self, result, epochs):
        rows = result.rows("completions.csv")
        self.assertEqual([int(row["epoch"]) for row in rows], list(range(epochs)))
        times = [float(row["time_ns"]) for row in rows]
        self.assertEqual(times, sorted(times))
        return rows

    def test_full_reverse_order_interleaved_into_several_buffers(self):
        result = self.run_text(self.INTERLEAVED, "--set", "fabric.faults.reverse=64", "--set", "nic.mtu=1KiB")
        rows = self.check_epochs(result, 4)
        for row in rows:
            self.assertEqual(int(row["length"]), 65536)
        stats = result.stats()
        self.assertGreater(stats["totals"]["packets"]["out_of_order"], 100)
        self.assertEqual(stats["totals"]["completions"], 4)
        self.assertTrue(stats["check"]["passed"])

    def test_one_message_reversed_whole(self):
        text = PUT_ONCE.format(size="64KiB")
        result = self.run_text(text, "--set", "fabric.faults.reverse=16")
        self.assertEqual(result.rows("completions.csv")[0]["crc32"], crc(payload(0, 65536)))
        # 16 packets in reverse: all but the first arrival come before one that was sent earlier.
        self.assertGreaterEqual(result.stats()["totals"]["packets"]["out_of_order"], 15)

    def test_two_half_puts_overlapping_in_time(self):
        """The second put's first packet comes before the first one's last data: all data before the completion."""
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=32KiB
  post_buffer w as=b size=32KiB
  barrier
  wait b
rank 0
  barrier
  put rank=1 mailbox=1 size=16KiB seed=1
  put rank=1 mailbox=1 size=16KiB offset=16KiB seed=2
  wait all
"""
        expected = crc(payload(1, 16384) + payload(2, 16384))
        for arguments in (["--set", "fabric.faults.reverse=8"], ["--set", "fabric.faults.jitter=5us"]):
            for seed in range(5):
                with self.subTest(arguments=arguments, seed=seed):
                    result = self.run_text(text, *arguments, "--seed", seed)
                    rows = self.check_epochs(result, 1)
                    self.assertEqual(rows[0]["crc32"], expected)

    def test_random_traffic_with_jitter_and_reversal(self):
        base = random.randrange(1 << 32)
        for seed in range(base, base + 12):
            chance = random.Random(seed)
            trace = self.generate("random", "--ranks", chance.randint(2, 6), "--count", 30, "--size",
                                  chance.randint(1, 40000), "--seed", seed)
            arguments = ["--seed", seed, "--set", f"fabric.faults.jitter={chance.choice([0, 300, 50000])}ns", "--set",
                         f"fabric.faults.reverse={chance.choice([0, 3, 64])}", "--set",
                         f"nic.mtu={chance.choice(['64B', '256B', '4KiB'])}"]
            with self.subTest(seed=seed, arguments=arguments):
                result = self.run_file(trace, *arguments)
                self.assertEqual(result.stats()["totals"]["ended"]["ok"], result.stats()["totals"]["puts"])

    def test_overshoot_of_ops_completes_once_with_all_that_was_bound(self):
        text = """rvma-trace 1
ranks 3
rank 0
  init_window w mailbox=1 threshold=2op placement=managed
  post_buffer w as=a size=64KiB
  post_buffer w as=b size=64KiB
  barrier
  wait a b
rank 1
  barrier
  put rank=0 mailbox=1 size=20000
  put rank=0 mailbox=1 size=10
  wait all
rank 2
  barrier
  put rank=0 mailbox=1 size=20001
  put rank=0 mailbox=1 size=0
  wait all
"""
        for seed in range(4):
            result = self.run_text(text, "--seed", seed, "--set", "fabric.faults.jitter=3us")
            rows = self.check_epochs(result, 2)
            self.assertEqual(sum(int(row["length"]) for row in rows), 20000 + 10 + 20001)


class BadInput(SystemTest):
    """Exit status 2 with a place; nothing crashes."""

    def test_traces(self):
        cases = [
            ("", ":1:1: error:"),
            ("\x7fELF\x00\x01", ":1:1: error:"),
            ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", ":1:1: error:"),
            ("rvma-trace 2\nranks 1\n", ":1:"),
            ("rvma-trace 1\nranks 0\n", ":2:"),
            ("rvma-trace 1\nranks 2\nrank 2\n", ":3:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  putt rank=0 mailbox=1 size=1\n", ":4:3: error:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  put rank=0 mailbox=1\n", ":4:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  put rank=0 mailbox=1 size=1 size=2\n", ":4:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  wait nobody\n", ":4:8: error:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  repeat 3\n  compute 1us\n", "error:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  compute 17\n", ":4:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  put rank=0 mailbox=1 size=0xffffffffffffffff\n", ":4:29: error:"),
            ("rvma-trace 1\nranks 1\nrank 0\n  put rank=0 mailbox=1 size=17GiB\n", "16GiB"),
            ("rvma-trace 1\nranks 1\nrank 0\n  put rank=0 mailbox=0x1ffffffffffffffff size=1\n", ":4:"),
        ]
        for text, place in cases:
            with self.subTest(text=text[:40]):
                trace = self.tmp / "bad.trace"
                trace.write_bytes(text.encode())
                result = self.rvma("run", trace)
                self.expect_error(result, place, "bad.trace")

    def test_nearest_name_is_offered(self):
        trace = self.tmp / "bad.trace"
        trace.write_text("rvma-trace 1\nranks 1\nrank 0\n  putt rank=0 mailbox=1 size=1\n")
        self.expect_error(self.rvma("run", trace), "put")
        self.expect_error(self.rvma("run", trace, "--set", "nic.table.rowz=4"), "rvma: error: --set nic.table.rowz",
                          "nic.table.rows")

    def test_many_errors_are_cut_at_twenty(self):
        trace = self.tmp / "bad.trace"
        trace.write_text("rvma-trace 1\nranks 1\nrank 0\n" + "  frobnicate\n" * 50)
        result = self.rvma("run", trace)
        self.expect_error(result)
        self.assertEqual(result.stderr.count(": error:"), 20)
        self.assertIn("30 more", result.stderr)

    def test_command_lines(self):
        trace = self.tmp / "good.trace"
        trace.write_text(PUT_ONCE.format(size=64))
        cases = [
            ([], "usage"), (["frob"], "frob"), (["run"], "no trace"), (["run", trace, "--frob"], "--frob"),
            (["run", trace, trace], "too many"), (["run", trace, "--seed", "-1"], "--seed"),
            (["run", trace, "--limit", "10"], "--limit"), (["run", trace, "--table", "verilog"], "--table"),
            (["run", trace, "--set", "nic.mtu"], "--set"), (["run", trace, "--set", "nic.mtu=1s"], "--set nic.mtu"),
            (["run", trace, "--set", "nic.mtu=1B"], "--set nic.mtu"), (["run", trace, "--set", "nic.mtu=-4"], "--set nic.mtu"),
            (["run", trace, "--set", "nic.clock=nan"], "--set nic.clock"),
            (["run", self.tmp / "none.trace"], "none.trace"), (["run", trace, "--config", self.tmp / "none.json"], "none.json"),
            (["gen"], "usage"), (["gen", "streem"], "stream"), (["gen", "stream", "--size", "-1"], "--size"),
            (["run", trace, "--out", trace], "good.trace"),
        ]
        for arguments, part in cases:
            with self.subTest(arguments=arguments):
                self.expect_error(self.rvma(*arguments), part)

    def test_configuration_files_name_line_and_column(self):
        trace = self.tmp / "good.trace"
        trace.write_text(PUT_ONCE.format(size=64))
        cases = [
            ('{\n  "nic": {\n    "mtv": "4KiB"\n  }\n}\n', ":3:5: error:"), ('{"nic": 3}', ":1:"), ("{", ":1:"), ("", ":1:1"),
            ('{\n "host": {"page": "4XB"}}', ":2:"), ('{"nic": {"mtu": 1e99}}', ":1:"), ("[" * 100000, ":1:"),
        ]
        for text, place in cases:
            with self.subTest(text=text[:40]):
                config = self.tmp / "c.json"
                config.write_text(text)
                self.expect_error(self.rvma("run", trace, "--config", config), "c.json" + place)

    def test_a_machine_too_small_names_both_numbers(self):
        trace = self.generate("incast", "--ranks", 20, "--count", 1)
        self.expect_error(self.rvma("run", trace), "16", "20")
        self.assertEqual(self.rvma("run", trace, "--set", "fabric.star.ports=20").status, 0)
        trace = self.generate("incast", "--ranks", 3, "--count", 1)
        self.expect_error(self.rvma("run", trace, "--set", "fabric.topology=p2p"), "2", "3")

    def test_what_only_a_ring_needs_is_asked_only_of_a_ring(self):
        trace = self.generate("pingpong", "--iterations", 3)
        self.assertEqual(self.rvma("run", trace, "--check", "--set", "nic.command.depth=4").status, 0)
        self.expect_error(self.rvma("run", trace, "--set", "nic.command.depth=4", "--set", "nic.command.mode=ring"),
                          "nic.command.fetch: 8 is more than nic.command.depth = 4")

    def test_paths_are_printed_as_they_were_given(self):
        (self.tmp / "sub").mkdir()
        for name, text in (("bad.trace", "rvma-trace 1\nranks x\n"), ("bad.json", "{\"sed\": 1}")):
            given = self.tmp / "sub" / ".." / name
            given.write_text(text)
            arguments = [given] if name == "bad.trace" else ["-", "--config", given]
            result = self.rvma("run", *arguments, stdin=b"rvma-trace 1\nranks 1\n")
            self.assertTrue(result.stderr.startswith(f"{given}:"), result.stderr)

    def test_forms_of_traces(self):
        text = PUT_ONCE.format(size=64).encode()
        forms = {"lf": text, "crlf": text.replace(b"\n", b"\r\n"), "no-newline": text.rstrip(b"\n"),
                 "gz": gzip.compress(text), "zst": subprocess.run(["zstd", "-c"], input=text, capture_output=True).stdout}
        for name, data in forms.items():
            with self.subTest(form=name):
                trace = self.tmp / name
                trace.write_bytes(data)
                self.assertEqual(self.rvma("run", trace, "--check").status, 0)
                self.assertEqual(self.rvma("run", "-", "--check", stdin=data).status, 0)
        for name in ("gz", "zst"):
            with self.subTest(truncated=name):
                trace = self.tmp / "cut"
                trace.write_bytes(forms[name][: len(forms[name]) // 2])
                self.expect_error(self.rvma("run", trace), ":1:1: error:")
        self.expect_error(self.rvma("run", "/dev/zero", timeout=20), "/dev/zero:1:1: error:")
        trace = self.tmp / "bz"
        trace.write_bytes(bz2.compress(text))
        self.expect_error(self.rvma("run", trace), ":1:1: error:")


class Calls(SystemTest):
    """The calls of the driver, through traces."""

    def call_rows(self, result):
        return [(row["op"], row["window"], row["status"], row["value"]) for row in result.rows("calls.csv")]

    def test_epochs_history_and_inc_epoch(self):
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=100
  post_buffer w as=a size=100
  post_buffer w as=b size=100
  post_buffer w as=c size=100
  barrier
  wait a
  barrier
  barrier
  inc_epoch w
  wait b
  get_epoch w
  get_buf_ptrs w n=2
  get_buf_ptrs w n=3
  inc_epoch w
  get_epoch w
  inc_epoch w
rank 1
  barrier
  put rank=0 mailbox=1 size=100
  wait all
  barrier
  put rank=0 mailbox=1 size=40
  wait all
  barrier
"""
        result = self.run_text(text)
        self.assertEqual(self.call_rows(result), [
            ("init_window", "w", "ok", ""), ("inc_epoch", "w", "ok", ""), ("get_epoch", "w", "ok", "2"),
            ("get_buf_ptrs", "w", "ok", "1:40 0:100"), ("get_buf_ptrs", "w", "history", ""), ("inc_epoch", "w", "ok", ""),
            ("get_epoch", "w", "ok", "3"), ("inc_epoch", "w", "no_buffer", "")])
        lengths = [int(row["length"]) for row in result.rows("completions.csv")]
        self.assertEqual(lengths, [100, 40, 0])

    def test_close_returns_buffers_and_reopens(self):
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=100
  post_buffer w as=a size=100
  post_buffer w as=b size=100
  barrier
  barrier
  close_window w
  wait a b
  get_epoch w
  close_window w
  barrier
  barrier
  init_window again mailbox=1 threshold=8
  post_buffer again as=c size=8
  barrier
  wait c
rank 1
  barrier
  put as=half rank=0 mailbox=1 size=50
  wait half
  barrier
  barrier
  put as=late rank=0 mailbox=1 size=8
  wait late
  barrier
  barrier
  put as=fresh rank=0 mailbox=1 size=8
  wait fresh
"""
        result = self.run_text(text)
        self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["ok", "closed", "ok"])
        self.assertEqual([row["buffer"] for row in result.rows("completions.csv")], ["c"])
        self.assertEqual([status for _, _, status, _ in self.call_rows(result)],
                         ["ok", "ok", "closed", "closed", "ok"])

    def test_one_time_window_closes_itself(self):
        text = """rvma-trace 1
ranks 2
rank 0
  post_one_time_buffer mailbox=7 size=64 as=a
  barrier
  wait a
  barrier
  post_one_time_buffer mailbox=7 size=64 as=b
  barrier
  wait b
rank 1
  barrier
  put rank=0 mailbox=7 size=64 as=one
  put rank=0 mailbox=7 size=64 as=two
  wait one two
  barrier
  barrier
  put rank=0 mailbox=7 size=64 as=three
  wait three
"""
        result = self.run_text(text)
        by_name = {row["name"]: row["status"] for row in result.rows("puts.csv")}
        self.assertEqual(by_name, {"one": "ok", "two": "closed", "three": "ok"})
        self.assertEqual([(row["window"], row["buffer"]) for row in result.rows("completions.csv")], [("a", "a"), ("b", "b")])

    def test_one_time_window_of_two_operations(self):
        text = """rvma-trace 1
ranks 2
rank 0
  post_one_time_buffer mailbox=7 size=4KiB threshold=2op as=a
  barrier
  wait a
rank 1
  barrier
  put rank=0 mailbox=7 size=1000 as=one
  put rank=0 mailbox=7 size=1000 offset=1000 as=two
  wait one two
"""
        row = self.run_text(text).rows("completions.csv")[0]
        self.assertEqual(int(row["length"]), 2000)

    def test_errors_of_calls_are_rows_and_the_program_goes_on(self):
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=1 threshold=8
  init_window again mailbox=1 threshold=8
  init_window r mailbox=2 threshold=8 catch_all
  rewind w n=0
  get as=g rank=0 mailbox=1 size=8
  wait g
  close_window w
  post_buffer w as=b size=8
  wait b
  compute 1us
"""
        result = self.run_text(text)
        statuses = [(op, status) for op, _, status, _ in self.call_rows(result)]
        self.assertIn(("init_window", "exists"), statuses)
        self.assertEqual(statuses.count(("init_window", "ok")), 2)
        self.assertIn(("rewind", "ok"), statuses)
        self.assertIn(("post_buffer", "closed"), statuses)

    def test_a_name_stands_for_the_window_that_it_opened(self):
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=1 threshold=1op
  init_window v mailbox=1 threshold=1op
  post_buffer v size=64 as=lost
  wait lost
  inc_epoch v
  post_buffer w size=64 as=a
  put rank=0 mailbox=1 size=5
  wait a
  close_window w
  init_window x mailbox=1 threshold=1op
  post_buffer w size=64 as=late
  wait late
  post_buffer x size=64 as=b
  put rank=0 mailbox=1 size=6
  wait b
  close_window w
  get_epoch w
  get_epoch x
"""
        result = self.run_text(text)
        self.assertEqual(self.call_rows(result), [
            ("init_window", "w", "ok", ""), ("init_window", "v", "exists", ""), ("post_buffer", "v", "no_window", ""),
            ("inc_epoch", "v", "no_window", ""), ("close_window", "w", "ok", ""), ("init_window", "x", "ok", ""),
            ("post_buffer", "w", "closed", ""), ("close_window", "w", "closed", ""), ("get_epoch", "w", "closed", ""),
            ("get_epoch", "x", "ok", "1")])
        rows = result.rows("completions.csv")
        self.assertEqual([(row["window"], row["epoch"], row["length"]) for row in rows],
                         [("w", "0", "5"), ("x", "0", "6")])
        self.assertNotIn("was not filled", result.stdout, "a buffer whose post failed is no unfilled buffer")

    def test_a_refused_post_at_the_end_of_a_program_is_a_row(self):
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=1 threshold=8
  post_buffer w size=8
  post_buffer w size=8
"""
        result = self.run_text(text, "--set", "nic.buffers.on_chip=1", "--set",
                               "nic.buffers.spill=off")
        self.assertIn(("post_buffer", "w", "full", ""), self.call_rows(result))
        times = [float(row["time_ns"]) for row in result.rows("calls.csv")]
        self.assertEqual(times, sorted(times))

    def test_capacity_of_windows_and_buffers(self):
        text = """rvma-trace 1
ranks 1
rank 0
  repeat 5
    init_window w mailbox=1 threshold=8
    close_window w
  end
  init_window a mailbox=10 threshold=8
  init_window b mailbox=11 threshold=8
  init_window c mailbox=12 threshold=8
  post_buffer a size=8
  post_buffer a size=8
  post_buffer a as=last size=8
  wait last
"""
        result = self.run_text(text, "--set", "nic.windows.on_chip=2", "--set", "nic.windows.spill=off", "--set",
                               "nic.buffers.on_chip=2", "--set", "nic.buffers.spill=off")
        statuses = [(op, status) for op, _, status, _ in self.call_rows(result)]
        self.assertEqual(statuses.count(("init_window", "ok")), 7)
        self.assertEqual(statuses.count(("init_window", "full")), 1)
        self.assertEqual(statuses.count(("post_buffer", "full")), 1)

    def test_a_buffer_id_is_used_again_while_its_completion_is_on_its_way(self):
        text = """rvma-trace 1
ranks 2
rank 0
  init_window w mailbox=1 threshold=64
  barrier
  post_buffer w size=64 as=a
rank 1
  init_window v mailbox=2 threshold=64
  post_buffer v size=64 as=b
  barrier
  inc_epoch v
"""
        for on_chip in range(1, 9):
            with self.subTest(on_chip=on_chip):
                result = self.run_text(text, "--set", f"nic.buffers.on_chip={on_chip}", "--set",
                                       "nic.buffers.spill=off", "--set", "workload.ranks_per_node=2")
                self.assertEqual(result.stats()["totals"]["completions"], 1)
        # Puts: the epoch's sample is that of its own put, although another buffer has its id by then.
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=1 threshold=1op
  repeat 200
    post_buffer w size=64
    put rank=0 mailbox=1 size=64
  end
  wait all
"""
        result = self.run_text(text, "--set", "nic.buffers.on_chip=2", "--set", "nic.buffers.spill=off", "--set",
                               "nic.completion.latency=1000cyc")
        stats = result.stats()
        self.assertEqual(stats["latency_ns"]["put_to_completion"]["count"], stats["totals"]["completions"])
        self.assertGreater(stats["latency_ns"]["put_to_completion"]["min"], 1000)

    def test_get_is_counted_and_self_put_works(self):
        text = """rvma-trace 1
ranks 1
rank 0
  init_window w mailbox=1 threshold=10000
  post_buffer w as=b size=10000
  put as=p rank=0 mailbox=1 size=10000 seed=3
  wait p b
"""
        result = self.run_text(text)
        self.assertEqual(result.rows("completions.csv")[0]["crc32"], crc(payload(3, 10000)))


class Topologies(SystemTest):
    """The random trace's six ranks on every shape."""

    LINKS = "rvma-topology 1\n" + "".join(f"link {n} switch{n}\nlink switch{n} switch{(n + 1) % 6}\n" for n in range(6))

    def shapes(self):
        links = self.tmp / "links.txt"
        links.write_text(self.LINKS)
        return {
            "star": [],
            "fat_tree": ["fat_tree.levels=3", "fat_tree.arity=2"],
            "dragonfly": ["dragonfly.p=1", "dragonfly.a=2", "dragonfly.h=1", "dragonfly.groups=3"],
            "torus": ["torus.dims=6"],
            "hyperx": ["hyperx.dims=3x2", "hyperx.nodes_per_switch=1"],
            "file": [f"file.path={links}"],
        }

    def test_a_topology_file_is_a_file(self):
        result = self.run_text("rvma-trace 1\nranks 2\nrank 1\n  compute 1us\n", "--set", "fabric.topology=file",
                               "--set", f"fabric.file.path={self.tmp}", status=2)
        self.expect_error(result, "the file cannot be read; expected a list of links")

    def test_every_shape_and_routing_delivers(self):
        for topology, keys in self.shapes().items():
            for routing in ("static", "adaptive", "spray", "valiant", "ugal"):
                sets = [part for key in [f"topology={topology}", f"routing={routing}", *keys]
                        for part in ("--set", f"fabric.{key}")]
                with self.subTest(topology=topology, routing=routing):
                    trace = SOURCE / "traces" / "random.trace"
                    if topology == "fat_tree" and routing in ("valiant", "ugal"):
                        self.expect_error(self.rvma("run", trace, *sets), "fabric.routing", routing)
                        continue
                    result = self.run_file(trace, *sets)
                    self.assertEqual("fabric.routing" in result.stderr, topology == "star", result.stderr)
                    self.assertEqual(result.stats()["run"]["topology"], topology)

    def test_links_csv_and_stats_carry_the_same_numbers(self):
        trace = SOURCE / "traces" / "random.trace"
        result = self.run_file(trace, "--set", "fabric.topology=torus", "--set", "fabric.torus.dims=6")
        rows, stats = result.rows("links.csv"), result.stats()
        self.assertEqual(len(rows), 24)
        self.assertEqual(sum(int(row["packets"]) for row in rows), stats["units"]["fabric"]["packet_hops"])
        for row in rows:
            unit = stats["units"]["fabric.link." + row["link"]]
            self.assertEqual(row["link"], f"{row['from']}-{row['to']}")
            for name in ("packets", "wire_bytes", "payload_bytes", "lost_down", "lost_full"):
                self.assertEqual(int(row[name]), unit[name])
            self.assertAlmostEqual(float(row["utilisation"]), unit["wire"]["share"])
            self.assertEqual(float(row["credit_stall_ns"]), unit["credit_stall_ns"])
        self.assertGreater(max(float(row["utilisation"]) for row in rows), 0.01)

    def test_the_busiest_of_many_links_is_a_limit(self):
        trace = self.generate("incast", "--ranks", 9, "--size", "64KiB", "--count", 8)
        sets = ["--set", "fabric.topology=torus", "--set", "fabric.torus.dims=12x12"]
        result = self.run_file(trace, *sets)
        units = [limit["unit"] for limit in result.stats()["limits"] if limit["unit"].startswith("fabric.link")]
        self.assertEqual(units, ["fabric.link.switch0-0.wire"])
        self.assertIn("fabric.switches", result.stats()["units"])
        self.assertEqual(len(result.rows("links.csv")), 144 * 4 + 2 * 9)

    def test_the_same_seed_takes_the_same_ways(self):
        trace = SOURCE / "traces" / "random.trace"
        sets = ["--set", "fabric.topology=hyperx", "--set", "fabric.hyperx.dims=3x2", "--set",
                "fabric.hyperx.nodes_per_switch=1", "--set", "fabric.routing=ugal", "--seed", "5"]
        one, two = (self.run_file(trace, *sets) for _ in range(2))
        for name in ("completions.csv", "links.csv"):
            self.assertEqual((one.out / name).read_bytes(), (two.out / name).read_bytes())

    def test_mistakes_in_shapes_and_events(self):
        trace = SOURCE / "traces" / "random.trace"
        self.expect_error(self.rvma("run", trace, "--set", "fabric.topology=torus", "--set", "fabric.torus.dims=3"),
                          "holds 3 nodes", "6")
        links = self.tmp / "links.txt"
        links.write_text("rvma-topology 1\nlink 0 switch0\nlink switch0\n")
        self.expect_error(self.rvma("run", trace, "--set", "fabric.topology=file", "--set",
                                    f"fabric.file.path={links}"), "links.txt:3:13")
        config = self.tmp / "c.json"
        config.write_text('{"fabric": {"faults": {"events": [\n  {"at": "1us", "kind": "link_of", "where": "0-1"}]}}}')
        self.expect_error(self.rvma("run", trace, "--config", config), "c.json:2:25")
        config.write_text('{"fabric": {"faults": {"events": [{"at": "1us", "kind": "link_down", "where": "0-9"}]}}}')
        self.expect_error(self.rvma("run", trace, "--config", config), "fabric.faults.events[0].where", "0-9")


class Configuration(SystemTest):
    def test_print_reads_back_unchanged(self):
        first = self.rvma("config", "--print", "--set", "nic.clock=322.265625MHz")
        config = self.tmp / "c.json"
        config.write_text(first.stdout)
        second = self.rvma("config", "--print", "--config", config)
        self.assertEqual(first.stdout, second.stdout)
        self.assertIn("322.265625MHz", second.stdout)

    def test_every_value_of_every_enumeration_runs(self):
        described = self.rvma("config", "--markdown").stdout
        tried = 0
        for line in described.splitlines():
            cells = [cell.strip(" `") for cell in line.split("|")]
            if len(cells) < 3 or not any(cell.startswith("one of ") or cell == "on or off" for cell in cells):
                continue
            key = cells[1]
            kind = next(cell for cell in cells if cell.startswith("one of ") or cell == "on or off")
            values = ["on", "off"] if kind == "on or off" else kind[len("one of "):].split()
            for value in values:
                with self.subTest(key=key, value=value):
                    more = []
                    if (key, value) == ("fabric.topology", "file"):
                        links = self.tmp / "links.txt"
                        links.write_text("rvma-topology 1\nlink 0 switch0\nlink 1 switch0\n")
                        more = ["--set", f"fabric.file.path={links}"]
                    self.run_text(PUT_ONCE.format(size="10000"), "--set", f"{key}={value}", *more)
                    tried += 1
        self.assertGreater(tried, 8)

    def test_odd_clocks_and_widths(self):
        for sets in (["nic.clock=322.265625MHz"], ["nic.clock=1.6GHz", "nic.datapath=128B"], ["nic.datapath=1B"],
                     ["nic.mtu=64B"], ["host.page=2MiB"], ["host.page=64KiB", "nic.mtu=32KiB"],
                     ["fabric.link.rate=57Gbps"], ["host.pcie.generation=3", "host.pcie.lanes=1"],
                     ["nic.table.banks=2", "nic.table.rows=1024", "nic.table.slots=4", "nic.table.latency=3cyc"],
                     ["nic.command.mode=ring"], ["nic.command.mode=ring", "nic.command.depth=2", "nic.command.fetch=1"],
                     ["nic.dma.reads=1", "nic.dma.write_queue=1"], ["nic.reliability.window=1"],
                     ["nic.reliability.messages=1"], ["nic.transmit.open_puts=1"], ["nic.page_cache.on_chip=1"],
                     ["nic.receive.page_misses=1", "nic.page_cache.on_chip=1"], ["host.memory.channels=1"],
                     ["host.pcie.posted_headers=1"], ["host.pcie.relaxed_ordering=off"]):
            with self.subTest(sets=sets):
                arguments = [part for key in sets for part in ("--set", key)]
                self.run_file(SOURCE / "traces" / "random.trace", *arguments)

    def test_key_without_effect_is_warned_about(self):
        result = self.run_text(PUT_ONCE.format(size=64), "--set", "fabric.switch.latency=1us", "--set", "nic.mtu=1KiB")
        self.assertEqual(result.stderr.count("warning"), 1)
        self.assertIn("fabric.switch.latency", result.stderr)

    def test_documentation_follows_the_declaration(self):
        page = (SOURCE / "docs" / "reference" / "configuration.md").read_text()
        self.assertIn(self.rvma("config", "--markdown").stdout.strip(), page)


class Cost(SystemTest):
    """What a simulation costs, in counts."""

    def test_activations_of_a_stream(self):
        for size in ("4KiB", "64KiB"):
            with self.subTest(size=size):
                trace = self.generate("stream", "--size", size, "--count", 2000)
                stats = self.run_file(trace, check=False).stats()
                per_packet = stats["sim"]["activations"] / stats["totals"]["packets"]["delivered"]
                self.assertLessEqual(per_packet, 12)

    def test_idle_time_costs_nothing(self):
        text = PUT_ONCE.format(size="4KiB").replace("  wait p\n", "  wait p\n  compute {time}\n  put as=q rank=1 mailbox=5 size=1\n  wait q\n")
        counts = set()
        for time in ("1us", "1s"):
            stats = self.run_text(text.replace("{time}", time), check=False).stats()
            counts.add(stats["sim"]["activations"])
        self.assertEqual(len(counts), 1)

    def test_polling_costs_no_activations(self):
        text = PUT_ONCE.format(size="64").replace("  barrier\n  put", "  barrier\n  compute {time}\n  put").replace(
            "wait b", "wait b how=poll")
        counts = [self.run_text(text.replace("{time}", time), check=False).stats() for time in ("1us", "1ms")]
        self.assertEqual(counts[0]["sim"]["activations"], counts[1]["sim"]["activations"])
        polls = [stats["units"]["node1.core0"]["polls"] for stats in counts]
        self.assertGreater(polls[1], 100 * polls[0])

    def test_memory_does_not_grow_with_the_trace(self):
        peaks = []
        for count in (20_000, 200_000):
            trace = self.generate("stream", "--size", "4KiB", "--count", count)
            peaks.append(self.run_file(trace, check=False).stats()["sim"]["peak_rss_bytes"])
        self.assertLess(peaks[1], peaks[0] + 8 * 1024 * 1024)
        self.assertLess(peaks[1], 200 * 1000 * 1000)


class LongStream(SystemTest):
    def test_ten_million_puts_stay_under_200_mb(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=1MiB placement=managed
  post_buffer w size=1MiB
  post_buffer w size=1MiB
  barrier
  repeat 39062
    post_buffer w size=1MiB
    barrier
  end
rank 0
  barrier
  repeat 39062
    repeat 256
      put rank=1 mailbox=1 size=4KiB
    end
    barrier
  end
  repeat 128
    put rank=1 mailbox=1 size=4KiB
  end
  wait all
"""
        stats = self.run_text(text, check=False).stats()
        self.assertEqual(stats["totals"]["puts"], 10_000_000)
        self.assertEqual(stats["totals"]["ended"]["ok"], 10_000_000)
        self.assertLess(stats["sim"]["peak_rss_bytes"], 200 * 1000 * 1000)


class Crashes(SystemTest):
    """Nodes that lose power, and come back as newer incarnations."""

    SENDER = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x100 threshold=64KiB
  post_buffer w as=b0 size=64KiB
  init_window w2 mailbox=0x101 threshold=4KiB
  post_buffer w2 as=c0 size=4KiB
  barrier
  wait c0
  close_window w
rank 0
  barrier
  put as=p0 rank=1 mailbox=0x100 size=64KiB
  wait p0
rank 0 restart
  put as=q0 rank=1 mailbox=0x101 size=4KiB seed=9
  wait q0
"""
    RECEIVER = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=0x100 threshold=1MiB
  post_buffer w as=b0 size=1MiB
  barrier
  wait b0
rank 1 restart
  init_window w mailbox=0x100 threshold=4KiB
  post_buffer w as=b0 size=4KiB
  barrier
  wait b0
rank 0
  barrier
  put as=p0 rank=1 mailbox=0x100 size=1MiB
  wait p0
  barrier
  put as=p1 rank=1 mailbox=0x100 size=4KiB seed=5
  wait p1
"""

    def test_an_event_behind_the_end_changes_nothing(self):
        trace = self.generate("pingpong", "--iterations", 3)
        alone = self.run_file(trace)
        for kind, where in (("node_crash", "1"), ("link_down", "0-1")):
            events = f'[{{"at": "1s", "kind": "{kind}", "where": "{where}"}}]'
            late = self.run_file(trace, "--set", f"fabric.faults.events={events}")
            self.assertEqual(late.stats()["sim"]["time_ns"], alone.stats()["sim"]["time_ns"])
            self.assertEqual(late.rows("completions.csv"), alone.rows("completions.csv"))

    def events(self, *events):
        listed = [{"at": at, "kind": kind, "where": where} for at, kind, where in events]
        return "--set", "fabric.faults.events=" + json.dumps(listed)

    def test_refusals_that_nobody_remembers_may_repeat_until_the_sender_crashes(self):
        text = "rvma-trace 1\nranks 2\nrank 0\n  barrier\n  put rank=1 mailbox=101 size=64\nrank 1\n  barrier\n"
        result = self.run_text(text, "--set", "nic.nack=off", "--set",
                               'fabric.faults.events=[{"at":"1ms","kind":"node_crash","where":"0"}]')
        self.assertGreater(result.stats()["totals"]["refusals"]["no_mailbox"], 1)
        self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["unfinished"])

    def test_a_node_does_not_crash_and_restart_at_one_time(self):
        events = '[{"at":"4us","kind":"node_crash","where":"1"},{"at":"4us","kind":"node_restart","where":"1"}]'
        result = self.run_text("rvma-trace 1\nranks 2\nrank 1\n  compute 1us\n", "--set",
                               f"fabric.faults.events={events}", status=2)
        self.expect_error(result, "node 1 crashes and restarts at 4us; expected times that differ")

    def test_a_sender_dies_in_a_message_and_comes_back(self):
        for crash in ["1us", "3us", "3500ns", "4us", "5us", "20us"]:
            with self.subTest(crash=crash):
                events = self.events((crash, "node_crash", "0"), ("50us", "node_restart", "0"))
                result = self.run_text(self.SENDER, *events)
                rows = {row["name"]: row for row in result.rows("puts.csv")}
                self.assertEqual(rows["q0"]["status"], "ok")
                completed = {row["window"]: row for row in result.rows("completions.csv")}
                self.assertEqual(completed["w2"]["crc32"], crc(payload(9, 4096)))
                if crash == "20us":
                    self.assertEqual(completed["w"]["crc32"], crc(payload(0, 65536)))
                elif crash == "4us":
                    # Part of the message had arrived: it is cut off, and its epoch never completes.
                    self.assertEqual(rows["p0"]["status"], "unfinished")
                    self.assertNotIn("w", completed)
                    self.assertEqual(result.stats()["units"]["node1.nic.delivery"]["cut_off"], 1)

    def test_a_first_contact_is_decided_about_once(self):
        """A sender that has not heard of its peer names no incarnation of it; a restarted one is deaf for a while."""
        events = self.events(("600us", "node_crash", "0"), ("1ms", "node_restart", "0"),
                             ("2400us", "node_crash", "1"), ("2700us", "node_restart", "1"))
        refused = "rvma-trace 1\nranks 2\nrank 0 restart\n  put rank=1 mailbox=1 size=78\n"
        result = self.run_text(refused, *events)
        self.assertEqual(result.stats()["totals"]["refusals"]["no_mailbox"], 1)
        self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["timeout"])
        window = "  init_window w mailbox=1 threshold=1op\n  post_buffer w size=4KiB as=b\n"
        result = self.run_text(refused + "rank 1\n" + window + "  wait b\nrank 1 restart\n" + window, *events)
        self.assertEqual([row["status"] for row in result.rows("puts.csv")], ["timeout"])
        self.assertEqual([row["length"] for row in result.rows("completions.csv")], ["78"])

    def test_a_later_life_counts_what_was_sent_since_it_began(self):
        """A restarted NIC says how old it is; puts of before may have been counted by the life before and end."""
        window = "  init_window w mailbox=1 threshold=1op\n  post_buffer w size=4KiB as=b\n"
        events = self.events(("10us", "node_crash", "1"), ("50us", "node_restart", "1"))
        for issued, status in (("30us", "timeout"), ("48us", "timeout"), ("52us", "ok"), ("2ms", "ok")):
            with self.subTest(issued=issued):
                text = (f"rvma-trace 1\nranks 2\nrank 0\n  compute {issued}\n  put rank=1 mailbox=1 size=78\n"
                        f"rank 1\nrank 1 restart\n{window}")
                result = self.run_text(text, *events)
                [put] = result.rows("puts.csv")
                self.assertEqual(put["status"], status)
                self.assertEqual(len(result.rows("completions.csv")), 1 if status == "ok" else 0)
                self.assertGreaterEqual(
                    result.stats()["units"]["node1.nic_boot2.delivery"]["incarnations_told"], 1)
        # No time-out is waited for: one question and its answer more than a put to a NIC in its first life.
        self.assertLess(float(put["ack_ns"]) - float(put["issue_ns"]), 20_000)

    def test_a_sender_that_stays_away_is_cut_off_by_its_silence(self):
        trace = self.SENDER.replace("wait c0", "compute 150ms")
        result = self.run_text(trace, *self.events(("4us", "node_crash", "0")))
        delivery = result.stats()["units"]["node1.nic.delivery"]
        self.assertEqual((delivery["cut_off"], delivery["silences"]), (1, 1))
        self.assertEqual([row["status"] for row in result.rows("calls.csv")], ["ok", "ok", "ok"])

    def test_a_receiver_dies_and_the_sender_starts_anew(self):
        for restart in ["50us", "2500us"]:
            with self.subTest(restart=restart):
                events = self.events(("10us", "node_crash", "1"), (restart, "node_restart", "1"))
                result = self.run_text(self.RECEIVER, *events)
                rows = {row["name"]: row["status"] for row in result.rows("puts.csv")}
                self.assertEqual(rows, {"p0": "timeout", "p1": "ok"})
                [completion] = result.rows("completions.csv")
                self.assertEqual(completion["crc32"], crc(payload(5, 4096)))

    def test_a_restarted_nic_is_deaf_for_a_while(self):
        events = self.events(("10us", "node_crash", "1"), ("50us", "node_restart", "1"))
        for quiet in [100, 2000]:
            result = self.run_text(self.RECEIVER, *events, "--set", f"nic.reliability.quiet={quiet}us")
            [completion] = result.rows("completions.csv")
            self.assertGreater(float(completion["time_ns"]), 50_000 + quiet * 1000)

    def test_crashed_ranks_leave_barriers(self):
        trace = """rvma-trace 1
ranks 3
rank 0
  compute 10us
  barrier
rank 1
  compute 20us
  barrier
rank 2
  barrier
"""
        # Rank 1 dies before the barrier, rank 2 in it.
        events = self.events(("5us", "node_crash", "1"), ("6us", "node_crash", "2"))
        result = self.run_text(trace, *events)
        self.assertEqual(float(result.stats()["sim"]["time_ns"]), 10_000)

    def test_mistakes_have_their_place(self):
        trace = self.tmp / "t.trace"
        trace.write_text(self.SENDER)
        for events, text in [
            ([("1us", "node_restart", "0")], "node 0 is up already"),
            ([("1us", "node_crash", "7")], "'7' is no node of the 2"),
            ([("1us", "node_crash", "zero")], "'zero' is no node of the 2"),
        ]:
            result = self.rvma("run", trace, *self.events(*events))
            self.assertEqual(result.status, 2)
            self.assertIn(text, result.stderr)
        # Nobody sends what rank 1 waits for.
        result = self.rvma("run", trace)
        self.assertEqual(result.status, 1)
        self.assertIn("warning: the restart block of rank 0 never runs", result.stderr)


class Determinism(SystemTest):
    def without_wall_clock(self, result):
        stats = result.stats()
        for key in ("wall_s", "packets_per_wall_s", "peak_rss_bytes"):
            del stats["sim"][key]
        return stats

    def test_same_inputs_and_seed_give_the_same_bytes(self):
        trace = SOURCE / "traces" / "random.trace"
        arguments = ["--set", "fabric.faults.jitter=1us", "--seed", "11"]
        one, two = (self.run_file(trace, *arguments) for _ in range(2))
        for name in ("completions.csv", "puts.csv", "calls.csv"):
            self.assertEqual((one.out / name).read_bytes(), (two.out / name).read_bytes(), name)
        self.assertEqual(self.without_wall_clock(one), self.without_wall_clock(two))

    def test_another_seed_changes_the_jitter(self):
        trace = SOURCE / "traces" / "random.trace"
        one, two = (self.run_file(trace, "--set", "fabric.faults.jitter=1us", "--seed", seed) for seed in (1, 2))
        self.assertNotEqual((one.out / "puts.csv").read_bytes(), (two.out / "puts.csv").read_bytes())

    def test_payload_none_keeps_the_times(self):
        trace = SOURCE / "traces" / "random.trace"
        one = self.run_file(trace)
        two = self.run_file(trace, "--set", "workload.payload=none")
        self.assertEqual((one.out / "puts.csv").read_bytes(), (two.out / "puts.csv").read_bytes())
        for full, bare in zip(one.rows("completions.csv"), two.rows("completions.csv")):
            self.assertEqual(bare.pop("crc32"), "-")
            full.pop("crc32")
            self.assertEqual(full, bare)

    def test_generators_are_deterministic(self):
        texts = {self.rvma("gen", "random", "--seed", 5).stdout for _ in range(2)}
        self.assertEqual(len(texts), 1)


class Ends(SystemTest):
    """How runs end."""

    def test_a_wait_that_cannot_end_is_named(self):
        for how in ("mwait", "poll", "interrupt"):
            with self.subTest(how=how):
                text = PUT_ONCE.format(size="4KiB").replace("put as=p rank=1 mailbox=0xbeef size=4KiB",
                                                            "put as=p rank=1 mailbox=0xbeef size=1KiB")
                result = self.run_text(text.replace("wait b", f"wait b how={how}"), status=1)
                line = text.splitlines().index("  wait b") + 1
                self.assertRegex(result.stderr, rf"\.trace:{line}:3: error: rank 1 waits for b\n")
                self.assertTrue((result.out / "stats.json").exists())

    def test_limit_marks_results_partial(self):
        result = self.run_text(PUT_ONCE.format(size="4KiB"), "--limit", "1us", status=1)
        self.assertTrue(result.stats()["run"]["partial"])
        self.assertLessEqual(result.stats()["sim"]["time_ns"], 1000)
        self.assertIn("PARTIAL", result.stdout)

    def test_a_limit_is_simulated_to_its_end(self):
        text = PUT_ONCE.format(size="4KiB")
        over = self.run_text(text).stats()["sim"]["time_ns"]
        for limit in (1, 700, 1500, over - 1):
            with self.subTest(limit=limit):
                result = self.run_text(text, "--limit", f"{limit}ns", status=1)
                self.assertEqual(result.stats()["sim"]["time_ns"], limit)
                self.assertNotIn("no operation was executed", result.stderr)

    def test_a_run_of_more_than_a_hundred_days_ends_at_the_place_that_asks_for_it(self):
        text = "rvma-trace 1\nranks 2\nrank 0\nrepeat 100\n  compute 1000000s\nend\nrank 1\nbarrier\n"
        result = self.run_text(text, status=1)
        self.assertRegex(result.stderr, r"t1\.trace:5:3: error: simulated time passes 8640000s here")
        self.assertTrue(result.stats()["run"]["partial"])
        self.assertIn("limit reached", self.run_text(text, "--limit", "5us", status=1).stderr)
        # Two ranks that wait for a hundred days each: the sum of their waiting is beyond what a time holds.
        text = """rvma-trace 1
ranks 3
rank 0
  compute 8000000s
  barrier
rank 1
  init_window w mailbox=1 threshold=8
  post_buffer w as=b size=8
  wait b
rank 2
  init_window w mailbox=1 threshold=8
  post_buffer w as=b size=8
  wait b
"""
        result = self.run_text(text, status=1)
        self.assertIn("rank 2 waits for b", result.stderr)

    HUGE = "rvma-trace 1\nranks 2\nrank 0\nput rank=1 mailbox=1 size=16GiB as=p\nwait p\n"

    def test_a_put_that_memory_does_not_hold_is_a_named_limit(self):
        result = self.run_text(self.HUGE, "--memory-limit", "150MB", status=1)
        self.assertIn("--memory-limit reached (150MB)", result.stderr)
        self.assertTrue(result.stats()["run"]["partial"])
        self.assertLess(result.stats()["sim"]["peak_rss_bytes"], 1_000_000_000)

    def test_a_fabric_that_memory_does_not_hold_is_an_error_before_it_is_built(self):
        result = self.run_text(
            self.HUGE,
            *("--memory-limit", "1GB"),
            *("--set", "fabric.topology=torus", "--set", "fabric.torus.dims=1000x1000"),
            status=2,
        )
        self.assertIn("--memory-limit: 2 nodes, 1000000 switches and 2000002 cables take at least", result.stderr)
        self.assertIn("the limit is 1GB", result.stderr)

    def test_an_operation_that_takes_long_can_be_interrupted(self):
        # Each takes a third of a second or more; a hundred of them are under way when the signal comes.
        huge = self.HUGE.replace("put", "repeat 100\nput") + "end\n"
        result = self.run_text(huge, "--wall-limit", "100ms", "--memory-limit", "8GiB", status=1)
        self.assertIn("--wall-limit reached", result.stderr)
        trace = self.tmp / "huge.trace"
        trace.write_text(huge)
        process = subprocess.Popen([RVMA, "run", str(trace), "--quiet", "--memory-limit", "8GiB"], stderr=subprocess.PIPE)
        time.sleep(0.7)
        process.terminate()
        self.assertIn(b"stopped by a signal", process.communicate(timeout=20)[1])
        self.assertEqual(process.returncode, 1)
        # Operations that take no simulated time, too.
        endless = "rvma-trace 1\nranks 1\nrank 0\nrepeat 1000000000000\nmark begin\nmark end\nend\n"
        self.assertIn("--wall-limit reached", self.run_text(endless, "--wall-limit", "300ms", status=1).stderr)

    def test_large_buffers_are_checked_piece_by_piece(self):
        size = 3 * (1 << 20) + 5
        text = PUT_ONCE.format(size=size)
        result = self.run_text(text)
        self.assertEqual(result.rows("completions.csv")[0]["crc32"], crc(payload(0, size)))
        self.assertEqual(result.stats()["check"]["bytes"], size)

    def test_without_check_nothing_is_said_to_have_passed(self):
        check = self.run_text(PUT_ONCE.format(size="64"), check=False).stats()["check"]
        self.assertEqual((check["enabled"], check["passed"]), (False, None))
        self.assertEqual(self.run_text(PUT_ONCE.format(size="64")).stats()["check"]["passed"], True)

    def test_the_run_ends_when_its_last_write_is_visible(self):
        """Nobody waits: words become visible after the last event, and the run lasts until then, watched or not."""
        text = PUT_ONCE.format(size="64").replace("  wait b\n", "").replace("  wait p\n", "")
        result = self.run_text(text, "--set", "host.pcie.write_latency=50us")
        row = result.rows("completions.csv")[0]
        self.assertGreaterEqual(result.stats()["sim"]["time_ns"], float(row["time_ns"]))
        self.assertGreater(float(row["time_ns"]), 50_000)
        self.assertEqual(row["seen_ns"], "")
        self.assertEqual(result.stats()["check"]["completions"], 1)
        trace = self.tmp / "drain.trace"
        trace.write_text(text)
        unwatched = self.rvma("run", trace, "--set", "host.pcie.write_latency=50us")
        self.assertIn(f"Simulated {result.stats()['sim']['time_ns']} ns", unwatched.stdout)
        # A refused put's own word, which no result depends on.
        text = "rvma-trace 1\nranks 2\nrank 0\nput rank=1 mailbox=1 size=64\n"
        result = self.run_text(text, "--set", "host.pcie.write_latency=50us")
        put = result.rows("puts.csv")[0]
        self.assertGreaterEqual(result.stats()["sim"]["time_ns"], float(put["ack_ns"]) + 50_000)

    def test_what_delivered_nothing_is_not_said_to_have_run_nothing(self):
        result = self.run_text("rvma-trace 1\nranks 2\nrank 0\nput rank=1 mailbox=1 size=64 as=p\nwait p\n")
        self.assertNotIn("nothing ran", result.stdout)

    def test_a_limit_that_is_not_reached_changes_nothing(self):
        one = self.run_text(PUT_ONCE.format(size="4KiB"))
        two = self.run_text(PUT_ONCE.format(size="4KiB"), "--limit", "1s")
        self.assertEqual(one.stats()["sim"]["time_ns"], two.stats()["sim"]["time_ns"])
        self.assertEqual((one.out / "puts.csv").read_bytes(), (two.out / "puts.csv").read_bytes())

    def test_a_run_without_work_is_no_success(self):
        self.run_text("rvma-trace 1\nranks 2\n", status=1)

    def test_an_unfilled_buffer_and_a_refused_put_are_results(self):
        text = PUT_ONCE.format(size="64").replace("  wait b\n", "").replace("mailbox=0xbeef size=64\n  wait p", "mailbox=0xdead size=64\n  wait p")
        result = self.run_text(text)
        self.assertIn("Unmatched", result.stdout)
        self.assertEqual(result.rows("puts.csv")[0]["status"], "no_mailbox")

    def test_a_killed_run_leaves_no_result_that_looks_finished(self):
        trace = self.generate("stream", "--size", "4KiB", "--count", 10_000_000)
        out = self.tmp / "killed"
        process = subprocess.Popen([RVMA, "run", str(trace), "--out", str(out), "--quiet"], stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=2)
            self.fail("the run was over before it could be killed")
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self.assertFalse((out / "stats.json").exists())
        self.assertFalse((out / "puts.csv").exists())

    def test_quiet_and_help(self):
        result = self.run_text(PUT_ONCE.format(size="64"), "--quiet")
        self.assertEqual(result.stdout, "")
        for arguments in (["--help"], ["run", "--help"], ["gen", "--help"], ["gen", "stream", "--help"], ["config", "--help"]):
            self.assertEqual(self.rvma(*arguments).status, 0)


class Latency(SystemTest):
    def test_breakdown_of_an_idle_put_adds_up(self):
        stats = self.run_text(PUT_ONCE.format(size="64")).stats()
        breakdown = dict(stats["breakdown_ns"])
        samples, total = breakdown.pop("samples"), breakdown.pop("total")
        self.assertEqual(samples, 1)
        self.assertEqual(sum(round(value * 1000) for value in breakdown.values()), round(total * 1000))
        self.assertEqual(round(total * 1000), round(stats["latency_ns"]["put_to_completion"]["max"] * 1000))
        # Nothing is before an idle put, nobody refuses it, and all windows are open.
        for stage, value in breakdown.items():
            (self.assertEqual if stage in ("retry", "turn", "window", "context") else self.assertGreater)(value, 0, stage)

    def test_printed_breakdown_adds_up_over_many(self):
        result = self.run_file(SOURCE / "traces" / "random.trace")
        breakdown = dict(result.stats()["breakdown_ns"])
        samples, total = breakdown.pop("samples"), breakdown.pop("total")
        self.assertGreater(samples, 50)
        self.assertEqual(sum(round(value * 1000) for value in breakdown.values()), round(total * 1000))

    def test_one_parameter_moves_one_stage(self):
        def stages(*arguments):
            return self.run_text(PUT_ONCE.format(size="64"), *arguments).stats()["breakdown_ns"]
        before = stages()
        after = stages("--set", "host.pcie.read_latency=750ns")
        for stage, value in before.items():
            change = round(after[stage] - value)
            self.assertEqual(change, 250 if stage in ("payload_read", "total") else 0, stage)


class Limits(SystemTest):
    def test_small_puts_are_limited_by_link_or_pcie(self):
        trace = self.generate("stream", "--size", "64", "--count", 20000)
        stats = self.run_file(trace, check=False).stats()
        self.assertTrue("link" in stats["bottleneck"] or "pcie" in stats["bottleneck"], stats["bottleneck"])
        self.assertGreater(stats["limits"][0]["share"], 0.9)

    def test_the_unit_that_is_made_slow_is_named(self):
        trace = self.generate("stream", "--size", "4KiB", "--count", 3000)
        cases = {
            "link": ["fabric.link.rate=50Gbps"],
            "node0.pcie.downstream": ["host.pcie.lanes=4", "fabric.link.rate=1000Gbps"],
            "core": ["host.core.issue=2us"],
        }
        for unit, sets in cases.items():
            with self.subTest(unit=unit):
                arguments = [part for key in sets for part in ("--set", key)]
                stats = self.run_file(trace, *arguments, check=False).stats()
                self.assertIn(unit, stats["bottleneck"])

    def test_achieved_never_exceeds_bound(self):
        for name in ("stream", "random", "incast"):
            stats = self.run_file(SOURCE / "traces" / f"{name}.trace").stats()
            for limit in stats["limits"]:
                bound = limit.get("bound_gbps", limit.get("bound_mpps"))
                self.assertLessEqual(limit["achieved"], bound + 0.001, limit)
                self.assertLessEqual(limit["share"], 1)
            for row in stats["limits"]:
                if row["unit"].startswith("fabric.link"):
                    self.assertLessEqual(row["bound_gbps"], 400.001)

    def test_numbers_agree_between_files(self):
        result = self.run_file(SOURCE / "traces" / "random.trace")
        stats = result.stats()
        self.assertEqual(stats["totals"]["completions"], len(result.rows("completions.csv")))
        self.assertEqual(stats["totals"]["puts"], len(result.rows("puts.csv")))
        self.assertEqual(stats["totals"]["bytes_delivered"], sum(int(row["length"]) for row in result.rows("completions.csv")))


class Patterns(SystemTest):
    """Generated patterns of parallel programs run clean: all puts end `ok`, and none is refused on the way."""

    JITTER = ["--set", "fabric.faults.jitter=5us", "--set", "fabric.faults.reverse=16"]

    def run_pattern(self, *pattern, ranks_per_node=1, arguments=(), retries=False):
        trace = self.generate(*pattern)
        result = self.run_file(trace, "--set", f"workload.ranks_per_node={ranks_per_node}", "--set",
                               "fabric.star.ports=64", *arguments)
        stats = result.stats()
        totals = stats["totals"]
        self.assertTrue(stats["check"]["passed"])
        self.assertGreater(totals["puts"], 0)
        self.assertEqual({status: n for status, n in totals["ended"].items() if n}, {"ok": totals["puts"]})
        if not retries:
            self.assertEqual(sum(totals["refusals"].values()), 0)
            self.assertEqual({row["tries"] for row in result.rows("puts.csv")}, {"1"})
        return totals

    def everywhere(self, *pattern, puts, retries=False):
        """`puts(ranks)`: the closed formula."""
        shapes = [(2, 1, []), (2, 64, []), (7, 1, []), (7, 3, self.JITTER), (24, 1, self.JITTER), (24, 3, []),
                  (24, 64, self.JITTER)]
        for ranks, ranks_per_node, arguments in shapes:
            with self.subTest(ranks=ranks, ranks_per_node=ranks_per_node, arguments=arguments):
                totals = self.run_pattern(*pattern, "--ranks", ranks, ranks_per_node=ranks_per_node,
                                          arguments=arguments, retries=retries)
                self.assertEqual(totals["puts"], puts(ranks))
        with self.subTest(ranks=64):
            totals = self.run_pattern(*pattern, "--ranks", 64, ranks_per_node=8, arguments=self.JITTER, retries=retries)
            self.assertEqual(totals["puts"], puts(64))

    def test_alltoall(self):
        self.everywhere("alltoall", "--iterations", 3, "--unroll", 2, "--size", 5000, puts=lambda n: 3 * n * (n - 1))

    def test_allreduce_by_a_ring(self):
        self.everywhere("allreduce", "--iterations", 2, "--size", "40000", "--compute-per-byte", "100ps",
                        puts=lambda n: 2 * n * 2 * (n - 1))

    def test_allreduce_by_recursive_doubling(self):
        def puts(n):
            bits = n.bit_length() - 1
            return 3 * (2**bits * bits + 2 * (n - 2**bits))

        self.everywhere("allreduce", "--iterations", 3, "--size", "10000", "--algorithm", "recursive-doubling", puts=puts)

    def test_halo3d(self):
        def pairs(shape):
            total = 1
            for side in shape:
                total *= 3 * side - 2
            return total - shape[0] * shape[1] * shape[2]

        shapes = {2: (2, 1, 1), 7: (7, 1, 1), 24: (4, 3, 2), 64: (4, 4, 4)}
        self.everywhere("halo3d", "--iterations", 5, "--unroll", 3, "--nx", 20, "--ny", 10, "--compute", "2us",
                        puts=lambda n: 5 * pairs(shapes[n]))

    def test_halo3d_periodic(self):
        self.everywhere("halo3d", "--iterations", 2, "--nx", 8, "--ny", 8, "--periodic", puts=lambda n: 2 * 26 * n)

    def test_sweep3d(self):
        def puts(n):
            x, y = {2: (2, 1), 7: (7, 1), 24: (6, 4), 64: (8, 8)}[n]
            return 2 * 8 * 5 * ((x - 1) * y + x * (y - 1))

        self.everywhere("sweep3d", "--iterations", 2, "--kba", 6, "--nx", 10, "--ny", 12, "--compute", "100ns", puts=puts)

    def test_kv(self):
        self.everywhere("kv", "--count", 20, "--reads", 70, puts=lambda n: 2 * 20 * (n - max(1, n // 8)))

    def test_storm(self):
        self.everywhere("storm", "--count", 40, puts=lambda n: 40 * n, retries=True)

    def test_puts_of_a_storm_are_retried(self):
        trace = self.generate("storm", "--ranks", 8, "--count", 100, "--late", 50)
        rows = self.run_file(trace).rows("puts.csv")
        self.assertEqual({row["status"] for row in rows}, {"ok"})
        self.assertGreater(sum(int(row["tries"]) > 1 for row in rows), 5)

    def test_storm_fills_some_buffers_and_leaves_others(self):
        trace = self.generate("storm", "--ranks", 8, "--count", 100)
        totals = self.run_file(trace).stats()["totals"]
        posts = sum(line.lstrip().startswith("post_buffer") for line in trace.read_text().splitlines())
        self.assertGreater(totals["completions"], posts // 3)
        self.assertLess(totals["completions"], posts)

    def test_a_late_buffer_that_is_too_late_is_seen(self):
        """The test above notices refusals: without retries a storm does not end well."""
        trace = self.generate("storm", "--ranks", 8, "--count", 100, "--late", 50)
        result = self.run_file(trace, "--set", "nic.reliability.rnr_tries=0", status=1)
        self.assertIn("waits for", result.stderr)

    def test_mistakes_in_options(self):
        cases = [
            (["halo3d", "--shape", "3x3"], "--shape"), (["halo3d", "--shape", "0x3x3"], "--shape"),
            (["halo3d", "--shape", "axbxc"], "--shape"), (["halo3d", "--shape", "2x2x2", "--ranks", "9"], "--ranks"),
            (["sweep3d", "--shape", "3x3x3"], "--shape"), (["sweep3d", "--kba", "7"], "--kba"),
            (["alltoall", "--ranks", "0"], "--ranks"), (["alltoall", "--size", "2GiB"], "--size"),
            (["allreduce", "--size", "0"], "--size"), (["allreduce", "--algorithm", "tree"], "--algorithm"),
            (["kv", "--servers", "16"], "--servers"), (["kv", "--skew", "nan"], "--skew"),
            (["storm", "--late", "101"], "--late"), (["storm", "--shape", "2x2"], "--shape"),
        ]
        for arguments, option in cases:
            with self.subTest(arguments=arguments):
                result = self.rvma("gen", *arguments)
                self.assertEqual(result.status, 2)
                self.assertTrue(result.stderr.startswith(f"rvma: error: {option}"), result.stderr)
                self.assertEqual(result.stdout, "")

    def test_help_lists_every_option(self):
        for pattern, options in (("halo3d", ("--shape", "--periodic", "--unroll")), ("kv", ("--skew", "--servers")),
                                 ("sweep3d", ("--kba",)), ("allreduce", ("--algorithm",)), ("storm", ("--late",)),
                                 ("alltoall", ("--ranks",))):
            result = self.rvma("gen", pattern, "--help")
            self.assertEqual(result.status, 0)
            for option in options:
                self.assertIn(option, result.stdout)

    def test_memory_of_idle_ranks(self):
        """A rank that only meets the others costs little: what 4,096 ranks cost beyond 64, on the same 16 nodes."""
        sizes = []
        for ranks_per_node in (4, 256):
            ranks = 16 * ranks_per_node
            text = f"rvma-trace 1\nranks {ranks}\n" + "".join(
                f"rank {r}\n  barrier\n  compute 1us\n  barrier\n" for r in range(ranks))
            stats = self.run_text(text, "--set", f"workload.ranks_per_node={ranks_per_node}").stats()
            sizes.append(stats["sim"]["peak_rss_bytes"])
        self.assertLess((sizes[1] - sizes[0]) / (4096 - 64), IDLE_RANK_BYTES)


class Refusals(SystemTest):
    def statuses(self, result):
        return {row["name"]: (row["status"], int(row["tries"])) for row in result.rows("puts.csv")}

    def test_each_reason(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window open mailbox=1 threshold=100op
  init_window locked mailbox=2 threshold=100op key=77
  init_window empty mailbox=3 threshold=100op
  init_window gone mailbox=4 threshold=100op
  post_buffer open size=1000
  post_buffer locked size=1000
  close_window gone
  barrier
rank 0
  barrier
  put as=good rank=1 mailbox=1 size=1000
  put as=nobody rank=1 mailbox=9 size=8
  put as=closed rank=1 mailbox=4 size=8
  put as=wrong_key rank=1 mailbox=2 size=8 key=78
  put as=no_key rank=1 mailbox=2 size=8
  put as=right_key rank=1 mailbox=2 size=8 key=77
  put as=any_key rank=1 mailbox=1 size=8 key=123
  put as=empty rank=1 mailbox=3 size=8
  put as=beyond rank=1 mailbox=1 size=8 offset=993
  put as=edge rank=1 mailbox=1 size=8 offset=992
  put as=wrapped rank=1 mailbox=1 size=8 offset=0xfffffffffffffffc
  put as=long rank=1 mailbox=1 size=20000
  wait all
"""
        result = self.run_text(text, "--set", "nic.reliability.rnr_tries=3")
        self.assertEqual(self.statuses(result), {
            "good": ("ok", 1), "nobody": ("no_mailbox", 1), "closed": ("closed", 1), "wrong_key": ("bad_key", 1),
            "no_key": ("bad_key", 1), "right_key": ("ok", 1), "any_key": ("ok", 1), "empty": ("no_buffer", 4),
            "beyond": ("bounds", 1), "edge": ("ok", 1), "wrapped": ("bounds", 1), "long": ("bounds", 1)})
        self.assertEqual(result.stats()["totals"]["refusals"]["no_buffer"], 4)

    def test_no_buffer_is_retried_until_one_is_posted(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=20000
  barrier
  compute 20us
  post_buffer w as=b size=20000
  wait b
rank 0
  barrier
  put as=p rank=1 mailbox=1 size=20000 seed=4
  wait p
"""
        for arguments in ([], ["--set", "fabric.faults.reverse=4"]):
            result = self.run_text(text, *arguments)
            status, tries = self.statuses(result)["p"]
            self.assertEqual(status, "ok")
            self.assertGreater(tries, 2)
            self.assertEqual(result.rows("completions.csv")[0]["crc32"], crc(payload(4, 20000)))

    def test_full_stores_answer_busy_and_nothing_is_lost(self):
        trace = self.generate("incast", "--ranks", 6, "--size", "20000", "--count", 20)
        for key in ("nic.binding.on_chip=1", "nic.counters.on_chip=1"):
            with self.subTest(key=key):
                result = self.run_file(trace, "--set", key, "--set", "nic.counters.spill=off", "--set",
                                       "nic.reliability.rnr_tries=100000", "--set", "nic.reliability.rnr_delay=2us")
                stats = result.stats()
                self.assertEqual(stats["totals"]["ended"]["ok"], stats["totals"]["puts"])
                self.assertGreater(stats["totals"]["refusals"]["busy"], 0)

    def test_refusals_not_told_end_in_timeout(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=64
  post_buffer w as=b size=64
  barrier
  wait b
rank 0
  barrier
  put as=good rank=1 mailbox=1 size=64
  wait good
  put as=bad rank=1 mailbox=9 size=64
  wait bad
"""
        result = self.run_text(text, "--set", "nic.nack=off", "--set", "nic.reliability.rto=1us")
        self.assertEqual(self.statuses(result), {"good": ("ok", 1), "bad": ("timeout", 1)})

    def test_a_storm_of_refusals_is_rate_limited_but_true(self):
        text = """rvma-trace 1
ranks 2
rank 1
  barrier
rank 0
  barrier
  repeat 500
    put rank=1 mailbox=9 size=8
  end
  wait all
"""
        result = self.run_text(text)
        self.assertEqual(result.stats()["totals"]["ended"]["no_mailbox"], 500)
        # 64 told in any 10 us: 500 take at least 7 windows.
        self.assertGreater(max(float(row["ack_ns"]) for row in result.rows("puts.csv")), 70_000)


class ShippedTraces(SystemTest):
    def test_each_passes_its_checks(self):
        traces = sorted((SOURCE / "traces").glob("*.trace"))
        self.assertGreaterEqual(len(traces), 4)
        for trace in traces:
            with self.subTest(trace=trace.name):
                # Some need events, which are configuration: it lies beside them.
                config = trace.with_suffix(".json")
                result = self.run_file(trace, *(["--config", config] if config.exists() else []))
                self.assertIn("Check: passed", result.stdout)
                lines = result.stdout.splitlines()
                self.assertLessEqual(len(lines), 46)  # with crashes; 42 else
                self.assertLessEqual(max(map(len, lines)), 100, result.stdout)


class TimeoutsAndLimits(SystemTest):
    """What is unknown at a put's end, or at the end of a run, is not taken for wrong."""

    def test_a_put_that_timed_out_delivers_no_wrong_bytes(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=2 threshold=1op
  post_buffer w as=b size=64KiB
  barrier
rank 0
  barrier
  put as=a rank=1 mailbox=2 size=64KiB
  wait a
"""
        self.run_text(text, "--set", "host.pcie.read_latency=1ms")
        trace = self.generate("stream", "--count", "300")
        for rto in ("100ns", "120ns", "150ns"):
            # Buffers stay unfilled, so the receiver waits for ever; what it has got is right.
            result = self.rvma("run", trace, "--check", "--set", f"nic.reliability.rto={rto}")
            self.assertIn("Check: passed", result.stdout, rto)

    def test_an_epoch_behind_an_unfinished_one_waits(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=2 threshold=1op
  post_buffer w as=b0 size=256KiB
  post_buffer w as=b1 size=64
  barrier
rank 0
  barrier
  put as=a rank=1 mailbox=2 size=256KiB
  wait a
  compute 1s
  put as=c rank=1 mailbox=2 size=64
  wait c
"""
        self.run_text(text, "--set", "fabric.link.rate=10Mbps")

    def test_overlapping_puts_cut_by_a_limit(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=9op
  post_buffer w as=b size=64
  barrier
rank 0
  barrier
  put rank=1 mailbox=1 size=64
  put rank=1 mailbox=1 size=64
  put rank=1 mailbox=1 size=64
"""
        for limit in range(2600, 2760, 8):
            self.run_text(text, "--limit", f"{limit}ns", status=1)
        self.run_text(text)

    def test_retries_behind_the_last_count_exceed_no_bound(self):
        text = """rvma-trace 1
ranks 2
rank 1
  init_window w mailbox=1 threshold=1op
  repeat 200
    post_buffer w size=64
  end
  barrier
rank 0
  barrier
  repeat 2000
    put rank=1 mailbox=1 size=64
  end
"""
        stats = self.run_text(text, "--set", "nic.buffers.on_chip=100", "--set", "nic.buffers.spill=off").stats()
        self.assertLess(stats["bandwidth_gbps"]["wire"], 400)
        for limit in stats["limits"]:
            bound = next(value for key, value in limit.items() if key.startswith("bound"))
            self.assertLessEqual(limit["achieved"], 1.01 * bound + 0.1, limit)

    def test_a_limit_of_nothing(self):
        result = self.run_text(PUT_ONCE.format(size="64"), "--limit", "0ns", status=1)
        self.assertNotIn("W571", result.stderr + result.stdout)


class VerilogTable(SystemTest):
    """`--table rtl` and `both` give what `model` gives."""

    FAST = ["banks=2", "rows=16", "slots=2", "stash=4", "max_kicks=6", "latency=1"]  # of rtl/shapes.txt
    THREE = ["banks=3", "rows=64", "slots=3", "stash=5", "max_kicks=8", "latency=3"]

    def setUp(self):
        super().setUp()
        if "off in this build" in self.rvma("run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl").stderr:
            self.skipTest("built without Verilator")

    @staticmethod
    def shape(keys):
        return [argument for key in keys for argument in ("--set", f"nic.table.{key}")]

    def without_cost(self, result):
        stats = result.stats()
        for key in ("wall_s", "packets_per_wall_s", "peak_rss_bytes", "events", "activations"):
            del stats["sim"][key]
        return stats

    def expect_same(self, trace, *arguments):
        one = self.run_file(trace, *arguments)
        for table in ("rtl", "both"):
            other = self.run_file(trace, *arguments, "--table", table)
            for name in ("completions.csv", "puts.csv", "calls.csv"):
                self.assertEqual((one.out / name).read_bytes(), (other.out / name).read_bytes(), f"{table}: {name}")
            self.assertEqual(self.without_cost(one), self.without_cost(other), table)
        return one

    def test_every_shipped_trace(self):
        for trace in sorted((SOURCE / "traces").glob("*.trace")):
            with self.subTest(trace=trace.name):
                config = trace.with_suffix(".json")
                self.expect_same(trace, *(["--config", config] if config.exists() else []))

    def windows(self, count):
        """Windows come and go, more than the small tables hold; every third gets a put while they do."""
        mailboxes = [(i * 0x9e3779b97f4a7c15 + 0xbeef) % 2**64 for i in range(count)]
        receiver = [f"  init_window w{i} mailbox={m:#x} threshold=1op\n  post_buffer w{i} as=b{i} size=64"
                    for i, m in enumerate(mailboxes)]
        receiver += [f"  close_window w{i}" for i in range(0, count, 2)]
        receiver += [f"  init_window v{i} mailbox={mailboxes[i]:#x} threshold=1op" for i in range(0, count, 4)]
        sender = [f"  put rank=1 mailbox={m:#x} size=64" for m in mailboxes[::3] for _ in range(2)]
        trace = self.tmp / f"windows{count}.trace"
        trace.write_text("rvma-trace 1\nranks 2\nrank 1\n" + "\n".join(receiver) + "\nrank 0\n  compute 3us\n" +
                         "\n".join(sender) + "\n  wait all\n")
        return trace

    def test_windows_that_come_and_go_in_small_tables(self):
        fast = self.expect_same(self.windows(80), *self.shape(self.FAST)).stats()["units"]["node1.nic.table"]
        self.assertGreater(fast["kicks"], 10)
        self.assertGreater(fast["full"], 0)
        self.assertEqual(fast["stash"], 4)
        three = self.expect_same(self.windows(600), *self.shape(self.THREE)).stats()["units"]["node1.nic.table"]
        self.assertGreater(three["kicks"], 50)
        self.assertGreater(three["deletes"], 200)

    def test_jitter_and_many_ranks_on_a_node(self):
        trace = SOURCE / "traces" / "random.trace"
        self.expect_same(trace, "--set", "fabric.faults.jitter=1us", "--set", "workload.ranks_per_node=2", "--seed", "7")

    def test_a_shape_that_is_not_built_is_refused_with_those_that_are(self):
        result = self.rvma("run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl", "--set", "nic.table.latency=3")
        self.assertEqual(result.status, 2)
        self.assertIn("4 banks x 512 rows x 2 slots, stash 8, 32 kicks, latency 3, parity", result.stderr)
        self.assertIn("4 banks x 512 rows x 2 slots, stash 8, 32 kicks, latency 2, parity", result.stderr)
        one = ["nic.table.slots=1", "nic.table.max_kicks=1"]
        result = self.rvma("run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl",
                           *(argument for key in one for argument in ("--set", key)))
        self.assertIn("4 banks x 512 rows x 1 slot, stash 8, 1 kick, latency 2, parity", result.stderr)

    def test_a_shape_that_cannot_be_is_one_error(self):
        result = self.rvma("run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl", "--set", "nic.table.rows=100")
        self.expect_error(result, "nic.table.rows", "power of two")
        self.assertNotIn("shapes.txt", result.stderr)

    def test_waves(self):
        trace = SOURCE / "traces" / "pingpong.trace"
        self.run_file(trace, "--table", "rtl", "--wave", self.tmp / "w.fst")
        for node in ("node0", "node1"):
            self.assertGreater((self.tmp / f"w.{node}.fst").stat().st_size, 5_000)
        self.run_file(trace, "--table", "both", "--wave", self.tmp / "both.fst")
        for arguments, message in (
            (["--wave", "w.fst"], "--table rtl or both"),
            (["--table", "rtl", "--wave", "w.vcd"], "fst"),
            (["--table", "rtl", "--wave", "no/such/place/w.fst"], "cannot write"),
            (["--table", "rtl", "--wave", ""], "no name of a wave file"),
            (["--table", "rtl", "--wave", "w"], "'w' is no name of a wave file"),
            (["--table", "rtl", "--wave", ".fst"], "no name of a wave file"),
            (["--table", "rtl", "--wave", "/dev/full"], "no name of a wave file"),
            (["--table", "rtl", "--wave", self.tmp], "is a directory"),
            (["--table", "rtl", "--wave", f"{self.tmp}/"], "is a directory"),
        ):
            with self.subTest(arguments=arguments):
                self.expect_error(self.rvma("run", trace, *arguments), "rvma: error: --wave: ", message)

    def test_waves_on_a_disk_that_fills(self):
        wave = self.tmp / "w.fst"
        for room, status, message in (
            (10_000, 2, f"rvma: error: --wave: cannot write '{self.tmp}/w.node0.fst'"),
            (200_000, 1, "--wave: "),  # the writer of waves may be hit where it can tell nothing but that
            (300_000, 1, f"--wave: '{self.tmp}/w.node0.fst' was not written whole"),
            (2_000_000, 0, ""),
        ):
            def small_files(room=room):
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

            with self.subTest(room=room):
                done = subprocess.run(
                    [RVMA, "run", SOURCE / "traces" / "pingpong.trace", "--table", "rtl", "--wave", wave],
                    capture_output=True, text=True, timeout=60, check=False, preexec_fn=small_files,
                    restore_signals=False)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                self.assertIn(message, done.stderr)

    def test_a_difference_on_purpose_stops_the_run_with_report_and_waves(self):
        trace = SOURCE / "traces" / "pingpong.trace"
        result = self.run_file(trace, "--table", "both", "--table-flip", "3", status=1)
        self.assertRegex(result.stderr, r"node\d\.nic\.table: the Verilog table differs from the C\+\+ one in its cycle \d+")
        self.assertIn("lookup_hit is 0, reference 1", result.stderr)
        self.assertIn("lookup_fault_valid is 1, reference 0", result.stderr)
        history = [line.split() for line in result.stderr.splitlines() if re.match(r" +\d+ +\d+(\.\d+)?[munp]?s ", line)]
        self.assertEqual(len(history), 12)
        self.assertIn("miss", history[-1])
        waves = re.search(r"Signals of the last cycles: (.*)", result.stderr).group(1)
        self.assertEqual(pathlib.Path(waves).parent, result.out)
        self.assertGreater(pathlib.Path(waves).stat().st_size, 5_000)
        self.assertTrue(result.stats()["run"]["partial"])
        for arguments, message in (
            (["--table", "rtl", "--table-flip", "3"], "expected --table both"),
            (["--table", "both", "--table-flip", "0"], "expected 1 or more"),
            (["--table", "both", "--table-flip", "-1"], "'-1'"),
        ):
            self.expect_error(self.rvma("run", trace, *arguments), "rvma: error: --table-flip: ", message)
        result = self.run_file(trace, "--table", "both", "--table-flip", "100000", status=1)
        self.assertIn("--table-flip: no bit was flipped", result.stderr)


class Waiting(SystemTest):
    def wait_how(self, how):
        text = PUT_ONCE.format(size="64").replace("  barrier\n  put", "  barrier\n  compute 10us\n  put").replace(
            "wait b", f"wait b how={how}")
        result = self.run_text(text)
        row = result.rows("completions.csv")[0]
        core = result.stats()["units"]["node1.core0"]
        return float(row["seen_ns"]) - float(row["time_ns"]), core

    def test_each_way_has_its_price(self):
        delay, core = self.wait_how("mwait")
        self.assertEqual(delay, 150)
        self.assertEqual(core["polls"], 0)
        self.assertGreater(core["asleep_ns"], 9000)
        delay, core = self.wait_how("poll")
        self.assertLess(delay, 20.001)
        self.assertGreater(core["polls"], 450)
        self.assertGreater(core["burned_ns"], 9000)
        delay, core = self.wait_how("interrupt")
        self.assertGreater(delay, 1500)
        self.assertEqual(core["interrupts"], 1)

    def test_interrupt_windows_interrupt_without_arming(self):
        text = PUT_ONCE.format(size="64").replace("threshold=64", "threshold=64 interrupt").replace(
            "wait b", "wait b how=interrupt")
        result = self.run_text(text)
        self.assertGreaterEqual(result.stats()["units"]["node1.core0"]["interrupts"], 1)


if __name__ == "__main__":
    unittest.main()
