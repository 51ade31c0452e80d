"""Line and toggle coverage of the Verilog core, over all instances and all given runs.

A line (or branch) counts as run if it ran in any instance of any shape; a bit counts as toggled if it did in any. Bits
that cannot toggle are listed with their reasons in the exceptions file, one a line:

    MODULE SIGNAL REASON        (SIGNAL is a regular expression over NAME or NAME[BIT])
    MODULE line:TEXT REASON     (TEXT is a regular expression over the source line without its blanks)

Fails if a line never runs or a bit never toggles without an exception, or if an exception is not needed.
"""

import argparse
import collections
import os
import re
import sys


def points(path):
    """Yields (kind, module, file, line, column, what, count) of one coverage file."""
    with open(path, encoding="latin-1") as file:
        for record in file:
            if not record.startswith("C '"):
                continue
            body, count = record[3:].rsplit("' ", 1)
            fields = dict(part.split("\x02", 1) for part in body.split("\x01") if "\x02" in part)
            kind, module = fields["page"].split("/", 1)
            # A module with parameters is named module__Parameters.
            yield (kind.replace("v_", ""), module.split("__")[0], fields["f"], int(fields["l"]), int(fields["n"]),
                   fields["o"], int(count))


def source_line(file, number):
    with open(file, encoding="utf-8") as source:
        return "".join(source.read().splitlines()[number - 1].split())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exceptions", required=True)
    parser.add_argument("data", nargs="+")
    arguments = parser.parse_args()

    counts = collections.Counter()
    for path in arguments.data:
        for *point, count in points(path):
            counts[tuple(point)] += count
    exceptions = []
    with open(arguments.exceptions, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                module, signal, reason = line.split(None, 2)
                exceptions.append({"module": module, "signal": re.compile(signal), "line": number, "used": 0})
                assert reason.strip()

    total = collections.Counter()
    missed = collections.Counter()
    excused = collections.Counter()
    failures = []
    for point, count in sorted(counts.items()):
        kind, module, file, line, _, what = point
        total[kind] += 1
        if count != 0:
            continue
        text = what if kind == "toggle" else "line:" + source_line(file, line)
        fitting = [e for e in exceptions if e["module"] == module and e["signal"].fullmatch(text)]
        if fitting:
            excused[kind] += 1
            for exception in fitting:
                exception["used"] += 1
            continue
        missed[kind] += 1
        failures.append(f"{os.path.basename(file)}:{line}: {kind} {module} {what}: never")
    for exception in exceptions:
        if exception["used"] == 0:
            failures.append(f"{arguments.exceptions}:{exception['line']}: exception is not needed")

    for kind in sorted(total):
        covered = total[kind] - missed[kind] - excused[kind]
        print(f"{kind}: {covered} of {total[kind]} ({100.0 * covered / total[kind]:.2f} %), {excused[kind]} excepted")
    for failure in failures:
        print(failure)
    if "line" not in total or "toggle" not in total:
        print("no line or no toggle points: was the build made with RVMA_RTL_COVERAGE?")
        return 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
