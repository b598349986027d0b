# SPDX-License-Identifier: Apache-2.0
"""Real NETCONF servers on loopback ports, with PCCL's modules: yuma123's netconfd behind OpenSSH,
or, where ``PCCL_NETOPEER2`` names the folder that tools/netopeer2.sh has built, netopeer2.

    with netconf_servers(2) as bed:
        cluster = pccl.Cluster(bed.description(ranks=4, phases={"ring": {"links": "ring"}}))

Run as a program, it starts them, writes a cluster file, and stops them at Ctrl-C. Every process
that is started here is ended here, by its pid.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pty
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # where it is run as a program
from support import netopeer2
from support.servers import PATIENCE, await_start, stop

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
MODULES_SERVED = (
    "pccl-optical-switch",
    "pccl-electrical-switch",
    "ietf-interfaces",
    "iana-if-type",
)
MODULES = ROOT / "csrc/cluster/yang"
SSHD = "/usr/sbin/sshd"
NETCONFD = "/usr/sbin/netconfd"
SUBSYSTEM = "/usr/sbin/netconf-subsystem"
YANGCLI = "/usr/bin/yangcli"


def is_netopeer2() -> bool:
    """Whether tests run on netopeer2."""
    return netopeer2.is_wanted()


def missing() -> str:
    """Say what is not installed that the servers need; empty: nothing."""
    if is_netopeer2():
        return netopeer2.missing()
    needed = {SSHD: "openssh-server", NETCONFD: "netconfd", "/usr/bin/ssh-keygen": "openssh-client"}
    packages = [package for path, package in needed.items() if not Path(path).exists()]
    return f"not installed: {' '.join(packages)} (tools/setup_netconf_servers.sh)" * bool(packages)


def yangcli(bed: TestBed, index: int, command: str) -> str:
    """Have yuma123's own client ask a server; return what it shows, with XML for data."""
    arguments = {
        "server": "127.0.0.1",
        "ncport": bed.servers[index].port,
        "user": user(),
        "private-key": bed.key_file,
        "public-key": f"{bed.key_file}.pub",
        "modpath": MODULES,
        "display-mode": "xml",
        "timeout": int(PATIENCE),
        "run-command": command,
    }
    terminal, its_own = pty.openpty()  # it asks its standard input about that
    try:
        return subprocess.run(
            [YANGCLI, "--batch-mode", *(f"--{key}={value}" for key, value in arguments.items())],
            env=os.environ | {"HOME": str(bed.folder)},  # where it keeps its history
            stdin=its_own,
            check=True,
            capture_output=True,
            text=True,
            timeout=3 * PATIENCE,
        ).stdout
    finally:
        os.close(terminal)
        os.close(its_own)


