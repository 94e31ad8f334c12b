"""A Slurm cluster of one machine, on loopback: no accounting, and GPUs that are names only."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "srun")
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
# A job that was preempted waits as long as a credential lives before it may begin again.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
MinJobAge=300
KillWait=5
SlurmdTimeout=30
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,batch_sched_delay=1,sched_interval=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
# More than the machine has, so that what a job is allotted differs from what its node has.
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 Port=16818 CPUs=8 RealMemory=64000 Gres=gpu:2
PartitionName=low Nodes=node Default=YES MaxTime=600 PriorityTier=1 GraceTime=2
PartitionName=high Nodes=node MaxTime=600 PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str | None:
    """Why no cluster can be had here, in one line; nothing if one can."""
    if os.geteuid() != 0:
        return "Slurm's daemons are run by root here, and this is not root"
    # Debian keeps daemons where a user's PATH may not lead.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    return f"Slurm is not installed: no {', '.join(absent)}" if absent else None


def end(process: subprocess.Popen) -> None:
    """Ask a program to end, and kill it if it does not."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Cluster(contextlib.ExitStack):
    """Munge, controller and one node of eight CPUs and two GPUs; ends with its ``with`` block.

    Partition ``high`` preempts ``low``: its jobs get SIGTERM, 2 s, and a place in the queue again.
    """

    def __init__(self, folder: Path):
        super().__init__()
        self.folder = folder
        paths = (folder / "bin", Path(sys.executable).parent, os.environ["PATH"], "/usr/sbin")
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": ":".join(map(str, paths)),
        }
        for name in ("state", "spool", "bin"):
            (folder / name).mkdir()
        # Snakemake's job step drops SLURM_CONF, as sites whose slurm.conf is elsewhere will know.
        real = shutil.which("srun", path=self.environment["PATH"])
        shim = f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {real} "$@"\n'
        (folder / "bin/srun").write_text(shim)
        (folder / "bin/srun").chmod(0o755)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o600)
        host = socket.gethostname().split(".")[0]
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder))
        for name in ("gpu0", "gpu1"):
            os.mknod(folder / name, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        (folder / "gres.conf").write_text(f"NodeName=node Name=gpu File={folder}/gpu[0-1]\n")

    def __enter__(self) -> "Cluster":
        files = {name: f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
        options = [
            f"--{k}{'' if k == 'socket' else '-file'}={self.folder / f}" for k, f in files.items()
        ]
        key = f"--key-file={self.folder / 'munge.key'}"
        self.begin("munged", "--foreground", "--force", key, *options)
        self.wait((self.folder / "munge.socket").exists, "munged")
        self.begin("slurmctld", "-D")
        self.begin("slurmd", "-D", "-N", "node")
        self.wait(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "a node")
        self.callback(self.ask, "scancel", "--full", "--signal", "KILL", "--user", "root")
        return self

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout.strip()

    def wait(self, until, what: str, seconds: float = 60) -> None:
        """Wait for something to be so."""
        deadline = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < deadline, what
            time.sleep(0.1)

    def begin(self, *command: str, **options) -> subprocess.Popen:
        """A program that ends with the cluster."""
        environment = self.environment | options.pop("more", {})
        process = subprocess.Popen(command, env=environment, **options)
        self.callback(end, process)
        return process
