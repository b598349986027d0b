# SPDX-License-Identifier: Apache-2.0
"""libnccl-net-pccl.so, driven from two processes through the interface by which NCCL drives it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from faults import network
from pccl.cli import nccl_plugin
from pccl.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.multiproc
PATIENCE_S = 120
ENDS = ("sender", "receiver")
INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = 4, 5, 6


@pytest.fixture
def harness() -> Path:
    program = nccl_plugin.plugin().parents[2] / "net_harness"
    if not program.exists():
        pytest.skip("net_harness is not built: it is part of the C++ tests")
    return program


class Pair:
    """Two processes of the harness (tests/netplugin/README.md)."""

    def __init__(self, harness: Path, folder: Path, *options: str) -> None:
        self.command = [str(harness), str(nccl_plugin.plugin())]
        self.folder = folder
        self.options = [*options, "--timeout", str(PATIENCE_S)]
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def start(self, end: str, *prefix: str, **variables: object) -> subprocess.Popen[str]:
        environment = {
            "PCCL_SOCKET_IFNAME": "lo",
            "PCCL_PEER_TIMEOUT_MS": "2000",
            "RANK": str(ENDS.index(end)),
            "NET_HARNESS_LOG": "info",
            **{name: str(value) for name, value in variables.items()},
        }
        self.processes[end] = subprocess.Popen(
            [*prefix, *self.command, end, str(self.folder), *self.options],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return self.processes[end]

    def finish(self, end: str) -> tuple[int, str]:
        """Return the exit status of an end, and what it printed."""
        output, _ = self.processes[end].communicate(timeout=PATIENCE_S + 30)
        return self.processes[end].returncode, output

    def require_success(self) -> str:
        """Return what both printed."""
        outcomes = [self.finish(end) for end in self.processes]
        assert [status for status, _ in outcomes] == [0, 0], outcomes
        return "".join(output for _, output in outcomes)


@contextlib.contextmanager
def pair(harness: Path, folder: Path, *options: str) -> Iterator[Pair]:
    both = Pair(harness, folder, *options)
    try:
        yield both
    finally:
        for process in both.processes.values():
            process.kill()
            process.wait()


@pytest.mark.parametrize("version", range(6, 13))
def test_messages_of_every_size_arrive_in_each_version(
    version: int, harness: Path, tmp_path: Path
) -> None:
    sizes = [] if version == 12 else ["--sizes", "0,1,128,129,65536,1000003"]
    with pair(harness, tmp_path, "--abi", str(version), *sizes) as both:
        both.start("sender")
        both.start("receiver")
        printed = both.require_success()
    assert "both directions: ok" in printed
    assert "using lo 127.0.0.1, one device of all" in printed


def secret(folder: Path, name: str, text: bytes) -> Path:
    path = folder / name
    path.write_bytes(text)
    path.chmod(0o600)
    return path


def test_both_ends_prove_the_secret_of_the_job(harness: Path, tmp_path: Path) -> None:
    ours = secret(tmp_path, "secret", b"0123456789abcdef")
    with pair(harness, tmp_path, "--sizes", "100000") as both:
        both.start("sender", PCCL_SECRET_FILE=ours)
        both.start("receiver", PCCL_SECRET_FILE=ours)
        assert "connections prove the job's secret" in both.require_success()


def test_another_secret_is_an_error_that_says_so(harness: Path, tmp_path: Path) -> None:
    with pair(harness, tmp_path, "--sizes", "1") as both:
        both.start("sender", PCCL_SECRET_FILE=secret(tmp_path, "ours", b"0123456789abcdef"))
        both.start("receiver", PCCL_SECRET_FILE=secret(tmp_path, "theirs", b"fedcba9876543210"))
        # The first to fail ends, and the other then finds nobody.
        outcomes = [both.finish(end) for end in both.processes]
    assert all(status != 0 for status, _ in outcomes), outcomes
    assert any("does not prove the secret" in output for _, output in outcomes), outcomes


def test_one_end_without_the_secret_is_told_to_set_it(harness: Path, tmp_path: Path) -> None:
    with pair(harness, tmp_path, "--sizes", "1") as both:
        both.start("sender", PCCL_SECRET_FILE=secret(tmp_path, "ours", b"0123456789abcdef"))
        both.start("receiver")
        outcomes = {end: both.finish(end) for end in both.processes}
    assert "set PCCL_SECRET_FILE here, too" in outcomes["receiver"][1]
    assert f"connect returns {INVALID_USAGE}" in outcomes["receiver"][1]


@pytest.mark.parametrize("handle", [b"\0" * 128, b"\xff" * 128, b"PCNP" + b"\1" * 124])
def test_bytes_that_are_no_handle_are_refused(handle: bytes, harness: Path, tmp_path: Path) -> None:
    (tmp_path / "receiver0").write_bytes(handle)
    with pair(harness, tmp_path) as both:
        both.start("sender")
        status, output = both.finish("sender")
    assert status == 1
    assert f"connect returns {INVALID_ARGUMENT}" in output
    assert "log: NET/PCCL: the handle" in output


def test_the_loss_of_a_process_names_its_rank_host_and_interface(
    harness: Path, tmp_path: Path
) -> None:
    with pair(harness, tmp_path, "--sizes", "4096,4096,4096", "--hold", "100") as both:
        both.start("sender")
        lost = both.start("receiver")
        deadline = time.monotonic() + PATIENCE_S
        while not (tmp_path / "receiver0").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.5)  # by now they exchange messages, or connect
        lost.kill()
        status, output = both.finish("sender")
    assert status == 1
    assert f"returns {REMOTE_ERROR}" in output, output
    connected = f"rank 1 on {socket.gethostname()} is lost (lo 127.0.0.1 to lo 127.0.0.1: "
    assert connected in output or "cannot connect to rank 1" in output, output


def test_it_is_selected_by_two_lines(tmp_path: Path) -> None:
    lines = CliRunner().invoke(app, ["nccl-plugin"]).stdout.splitlines()
    path = CliRunner().invoke(app, ["nccl-plugin", "--path"]).stdout.strip()
    assert lines == [f"export NCCL_NET_PLUGIN={path}", "export NCCL_NET=PCCL"]
    assert path.endswith("libnccl-net-pccl.so")
    del tmp_path


@pytest.fixture
def two_paths() -> Iterator[tuple[str, str]]:
    """Give two namespaces with two cables of 400 and 200 Mbit/s."""
    reason = network.why_no_namespaces()
    if reason:
        pytest.skip(reason)
    with network.separate_namespaces() as names:
        for number, mbit in ((0, 400), (1, 200)):
            name = f"veth{number}"
            network.join(names, name, (f"10.113.{number}.1/24", f"10.113.{number}.2/24"))
            for namespace in names:
                network.limit_rate(namespace, mbit, name)
        yield names


def sent_bytes(namespace: str, interface: str) -> int:
    file = f"/sys/class/net/{interface}/statistics/tx_bytes"
    # Of the namespace: /sys shows the interfaces of the process that mounts it.
    command = ["ip", "netns", "exec", namespace, "cat", file]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def start_apart(both: Pair, names: tuple[str, str], **variables: object) -> None:
    for end, namespace in zip(ENDS, names, strict=True):
        prefix = ("ip", "netns", "exec", namespace)
        both.start(end, *prefix, PCCL_SOCKET_IFNAME="", NCCL_SOCKET_IFNAME="veth", **variables)


@pytest.mark.alone
def test_both_paths_carry_their_share(
    two_paths: tuple[str, str], harness: Path, tmp_path: Path
) -> None:
    with pair(harness, tmp_path, "--sizes", "33554432,100,16777216", "--window", "2") as both:
        start_apart(both, two_paths)
        printed = both.require_success()
    assert "using veth0 10.113.0.1, veth1 10.113.1.1, one device of all" in printed
    fast, slow = (sent_bytes(two_paths[0], name) for name in ("veth0", "veth1"))
    assert min(fast, slow) > 10_000_000, (fast, slow)


@pytest.mark.alone
@pytest.mark.parametrize("number", [0, 1])
def test_a_path_that_is_cut_costs_no_byte(
    number: int, two_paths: tuple[str, str], harness: Path, tmp_path: Path
) -> None:
    with pair(harness, tmp_path, "--sizes", "67108864,100,67108864,1", "--window", "2") as both:
        start_apart(both, two_paths)
        deadline = time.monotonic() + PATIENCE_S
        while sent_bytes(two_paths[0], f"veth{number}") < 8_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        network.in_namespace(two_paths[0], f"link set veth{number} down")
        printed = both.require_success()
    assert f"the path from veth{number} 10.113.{number}." in printed
    assert "is lost: " in printed
    assert "the other paths carry its data" in printed


@pytest.mark.alone
def test_a_host_that_vanishes_is_named_with_each_path(
    two_paths: tuple[str, str], harness: Path, tmp_path: Path
) -> None:
    with pair(harness, tmp_path, "--sizes", "67108864,67108864") as both:
        start_apart(both, two_paths)
        deadline = time.monotonic() + PATIENCE_S
        while sent_bytes(two_paths[0], "veth0") < 8_000_000:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for name in ("veth0", "veth1"):
            network.in_namespace(two_paths[1], f"link set {name} down")
        outcomes = {end: both.finish(end) for end in both.processes}
    for end, rank in (("sender", 1), ("receiver", 0)):
        status, output = outcomes[end]
        assert status == 1, output
        assert f"rank {rank} on {socket.gethostname()} is lost (veth0 10.113.0." in output, output
        assert "; " in output or ", veth1 10.113.1." in output, output
        assert f"test returns {REMOTE_ERROR}" in output, output
