#!/usr/bin/env python3
"""Random traces over fabrics that lose, double, damage, delay and reorder, one run a seed, each checked by --check.

Every put must end with a status that the rules allow, completions must be exactly once, and no run may hang. A run in
which a wait cannot end is right only if some put ended `timeout`: what it carried may never have arrived.

    loss_soak.py --seeds 1000 [--first 1] [--jobs 2]

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
ALLOWED = {"ok", "timeout", "no_buffer", "busy"}
# What the generated traces provoke on purpose.
PROVOKED = {"no_mailbox", "bad_key", "bounds", "closed"}
SHAPES = [
    ["fabric.topology=automatic"],
    ["fabric.topology=fat_tree", "fabric.fat_tree.levels=2", "fabric.fat_tree.arity=4"],
    ["fabric.topology=dragonfly", "fabric.dragonfly.p=1", "fabric.dragonfly.a=3", "fabric.dragonfly.h=1",
     "fabric.dragonfly.groups=4"],
    ["fabric.topology=torus", "fabric.torus.dims=3x3"],
    ["fabric.topology=torus", "fabric.torus.dims=4x2", "fabric.torus.wrap=off"],
    ["fabric.topology=hyperx", "fabric.hyperx.dims=2x2", "fabric.hyperx.nodes_per_switch=2"],
]
SHORTEST = ["static", "adaptive", "spray"]
ROUTINGS = [*SHORTEST, "valiant", "ugal"]


def settings(seed):
    """The fabric of a seed, as --set arguments."""
    draw = random.Random(seed)
    pairs = [
        f"fabric.faults.drop={draw.randrange(0, 201)}e-3",
        f"fabric.faults.duplicate={draw.randrange(0, 201)}e-3",
        f"fabric.faults.corrupt={draw.randrange(0, 51)}e-3",
        f"fabric.faults.jitter={draw.choice([0, 0, 1, 5, 50])}us",
        f"fabric.faults.reverse={draw.choice([0, 0, 4, 64])}",
        f"nic.reliability.window={draw.choice([16, 128, 1024])}",
        f"nic.reliability.messages={draw.choice([4, 64, 1024])}",
        f"nic.nack={draw.choice(['on', 'on', 'off'])}",
        f"workload.ranks_per_node={draw.choice([1, 1, 2])}",
        f"nic.mtu={draw.choice(['256B', '1KiB', '4KiB'])}",
    ]
    shape = draw.choice(SHAPES)
    if len(shape) > 1:
        # A fat tree has no ways longer than the shortest.
        routings = SHORTEST if "fat_tree" in shape[0] else ROUTINGS
        shape = shape + [f"fabric.routing={draw.choice(routings)}",
                         f"fabric.switch.flow_control={draw.choice(['credit', 'drop'])}",
                         f"fabric.switch.forwarding={draw.choice(['store_and_forward', 'cut_through'])}",
                         f"fabric.switch.buffer={draw.choice(['256KiB', '1MiB'])}",
                         f"nic.congestion.control={draw.choice(['swift', 'none'])}"]
    return pairs + shape


def trace_of(seed):
    draw = random.Random(seed * 7919)
    ranks = draw.choice([2, 3, 5, 8])
    return ["random", f"--ranks={ranks}", f"--count={draw.randrange(10, 60)}", f"--size={draw.choice(['2KiB', '20KiB'])}",
            f"--seed={seed}"]


def judge(process, stats):
    if process.returncode not in (0, 1):
        return f"exit status {process.returncode}: {process.stderr[-300:]}"
    if not stats["check"]["passed"]:
        return f"--check failed: {process.stderr[-600:]}"
    ended = {status for status, count in stats["totals"]["ended"].items() if count}
    if stats["run"]["partial"]:
        return f"did not end: {process.stderr[-300:]}"
    if ended - ALLOWED - PROVOKED:
        return f"puts ended {sorted(ended)}"
    if process.returncode == 1 and "timeout" not in ended:
        return f"a wait cannot end though no put timed out: {process.stderr[-300:]}"
    return ""


def run(seed, directory):
    trace = directory / f"{seed}.trace"
    out = directory / f"{seed}.out"
    generate = [RVMA, "gen", *trace_of(seed), f"--output={trace}"]
    subprocess.run(generate, check=True, capture_output=True)
    command = [RVMA, "run", str(trace), "--check", "--quiet", f"--seed={seed}", "--wall-limit=120s", f"--out={out}"]
    for pair in settings(seed):
        command += ["--set", pair]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    stats = json.loads((out / "stats.json").read_text()) if (out / "stats.json").exists() else None
    problem = judge(process, stats) if stats else f"no results: {process.stderr[-300:]}"
    for file in [trace, *out.glob("*")]:
        file.unlink()
    return seed, problem, " ".join(generate) + "\n  " + " ".join(command), stats


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=at_least(1), default=40)
    parser.add_argument("--first", type=at_least(0), default=1)
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count())
    options = parser.parse_args()
    failed = 0
    totals = collections.Counter()
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run, seed, pathlib.Path(directory))
                for seed in range(options.first, options.first + options.seeds)]
        for future in runs:
            seed, problem, command, stats = future.result()
            if problem:
                failed += 1
                print(f"seed {seed}: {problem}\n  {command}", flush=True)
            if stats:
                totals.update({"puts": stats["totals"]["puts"], **stats["totals"]["ended"]})
                totals.update({f"packets {name}": count for name, count in stats["totals"]["packets"].items()})
    print(", ".join(f"{name} {count}" for name, count in totals.items() if count))
    print(f"{options.seeds} seeds from {options.first}: {failed} failed")
    # A soak that lost nothing has shown nothing.
    return 1 if failed or not totals["packets dropped"] or not totals["packets retransmitted"] else 0


if __name__ == "__main__":
    sys.exit(main())
