"""Random programs over all calls: every rank opens, posts, puts, gets, increments, rewinds, closes and opens again, in a
fabric drawn by the same seed, while packets of the others are in flight. Holds whatever the order of arrival: corners.Judge.

RVMA_CORNERS_PROGRAMS: programs (24), RVMA_CORNERS_FIRST: seed of the first (1). A failure names its seed and configuration.
"""

import os
import random
import unittest

from corners import FABRICS, SLOW_LINK, SPILLED, CornersTest, Fabric, events

PROGRAMS = int(os.environ.get("RVMA_CORNERS_PROGRAMS", "24"))
FIRST = int(os.environ.get("RVMA_CORNERS_FIRST", "1"))

# Of a program's mailboxes; each of them may have several windows, one after another.
CATCH_ALL, KNOWN, ONE_TIME = 50, 60, 70
WAYS = ("mwait", "poll", "interrupt")


class Mailbox:
    """A mailbox of a rank, and the window that it has just now."""

    def __init__(self, rng, number):
        self.number = number
        self.key = rng.choice([0, 0, 7])
        self.size = rng.choice([300, 3000, 20000, 60000])
        self.threshold = rng.choice([f"{self.size}", f"{self.size // 2}", f"{3 * self.size}", "1op", "3op"])
        self.placement = rng.choice(["steered", "managed"])
        self.readable = rng.random() < 0.5
        self.windows = []
        self.buffers = []
        # Every byte that was put there with `ok` is in a completion.
        self.keeps_all = True

    @property
    def window(self):
        return self.windows[-1]


