"""`rvma sweep --profile slurm`: the commands that it gives, and in the slow suite a real Slurm on this machine."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from sweep_test import SweepTest

# A batch system of one file: runs each job at once, where it was submitted, and remembers how it ended.
FAKE_SBATCH = """#!/bin/sh
echo "$@" >>"{log}"
for script; do :; done
id=$(wc -l <"{log}")
if sh "$script" >"{log}.$id" 2>&1; then state=COMPLETED; else state=FAILED; fi
echo "JobId=$id JobName=x JobState=$state Reason=None" >"{log}.state.$id"
echo "$id"
"""
FAKE_SCONTROL = """#!/bin/sh
for id; do :; done
cat "{log}.state.$id"
"""

SLURM_CONF = """ClusterName=rvma-test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
SlurmctldParameters=enable_configless
NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} RealMemory=3000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
DAEMONS = ("munged", "slurmctld", "slurmd")


def find_daemon(name):
    """Daemons are not in everybody's PATH."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


@unittest.skipUnless(shutil.which("snakemake"), "snakemake is not installed: scripts/setup does it")
class SweepSlurmCommands(SweepTest):
    def test_batches_of_points_become_jobs(self):
        log, tools = self.tmp / "sbatch", self.tmp / "bin"
        log.touch()
        tools.mkdir()
        for name, text in (("sbatch", FAKE_SBATCH), ("scontrol", FAKE_SCONTROL)):
            (tools / name).write_text(text.format(log=log))
            (tools / name).chmod(0o755)
        spec = self.spec(seeds={"from": 1, "to": 6})
        self.sweep(spec, "--out", "o", "--profile", "slurm", "--batch", "3", "--", "--latency-wait", "1",
                   environment=self.environment(PATH=f"{tools}:{os.environ['PATH']}"))
        jobs = log.read_text().splitlines()
        self.assertEqual(len(jobs), 2)
        for job in jobs:
            for word in ("--parsable", "--cpus-per-task=1", "--time=", "--mem=2000", "--output=slurm/%j.log", "--ntasks=1"):
                self.assertIn(word, job)
        self.assertEqual(self.runs_of(), 6)
        self.assertEqual([row["status"] for row in self.results("o")], ["ok"] * 6)


class Slurm:
    """munged, slurmctld and slurmd of one machine, in a directory of their own, on its loopback."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.daemons = []
        self.environment = {"SLURM_CONF": str(self.directory / "slurm.conf")}

    def start(self):
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        host = subprocess.run(["hostname", "-s"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("state", "spool"):
            (self.directory / name).mkdir()
        port = 20000 + os.getpid() % 20000
        (self.directory / "slurm.conf").write_text(SLURM_CONF.format(
            directory=self.directory, user=user, host=host, port=port, node_port=port + 1, processors=os.cpu_count()))
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.directory}/munge.socket",
                    f"--pid-file={self.directory}/munged.pid", f"--log-file={self.directory}/munged.log",
                    f"--seed-file={self.directory}/munged.seed")
        self.wait(lambda: (self.directory / "munge.socket").exists())
        self.daemon("slurmctld", "-D")
        self.daemon("slurmd", "-D", "-N", host)
        self.wait(lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T"))

    def daemon(self, name, *arguments):
        out = open(self.directory / f"{name}.out", "wb")
        self.daemons.append(subprocess.Popen([find_daemon(name), *arguments], stdout=out, stderr=subprocess.STDOUT,
                                             env={**os.environ, **self.environment}, start_new_session=True))
        out.close()

    def ask(self, *command):
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **self.environment}).stdout

    def wait(self, happened, seconds=120):
        end = time.monotonic() + seconds
        while not happened():
            if time.monotonic() > end:
                said = "\n".join(f"{path.name}: {path.read_text(errors='replace')[-2000:]}"
                                 for path in sorted(self.directory.glob("*.*")) if path.suffix in (".out", ".log"))
                raise AssertionError(f"Slurm does not come up:\n{said}")
            time.sleep(0.2)

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@unittest.skipUnless(all(map(find_daemon, DAEMONS)) and shutil.which("snakemake"),
                     "slurm-wlm, munge or snakemake is not installed: scripts/setup does it")
class SweepOnSlurm(SweepTest):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory(prefix="rvma-slurm-")
        self.addCleanup(directory.cleanup)
        os.chmod(directory.name, 0o755)
        self.slurm = Slurm(directory.name)
        self.addCleanup(self.slurm.stop)
        self.slurm.start()

    def test_an_interrupt_cancels_the_jobs(self):
        for seed in range(1, 5):
            self.doom(seed, "sleep 90")
        environment = self.environment(**self.slurm.environment)
        sweep = subprocess.Popen(self.command(self.spec(seeds={"from": 1, "to": 4}), "--out", "o", "--profile", "slurm", "--batch", "2"),
                                 cwd=self.tmp, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(sweep.kill)
        self.wait_for(lambda: self.runs_of() >= 1)
        sweep.send_signal(signal.SIGINT)
        out, errors = sweep.communicate(timeout=60)
        self.assertEqual(sweep.returncode, 1, errors)
        self.assertIn("4 not run", out)
        self.assertIn("goes on where it stopped", errors)
        self.wait_for(lambda: subprocess.run(["squeue", "--noheader"], env=environment, capture_output=True, text=True).stdout == "")

    def wait_for(self, happened, seconds=120):
        end = time.monotonic() + seconds
        while not happened():
            self.assertLess(time.monotonic(), end, "it did not happen in time")
            time.sleep(0.1)

    def test_a_sweep_runs_in_jobs_and_a_lost_job_is_tried_again(self):
        # The first run of seed 2 takes the whole batch job with it.
        self.doom(2, f'[ $(grep -c "^2$" "{self.log}") -gt 1 ] || {{ scancel --signal=KILL --full $SLURM_JOB_ID; sleep 30; }}')
        spec = self.spec(seeds={"from": 1, "to": 6})
        self.sweep(spec, "--out", "o", "--profile", "slurm", "--batch", "3", "--", "--latency-wait", "5", timeout=800,
                   environment=self.environment(**self.slurm.environment))
        self.assertEqual([row["status"] for row in self.results("o")], ["ok"] * 6)
        # Two batches, and the one that was lost once more.
        self.assertEqual(len(list((self.tmp / "o" / "slurm").glob("*.log"))), 3)
        self.assertEqual((self.runs_of(1), self.runs_of(2), self.runs_of(3)), (1, 2, 1))