@dataclasses.dataclass
class Server:
    """One netconfd; its port is sshd's, too."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Where sshd's subsystem reaches it."""
        return self.folder / "ncxserver.sock"

    def start(self, *, hardware: dict[str, str] | None = None, keeps_startup: bool = False) -> None:
        """Start it with nothing connected, or with its startup configuration.

        It keeps its state in its own folder.
        """
        self.folder.mkdir(exist_ok=True)
        self.socket.unlink(missing_ok=True)
        startup = self.folder / "startup-cfg.xml"
        if keeps_startup and not startup.exists():
            startup.write_text('<config xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"/>')
        command = [
            NETCONFD,
            f"--modpath={MODULES}",
            *(f"--module={name}" for name in MODULES_SERVED),
            f"--ncxserver-sockname={self.socket}",
            f"--port={self.port}",
            f"--startup={startup}" if keeps_startup else "--no-startup",
            "--with-startup=true",  # no copy in the user's home at each commit
            "--access-control=off",
            f"--superuser={user()}",
            f"--log={self.folder / 'netconfd.log'}",
        ]
        with (self.folder / "output").open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,  # where it keeps what a confirmed commit goes back to
                env={**os.environ, "HOME": str(self.folder), **(hardware or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        await_start(self.socket.exists, f"netconfd on port {self.port}", self.folder / "output")

    def stop(self) -> None:
        """End it, with all sessions."""
        if self.process is not None:
            stop(self.process)
        self.process = None


@dataclasses.dataclass
class TestBed:
    """Servers, and the keys that open them."""

    __test__ = False  # no test case, whatever its name says

    folder: Path
    servers: list[Server] | list[netopeer2.Server]

    @property
    def key_file(self) -> Path:
        """The private key of the user that may log in."""
        return self.folder / "user_key"

    @property
    def host_key(self) -> str:
        """The fingerprint of the servers' key, as ssh-keygen prints it."""
        return fingerprint(self.folder / "host_key.pub")

    def switch(self, index: int) -> dict[str, Any]:
        """Return the entry of a cluster file for a server."""
        return {
            "name": f"ocs{index}",
            "address": f"netconf://{user()}@127.0.0.1:{self.servers[index].port}",
            "host_key": self.host_key,
            "key_file": str(self.key_file),
            "confirm_timeout_s": 2,
        }

    def description(self, *, ranks: int, phases: dict[str, Any]) -> dict[str, Any]:
        """Return a cluster whose devices have a port at each switch."""
        names = [f"ocs{index}" for index in range(len(self.servers))]
        return {
            "switches": [self.switch(index) for index in range(len(self.servers))],
            "devices": [{"ports": dict.fromkeys(names, rank + 1)} for rank in range(ranks)],
            "phases": phases,
        }


@contextlib.contextmanager
def netconf_servers(count: int, ports: list[int] | None = None) -> Iterator[TestBed]:
    """Run so many servers in a temporary folder."""
    from support.termination import ended_by_sigterm

    with contextlib.ExitStack() as end:
        end.enter_context(ended_by_sigterm())
        folder = Path(end.enter_context(tempfile.TemporaryDirectory(prefix="pccl-netconf-")))
        make_keys(folder)
        chosen = ports or _free_ports(count)
        if is_netopeer2():
            bed = TestBed(folder, netopeer2.servers(folder, chosen, user()))
        else:
            bed = TestBed(folder, [Server(port, folder / f"switch{port}") for port in chosen])
        for server in bed.servers:
            end.callback(server.stop)
            server.start()
        if is_netopeer2():  # which speaks SSH by itself
            yield bed
            return
        ways = " ".join(f"--ncxserver-sockname={each.port}@{each.socket}" for each in bed.servers)
        end.enter_context(sshd(folder, ports=chosen, subsystem=f"{SUBSYSTEM} {ways}"))
        yield bed


def user() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _free_ports(count: int) -> list[int]:
    from support.ports import free_port

    return [free_port() for _ in range(count)]


def make_keys(folder: Path) -> None:
    for name in ("host_key", "user_key", "other_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")


def fingerprint(public_key: Path) -> str:
    line = subprocess.run(
        ["ssh-keygen", "-l", "-E", "sha256", "-f", public_key],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return line.split()[1]


@contextlib.contextmanager
def sshd(
    folder: Path,
    *,
    ports: list[int],
    subsystem: str,
    address: str = "127.0.0.1",
    prefix: tuple[str, ...] = (),
) -> Iterator[None]:
    """Have sshd listen, with the keys of a folder, and run ``subsystem`` for NETCONF."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    config = folder / "sshd_config"
    lines = "\n".join(f"Port {port}" for port in ports)
    config.write_text(f"""{lines}
ListenAddress {address}
HostKey {folder / "host_key"}
PidFile none
AuthorizedKeysFile {folder / "authorized_keys"}
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
StrictModes no
UseDNS no
MaxStartups 256
Subsystem netconf "{subsystem}"
""")
    log = folder / "sshd.log"
    process = subprocess.Popen(
        [*prefix, SSHD, "-D", "-f", config, "-E", log],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def listens() -> bool:
        return log.exists() and log.read_text().count("Server listening") >= len(ports)

    try:
        await_start(listens, "sshd", log)
        yield
    finally:
        stop(process)


def main() -> None:
    """Start servers, say how to reach them, and wait for Ctrl-C."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--switches", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--file", type=Path, default=Path("cluster.json"))
    wanted = parser.parse_args()
    if why := missing():
        sys.exit(why)
    import json

    half = wanted.ranks // 2
    phases = {
        "ring": {"links": "ring"},
        "pairs": {"links": [[rank, rank + half] for rank in range(half)], "duplex": True},
    }
    with netconf_servers(wanted.switches) as bed, contextlib.suppress(KeyboardInterrupt):
        reported = bed.description(ranks=wanted.ranks, phases=phases)
        wanted.file.write_text(json.dumps(reported, indent=2) + "\n")
        print(f"{wanted.file}: {wanted.switches} switches; Ctrl-C stops them", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
