# SPDX-License-Identifier: Apache-2.0
"""netopeer2 servers, as tools/netopeer2.sh builds them: each with a sysrepo and SSH of its own."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import subprocess
from pathlib import Path

from support.servers import await_start, stop

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "csrc/cluster/yang"
SHARED_MEMORY = Path("/dev/shm")
SSH = "urn:ietf:params:xml:ns:yang:ietf-crypto-types"
EXTENSION = "urn:cesnet:libnetconf2-netconf-server"


def folder() -> Path:
    """Return the folder that tools/netopeer2.sh has built."""
    return Path(os.environ.get("PCCL_NETOPEER2", "/nowhere"))


def is_wanted() -> bool:
    """Whether tests are to run on it."""
    return "PCCL_NETOPEER2" in os.environ


def missing() -> str:
    """Say why it cannot run; empty: it can."""
    if not (folder() / "sbin/netopeer2-server").exists():
        return f"{folder()} has no netopeer2 (tools/netopeer2.sh)"
    return "it needs root, as sysrepo does" if os.geteuid() != 0 else ""


@dataclasses.dataclass
class Server:
    """One netopeer2-server."""

    port: int
    folder: Path
    keys: Path
    user: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """What keeps its sysrepo from all others."""
        return os.environ | {
            "SYSREPO_REPOSITORY_PATH": str(self.folder / "repository"),
            "SYSREPO_SHM_PREFIX": f"pccl{self.port}",
            "LD_LIBRARY_PATH": str(folder() / "lib"),
        }

    def start(
        self,
        *,
        hardware: dict[str, str] | None = None,
        keeps_startup: bool = False,
    ) -> None:
        """Start it with nothing connected, or with its startup configuration."""
        if not (self.folder / "repository").exists():
            self._set_up()
        elif not keeps_startup:
            self._set_startup("pccl-optical-switch", "")
            self._set_startup("pccl-electrical-switch", "")
            self._set_startup("ietf-interfaces", "")
        log = self.folder / "netopeer2.log"
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    folder() / "sbin/netopeer2-server",
                    "-d",
                    "-v2",
                    f"-p{self.folder / 'pid'}",
                    f"-f{self.folder / 'server'}",
                ],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        await_start(self._listens, f"netopeer2 on port {self.port}", log)

    def stop(self) -> None:
        """End it; what it ran is gone, its startup configuration stays."""
        if self.process is not None:
            stop(self.process)
        self.process = None
        for each in SHARED_MEMORY.glob(f"pccl{self.port}_*"):
            each.unlink(missing_ok=True)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _set_up(self) -> None:
        """Give it a repository with all modules, its keys, and its port."""
        self.folder.mkdir(exist_ok=True)
        template = self.folder.parent / "repository"
        if template.exists():
            shutil.copytree(template, self.folder / "repository")
        else:
            self._install_modules()
            shutil.copytree(self.folder / "repository", template)
        self._set_startup("ietf-netconf-server", self._listening())
        for each in SHARED_MEMORY.glob(f"pccl{self.port}_*"):
            each.unlink(missing_ok=True)  # running comes from startup at the start

    def _install_modules(self) -> None:
        share = folder() / "share/yang/modules"
        sysrepoctl = folder() / "bin/sysrepoctl"
        self._run(
            folder() / "share/netopeer2/scripts/setup.sh",
            NP2_MODULE_DIR=str(share / "netopeer2"),
            LN2_MODULE_DIR=str(share / "libnetconf2"),
            NP2_MODULE_PERMS="600",
            SYSREPOCTL_EXECUTABLE=str(sysrepoctl),
        )
        for module in ("pccl-optical-switch", "pccl-electrical-switch"):
            self._run(sysrepoctl, "-i", MODULES / f"{module}.yang", "-p", "600")
        # Interfaces of tests are Ethernet's, a type of a module that netopeer2 does not bring.
        self._run(sysrepoctl, "-i", share / "iana-if-type@2014-05-08.yang", "-p", "600")

    def _set_startup(self, module: str, xml: str) -> None:
        sysrepocfg = folder() / "bin/sysrepocfg"
        file = self.folder / f"{module}.xml"
        file.write_text(xml)
        self._run(sysrepocfg, f"--import={file}", "-d", "startup", "-f", "xml", "-m", module)

    def _run(self, *command: object, **environment: str) -> None:
        done = subprocess.run(
            [str(each) for each in command],
            env=self.environment | environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stdout[-1000:]}{done.stderr[-1000:]}")

    def _listening(self) -> str:
        """Return its configuration: one port, one host key, one user with a key."""
        lines = (self.keys / "host_key").read_text().splitlines()
        private = "".join(line for line in lines if not line.startswith("-----"))
        host = (self.keys / "host_key.pub").read_text().split()[1]
        user = (self.keys / "user_key.pub").read_text().split()[1]
        public = f'<public-key-format xmlns:ct="{SSH}">ct:ssh-public-key-format</public-key-format>'
        return f"""<netconf-server xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-server">
<listen><endpoints><endpoint><name>ssh</name><ssh>
<tcp-server-parameters>
<local-address>127.0.0.1</local-address><local-port>{self.port}</local-port>
</tcp-server-parameters>
<ssh-server-parameters>
<server-identity><host-key><name>key</name><public-key><inline-definition>{public}
<public-key>{host}</public-key>
<private-key-format xmlns:ln="{EXTENSION}">ln:openssh-private-key-format</private-key-format>
<cleartext-private-key>{private}</cleartext-private-key>
</inline-definition></public-key></host-key></server-identity>
<client-authentication><users><user><name>{self.user}</name><public-keys><inline-definition>
<public-key><name>key</name>{public}<public-key>{user}</public-key></public-key>
</inline-definition></public-keys></user></users></client-authentication>
</ssh-server-parameters></ssh></endpoint></endpoints></listen></netconf-server>
"""


def servers(of: Path, ports: list[int], user: str) -> list[Server]:
    """Return a server for each port, whose folders are in ``of``, as the keys are."""
    return [Server(port, of / f"switch{port}", of, user) for port in ports]
