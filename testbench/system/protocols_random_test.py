"""Random programs under both protocols: RVMA against RDMA. What a program can see must be the same.

The programs are made so that nothing depends on time: a window has one sender, who waits where the order of arrival would decide
which message fills which buffer; or several, whose messages are all alike. Calls that change which buffer is active come when nothing
is under way. All else is drawn: fabric, faults, how little there is of everything, how addresses are exchanged.

RVMA_PROTOCOLS_PROGRAMS: programs of each test (40), RVMA_PROTOCOLS_FIRST: seed of the first (1). A failure names its seed, and
prints the program and its configuration.
"""

import os
import random
import unittest

from calls_test import settings
from corners import events
from rdma_test import RDMA, RdmaTest

PROGRAMS = int(os.environ.get("RVMA_PROTOCOLS_PROGRAMS", "40"))
FIRST = int(os.environ.get("RVMA_PROTOCOLS_FIRST", "1"))

SIZES = [1, 7, 8, 63, 64, 65, 256, 1000, 4096, 4097, 5000, 9000, 20000]
# A mailbox that no rank opens.
NOBODYS = 0x777000
WAYS = ("", " how=poll", " how=interrupt")


class Program:
    """A trace, and the configuration of its runs."""

    def __init__(self, seed, gives_up=False):
        self.rng = random.Random(seed)
        rng = self.rng
        self.ranks = rng.choice([2, 2, 3, 4, 5])
        self.per_node = rng.choice([1, 1, 1, 2, 3])
        self.nodes = -(-self.ranks // self.per_node)
        self.windows = 0
        self.gives_up = gives_up
        # What a window without a mailbox of its own takes has the message's number in its record, which is the protocol's.
        self.catch_all = [None] * self.ranks
        self.numbered = set()
        self.lines = [[] for _ in range(self.ranks)]
        for _ in range(rng.choice([1, 1, 2])):
            self.phase()
        self.text = "\n".join(["rvma-trace 1", f"ranks {self.ranks}"] + [
            line for rank, lines in enumerate(self.lines) for line in [f"rank {rank}", *(f"  {text}" for text in lines)]]) + "\n"
        self.fabric = self.draw_fabric()
        self.rdma = [self.draw_rdma() for _ in range(2)]

    # -- The program. Each phase: ranks open and post, meet, send, wait, meet again; then they end epochs and close.

    def phase(self):
        rng = self.rng
        self.opens = [[] for _ in range(self.ranks)]
        self.sends = [[] for _ in range(self.ranks)]
        self.waits = [[] for _ in range(self.ranks)]
        self.ends = [[] for _ in range(self.ranks)]
        kinds = [self.ordered, self.ordered, self.ordered, self.shared, self.shared, self.caught, self.gets, self.one_time, self.refusals]
        for _ in range(rng.randint(1, 7)):
            self.windows += 1
            rng.choice(kinds)(rng.randrange(self.ranks))
        for rank, lines in enumerate(self.lines):
            lines += [*self.opens[rank], "barrier", *self.mixed(self.sends[rank])]
            if rng.random() < 0.3:
                lines.append(f"compute {rng.choice([1, 5, 50])}us")
            lines += ["wait all", *self.waits[rank], "barrier", *self.ends[rank], "barrier"]

    def mixed(self, streams):
        """The lines of several windows' sender, each window's in their order."""
        streams = [list(stream) for stream in streams]
        lines = []
        while any(streams):
            stream = self.rng.choice([stream for stream in streams if stream])
            for _ in range(min(len(stream), self.rng.choice([1, 1, 3]))):
                lines.append(stream.pop(0))
        return lines

    def open(self, owner, threshold, placement="steered", key=0, flags=""):
        mailbox = 0x100 + self.windows
        self.opens[owner].append(f"init_window w{self.windows} mailbox={mailbox:#x} threshold={threshold} placement={placement} "
                                 f"key={key}{flags}")
        return mailbox

    def post(self, owner, count, size):
        names = [f"b{self.windows}_{i}" for i in range(count)]
        align = self.rng.choice(["", "", " align=8", " align=4096"])
        self.opens[owner] += [f"post_buffer w{self.windows} as={name} size={size}{align}" for name in names]
        return names

    def wait_for(self, owner, names):
        if not self.gives_up:
            self.waits[owner] += [f"wait {name}{self.rng.choice(WAYS)}" for name in names]

    def end(self, owner, may_close=True):
        """Calls on the window when nothing is under way."""
        window = f"w{self.windows}"
        if self.rng.random() < 0.4:
            return
        calls = [f"inc_epoch {window}", f"get_epoch {window}", f"get_buf_ptrs {window} n={self.rng.choice([0, 1, 3])}"]
        if may_close and self.rng.random() < 0.5:
            calls += [f"close_window {window}", f"get_epoch {window}", f"post_buffer {window} size=64"]
        self.ends[owner] += calls

    def ordered(self, owner):
        """One sender, who waits before a message could overtake one of an earlier buffer."""
        rng = self.rng
        sender = rng.randrange(self.ranks)
        placement = rng.choice(["steered", "managed"])
        by_bytes = rng.random() < 0.4
        each = rng.choice([1, 1, 2, 4])
        size = rng.choice(SIZES if by_bytes else [0, *SIZES])
        key = rng.choice([0, 0, 5])
        mailbox = self.open(owner, f"{size * each}" if by_bytes else f"{each}op", placement, key)
        count = rng.randint(1, 5)
        names = self.post(owner, count + rng.choice([0, 0, 1]), max(1, size * each))
        lines = []
        for buffer in range(count):
            places = list(range(each))
            rng.shuffle(places)
            for place in places:
                name = f"p{self.windows}_{buffer}_{place}"
                offset = place * size if placement == "steered" else 0
                lines.append(f"put as={name} rank={owner} mailbox={mailbox:#x} size={size} offset={offset} key={key}")
                # What fills a buffer alone may be followed at once; its order is then that of all its likes.
                if placement == "managed" or rng.random() < 0.3:
                    lines.append(f"wait {name}")
            lines.append("wait " + " ".join(f"p{self.windows}_{buffer}_{place}" for place in range(each)))
        self.sends[sender].append(lines)
        self.wait_for(owner, names[:count])
        self.end(owner)

    def shared(self, owner):
        """Messages that are all alike, of any number of senders: which is which shows nowhere."""
        rng = self.rng
        size = rng.choice([0, *SIZES])
        each = rng.choice([1, 1, 2, 5])
        by_bytes = size > 0 and rng.random() < 0.4
        mailbox = self.open(owner, f"{size * each}" if by_bytes else f"{each}op", "managed")
        self.alike(owner, mailbox, size, each, max(1, size * each))
        self.end(owner)

    def alike(self, owner, mailbox, size, each, room):
        rng = self.rng
        senders = rng.choices(range(self.ranks), k=rng.randint(1, 3))
        counts = [each * rng.choice([1, 2, 4, 12]) for _ in senders]
        names = self.post(owner, sum(counts) // each, room)
        for stream, (sender, count) in enumerate(zip(senders, counts)):
            lines = []
            for i in range(count):
                name = f"p{self.windows}_{stream}_{i}"
                lines.append(f"put as={name} rank={owner} mailbox={mailbox:#x} size={size} seed=7")
                if rng.random() < 0.2:
                    lines.append(f"wait {name}")
            self.sends[sender].append(lines)
        self.wait_for(owner, names)

    def caught(self, owner):
        """Messages to a mailbox without a window, all alike, and a window beside those whose buffers may be advertised."""
        if self.catch_all[owner] is not None:
            return self.ordered(owner)
        self.catch_all[owner] = f"w{self.windows}"
        self.numbered.add(f"w{self.windows}")
        each = self.rng.choice([1, 2, 3])
        size = self.rng.choice([0, 8, 100, 5000, 9000])
        self.open(owner, f"{each}op", "managed", flags=" catch_all")
        self.alike(owner, NOBODYS + self.windows, size, each, (size + 64) * each)
        return None

    def gets(self, owner):
        rng = self.rng
        size = rng.choice([64, 4096, 5000, 40000])
        key = rng.choice([0, 5])
        mailbox = self.open(owner, "1000op", key=key, flags=" readable")
        self.opens[owner].append(f"post_buffer w{self.windows} as=b{self.windows} size={size} seed={rng.randint(0, 99)}")
        for stream in range(rng.randint(1, 2)):
            lines = []
            for i in range(rng.randint(1, 5)):
                name = f"g{self.windows}_{stream}_{i}"
                length = rng.choice([0, 1, 64, size // 2, size, size + 5])
                lines.append(f"get as={name} rank={owner} mailbox={mailbox:#x} size={length} offset={rng.choice([0, 0, 1, size // 2])} "
                             f"key={rng.choice([key, key, key, 9])}")
                if rng.random() < 0.5:
                    lines.append(f"wait {name}")
            self.sends[rng.randrange(self.ranks)].append(lines)
        self.end(owner)

    def one_time(self, owner):
        rng = self.rng
        mailbox = 0x100 + self.windows
        size = rng.choice(SIZES)
        self.opens[owner].append(f"post_one_time_buffer mailbox={mailbox:#x} size={size} as=o{self.windows}")
        lines = [f"put as=p{self.windows} rank={owner} mailbox={mailbox:#x} size={size}"]
        # A catch-all window would take what comes later, or not, as the mailbox is remembered.
        if self.catch_all[owner] is None and not self.gives_up:
            lines += [f"wait p{self.windows}", f"put as=q{self.windows} rank={owner} mailbox={mailbox:#x} size={size}"]
        self.sends[rng.randrange(self.ranks)].append(lines)
        self.wait_for(owner, [f"o{self.windows}"])

    def refusals(self, owner):
        rng = self.rng
        mailbox = self.open(owner, "1op", key=5)
        names = self.post(owner, 1, 100)
        to = f"rank={owner} mailbox={mailbox:#x}"
        lines = [f"put as=p{self.windows}_0 {to} size=101 key=5", f"put as=p{self.windows}_1 {to} size=10 key=6",
                 f"put as=p{self.windows}_2 {to} size=10 offset={2**64 - 1} key=5", f"get as=p{self.windows}_3 {to} size=10 key=5"]
        rng.shuffle(lines)
        if rng.random() < 0.7 and not self.gives_up:
            lines += [f"wait p{self.windows}_{i}" for i in range(4)]
            lines += [f"put as=q{self.windows} {to} size=100 key=5", f"wait q{self.windows}",
                      f"put as=r{self.windows} {to} size=100 key=5", f"wait r{self.windows}"]
            self.wait_for(owner, names)
        self.sends[rng.randrange(self.ranks)].append(lines)
        self.end(owner)

    # -- The configuration.

    def draw_fabric(self):
        rng = self.rng
        pairs = [("workload.ranks_per_node", self.per_node), ("nic.reliability.rnr_delay", "1us"),
                 ("nic.reliability.rnr_tries", rng.choice([40, 300])), ("nic.mtu", rng.choice(["256B", "1KiB", "4KiB"])),
                 ("nic.transmit.open_puts", rng.choice([1, 2, 4, 256, 256]))]
        if self.gives_up:
            pairs += [("fabric.topology", "star"), ("nic.reliability.max_tries", 4), ("nic.reliability.rto", "20us"),
                      ("nic.reliability.idle", "2ms"), ("nic.get.timeout", "2ms"), *self.outages([5, 50, 300, 3000])]
            return pairs
        pairs.append(("nic.reliability.max_tries", 64))
        kind = rng.choice(["clean", "loss", "jitter", "reverse", "all", "adaptive", "spray", "link"])
        if kind in ("loss", "all"):
            pairs += [("fabric.faults.drop", rng.choice(["0.01", "0.05"])), ("fabric.faults.duplicate", rng.choice(["0", "0.05"]))]
        if kind in ("jitter", "all"):
            pairs += [("fabric.faults.jitter", rng.choice(["200ns", "2us", "10us"]))]
        if kind in ("reverse", "all"):
            pairs += [("fabric.faults.reverse", rng.choice([2, 16]))]
        if kind in ("adaptive", "spray"):
            pairs += [("fabric.topology", rng.choice(["torus", "dragonfly", "hyperx"])), ("fabric.routing", kind)]
        if kind == "link":
            pairs += [("fabric.topology", "star"), *self.outages([5, 50, 300])]
        return pairs

    def outages(self, lengths_us):
        """Links that go down, one after another on each, and come up again."""
        rng = self.rng
        listed = []
        for node in range(self.nodes):
            at = 0
            for _ in range(rng.choice([0, 1, 1, 2])):
                at += rng.randint(1, 300)
                length = rng.choice(lengths_us)
                listed += [(f"{at}us", "link_down", f"{node}-switch"), (f"{at + length}us", "link_up", f"{node}-switch")]
                at += length
        return events(*listed) if listed else []

    def draw_rdma(self):
        rng = self.rng
        pairs = [("rdma.exchange", rng.choice(["per_put", "advertised"])), ("rdma.ooo_tracking", rng.choice(["off", "on"]))]
        for key, values, chance in (("rdma.receives", [1, 2, 3, 5], 0.5), ("rdma.registration_cache", [1, 64], 0.3),
                                    ("rdma.queue_pairs.on_chip", [1, 2], 0.2), ("rdma.regions.on_chip", [1, 2], 0.2),
                                    ("rdma.reads", [1, 2], 0.2), ("rdma.open_reads", [1, 2], 0.2),
                                    ("rdma.completion", ["ack_then_send"], 0.2)):
            if rng.random() < chance:
                pairs.append((key, rng.choice(values)))
        return pairs


class ProtocolsTest(RdmaTest):
    def said(self, seed, pairs, text):
        return f"seed {seed}\n{' '.join(map(str, settings(pairs)))}\n{text}"

    def run_program(self, seed, program, protocol, pairs):
        self.runs += 1
        trace, out = self.tmp / f"t{self.runs}.trace", self.tmp / f"out{self.runs}"
        trace.write_text(program.text)
        result = self.rvma("run", trace, "--out", out, "--check", *protocol, *settings(program.fabric + pairs), "--seed", seed,
                           "--limit", "1s", out=out)
        self.assertEqual(result.status, 0, result.stderr + self.said(seed, program.fabric + pairs, program.text))
        return result


class RandomProtocols(ProtocolsTest):
    """Whatever faults there are, all that is put arrives, and both protocols show the program the same."""

    def seen(self, program, result):
        puts = sorted((row["rank"], row["kind"], row["name"], row["size"], row["status"]) for row in result.rows("puts.csv"))
        completions = sorted((row["rank"], row["window"], row["epoch"], row["buffer"], row["length"],
                              "" if row["window"] in program.numbered else row["crc32"]) for row in result.rows("completions.csv"))
        calls = sorted((row["rank"], row["op"], row["window"], row["status"], row["value"]) for row in result.rows("calls.csv"))
        return puts, completions, calls

    def test_programs(self):
        met = dict.fromkeys(("completions", "refused", "advertised_writes", "refused_not_ready", "retransmitted", "reads"), 0)
        for seed in range(FIRST, FIRST + PROGRAMS):
            with self.subTest(seed=seed):
                program = Program(seed)
                rvma = self.run_program(seed, program, [], [])
                expected = self.seen(program, rvma)
                met["completions"] += len(expected[1])
                met["refused"] += sum(row[-1] != "ok" for row in expected[0])
                self.assertNotIn("timeout", [row[-1] for row in expected[0]])
                for pairs in program.rdma:
                    rdma = self.run_program(seed, program, RDMA, pairs)
                    for got, wanted in zip(self.seen(program, rdma), expected):
                        self.assertEqual(got, wanted, self.said(seed, program.fabric + pairs, program.text))
                    met["advertised_writes"] += self.software(rdma, "advertised_writes")
                    met["refused_not_ready"] += self.total(rdma, ".receive", "refused_not_ready")
                    met["reads"] += self.total(rdma, ".receive", "reads")
                    met["retransmitted"] += rdma.stats()["totals"]["packets"]["retransmitted"]
        # Programs that meet nothing show nothing.
        for what, count in met.items():
            self.assertGreater(count, PROGRAMS // 2, met)


class RandomOutages(ProtocolsTest):
    """Links are down for so long that peers are given up: what ends how is a matter of time, but all ends, and what ended ok
    was delivered."""

    def test_programs(self):
        given_up = 0
        for seed in range(FIRST, FIRST + PROGRAMS):
            with self.subTest(seed=seed):
                program = Program(1_000_000 + seed, gives_up=True)
                for protocol, pairs in (([], []), *((RDMA, pairs) for pairs in program.rdma)):
                    result = self.run_program(seed, program, protocol, pairs)
                    self.assertNotIn("unfinished", self.statuses(result).values(), self.said(seed, pairs, program.text))
                    given_up += self.total(result, ".transmit", "peers_given_up")
        self.assertGreater(given_up, PROGRAMS // 2)


if __name__ == "__main__":
    unittest.main()
