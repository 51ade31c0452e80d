"""Mistakes in the options of cosim_table: exit status 2 and one line that names the option."""

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile


def small_files(most_bytes):
    """No file may grow over that, as on a disk that fills."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def main():
    program = sys.argv[1]
    failures = 0

    def run(*arguments, **more):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=100, check=False, **more)

    def expect(condition, what, done):
        nonlocal failures
        if condition:
            return
        failures += 1
        print(f"{what}: exit {done.returncode}\n{done.stdout}{done.stderr}")

    done = run("--help")
    expect(done.returncode == 0 and "--operations" in done.stdout and "few-bits" in done.stdout, "--help", done)
    shapes = re.search(r"^shapes: (.+)", done.stdout, re.M).group(1)
    shape = shapes.split(", ")[0]
    small_shape = "small" if "small" in shapes.split(", ") else shape
    for arguments, message in (
        (["--operations", "-1"], "--operations: '-1'"),
        (["--operations", "0"], "--operations: '0'; expected at least 1"),
        (["--operations", "10x"], "--operations: '10x'"),
        (["--operations", "18446744073709551616"], "--operations: '18446744073709551616'"),
        (["--operations"], "--operations: "),
        (["--operations", ""], "--operations: the value is empty"),
        (["--seed", " 1"], "--seed: ' 1'"),
        (["--seed", "1", "--shape"], "--shape: no value"),
        (["--shape", "enormous"], f"--shape: 'enormous' is not built; expected one of {shape}"),
        (["--pattern", "odd"], "--pattern: unknown value 'odd'; expected one of random"),
        (["--wave", ""], "--wave: no file"),
        (["--shape", shape, "--wave", "no/such/place/w.fst"], "--wave: cannot write 'no/such/place/w.fst'"),
        (["--shape", shape, "--operations", "10", "--coverage", "c.dat"], "--coverage: built without"),
        (["--cycles", "3"], "--cycles: unknown option"),
        (["10"], "'10': unknown argument"),
    ):
        done = run(*arguments)
        lines = done.stderr.splitlines()
        expect(done.returncode == 2 and len(lines) == 1 and lines[0].startswith("cosim_table: error: " + message),
               " ".join(arguments), done)

    with tempfile.TemporaryDirectory() as directory:
        wave = os.path.join(directory, "w.fst")
        usual = ["--shape", small_shape, "--operations", "200", "--wave", wave]
        done = run(*usual)
        expect(done.returncode == 0, "waves", done)
        room = os.path.getsize(wave) * 3 // 4
        done = run(*usual, preexec_fn=lambda: small_files(room), restore_signals=False)
        expect(done.returncode == 1 and "--wave: " in done.stderr, "a disk that fills", done)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
