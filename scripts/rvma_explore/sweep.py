"""`rvma sweep SPEC.json`: expands a specification into design points, runs those that have no outcome yet, and gathers
all into one table. Exit status: 0 every point is ok; 1 some are not; 2 the specification or the command line is wrong."""

import argparse
import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

from . import sweep_engines
from .files import exit_status, os_error_text, partial_of, sha256_of, write_whole
from .mistakes import Mistakes, command_line_mistake
from .program import Program
from .sweep_gather import MANIFEST_SCHEMA, gather, read_manifest
from .sweep_plan import make_plan
from .sweep_point import read_outcome
from .sweep_spec import read_spec

FINE, FAILED, BAD_INPUT, INTERNAL = 0, 1, 2, 3
MOST_POINTS = 10_000
_LISTED = 20


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        # Sub-commands that write one file have --output.
        is_output = message.startswith("unrecognized arguments:") and re.search(r" --output(=| |$)", message)
        raise command_line_mistake(message, "did you mean --out?" if is_output else "see rvma sweep --help")


def _positive(text):
    if not text.isdigit() or not 0 < int(text) <= 100_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of jobs")
    return int(text)


def parse_arguments(arguments):
    """Options; what stands behind `--` is for Snakemake."""
    more = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    parser = _Parser(prog="rvma sweep", allow_abbrev=False, usage="rvma sweep SPEC.json [options] [-- SNAKEMAKE-OPTIONS]",
                     description="Expands a specification into design points, runs those that are not finished, and "
                     "gathers results.csv and results.sqlite. docs/reference/sweep.md describes all files.")
    parser.add_argument("spec", nargs="?", metavar="SPEC.json", help="the specification (JSON, comments allowed)")
    parser.add_argument("--out", metavar="DIR", help="directory of the sweep (default: SPEC.sweep)")
    parser.add_argument("--engine", choices=("snakemake", "local"), help="snakemake (default), or processes of this one")
    parser.add_argument("--jobs", type=_positive, metavar="N", help="runs at a time (default: one a processor)")
    parser.add_argument("--profile", default="", metavar="NAME", help="of Snakemake: slurm is shipped; or a directory")
    parser.add_argument("--batch", type=_positive, metavar="N", help="points of a job of Snakemake, one after another "
                        "(default: at most 20, fewer if that leaves some jobs without)")
    parser.add_argument("--dry-run", action="store_true", help="check everything and list the points; run nothing")
    parser.add_argument("--yes", action="store_true", help=f"go on with more than {MOST_POINTS} points")
    parser.add_argument("--quiet", action="store_true", help="print no summary and no progress")
    parser.add_argument("--gather", metavar="DIR", help="only gather what is finished in a sweep's directory, also while "
                        "it runs")
    options = parser.parse_args(arguments)
    if (options.spec is None) == (options.gather is None):
        raise command_line_mistake("no specification given" if options.spec is None else "a specification and --gather",
                                   "expected rvma sweep SPEC.json, or rvma sweep --gather DIR")
    if options.engine == "local" and (options.profile or options.batch or more):
        raise command_line_mistake("--engine local has no profiles, batches and options of Snakemake")
    options.more = more
    return options


# ------------------------------------------------------------------------------------------------- the sweep's directory


def default_directory(spec_path):
    return Path(Path(spec_path).name.removesuffix(".json") + ".sweep")


def check_directory(directory):
    """That it is new, empty, or a sweep's."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise command_line_mistake(f"--out: {directory} is no directory")
    held = set(os.listdir(directory))
    if held and not held & {"sweep.json", "sweep.lock"}:
        raise command_line_mistake(f"--out: {directory} holds other things than a sweep",
                                   "expected a new or an empty directory, or one of an earlier call")


@contextlib.contextmanager
def locked(directory):
    """The directory is this sweep's alone until the file is closed, here and in processes that inherit it."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "sweep.lock", "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise command_line_mistake(f"{directory} is in use by another rvma sweep",
                                       "expected to wait for it, or another --out") from None
        yield lock


def unfinished(directory, plan):
    """Points without an outcome, and those that the machine killed: they get another chance."""
    left = []
    for point in plan.points:
        outcome = read_outcome(directory, point.id)
        if outcome is None or outcome["status"] == "killed":
            left.append(point)
    return left


def write_manifest(directory, spec, plan):
    points = [{"id": p.id, "trace": p.trace.label, "protocol": p.protocol, "seed": p.seed, "values": p.values}
              for p in plan.points]
    write_whole(directory / "sweep.json", json.dumps({
        "schema": MANIFEST_SCHEMA, "axes": plan.axes, "columns": spec.columns, "points": points}, indent=1) + "\n")


