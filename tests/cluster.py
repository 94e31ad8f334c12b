"""A Slurm cluster of one machine, on loopback: no accounting, and GPUs that are names only."""

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "scancel",
            "srun")  # fmt: skip
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
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
MinJobAge={remembered}
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
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 Port={node} CPUs=8 RealMemory=64000 Gres=gpu:2
PartitionName=low Nodes=node Default=YES MaxTime=120 PriorityTier=1 GraceTime=2
PartitionName=high Nodes=node MaxTime=120 PriorityTier=10 PreemptMode=OFF
"""


def missing() -> str | None:
    """Why no cluster can be had here, in one line; nothing if one can."""
    if os.geteuid() != 0:
        return "Slurm's daemons are run by root here, and this is not root"
    # Debian keeps daemons where a user's PATH may not lead.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin"
    absent = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    return f"Slurm is not installed: no {', '.join(absent)}" if absent else None


class Cluster:
    """Munge, controller and one node of eight CPUs and two GPUs; ends with its ``with`` block.

    Partition ``high`` preempts ``low``: its jobs get SIGTERM, 2 s, and a place in the queue again.
    """

    def __init__(self, folder: Path, remembered: int = 300):
        self.folder = folder
        paths = (folder / "bin", Path(sys.executable).parent, os.environ["PATH"], "/usr/sbin")
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": ":".join(map(str, paths)),
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "spool", "bin"):
            (folder / name).mkdir()
        # Snakemake's job step drops SLURM_CONF, as sites whose slurm.conf is elsewhere will know.
        real = shutil.which("srun", path=self.environment["PATH"])
        shim = f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {real} "$@"\n'
        (folder / "bin" / "srun").write_text(shim)
        (folder / "bin" / "srun").chmod(0o755)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o600)
        controller, node = _free_ports(2)
        text = CONFIGURATION.format(
            host=socket.gethostname().split(".")[0], controller=controller, node=node,
            folder=folder, remembered=remembered,
        )  # fmt: skip
        (folder / "slurm.conf").write_text(text)
        for name in ("gpu0", "gpu1"):
            os.mknod(folder / name, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        (folder / "gres.conf").write_text(f"NodeName=node Name=gpu File={folder}/gpu[0-1]\n")

    def __enter__(self) -> "Cluster":
        folder = self.folder
        munge = {
            "key-file": "munge.key", "socket": "munge.socket", "pid-file": "munge.pid",
            "log-file": "munge.log", "seed-file": "munge.seed",
        }  # fmt: skip
        options = [f"--{name}={folder / value}" for name, value in munge.items()]
        try:
            self._begin("munged", "--foreground", "--force", *options)
            self.wait((folder / "munge.socket").exists, "munged")
            self.start("slurmctld")
            self.start("slurmd")
            self.wait(lambda: self.ask("sinfo", "-h", "-o", "%T").split()[:1] == ["idle"], "a node")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self.ask("scancel", "--user=root")
            self.wait(lambda: not self.ask("squeue", "-h"), "an empty queue", 15)
        for name in ("slurmd", "slurmctld", "munged"):
            if name in self.running:
                self.stop(name)

    def start(self, name: str) -> None:
        """Begin ``slurmctld`` or ``slurmd``."""
        self._begin(name, "-D", *(("-N", "node") if name == "slurmd" else ()))

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        """End a daemon with a signal; one that does not go within ten seconds is killed."""
        process = self.running.pop(name)
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def ask(self, *command: str) -> str:
        """What a command of Slurm prints; nothing where it fails."""
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def jobs(self, state: str = "running") -> list[str]:
        """Numbers of the jobs in a state."""
        return self.ask("squeue", "-h", "-o", "%i", "-t", state).split()

    def wait(self, until: Callable[[], object], what: str, seconds: float = 60) -> None:
        """Wait for something to be so, and fail with the daemons' last words if it is not."""
        deadline = time.monotonic() + seconds
        while not until():
            ended = [name for name, process in self.running.items() if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "\n".join(_tail(path) for path in sorted(self.folder.glob("*.log")))
                why = f"{', '.join(ended)} ended" if ended else f"not within {seconds:g} s"
                raise AssertionError(f"waited for {what}: {why}\n{logs}")
            time.sleep(0.1)

    def _begin(self, *command: str) -> None:
        self.running[command[0]] = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def _free_ports(count: int) -> Iterator[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return iter([each.getsockname()[1] for each in sockets])


def _tail(path: Path) -> str:
    lines = path.read_text(errors="replace").splitlines()[-8:]
    return "\n".join([f"{path.name}:", *lines])
