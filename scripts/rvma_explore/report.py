"""rvma report DIR...: one self-contained HTML page from results."""

import argparse
import sys

from .files import exit_status, write_whole
from .report_load import Unreadable, read_directory
from .report_page import page

BAD_INPUT = 2


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="rvma report",
        description="Writes one self-contained HTML page about results: runs (rvma run --out), comparisons (rvma "
        "compare --out) and sweeps (rvma sweep). Several directories stand side by side.")
    parser.add_argument("directories", metavar="DIR", nargs="+", help="a directory with results")
    parser.add_argument("--output", metavar="F", default="report.html", help="file to write (default report.html)")
    parser.add_argument("--title", default="RVMA report", help="heading of the page")
    options = parser.parse_args(arguments)
    runs, comparisons, sweeps, failed = [], [], [], False
    for directory in options.directories:
        try:
            for kept, more in zip((runs, comparisons, sweeps), read_directory(directory)):
                kept.extend(more)
        except Unreadable as failure:
            print(f"rvma: error: report: {failure}", file=sys.stderr)
            failed = True
    if failed:
        return BAD_INPUT
    try:
        write_whole(options.output, page(options.title, runs, comparisons, sweeps))
    except OSError as failure:
        print(f"rvma: error: report: --output: cannot write {options.output}: {failure.strerror}", file=sys.stderr)
        return BAD_INPUT
    print(f"Report: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status("report", main, sys.argv[1:]))
