"""What runs the points that are left: Snakemake, or a pool in this process. Both leave the same files."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .mistakes import command_line_mistake
from .sweep_point import Children, Stopped, run_point
from .with_parent import child_of_this

_PACKAGE = Path(__file__).parent
_POLL_S = 0.2
_GRACE_S = 10  # for Snakemake to end by itself
_PROFILE_JOBS = 100  # what the shipped profile lets run at a time
_MOST_IN_BATCH = 20


class _Teller:
    """What has been done so far, on stderr: a line that changes on a terminal, else one from time to time."""
    SECONDS = 10

    def __init__(self, quiet):
        self.quiet, self.terminal = quiet, sys.stderr.isatty()
        self.began = self.told = time.monotonic()

    def is_due(self, last=False):
        now = time.monotonic()
        if self.quiet or (not last and now - self.told < (1 if self.terminal else self.SECONDS)):
            return False
        self.told = now
        return True

    def say(self, done, total, what, last=False):
        took = self.told - self.began
        text = f"rvma sweep: {done} of {total} {what}, {took:.0f} s"
        if 0 < done < total:
            text += f", about {took / done * (total - done):.0f} s to go"
        print(f"\r\033[K{text}" if self.terminal else text, end="\n" if last or not self.terminal else "",
              file=sys.stderr, flush=True)


class Checked(_Teller):
    """How many configurations of a plan were checked. Nothing is said of what takes no time."""
    _ASKED_EVERY = 64

    def __init__(self, total, quiet):
        super().__init__(quiet)
        self.done, self.total, self.has_told = 0, total, False

    def __call__(self):
        if self.done == 0:
            self.began = time.monotonic()  # what came before tells nothing of what is to come
        self.done += 1
        if self.done % self._ASKED_EVERY == 0 and self.is_due():
            self.has_told = True
            self.say(self.done, self.total, "configurations checked")

    def end(self):
        """The next line begins at its beginning."""
        if self.has_told and self.terminal:
            print(file=sys.stderr, flush=True)


class Progress(_Teller):
    """How many points are finished."""

    def __init__(self, directory, ids, quiet):
        super().__init__(quiet)
        self.points, self.left, self.total = Path(directory) / "points", set(ids), len(ids)

    def tell(self, last=False):
        if self.is_due(last):
            self.left -= {name.removesuffix(".json") for name in os.listdir(self.points) if name.endswith(".json")}
            self.say(self.total - len(self.left), self.total, "points run", last)


def run_local(directory, ids, program, jobs, progress):
    """In `jobs` threads, each with one run at a time. On an interrupt the runs under way end without outcome."""
    children = Children()
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(run_point, directory, point_id, program.path, children) for point_id in ids]
        try:
            while not all(future.done() for future in futures):
                progress.tell()
                time.sleep(_POLL_S)
                # A point without an outcome: its directory cannot be written, or the program not be started.
                for future in futures:
                    if future.done() and isinstance(future.exception(), OSError):
                        raise future.exception()
        except BaseException:
            children.stop()
            pool.shutdown(cancel_futures=True)
            raise
    for future in futures:
        if not isinstance(future.exception(), Stopped):
            future.result()


def profile_directory(name):
    """A shipped profile by its name, else what Snakemake makes of it."""
    shipped = _PACKAGE / "profiles" / name
    return str(shipped) if shipped.is_dir() else name


def batch_size(points, jobs, profile):
    """Points of a job: few enough that every job slot gets several, and many enough to hide what a job costs."""
    slots = jobs or (_PROFILE_JOBS if profile else os.cpu_count())
    return max(1, min(_MOST_IN_BATCH, -(-points // (4 * slots))))


def snakemake_command(directory, jobs, profile="", more=()):
    """The words that start Snakemake on what is left in `directory`.

    What a kill left behind is no matter: outcomes appear whole or not at all, and the sweep locks the directory."""
    command = ["snakemake", "--snakefile", str(_PACKAGE / "Snakefile"), "--directory", str(directory), "--keep-going",
               "--nolock", "--ignore-incomplete", "--rerun-triggers", "mtime", "--drop-metadata"]
    if profile:
        command += ["--profile", profile_directory(profile)]
    if jobs or not profile:  # a profile may have its own number of jobs
        command += ["--jobs", str(jobs or os.cpu_count())]
    return [*command, *more]


def check_snakemake(profile, more):
    """Raises Mistakes if it is not there, or does not take the profile or the options. It is asked with no points."""
    if shutil.which("snakemake") is None:
        raise command_line_mistake("snakemake is not installed",
                                   "expected Debian's package snakemake (scripts/setup installs it), or --engine local")
    if not profile and not more:
        return
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "jobs").mkdir()
        (Path(scratch) / "jobs" / "todo.json").write_text("[]")
        asked = subprocess.run(snakemake_command(scratch, 1, profile, ["--dry-run", *more]), stdin=subprocess.DEVNULL,
                               capture_output=True, text=True)
    if asked.returncode != 0:
        raise command_line_mistake("snakemake says: " + " / ".join(complaints(asked.stderr)).rstrip("."),
                                   "expected a --profile and options behind -- that it takes")


def complaints(text):
    """Of what Snakemake said, the lines that tell what went wrong, three at most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and not line.lower().startswith("error in rule")]
    return list(dict.fromkeys(errors or lines))[-3:]


def _own_group():
    """For `preexec_fn`, of what shall be told to end together. It listens even where this process was started deaf to
    interrupts, as a shell without job control starts what it does not wait for."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end_group(child, is_cluster):
    """As Ctrl-C would: jobs of a cluster are cancelled, runs on this machine killed, points under way left without outcome."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGINT)
    try:
        child.wait(None if is_cluster else _GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()  # and what it has started ends with it
        child.wait()


@contextlib.contextmanager
def _stopped_together(child):
    """Ctrl-Z stops the child's group as well, and what goes on goes on together."""
    def stop(*_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGCONT)

    before = signal.getsignal(signal.SIGTSTP)
    if before == signal.SIG_DFL:
        signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def run_snakemake(directory, jobs, program, profile, more, progress, lock):
    """Its output goes to snakemake.log. Should this process die, it dies too, with the runs under way; jobs of a cluster it
    cancels first, and holds the lock until then."""
    log = Path(directory) / "snakemake.log"
    environment = {**os.environ, "RVMA": str(program.path), "RVMA_PYTHON": sys.executable}
    is_cluster = bool(profile or more)
    end_with_this = child_of_this(signal.SIGINT if is_cluster else signal.SIGKILL)

    def before_it_starts():
        _own_group()
        end_with_this()

    with open(log, "wb") as out:
        child = subprocess.Popen(snakemake_command(directory, jobs, profile, more), stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=subprocess.STDOUT, env=environment, pass_fds=(lock.fileno(),),
                                 preexec_fn=before_it_starts)
        try:
            with _stopped_together(child):
                while child.poll() is None:
                    progress.tell()
                    time.sleep(_POLL_S)
        except KeyboardInterrupt:
            _end_group(child, is_cluster)
            raise
    return child.returncode