class Program:
    """A trace, its configuration, and what must be known of it to judge its results."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        rng = self.rng
        self.ranks = rng.randint(2, 5)
        self.per_node = rng.choice([1, 1, 2])
        self.crashes = self.ranks > 2 and rng.random() < 0.25
        self.names = 0
        self.rewinds = rng.random() < 0.6
        self.closes = rng.random() < 0.5
        self.mailboxes = [[Mailbox(rng, 1 + i) for i in range(rng.randint(1, 3))] for _ in range(self.ranks)]
        self.more = self.configuration()
        blocks = [self.block(rank) for rank in range(self.ranks)]
        if self.crashes:
            blocks.append(self.restart_block())
        self.text = "\n".join(["rvma-trace 1", f"ranks {self.ranks}"] + [line for block in blocks for line in block]) + "\n"

    def configuration(self):
        rng = self.rng
        self.fabric = rng.choice(list(FABRICS))
        more = [("workload.ranks_per_node", self.per_node), ("nic.mtu", rng.choice(["64B", "256B", "1KiB"])),
                ("nic.history", rng.choice([0, 1, 16])),
                ("nic.nack", rng.choice(["on", "on", "off"])), ("nic.get.timeout", "500us"), ("nic.reliability.idle", "12ms"),
                ("nic.binding.on_chip", rng.choice([2, 4096])), ("nic.reliability.messages", rng.choice([2, 1024]))]
        if rng.random() < 0.3:
            more += SPILLED + [("nic.windows.on_chip", 3)]
        if rng.random() < 0.5:
            more += SLOW_LINK
        if self.crashes:
            self.dead_node = rng.randrange(1, (self.ranks + self.per_node - 1) // self.per_node) if self.per_node < self.ranks else 0
            crash = rng.randint(20, 60)
            # At once, or later than its peers try.
            back = crash + rng.choice([1, 40, 3000])
            more += events((f"{crash}us", "node_crash", self.dead_node), (f"{back}us", "node_restart", self.dead_node))
        return more

    def dead_ranks(self):
        if not self.crashes:
            return []
        return [rank for rank in range(self.ranks) if rank // self.per_node == self.dead_node]

    def name(self, kind):
        self.names += 1
        return f"{kind}{self.names}"

    # -- What a rank does with its own windows.

    def open(self, mailbox):
        mailbox.windows.append(self.name("w"))
        readable = " readable" if mailbox.readable else ""
        return [f"  init_window {mailbox.window} mailbox={mailbox.number} threshold={mailbox.threshold} key={mailbox.key}"
                f" placement={mailbox.placement}{readable}"]

    def post(self, mailbox):
        name = self.name("b")
        mailbox.buffers.append(name)
        return [f"  post_buffer {mailbox.window} as={name} size={mailbox.size} seed={self.rng.randint(0, 99)}"]

    def close(self, mailbox):
        # What has completed, what comes back, what failed to be posted: each wait ends.
        waits = [f"  wait {name} how={self.rng.choice(WAYS)}" for name in mailbox.buffers]
        mailbox.buffers = []
        return [f"  close_window {mailbox.window}", *waits]

    def close_early(self, mailbox):
        mailbox.keeps_all = False
        return [*self.close(mailbox), *self.open(mailbox), *self.post(mailbox)]

    def rewind(self, mailbox):
        mailbox.keeps_all = False
        return [f"  rewind {mailbox.window} n={self.rng.choice([0, 0, 1, 2, 5])}"]

    def own_call(self, mailbox):
        window = mailbox.window
        choices = [(6, lambda: self.post(mailbox)), (2, lambda: [f"  inc_epoch {window}"]), (2, lambda: [f"  get_epoch {window}"]),
                   (2, lambda: [f"  get_buf_ptrs {window} n={self.rng.randint(0, 3)}"]),
                   (1, lambda: [f"  post_one_time_buffer mailbox={ONE_TIME + self.rng.randint(0, 1)} size=3000"]),
                   (1, lambda: [f"  init_window {self.name('x')} mailbox={mailbox.number} threshold=8"])]
        if self.rewinds:
            choices.append((2, lambda: self.rewind(mailbox)))
        if self.closes:
            choices.append((1, lambda: self.close_early(mailbox)))
        return self.rng.choices([call for _, call in choices], [weight for weight, _ in choices])[0]()

    # -- What it does with those of others, and its own.

    def put_or_get(self):
        rng = self.rng
        rank = rng.randrange(self.ranks)
        mailbox = rng.choice(self.mailboxes[rank])
        number, key = mailbox.number, mailbox.key
        if rng.random() < 0.15:
            number, key = rng.choice([ONE_TIME, ONE_TIME + 1, 99]), 0
        if rng.random() < 0.05:
            key = 8
        size = rng.choice([0, 1, 64, mailbox.size // 3, mailbox.size // 2, mailbox.size, mailbox.size + 1])
        offset = rng.choice([0, 0, 0, mailbox.size // 2, max(0, mailbox.size - size), mailbox.size, 2**64 - 1])
        name = self.name("p")
        kind = "get" if rng.random() < 0.15 else "put"
        lines = [f"  {kind} as={name} rank={rank} mailbox={number} size={size} offset={offset} key={key}"]
        if rng.random() < 0.2:
            lines.append(f"  wait {name} how={rng.choice(WAYS)}")
        return lines

    def block(self, rank):
        rng = self.rng
        own = self.mailboxes[rank]
        lines = [f"rank {rank}"]
        for mailbox in own:
            lines += self.open(mailbox)
            for _ in range(rng.randint(0, 3)):
                lines += self.post(mailbox)
        if rng.random() < 0.4:
            lines += [f"  init_window {self.name('c')} mailbox={CATCH_ALL} threshold=2000 catch_all"]
            lines += [f"  post_buffer c{self.names} size=30000"] * rng.randint(0, 5)
        if self.crashes:
            lines += self.acquaint(rank)
        lines.append("  barrier")
        for _ in range(rng.randint(8, 40)):
            draw = rng.random()
            if draw < 0.45:
                # Several at a time, so that calls meet messages under way.
                for _ in range(rng.choice([1, 2, 4])):
                    lines += self.put_or_get()
            elif draw < 0.85:
                lines += self.own_call(rng.choice(own))
            else:
                lines.append(f"  compute {rng.randint(50, 3000)}ns")
        lines += ["  wait all", "  barrier"]
        # Nothing is in flight any more: what is in memory shows.
        for mailbox in own:
            lines += [f"  inc_epoch {mailbox.window}"] * (len(mailbox.buffers) + 1)
            lines += [f"  get_epoch {mailbox.window}", f"  get_buf_ptrs {mailbox.window} n=1", *self.close(mailbox)]
        return lines

    def acquaint(self, rank):
        """Who has never heard of a peer does not know that it is another after its crash (docs/explanation/reliability.md)."""
        puts = [f"  put rank={other} mailbox={KNOWN} size=0" for other in range(self.ranks)]
        return [f"  init_window known mailbox={KNOWN} threshold=1000op", "  post_buffer known size=8", "  barrier", *puts,
                "  wait all"]

    def restart_block(self):
        rank = self.rng.choice(self.dead_ranks())
        lines = [f"rank {rank} restart", f"  init_window again mailbox={self.mailboxes[rank][0].number} threshold=1op",
                 "  post_buffer again size=20000"]
        for _ in range(self.rng.randint(1, 8)):
            lines += self.put_or_get()
        return [*lines, "  wait all", "  inc_epoch again", "  close_window again"]


class CornersOfRandomPrograms(CornersTest):

    def judge_bytes(self, program, result):
        """Where nothing was taken back, all that was put is in completions."""
        judged = 0
        for rank, mailboxes in enumerate(program.mailboxes):
            if rank in program.dead_ranks():
                continue
            for mailbox in mailboxes:
                puts = [row for row in result.rows("puts.csv") if row["kind"] == "put" and row["dest"] == str(rank) and
                        int(row["mailbox"], 16) == mailbox.number]
                least = sum(int(row["size"]) for row in puts if row["status"] == "ok")
                most = least + sum(int(row["size"]) for row in puts if row["status"] in ("timeout", "unfinished"))
                found = sum(int(row["length"]) for row in result.rows("completions.csv")
                            if row["rank"] == str(rank) and row["window"] in mailbox.windows)
                self.assertLessEqual(found, most)
                if mailbox.keeps_all and not program.crashes:
                    self.assertGreaterEqual(found, least)
                    judged += 1
        return judged

    def run_program(self, seed):
        program = Program(seed)
        fabric = Fabric(program.fabric, seed)
        # The epoch of a sender that died, or gave up, may have held later ones back until its window was closed.
        def broken(result):
            units = result.stats()["units"]
            is_cut = any(unit["cut_off"] for name, unit in units.items() if name.endswith(".delivery"))
            return [window for mailboxes in program.mailboxes for mailbox in mailboxes for window in mailbox.windows
                    if program.crashes or is_cut]
        result = self.run_in(fabric, program.text, more=program.more, rnr_tries=program.rng.choice([0, 3, 30]),
                             restarted=program.dead_ranks(), broken=broken)
        return program, result

    def test_programs(self):
        seen = dict.fromkeys(("judged", "rewound", "cut", "completions", "refused", "retransmitted", "ok"), 0)
        for seed in range(FIRST, FIRST + PROGRAMS):
            with self.subTest(seed=seed):
                program, result = self.run_program(seed)
                seen["judged"] += self.judge_bytes(program, result)
                stats = result.stats()
                for unit, statistics in stats["units"].items():
                    if unit.endswith(".window_calls"):
                        seen["rewound"] += statistics["windows_rewound"]
                        seen["cut"] += statistics["messages_cut_off"]
                seen["completions"] += stats["totals"]["completions"]
                seen["retransmitted"] += stats["totals"]["packets"]["retransmitted"]
                seen["refused"] += sum(stats["totals"]["refusals"].values())
                seen["ok"] += stats["totals"]["ended"].get("ok", 0)
        # Programs that meet nothing show nothing.
        for what, count in seen.items():
            self.assertGreater(count, PROGRAMS // 10, seen)


if __name__ == "__main__":
    unittest.main()
