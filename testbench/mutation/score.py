"""Mutation score of the co-simulation: how many of the faults in the Verilog table it finds.

Runs cosim_mutants on every fault of faults.txt, or on a sample, and on the design without one. Prints the score and what
survived. Fails if less than 95 % of all are caught, if a fault survives that explained.txt does not explain, or if the design
without a fault differs from its twin. With --check-explained also if an explanation is not needed.

explained.txt has one explanation a line: FAULT | REASON, where FAULT is the description in faults.txt, * in it being any
text. It must hold for every fault that it fits: one that fits a fault that was caught is an error.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from arguments import at_least  # noqa: E402  (found only now)

LEAST = 95.0


def read_faults(path):
    with open(path, encoding="utf-8") as file:
        return {int(number): (what, place) for number, what, place in (line.rstrip("\n").split("\t") for line in file)}


def read_explained(path):
    explained = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fault, separator, reason = line.partition(" | ")
            if not separator or not reason.strip():
                sys.exit(f"{path}:{number}: expected FAULT | REASON")
            pattern = ".*".join(re.escape(part) for part in fault.strip().split("*"))
            explained.append({"fault": re.compile(pattern), "reason": reason.strip(), "line": number, "used": 0})
    return explained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="cosim_mutants")
    parser.add_argument("--faults", required=True, help="faults.txt of make_mutants.py")
    parser.add_argument("--explained", required=True)
    parser.add_argument("--operations", type=at_least(1), default=200000, help="lookups and commands for a fault that survives")
    parser.add_argument("--sample", type=at_least(1), help="so many of the faults only")
    parser.add_argument("--seed", type=at_least(0), default=1, help="chooses the sample")
    parser.add_argument("--check-explained", action="store_true", help="fail at explanations that are not needed")
    parser.add_argument("--verbose", action="store_true", help="print what each fault was caught by")
    arguments = parser.parse_args()

    faults = read_faults(arguments.faults)
    explained = read_explained(arguments.explained)
    numbers = sorted(faults)
    if arguments.sample:
        numbers = sorted(random.Random(arguments.seed).sample(numbers, min(arguments.sample, len(numbers))))

    command = [arguments.program, str(arguments.operations), "0"] + [str(number) for number in numbers]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    verdicts = {}
    for line in done.stdout.splitlines():
        number, verdict, cycles, difference = line.split("\t")
        verdicts[int(number)] = (verdict, int(cycles), difference)
    failures = []
    if done.returncode != 0 or sorted(verdicts) != [0] + numbers:
        failures.append(f"{arguments.program}: exit {done.returncode}, {len(verdicts)} verdicts of {len(numbers) + 1}")
    if verdicts.get(0, ("",))[0] != "survived":
        failures.append(f"the design without a fault differs from its twin: {verdicts.get(0)}")

    caught = 0
    unexplained = 0
    survivors = []
    for number in numbers:
        if number not in verdicts:
            continue
        verdict, cycles, difference = verdicts[number]
        what, place = faults[number]
        fitting = [entry for entry in explained if entry["fault"].fullmatch(what)]
        if verdict == "caught":
            caught += 1
            if arguments.verbose:
                print(f"caught {number}: {what} ({place}): {difference}")
            for entry in fitting:
                failures.append(f"{arguments.explained}:{entry['line']}: fits fault {number}, which is caught: {what}")
            continue
        for entry in fitting:
            entry["used"] += 1
        unexplained += not fitting
        survivors.append(f"survived {number}: {what} ({place}), {cycles} cycles: " +
                         (fitting[0]["reason"] if fitting else "NOT EXPLAINED"))
    if arguments.check_explained and not arguments.sample:
        for entry in explained:
            if entry["used"] == 0:
                failures.append(f"{arguments.explained}:{entry['line']}: explanation is not needed")

    score = 100.0 * caught / len(numbers)
    for line in survivors:
        print(line)
    print(f"{caught} of {len(numbers)} faults caught ({score:.2f} %), {len(survivors)} survived, "
          f"{len(survivors) - unexplained} of them explained")
    # Of a sample one fault is percents: there the explanations must do.
    if score < LEAST and not arguments.sample:
        failures.append(f"less than {LEAST:.0f} % caught")
    if unexplained:
        failures.append(f"{unexplained} not explained")
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