def write_jobs(directory, spec, todo):
    """What each point that is left needs to run, whatever becomes of the specification."""
    (directory / "points").mkdir(exist_ok=True)
    shutil.rmtree(directory / "jobs", ignore_errors=True)
    (directory / "jobs").mkdir()
    for leftover in (directory / "points").glob(".*"):  # of a sweep that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    base = []
    if spec.config:
        copy = directory / "inputs" / f"{sha256_of(spec.config)[:20]}.json"
        copy.parent.mkdir(exist_ok=True)
        write_whole(copy, spec.config.read_bytes())
        base = ["--config", str(copy.absolute())]
    for point in todo:
        (directory / "points" / f"{point.id}.json").unlink(missing_ok=True)
        job = {"arguments": run_arguments(spec, point, base), "cwd": os.getcwd(), "retries": spec.retries, "keep": spec.keep,
               "wall_limit": spec.wall_limit,
               "trace": {"path": str(point.trace.path), "sha256": point.trace.sha256, "stamp": point.trace.stamp}}
        with partial_of(directory / "jobs" / f"{point.id}.json") as partial:
            partial.write_text(json.dumps(job))


def run_arguments(spec, point, base):
    arguments = ["run", str(point.trace.path), *base]
    for key, text in {**spec.sets, **point.sets}.items():
        arguments += ["--set", f"{key}={text}"]
    arguments += ["--protocol", point.protocol, "--seed", str(point.seed), "--table", spec.table]
    for name, value in (("limit", spec.limit), ("wall-limit", spec.wall_limit), ("memory-limit", spec.memory_limit)):
        arguments += [f"--{name}", value] if value else []
    return arguments + (["--check"] if spec.check else [])


# ---------------------------------------------------------------------------------------------------------------- output


def describe_point(number, point):
    """`point`: of the manifest, or a row with its axes taken out."""
    values = " ".join(f"{key}={text}" for key, text in point["values"].items())
    return " ".join(filter(None, [f"{number:>6}", point["trace"], point["protocol"], f"seed={point['seed']}", values]))


def print_warnings(spec, plan):
    """Keys that do nothing in some runs, each once. What is set for all points may be meant for some of them: for one of
    two protocols, say."""
    counts = Counter(warning for point in plan.points for warning in point.warnings)
    for warning, count in counts.items():
        if warning.split(" ")[0] in spec.sets and count < len(plan.points):
            continue
        print(f"rvma: warning: {warning} (at {count} of {len(plan.points)} points)", file=sys.stderr)


def print_plan(spec, plan, todo, directory):
    print(headline(spec, plan))
    print(f"{len(todo)} to run, {len(plan.points) - len(todo)} finished in {directory}")
    for number, p in enumerate(plan.points[:_LISTED]):
        print(describe_point(number, {"trace": p.trace.label, "protocol": p.protocol, "seed": p.seed, "values": p.values}))
    if len(plan.points) > _LISTED:
        print(f"... and {len(plan.points) - _LISTED} more")


def headline(spec, plan):
    def many(count, noun, nouns=""):
        return f"{count} {noun if count == 1 else nouns or noun + 's'}"
    parts = [many(len(spec.traces), "trace"), many(len(plan.axes), "axis", "axes"), many(len(spec.protocols), "protocol"),
             many(len(spec.seeds), "seed")]
    twins = f"; {many(plan.twins, 'point')} left out, the same run as another" if plan.twins else ""
    return f"{spec.source}: {many(len(plan.points), 'point')} ({', '.join(parts)}){twins}"


def print_results(directory, manifest_points, rows, notes, quiet):
    """The summary, and on stderr the points that have not gone well; those that have not run are only counted. Returns the
    exit status."""
    bad = [(row, point) for row, point in zip(rows, manifest_points) if row["status"] not in ("ok", "not_run")]
    for note in notes:
        print(f"rvma: warning: {note}", file=sys.stderr)
    for row, point in bad[:_LISTED]:
        print(f"{describe_point(row['point'], point)}: {row['status']}" + (f": {row['reason']}" if row["reason"] else ""),
              file=sys.stderr)
    if len(bad) > _LISTED:
        print(f"... and {len(bad) - _LISTED} more points that are not ok: column status", file=sys.stderr)
    if not quiet:
        counts = Counter(row["status"] for row in rows)
        print("Points: " + ", ".join(f"{counts[status]} {status.replace('_', ' ')}" for status in
                                     ("ok", "failed", "bad_input", "model_error", "killed", "not_run") if counts[status]))
        print(f"Results: {directory / 'results.csv'}, {directory / 'results.sqlite'}")
        if counts["ok"]:
            print(f"To look at them: rvma report {shlex.quote(str(directory))}")
    return FINE if all(row["status"] == "ok" for row in rows) else FAILED


