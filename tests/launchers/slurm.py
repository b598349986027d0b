# SPDX-License-Identifier: Apache-2.0
"""A cluster of Slurm on the loopback interface: a controller, and two nodes of this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from launchers.places import Debian, Missing
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["cluster"]

NODES = ("n0", "n1")
START_S = 60.0
END_S = 10.0
PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"),
    "libpmix-dev",  # mpi/pmix opens libpmix.so, the name that the package for developers has
)
CONFIGURATION = """\
ClusterName=pccl
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort={port}
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
InactiveLimit=10
KillWait=2
PartitionName=all Nodes=ALL Default=YES
"""


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Debian, dict[str, str]]]:
    """Start a cluster; give its packages, and the variables of its commands."""
    packages = Debian("slurm", *PACKAGES)
    with tempfile.TemporaryDirectory(prefix="pccl-slurm-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        variables = {"SLURM_CONF": str(_configure(folder))}
        for daemon in _daemons(folder):
            process = subprocess.Popen(
                [*packages.command(daemon[0]), *daemon[1:]],
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(_end, process)
        _await_nodes(packages, variables, folder)
        yield packages, variables


def _configure(folder: Path) -> Path:
    for name in ("state", "munge", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(mode=0o700)
    (folder / "munge/key").write_bytes(os.urandom(1024))
    (folder / "munge/key").chmod(0o400)
    host = socket.gethostname()
    text = CONFIGURATION.format(host=host, folder=folder, port=free_port())
    for node in NODES:
        text += (
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=8\n"
        )
    path = folder / "slurm.conf"
    path.write_text(text)
    return path


def _daemons(folder: Path) -> list[list[str]]:
    munge = folder / "munge"
    files = [f"--{name}-file={munge / name}" for name in ("key", "pid", "log", "seed")]
    nodes = [["slurmd-wlm", "-D", "-N", node, "-d", "/usr/sbin/slurmstepd-wlm"] for node in NODES]
    munged = ["munged", "--foreground", "--force", f"--socket={munge / 'socket'}", *files]
    return [munged, ["slurmctld-wlm", "-D", "-c"], *nodes]


def _await_nodes(packages: Debian, variables: dict[str, str], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        done = subprocess.run(
            [*packages.command("sinfo"), "--noheader", "--format=%D %t"],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.split() == [str(len(NODES)), "idle"]:
            return
        time.sleep(0.5)
    log = folder / "slurmctld.log"
    last = log.read_text().splitlines()[-1:] if log.exists() else ["slurmctld has no log"]
    raise Missing(f"Slurm's nodes are not idle after {START_S:g} s: {last}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
