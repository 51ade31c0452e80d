"""rvma regress [DIR]: runs the regression suite of DIR and compares exactly with what is stored there.
docs/how-to/regress.md says when a change of the stored figures is acceptable."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from . import regress_differences, regress_results, regress_suite
from .files import check_writable, exit_status, os_error_text, write_whole
from .mistakes import Mistakes, Position

SAME, DIFFERENT, BAD = 0, 1, 2
_SHOWN = 20
_NO_VERILOG = "Debian package verilator"  # what a program without the Verilog table says
_NO_PROTOBUF = "built without protobuf"


@dataclass
class Outcome:
    """Of one run. `status`: same, different, failed (it did not run as it has to), missing (nothing to compare with),
    damaged (what is stored cannot be read), skipped."""
    run: regress_suite.Run
    status: str
    lines: list = field(default_factory=list)
    grouped: list = None  # of differences: a line for each statistic; None: as `lines`
    results: dict = None
    seconds: float = 0.0


class Bench:
    """Runs the program in a scratch directory for each run, from within the suite's directory."""

    def __init__(self, program, presets, suite):
        self.program, self.presets, self.suite = program, presets, suite

    def measure(self, run):
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="rvma-regress-") as scratch:
            outcome = self._measure(run, Path(scratch))
        outcome.seconds = time.monotonic() - start
        return outcome

    def _rvma(self, scratch, *arguments):
        words = [str(word).replace(regress_suite.WORK, str(scratch)) for word in arguments]
        return subprocess.run([self.program, *words], cwd=self.suite.directory, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def _measure(self, run, scratch):
        # 1. The trace.
        trace = run.trace
        for command, arguments in (("gen", run.gen), ("import", run.imported)):
            if arguments:
                trace = str(scratch / "trace")
                answer = self._rvma(scratch, command, *arguments, "--output", trace)
                if answer.returncode == 2 and _NO_PROTOBUF in answer.stderr:
                    return Outcome(run, "skipped", ["this program was built without protobuf"])
                if answer.returncode != 0:
                    return _failed(run, f"rvma {command}", answer)
        # 2. The run.
        words = ["run", trace, "--quiet", "--out", scratch / "out", "--protocol", run.protocol, "--table", run.table,
                 "--seed", run.seed]
        if run.check:
            words.append("--check")
        if run.preset != "default":
            words += ["--config", self.presets / f"{run.preset}.json"]
        if run.config:
            words += ["--config", run.config]
        for setting in run.settings:
            words += ["--set", setting]
        answer = self._rvma(scratch, *words)
        if answer.returncode == 2 and _NO_VERILOG in answer.stderr:
            return Outcome(run, "skipped", ["this program was built without the Verilog table"])
        if answer.returncode != 0:
            return _failed(run, "rvma run", answer)
        # 3. What it says, beside what is stored.
        return self._compare(run, regress_results.read(scratch / "out"))

    def _compare(self, run, results):
        path = self.suite.expectation_path(run)
        if not path.exists():
            hint = f"create it with: rvma regress --update --filter '^{re.escape(run.expectation)}'"
            return Outcome(run, "missing", [f"there is no stored expectation {path}; {hint}"], results=results)
        try:
            expected = regress_results.parse(path.read_text())
        except (ValueError, KeyError, TypeError, AttributeError, OSError) as mistake:
            return Outcome(run, "damaged", [f"{path}: no expectation can be read from it ({mistake})"], results=results)
        return _different(run, expected, results)


def _different(run, expected, results):
    lines = regress_differences.all_differences(expected, results)
    grouped = regress_differences.by_statistic(expected, results)
    return Outcome(run, "different" if lines else "same", lines, grouped, results)


def _failed(run, what, answer):
    said = [line for line in answer.stderr.splitlines() if line][:_SHOWN]
    return Outcome(run, "failed", [f"{what} ended with status {answer.returncode}, expected 0", *said])


def _show(outcome, limit):
    """Two levels: what happened to the run, then its lines."""
    count = len(outcome.lines)
    head = {"same": "same", "different": f"{count} difference{'s' if count != 1 else ''}", "failed": "failed",
            "missing": "no expectation", "damaged": "damaged expectation", "skipped": "skipped"}[outcome.status]
    lines = outcome.lines if outcome.grouped is None or limit >= count else outcome.grouped
    if lines is not outcome.lines:
        head += f" in {len(lines)} lines; --all shows each"
    print(f"{outcome.run.name}: {head}")
    for line in lines[:limit]:
        print(f"  {line}")
    if len(lines) > limit:
        print(f"  ... and {len(lines) - limit} more lines")


def _junit(path, outcomes, stale):
    suite = ElementTree.Element("testsuite", name="rvma regress", tests=str(len(outcomes) + len(stale)))
    failures = len(stale)
    skipped = 0
    for outcome in outcomes:
        case = ElementTree.SubElement(suite, "testcase", classname="rvma.regress", name=outcome.run.name,
                                      time=f"{outcome.seconds:.3f}")
        if outcome.status == "skipped":
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=outcome.lines[0])
        elif outcome.status != "same":
            failures += 1
            fault = ElementTree.SubElement(case, "failure", type=outcome.status, message=_printable(outcome.lines[0]))
            fault.text = _printable("\n".join(outcome.lines))
    for file in stale:
        case = ElementTree.SubElement(suite, "testcase", classname="rvma.regress", name=file.name, time="0")
        ElementTree.SubElement(case, "failure", type="stale", message=_stale_text(file))
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    write_whole(path, ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n")


def _printable(text):
    """XML has no way to write most control characters."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def _stale_text(path):
    return f"{path}: no run of the suite has this expectation; rvma regress --update removes it"


def _compare(suite, outcomes, stale, limit):
    for outcome in outcomes:
        if outcome.status != "same":
            _show(outcome, limit)
    for path in stale:
        print(_stale_text(path))
    counts = {status: sum(outcome.status == status for outcome in outcomes)
              for status in ("same", "different", "failed", "missing", "damaged", "skipped")}
    said = [f"{count} {status}" for status, count in counts.items() if count] + ([f"{len(stale)} stale"] if stale else [])
    print(f"{len(outcomes)} runs: {', '.join(said)}")
    return SAME if counts["same"] + counts["skipped"] == len(outcomes) and not stale else DIFFERENT


def _update(suite, outcomes, stale, limit):
    """Writes what the runs gave, and lists for review what that changed. `stale`: files to remove."""
    status = SAME
    for outcome in outcomes:  # before anything is written
        path = suite.expectation_path(outcome.run)
        if path.exists() and not path.is_file():
            raise OSError(f"{path}: is no file, where an expectation belongs; nothing was written")
    written = {}
    changed = 0
    for outcome in outcomes:
        if outcome.status in ("failed", "skipped"):
            _show(outcome, limit)
            status = DIFFERENT if outcome.status == "failed" else status
            continue
        first = written.setdefault(outcome.run.expectation, outcome)
        if first is not outcome:  # another table, which has to give the same
            other = _different(outcome.run, first.results, outcome.results)
            if other.lines:
                status = DIFFERENT
                note = f"not as {first.run.name}, with the same expectation"
                _show(Outcome(other.run, "different", [note, *other.lines], [note, *other.grouped]), limit)
            continue
        if outcome.status == "same":
            continue
        path = suite.expectation_path(outcome.run)
        path.parent.mkdir(exist_ok=True)
        write_whole(path, regress_results.dump(outcome.results))
        changed += 1
        if outcome.status == "missing":
            print(f"{outcome.run.expectation}: new, {len(outcome.results['stats'])} statistics")
        elif outcome.status == "damaged":
            print(f"{outcome.run.expectation}: was damaged, written anew, {len(outcome.results['stats'])} statistics")
            print(f"  {outcome.lines[0]}")
        else:
            _show(outcome, limit)
    for path in stale:
        path.unlink()
        print(f"{path.name}: removed, no run of the suite has it")
    print(f"{len(written)} expectations: {changed} written, {len(written) - changed} unchanged, {len(stale)} removed")
    return status


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="rvma regress", description=__doc__.splitlines()[0],
                                     epilog="Exit status: 0 all the same; 1 something differs; 2 a bad suite or "
                                            "command line.")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="directory of the suite, with regress.json (default: the "
                        "traces beside the program)")
    parser.add_argument("--update", action="store_true", help="store what the runs give, and list what that changed")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only runs whose names match")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count() or 1, help="runs at a time")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit XML report")
    parser.add_argument("--all", action="store_true", help=f"show all differences of a run, not only {_SHOWN}")
    parser.add_argument("--list", action="store_true", help="list the runs and end")
    return parser.parse_args(arguments)


def _choose(suite, pattern):
    try:
        chosen = [run for run in suite.runs if re.search(pattern, run.name)]
    except re.error as mistake:
        raise _command_line_mistake(f"--filter: {mistake}", "expected a regular expression") from None
    if not chosen:
        raise _command_line_mistake(f"--filter: no run's name matches '{pattern}'", "see --list")
    return chosen


def _check_junit(path):
    try:
        if path is not None:
            check_writable(path)
    except OSError as failure:
        raise _command_line_mistake(f"--junit: cannot write {path}: {failure.strerror}",
                                    "expected a file in a directory that is there") from None


def _command_line_mistake(what, expected):
    mistakes = Mistakes()
    mistakes.add(Position("rvma"), f"regress: {what}", expected)
    return mistakes


def main(arguments):
    options = _parse(arguments)
    try:
        program = shutil.which(os.environ.get("RVMA", ""))
        if program is None:
            raise _command_line_mistake("the program cannot be run", "expected its path in RVMA")
        program = os.path.abspath(program)
        share = Path(program).parent.parent / "share" / "rvma"
        if options.jobs < 1:
            raise _command_line_mistake(f"--jobs: {options.jobs}", "expected at least 1")
        directory = Path(options.dir) if options.dir is not None else share / "traces"
        _check_junit(options.junit)
        suite = regress_suite.load(directory, share / "presets")
        runs = _choose(suite, options.filter)
    except Mistakes as mistakes:
        mistakes.print()
        return BAD
    if options.list:
        print("\n".join(run.name for run in runs))
        return SAME
    bench = Bench(program, share / "presets", suite)
    limit = sys.maxsize if options.all else _SHOWN
    try:
        # With --filter the user looks at a part: nothing else is told of, let alone removed.
        stale = [] if options.filter else suite.stale_expectations()
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = list(pool.map(bench.measure, runs))
        if options.junit:
            _junit(options.junit, outcomes, stale)
        return (_update if options.update else _compare)(suite, outcomes, stale, limit)
    except OSError as failure:
        print(f"rvma: error: regress: {os_error_text(failure) if failure.errno else failure}", file=sys.stderr)
        return BAD


if __name__ == "__main__":
    sys.exit(exit_status("regress", main, sys.argv[1:]))
