# SPDX-License-Identifier: Apache-2.0
"""``pccl doctor --rdma`` on the fake libibverbs: what it finds, and where it ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pccl.diagnostics import rdma_channel, rdma_doctor
from support import fake_verbs
from support.fake_verbs import WRITE, WRITE_WITH_IMMEDIATE

DOCTOR = [sys.executable, "-m", "pccl", "doctor", "--rdma"]
DOCS = Path(__file__).parents[2] / "docs/reference/rdma.md"
RETRY_EXCEEDED = 12  # enum ibv_wc_status

# Adds a rule to the fake, then runs the command.
INJECT = """
import ctypes, os, sys
rule = bytes.fromhex(sys.argv.pop(1))
assert ctypes.CDLL(os.environ["PCCL_IBVERBS_LIBRARY"]).fake_verbs_add_rule(rule) > 0
from pccl.cli.main import main
main()
"""


def failing(opcode: int, skip: int = 0) -> list[str]:
    """Return a command whose requests of that kind fail after so many."""
    rule = fake_verbs.Rule(
        effect=fake_verbs.FAIL, opcode=opcode + 1, skip=skip, count=1, status=RETRY_EXCEEDED
    )
    return [sys.executable, "-c", INJECT, bytes(rule).hex(), "doctor", "--rdma"]


def start(
    fabric: Path, *arguments: str, command: list[str] = DOCTOR, **settings: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command, "--json", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **fake_verbs.environment(fabric, **settings)},
    )


def result(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    output, errors = process.communicate(timeout=120)
    assert output, errors
    found: dict[str, Any] = json.loads(output)
    assert [step["name"] for step in found["steps"]] == list(
        rdma_doctor.STEPS[: len(found["steps"])]
    )
    assert found["healthy"] == (process.returncode == 0)
    return process.returncode, found


def examine(fabric: Path, *arguments: str, **settings: str) -> tuple[int, dict[str, Any]]:
    settings = {"FAKE_VERBS_DEVICES": "mlx5_0", **settings}
    return result(start(fabric, *arguments, **settings))


def texts(found: dict[str, Any]) -> dict[str, str]:
    return {step["name"]: step["text"] for step in found["steps"]}


def assert_fails_at(outcome: tuple[int, dict[str, Any]], step: str, message: str) -> None:
    status, found = outcome
    assert status == 1
    last = found["steps"][-1]
    assert (last["name"], last["outcome"]) == (step, "failed"), last
    assert message in last["text"]
    assert "\n" not in last["text"]
    assert all(other["outcome"] != "failed" for other in found["steps"][:-1])


def test_a_sound_port_passes_every_step(tmp_path: Path) -> None:
    status, found = examine(tmp_path, FAKE_VERBS_DEVICES="mlx5_0:speed=edr:mtu=2048")
    assert status == 0
    assert [step["name"] for step in found["steps"]] == list(rdma_doctor.STEPS)
    outcomes = {step["name"]: step["outcome"] for step in found["steps"]}
    alone = {"connection": "skipped", "reach": "skipped", "write": "skipped"}
    assert outcomes == {**dict.fromkeys(rdma_doctor.STEPS, "ok"), **alone}
    said = texts(found)
    assert said["library"] == str(fake_verbs.shared_object().resolve())
    assert said["device"] == "mlx5_0"
    assert said["port"] == "mlx5_0:1, Ethernet, ACTIVE, 100 Gb/s"
    assert said["gid"].startswith("index 3 of 4, 10.77.0.1 (RoCE v2, ")
    assert said["memory"] == "4 MiB are registered"
    assert said["mtu"].startswith("2048 bytes; ")
    assert said["loopback"] == "64 KiB are written by mlx5_0:1 to itself"
    assert said["gpu"].startswith("mlx5_0 reaches memory of GPUs by dmabuf")


def test_lines_show_the_same_as_json(tmp_path: Path) -> None:
    done = subprocess.run(
        DOCTOR,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **fake_verbs.environment(tmp_path, FAKE_VERBS_DEVICES="mlx5_0:down")},
    )
    assert done.returncode == 1
    lines = [re.split(r"  +", line, maxsplit=2) for line in done.stdout.splitlines()]
    _, found = examine(tmp_path, FAKE_VERBS_DEVICES="mlx5_0:down")
    assert lines == [list(step.values()) for step in found["steps"]]


@pytest.mark.parametrize(
    ("settings", "step", "message"),
    [
        (
            {"PCCL_IBVERBS_LIBRARY": "/missing/libibverbs.so.1"},
            "library",
            "PCCL_IBVERBS_LIBRARY: ",
        ),
        ({"PCCL_IBVERBS_LIBRARY": "libz.so.1"}, "library", "libz.so.1 "),
        ({"FAKE_VERBS_DEVICES": ","}, "device", "this machine shows no RDMA device: load the "),
        ({"FAKE_VERBS_DEVICES": "mlx5_0:down"}, "port", "mlx5_0:1: its state is DOWN; look at"),
        ({"PCCL_IB_HCA": "mlx4"}, "port", "mlx5_0:1: left out by PCCL_IB_HCA"),
        ({"FAKE_VERBS_DEVICES": "rxe0"}, "port", "rxe0:1: an emulated device, which is used where"),
        ({"FAKE_VERBS_DEVICES": "siw0", "PCCL_IB_HCA": "siw0"}, "port", "siw0:1: an iWARP device"),
        ({"PCCL_SOCKET_IFNAME": "nosuch"}, "port", 'no running network interface fits "nosuch"'),
        ({"PCCL_IB_HCA": "mlx5_0:999"}, "port", 'PCCL_IB_HCA: "mlx5_0:999" is no device'),
        ({"PCCL_IB_GID_INDEX": "9"}, "gid", "mlx5_0:1: PCCL_IB_GID_INDEX=9: the port has 4 GIDs"),
        (
            {"FAKE_VERBS_MEMLOCK": "65536"},
            "memory",
            "the limit of locked memory is",
        ),
        ({"FAKE_VERBS_MAX_QP": "1"}, "loopback", "cannot create a queue pair on mlx5_0:1"),
    ],
)
def test_it_ends_at_the_first_step_that_fails(
    settings: dict[str, str], step: str, message: str, tmp_path: Path
) -> None:
    assert_fails_at(examine(tmp_path, **settings), step, message)


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        (WRITE, "mlx5_0:1 cannot write to itself: no acknowledgement came"),
        (WRITE_WITH_IMMEDIATE, "in packets of 4096 bytes, although 64 bytes arrive: no ackn"),
    ],
)
def test_a_port_that_cannot_write_to_itself(opcode: int, message: str, tmp_path: Path) -> None:
    process = start(tmp_path, command=failing(opcode), FAKE_VERBS_DEVICES="mlx5_0")
    assert_fails_at(result(process), "loopback", message)


def test_an_emulated_device_is_examined_if_it_is_named(tmp_path: Path) -> None:
    for named in ({"PCCL_IB_HCA": "=rxe0"}, {"PCCL_TRANSPORTS": "shm,verbs"}):
        status, found = examine(tmp_path, FAKE_VERBS_DEVICES="rxe0", **named)
        assert status == 0
        assert texts(found)["port"].startswith("rxe0:1")


def test_dma_bufs_are_probed(tmp_path: Path) -> None:
    _, found = examine(tmp_path, FAKE_VERBS_DMABUF="0")
    said = texts(found)["gpu"]
    assert said.startswith("mlx5_0 reaches memory of GPUs through pinned memory (dmabuf: ")
    assert "peermem: " in said


# -- two hosts -------------------------------------------------------------------------------------


def invited_port(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"--peer THIS_HOST:(\d+)`", line)
    assert found, line
    return found[1]


def examine_both(
    fabric: Path,
    here: dict[str, str],
    there: dict[str, str],
    command: list[str] = DOCTOR,
    timeout: str = "15",
) -> list[tuple[int, dict[str, Any]]]:
    """Return what two hosts find, the listening one first."""
    usual = {"FAKE_VERBS_DEVICES": "mlx5_0"}
    listener = start(
        fabric,
        *("--listen", "0", "--timeout", timeout),
        **{**usual, **here, "FAKE_VERBS_HOST": "0"},
    )
    try:
        peer = start(
            fabric,
            *("--peer", f"127.0.0.1:{invited_port(listener)}", "--timeout", timeout),
            command=command,
            **{**usual, **there, "FAKE_VERBS_HOST": "1"},
        )
        try:
            return [result(listener), result(peer)]
        finally:
            peer.kill()
    finally:
        listener.kill()


def secret(folder: Path, name: str) -> dict[str, str]:
    path = folder / name
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return {"PCCL_SECRET_FILE": str(path)}


def test_two_hosts_write_to_each_other(tmp_path: Path) -> None:
    shared = secret(tmp_path, "secret")
    smaller = {**shared, "FAKE_VERBS_DEVICES": "mlx5_0:mtu=1024"}
    both = examine_both(tmp_path, shared, smaller)
    assert [status for status, _ in both] == [0, 0]
    here, there = (texts(found) for _, found in both)
    for _, found in both:
        assert all(step["outcome"] == "ok" for step in found["steps"])
    proven = "both hosts are connected, with a proof of PCCL_SECRET_FILE"
    assert here["connection"] == there["connection"] == proven
    assert here["mtu"].startswith("4096 bytes here, 1024 at the peer")
    assert there["mtu"].startswith("1024 bytes here, 4096 at the peer")
    assert here["reach"].endswith("(10.77.0.1) is connected to the peer's (10.78.0.1)")
    assert here["write"] == "64 KiB are written to the peer, and as many from it"


def test_two_hosts_without_a_secret(tmp_path: Path) -> None:
    both = examine_both(tmp_path, {}, {})
    assert [status for status, _ in both] == [0, 0]
    assert "without a proof" in texts(both[0][1])["connection"]


@pytest.mark.parametrize(
    ("there", "step", "message"),
    [
        ({"FAKE_VERBS_DEVICES": "mlx5_0:ib"}, "mtu", "the peer's port InfiniBand; choose ports of"),
        ({"PCCL_IB_GID_INDEX": "2"}, "mtu", "the peer's RoCE v1; choose GIDs of one kind by"),
        ({"PCCL_IB_GID_INDEX": "1"}, "reach", "check PCCL_IB_GID_INDEX"),
    ],
)
def test_hosts_that_do_not_fit_each_other(
    there: dict[str, str], step: str, message: str, tmp_path: Path
) -> None:
    here, other = examine_both(tmp_path, {}, there)
    assert_fails_at(here, step, message)
    assert_fails_at(other, step, "")


def test_hosts_of_two_networks(tmp_path: Path) -> None:
    elsewhere = {"FAKE_VERBS_FABRIC": str(tmp_path / "elsewhere")}
    for outcome in examine_both(tmp_path / "here", {}, elsewhere):
        assert_fails_at(outcome, "reach", "the peer's GID resolves to no hardware address")


@pytest.mark.parametrize(
    ("opcode", "message"),
    [
        (WRITE, "let UDP port 4791 pass the firewalls of both hosts"),
        (WRITE_WITH_IMMEDIATE, "raise the MTU of the switches between"),
    ],
)
def test_a_path_that_loses_packets(opcode: int, message: str, tmp_path: Path) -> None:
    losing = failing(opcode, skip=1)  # the first goes to the port itself
    here, there = examine_both(tmp_path, {}, {}, command=losing, timeout="4")
    assert_fails_at(there, "write", message)
    assert_fails_at(here, "write", "")


def test_different_secrets_are_refused(tmp_path: Path) -> None:
    here, there = examine_both(tmp_path, secret(tmp_path, "a"), secret(tmp_path, "b"), timeout="3")
    proof = "the peer does not prove the secret: PCCL_SECRET_FILE must name the same secret"
    assert_fails_at(there, "connection", proof)
    assert_fails_at(here, "connection", f"the last connection was refused: {proof}")


def test_a_peer_that_is_not_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    address = f"127.0.0.1:{port}"
    outcome = examine(tmp_path, "--peer", address, "--timeout", "1")
    assert_fails_at(outcome, "connection", f"nothing answers at {address} ")
    outcome = examine(tmp_path, "--peer", "no.such.host.invalid:1", "--timeout", "1")
    assert_fails_at(outcome, "connection", "the name 'no.such.host.invalid' has no address")
    outcome = examine(tmp_path, "--listen", "0", "--timeout", "1")
    assert_fails_at(outcome, "connection", "no peer came within 1 s")


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: a stranger of many words\r\n\r\n",
        b"pccl doctor 1\n\0\0" + b"n" * 32 + struct.pack("<I", 1 << 31),
        b"pccl doctor 1\n\0\0" + b"n" * 32 + struct.pack("<I", 2) + b"{}" + b"m" * 32,
        b"",
    ],
)
def test_strangers_do_not_end_the_wait(greeting: bytes) -> None:
    started = threading.Event()
    ports: list[int] = []

    def note(port: int) -> None:
        ports.append(port)
        started.set()

    accepted: list[rdma_channel.PeerChannel] = []
    thread = threading.Thread(
        target=lambda: accepted.append(rdma_channel.listen(0, b"key", 30, note))
    )
    thread.start()
    assert started.wait(30)
    with (
        socket.create_connection(("127.0.0.1", ports[0])) as stranger,
        contextlib.suppress(OSError),  # a reset, at any call
    ):
        stranger.sendall(greeting)
        stranger.shutdown(socket.SHUT_WR)
        while stranger.recv(4096):
            pass
    with rdma_channel.connect(f"127.0.0.1:{ports[0]}", b"key", 30) as channel:
        thread.join(30)
        with accepted[0] as other:
            other.send({"step": "mtu"})
            assert channel.receive() == {"step": "mtu"}


@pytest.mark.parametrize("address", ["node7", ":1", "node7:", "node7:0", "node7:65536", "a:b"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ValueError, match="is no HOST:PORT"):
        rdma_channel.split_address(address)


def test_addresses_may_be_of_ipv6() -> None:
    assert rdma_channel.split_address("[fd00::1]:4711") == ("fd00::1", 4711)


def test_it_is_used_with_one_role_for_rdma() -> None:
    for arguments, message in (
        (["--peer", "a:1"], "pass --rdma, too"),
        (["--rdma", "--peer", "a:1", "--listen", "1"], "pass one of them"),
        (["--rdma", "--peer", "a"], "is no HOST:PORT"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pccl", "doctor", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 2
        assert message in done.stderr


def test_the_table_of_the_docs_has_every_step() -> None:
    examination = DOCS.read_text().partition("## The examination")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", examination, re.MULTILINE)) == rdma_doctor.STEPS
