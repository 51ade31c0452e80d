"""Design points, run to their outcomes: `python3 -m rvma_explore.sweep_point DIR ID...`, with the program in RVMA.

A sweep's directory holds
    sweep.json            the points, in order
    jobs/ID.json          how to run a point
    points/ID/            what its run wrote
    points/ID.json        its outcome; it appears last, whole: what has one, and its results, is finished
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

from .files import os_error_text, sha256_of, write_whole
from .quantities import TIME
from .stats_shape import Wrong, check_stats
from .with_parent import child_of_this, end_with_parent

OUTCOME_SCHEMA = "rvma-sweep-outcome/1"
# By exit status of the program. All that is not in it, and what was cut short by the machine, is `killed`: worth another try.
STATUS = {0: "ok", 1: "failed", 2: "bad_input", 3: "model_error"}
WITH_RESULTS = ("ok", "failed")
# How run.problems of stats.json begin where the machine, not the input, ended a run.
_CUT_SHORT = ("--wall-limit reached", "--memory-limit reached", "stopped by a signal")
_STDERR_BYTES = 16384  # of what it said, those in which the reason is looked for
_MOST_KEPT_BYTES = 1 << 20
_AFTERWORD_S = 2


class Stopped(Exception):
    """The sweep is being stopped: the point has no outcome."""


def _keep(stream, said):
    """Reads to the end, and keeps the beginning."""
    with stream:
        while piece := stream.read1(1 << 16):
            said.extend(piece[:max(0, _MOST_KEPT_BYTES - len(said))])


class Children:
    """Runs under way in this process, so that a sweep that is stopped can end them."""

    def __init__(self):
        self._lock = threading.RLock()  # a signal's handler may come to stop() while run() holds it
        self._running = set()
        self.stopping = False

    def run(self, command, timeout, cwd):
        """Exit status, None if it was killed for taking longer than `timeout` seconds; and what it said on stderr, which
        takes no room on a disk that may be full."""
        with self._lock:
            if self.stopping:
                raise Stopped
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     cwd=cwd, preexec_fn=child_of_this())
            self._running.add(child)
            if self.stopping:
                child.kill()
        said = bytearray()
        reader = threading.Thread(target=_keep, args=(child.stderr, said), daemon=True)
        reader.start()
        try:
            exit_status = child.wait(timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            exit_status = None
        finally:
            with self._lock:
                self._running.discard(child)
        reader.join(_AFTERWORD_S)  # not for ever: what it has started may hold its stderr
        return exit_status, bytes(said)

    def stop(self):
        with self._lock:
            self.stopping = True
            for child in self._running:
                child.kill()


def run_point(directory, point_id, program, children):
    """Runs a point until it has an outcome that is not the machine's fault, or its tries are used up; writes and returns
    the outcome."""
    directory = Path(directory).absolute()  # the run has another working directory
    job = json.loads((directory / "jobs" / f"{point_id}.json").read_text())
    scratch = directory / "points" / f".{point_id}.{os.getpid()}"
    scratch.parent.mkdir(exist_ok=True)
    try:
        tries = 0
        while True:
            tries += 1
            outcome = _run_once(job, scratch, program, children)
            if outcome["status"] != "killed" or tries > job["retries"]:
                break
        outcome = {"schema": OUTCOME_SCHEMA, "id": point_id, **outcome, "tries": tries}
        for table in scratch.glob("*.csv") if job["keep"] == "stats" else []:
            table.unlink()
        results = directory / "points" / point_id
        shutil.rmtree(results, ignore_errors=True)
        os.replace(scratch, results)
        write_whole(directory / "points" / f"{point_id}.json", json.dumps(outcome, indent=2) + "\n")
        return outcome
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_once(job, scratch, program, children):
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    if not _is_same_trace(job["trace"]):
        return {"status": "killed", "exit": None, "reason": "its trace has changed or gone since the sweep began"}
    # The program stops itself at its limit; this is for one that hangs.
    limit = TIME.parse(job["wall_limit"]) / 1e12 if job["wall_limit"] else None
    began = time.monotonic()
    exit_status, said = children.run([program, *job["arguments"], "--out", scratch, "--quiet"],
                                     None if limit is None else 2 * limit + 30, job["cwd"])
    if children.stopping:
        raise Stopped
    outcome = _judge(exit_status, said[:_STDERR_BYTES].decode(errors="replace"), scratch)
    outcome["elapsed_s"] = round(time.monotonic() - began, 3)
    (scratch / "stderr.txt").write_bytes(said)
    return outcome


def _is_same_trace(trace):
    try:
        status = os.stat(trace["path"])
        return ([status.st_size, status.st_mtime_ns] == trace["stamp"]
                or sha256_of(trace["path"]) == trace["sha256"])
    except OSError:
        return False


def _judge(exit_status, said, scratch):
    """Status, exit status and reason."""
    said = [line for line in said.splitlines() if ": warning: " not in line]
    found = {"status": STATUS.get(exit_status, "killed"), "exit": exit_status, "reason": said[0] if said else ""}
    if exit_status is None:
        return {**found, "reason": "it ran far beyond its wall limit"}
    if exit_status < 0:
        return {**found, "reason": f"killed by {signal.Signals(-exit_status).name}"}
    if exit_status == 2 and found["reason"].startswith((f"{scratch}/", "rvma: error: --out: ")):
        return {**found, "status": "killed"}  # results that could not be written
    if exit_status > 1:
        return found
    stats = _read_stats(scratch / "stats.json")
    if stats is None:
        return {**found, "status": "killed", "reason": found["reason"] or "it left no results"}
    problems = stats["run"]["problems"]
    if exit_status == 1 and problems:
        cut_short = problems[0].startswith(_CUT_SHORT)
        return {**found, "status": "killed" if cut_short else "failed", "reason": problems[0].splitlines()[0]}
    return found


def _read_stats(path):
    """A whole stats.json, numbers exactly as they stand there; None if it is none."""
    try:
        stats = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
        check_stats(stats)
    except (OSError, ValueError, RecursionError, Wrong):
        return None
    return stats


def read_result(directory, point_id):
    """(outcome, stats.json of a run that left one) of a finished point; (None, None) if it is not finished. A point whose
    files are damaged is not."""
    points = Path(directory) / "points"
    try:
        outcome = json.loads((points / f"{point_id}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None, None
    if not _is_outcome(outcome):
        return None, None
    if outcome["status"] not in WITH_RESULTS:
        return outcome, None
    stats = _read_stats(points / point_id / "stats.json")
    return (outcome, stats) if stats is not None else (None, None)


def _is_outcome(value):
    return (isinstance(value, dict) and value.get("schema") == OUTCOME_SCHEMA
            and value.get("status") in (*STATUS.values(), "killed") and isinstance(value.get("reason"), str))


def read_outcome(directory, point_id):
    """Of a finished point; None if it is not finished."""
    return read_result(directory, point_id)[0]


def is_damaged(directory, point_id):
    """Whether it was finished, and its files no longer say what came of it."""
    return (Path(directory) / "points" / f"{point_id}.json").exists() and read_outcome(directory, point_id) is None


def main(arguments):
    end_with_parent(signal.SIGTERM)
    if os.environ.get("RVMA_PARENT", str(os.getppid())) != str(os.getppid()):
        return 1  # it had ended before
    directory, *ids = arguments
    children = Children()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: children.stop())
    try:
        for point_id in ids:
            if read_outcome(directory, point_id) is None:  # of a batch that was killed, it may be there
                run_point(directory, point_id, os.environ["RVMA"], children)
    except Stopped:
        return 1
    except OSError as failure:
        print(f"rvma: error: sweep: {os_error_text(failure)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
