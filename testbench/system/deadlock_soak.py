#!/usr/bin/env python3
"""Two senders, a receiver with two binding entries, many messages of many packets: every put must end, whatever the seed.

Each sender keeps more messages under way than the receiver can bind, so that most are refused `busy` again and again, while the
packets of those that are bound arrive in any order, late, twice or not at all. A NIC that drops what it has acknowledged, or that
lets a refused message bind later, stops here. Each run is checked by --check.

    deadlock_soak.py --seeds 1000 [--first 1] [--jobs 2]

Prints one line for each seed that fails, with the command that repeats it. RVMA names the program.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from arguments import at_least  # noqa: E402  (found only now)

RVMA = os.environ.get("RVMA", "build/bin/rvma")
MTU = 256
SENDERS = (1, 2)


def settings(seed):
    """The fabric of a seed, as --set arguments. Retries of `busy` without end in sight: a message that starves shows."""
    draw = random.Random(seed)
    pairs = [
        "nic.binding.on_chip=2",
        f"nic.mtu={MTU}B",
        "nic.reliability.rnr_tries=100000",
        f"nic.reliability.rnr_delay={draw.choice(['200ns', '1us', '5us'])}",
        f"nic.reliability.window={draw.choice([16, 128, 1024])}",
        f"nic.reliability.messages={draw.choice([4, 64, 1024])}",
        f"nic.nack={draw.choice(['on', 'off'])}",
        f"fabric.faults.drop={draw.choice([0, 1, 20, 50])}e-3",
        f"fabric.faults.duplicate={draw.choice([0, 50])}e-3",
        f"fabric.faults.jitter={draw.choice([0, 0, 1, 10])}us",
        f"fabric.faults.reverse={draw.choice([0, 4, 64])}",
    ]
    if draw.random() < 0.7:
        pairs += ["fabric.topology=fat_tree", "fabric.fat_tree.levels=2", "fabric.fat_tree.arity=4",
                  f"fabric.routing={draw.choice(['static', 'adaptive', 'spray'])}"]
    return pairs


def trace_of(seed):
    draw = random.Random(seed * 7919)
    puts = draw.randrange(10, 40)
    together = draw.choice([1, 3, puts])
    sizes = {sender: [MTU * draw.randrange(1, 30) + draw.randrange(1, MTU + 1) for _ in range(puts)] for sender in SENDERS}
    most = max(max(those) for those in sizes.values())
    lines = ["rvma-trace 1", "ranks 3", "rank 0"]
    total = len(SENDERS) * puts
    lines += [f"  init_window w mailbox=0x10 threshold={together}op", f"  repeat {-(-total // together)}",
              f"    post_buffer w size={most}", "  end", "  barrier", "  barrier"]
    for sender in SENDERS:
        lines += [f"rank {sender}", "  barrier"]
        lines += [f"  put rank=0 mailbox=0x10 size={size}" for size in sizes[sender]]
        lines += ["  wait all", "  barrier"]
    return "\n".join(lines) + "\n", total


def run(seed, directory):
    trace = directory / f"{seed}.trace"
    out = directory / f"{seed}.out"
    text, puts = trace_of(seed)
    trace.write_text(text)
    command = [RVMA, "run", str(trace), "--check", "--quiet", f"--seed={seed}", "--wall-limit=120s", f"--out={out}"]
    for pair in settings(seed):
        command += ["--set", pair]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    stats = json.loads((out / "stats.json").read_text()) if (out / "stats.json").exists() else None
    problem = ""
    if process.returncode != 0 or stats is None:
        problem = f"exit status {process.returncode}: {process.stderr[-600:]}"
    elif stats["totals"]["ended"].get("ok", 0) != puts:
        problem = f"puts ended {stats['totals']['ended']}"
    if not problem:
        trace.unlink()
    for file in out.glob("*"):
        file.unlink()
    return seed, problem, " ".join(command), stats


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=at_least(1), default=25)
    parser.add_argument("--first", type=at_least(0), default=1)
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count())
    parser.add_argument("--print-trace", type=at_least(0), metavar="SEED", help="print the trace of a seed and end")
    options = parser.parse_args()
    if options.print_trace is not None:
        print(trace_of(options.print_trace)[0], end="")
        return 0
    failed = 0
    totals = collections.Counter()
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, seed, pathlib.Path(directory))
                for seed in range(options.first, options.first + options.seeds)]
        for future in runs:
            seed, problem, command, stats = future.result()
            if problem:
                failed += 1
                print(f"seed {seed}: {problem}\n  deadlock_soak.py --print-trace {seed}\n  {command}", flush=True)
            if stats:
                totals.update({"puts": stats["totals"]["puts"], **stats["totals"]["ended"]})
                totals.update({f"packets {name}": count for name, count in stats["totals"]["packets"].items()})
                totals["refusals busy"] += stats["totals"]["refusals"]["busy"]
    print(", ".join(f"{name} {count}" for name, count in totals.items() if count))
    print(f"{options.seeds} seeds from {options.first}: {failed} failed")
    # Without refusals `busy` nothing has been shown.
    return 1 if failed or not totals["refusals busy"] else 0


if __name__ == "__main__":
    sys.exit(main())
