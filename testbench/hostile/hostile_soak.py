#!/usr/bin/env python3
"""A hostile node against a victim and an honest sender, one run a seed.

    hostile_soak.py PROGRAM --seeds 1000 [--first 1] [--attacks 600] [--jobs 2]

Each seed runs with refusals told and not told. The first seeds are also run
- with another layout of the victim's memory: addresses, buffer lengths and numbers of posted buffers. What the victim sends must
  not differ by a byte;
- with an address planted in a payload, to show that the search for secrets would find one;
- with nothing but what a stranger can send and nack = off: then the victim must not answer at all.

Prints one line for each run that fails, with its command.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from arguments import at_least  # noqa: E402  (found only now)

LAYOUTS = 10  # seeds that are run with both layouts, a planted leak and strangers


class Soak:
    def __init__(self, program, attacks):
        self.program = program
        self.attacks = attacks

    def run(self, seed, *more):
        command = [self.program, "--seed", str(seed), "--attacks", str(self.attacks), *more]
        process = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return process.returncode, process.stdout + process.stderr, " ".join(command)

    def digest(self, text):
        found = re.search(r"digest ([0-9a-f]+)", text)
        return found.group(1) if found else None

    def problems(self, seed, is_thorough):
        found = []
        texts = {}
        for nack in ("on", "off"):
            status, texts[nack], command = self.run(seed, "--nack", nack)
            if status != 0:
                found.append(f"{command}: exit status {status}\n{texts[nack][-800:]}")
        if not is_thorough:
            return found, texts["on"]
        status, text, command = self.run(seed, "--layout", "1")
        if status != 0 or self.digest(text) != self.digest(texts["on"]) or self.digest(text) is None:
            found.append(f"{command}: the wire depends on where and how long the victim's buffers are\n{text[-400:]}")
        status, text, command = self.run(seed, "--plant-leak")
        if status != 1 or "the first a physical address" not in text:
            found.append(f"{command}: a planted address was not found\n{text[-400:]}")
        status, text, command = self.run(seed, "--nack", "off", "--tricks", "stranger")
        if status != 0 or "; 0 frames to the hostile node" not in text:
            found.append(f"{command}: a stranger was answered\n{text[-400:]}")
        return found, texts["on"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=at_least(1), default=40)
    parser.add_argument("--first", type=at_least(0), default=1)
    parser.add_argument("--attacks", type=at_least(1), default=600)
    parser.add_argument("--jobs", type=at_least(1), default=os.cpu_count())
    options = parser.parse_args()
    soak = Soak(options.program, options.attacks)
    seeds = range(options.first, options.first + options.seeds)
    failed = 0
    totals = {"bound": 0, "refused": 0, "ignored": 0}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(soak.problems, seed, seed < options.first + LAYOUTS) for seed in seeds]
        for future in runs:
            found, text = future.result()
            failed += 1 if found else 0
            for problem in found:
                print(problem, flush=True)
            counts = re.search(r"(\d+) hostile messages bound .*?, (\d+) refused, (\d+) hostile packets ignored", text)
            for name, count in zip(totals, counts.groups() if counts else (0, 0, 0)):
                totals[name] += int(count)
    print(", ".join(f"hostile {name} {count}" for name, count in totals.items()))
    print(f"{options.seeds} seeds from {options.first}: {failed} failed")
    # An attacker of whom nothing is bound, refused or ignored has attacked nothing.
    return 1 if failed or not all(totals.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