# ------------------------------------------------------------------------------------------------------------- commands


def gather_only(directory, quiet):
    points = read_manifest(directory)["points"]
    rows, notes = gather(directory)
    return print_results(directory, points, rows, notes, quiet)


def bounded_spec(options, program):
    spec = read_spec(options.spec, program)
    if spec.points() > MOST_POINTS and not options.yes:
        mistakes = Mistakes()
        mistakes.add(spec.position, f"{spec.points()} points", f"expected at most {MOST_POINTS} without --yes")
        raise mistakes
    return spec


def dry_run(options, program, directory):
    if options.profile or options.more:
        sweep_engines.check_snakemake(options.profile, options.more)
    spec = bounded_spec(options, program)
    with tempfile.TemporaryDirectory() as scratch:
        plan = checked_plan(spec, program, Path(scratch), options.quiet)
    print_warnings(spec, plan)
    print_plan(spec, plan, unfinished(directory, plan), directory)
    return FINE


def checked_plan(spec, program, trace_directory, quiet):
    progress = sweep_engines.Checked(spec.points() // max(1, len(spec.seeds)), quiet)
    try:
        return make_plan(spec, program, trace_directory, progress)
    finally:
        progress.end()


def plan_in(directory, is_new, spec, program, quiet):
    """The plan; a directory that was made for it goes again where it is wrong."""
    try:
        return checked_plan(spec, program, directory / "traces", quiet)
    except (Mistakes, OSError):
        if is_new:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def run(options, program, directory):
    if options.engine != "local":
        sweep_engines.check_snakemake(options.profile, options.more)
    spec = bounded_spec(options, program)
    is_new = not directory.exists()
    with locked(directory) as lock:
        plan = plan_in(directory, is_new, spec, program, options.quiet)
        print_warnings(spec, plan)
        todo = unfinished(directory, plan)
        if todo:
            program.copy_to(directory / "program" / "rvma")
        write_manifest(directory, spec, plan)
        write_jobs(directory, spec, todo)
        if not options.quiet:
            print(headline(spec, plan))
            print(f"{len(todo)} to run, {len(plan.points) - len(todo)} finished in {directory}", flush=True)
        ids = [point.id for point in todo]
        progress = sweep_engines.Progress(directory, ids, options.quiet)
        interrupted = False
        try:
            run_points(options, directory, ids, program, progress, lock)
        except KeyboardInterrupt:
            interrupted = True
        except OSError as failure:
            print(f"rvma: error: sweep: {os_error_text(failure)}; the same command goes on where it stopped", file=sys.stderr)
            return BAD_INPUT
        if ids:
            progress.tell(last=True)
        status = gather_only(directory, options.quiet)
        if interrupted and unfinished(directory, plan):
            print("rvma sweep: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return status


def run_points(options, directory, ids, program, progress, lock):
    if not ids:
        return
    if options.engine == "local":
        sweep_engines.run_local(directory, ids, program, options.jobs or os.cpu_count(), progress)
        return
    size = options.batch or sweep_engines.batch_size(len(ids), options.jobs, options.profile)
    write_whole(directory / "jobs" / "todo.json", json.dumps([ids[i:i + size] for i in range(0, len(ids), size)]))
    status = sweep_engines.run_snakemake(directory, options.jobs, program, options.profile, options.more, progress, lock)
    missing = sum(read_outcome(directory, point_id) is None for point_id in ids)
    if status != 0 or missing:
        log = directory / "snakemake.log"
        print(f"rvma: warning: snakemake ended with status {status}, and {missing} {'point has' if missing == 1 else 'points have'} "
              f"no outcome: see {log}", file=sys.stderr)
        for line in sweep_engines.complaints(log.read_text(errors="replace")):
            print(f"  {line}", file=sys.stderr)


def _terminate(*_):
    raise KeyboardInterrupt


def main(arguments):
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGHUP, _terminate)
    try:
        options = parse_arguments(arguments)
        if options.gather is not None:
            return gather_only(Path(options.gather), options.quiet)
        directory = Path(options.out) if options.out else default_directory(options.spec)
        check_directory(directory)
        program = Program()
        return (dry_run if options.dry_run else run)(options, program, directory)
    except Mistakes as mistakes:
        mistakes.print()
        return BAD_INPUT
    except KeyboardInterrupt:
        print("rvma sweep: interrupted", file=sys.stderr)
        return FAILED
    except OSError:
        raise  # the system's refusal, told by exit_status()
    except Exception:
        traceback.print_exc()
        return INTERNAL


if __name__ == "__main__":
    sys.exit(exit_status("sweep", main, sys.argv[1:]))
