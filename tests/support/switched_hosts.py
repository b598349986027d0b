# SPDX-License-Identifier: Apache-2.0
"""Hosts at one Ethernet switch, as network namespaces, whose cables can be broken in many ways.

Each host has `INTERFACE`, and the address ``10.114.0.N`` for N from 1. Faults are filters of the
kernel (classic BPF) on what a host sends: they redirect packets to an interface that nobody reads.
"""

from __future__ import annotations

import contextlib
import subprocess
from typing import TYPE_CHECKING

from faults.network import await_up, configure, in_namespace, namespaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INTERFACE = "eth0"
_SINK = "sink0"

# linux/bpf_common.h, linux/filter.h
_LOAD_LENGTH, _LOAD_WORD, _LOAD_HALF, _LOAD_BYTE = 0x80, 0x20, 0x28, 0x30
_JUMP_EQUAL, _JUMP_GREATER, _JUMP_AT_LEAST, _RETURN = 0x15, 0x25, 0x35, 0x06
_RANDOM = 0xFFFFF000 + 56
_ETHERTYPE, _PROTOCOL, _TARGET, _TARGET_PORT = 12, 23, 30, 36
_MATCH, _PASS = (_RETURN, 0, 0, 0xFFFFFFFF), (_RETURN, 0, 0, 0)
_ETHERNET_BYTES = 14


def address_of(host: int) -> str:
    """Return the address of a host, counted from 0."""
    return f"10.114.0.{host + 1}"


@contextlib.contextmanager
def switched_hosts(count: int, *, has_ipv4: bool = True) -> Iterator[list[str]]:
    """Give the names of the hosts' namespaces; the switch is one more, which ends with them.

    Without IPv4, the addresses are ``fd00::N``.
    """
    with namespaces(count + 1) as names:
        *hosts, switch = names
        in_namespace(switch, "link add br0 type bridge")
        in_namespace(switch, "link set br0 mtu 9000 up")
        for number, host in enumerate(hosts):
            port = f"port{number}"
            in_namespace(switch, f"link add {port} type veth peer name {INTERFACE} netns {host}")
            in_namespace(switch, f"link set {port} mtu 9000 master br0 up")
            in_namespace(host, f"link set {INTERFACE} mtu 1500")
            address = f"{address_of(number)}/24" if has_ipv4 else f"fd00::{number + 1}/64"
            configure(host, INTERFACE, address)
        for host in hosts:
            await_up(host, INTERFACE)
        yield hosts


def lose(host: str, share: float) -> None:
    """Let a share of the packets that a host sends get lost."""
    limit = int((1 - share) * 0xFFFFFFFF)
    _drop(host, [(_LOAD_WORD, 0, 0, _RANDOM), (_JUMP_GREATER, 0, 1, limit), _MATCH, _PASS])


def drop_large(host: str, mtu: int) -> None:
    """Let IP packets of a host vanish that have more than ``mtu`` bytes."""
    largest = mtu + _ETHERNET_BYTES
    _drop(host, [(_LOAD_LENGTH, 0, 0, 0), (_JUMP_GREATER, 0, 1, largest), _MATCH, _PASS])


def drop_ports(host: str, first: int) -> None:
    """Let a host send no TCP packet to ports from ``first`` on."""
    _drop(
        host,
        [
            (_LOAD_HALF, 0, 0, _ETHERTYPE),
            (_JUMP_EQUAL, 0, 5, 0x0800),
            (_LOAD_BYTE, 0, 0, _PROTOCOL),
            (_JUMP_EQUAL, 0, 3, 6),
            (_LOAD_HALF, 0, 0, _TARGET_PORT),
            (_JUMP_AT_LEAST, 0, 1, first),
            _MATCH,
            _PASS,
        ],
    )


def drop_udp(host: str) -> None:
    """Let a host send no UDP packet."""
    _drop(
        host,
        [
            (_LOAD_HALF, 0, 0, _ETHERTYPE),
            (_JUMP_EQUAL, 0, 3, 0x0800),
            (_LOAD_BYTE, 0, 0, _PROTOCOL),
            (_JUMP_EQUAL, 0, 1, 17),
            _MATCH,
            _PASS,
        ],
    )


def drop_all_to(host: str, other: int) -> None:
    """Let nothing pass from a host to the one with number ``other``, but its ARP."""
    words = [int(word) for word in address_of(other).split(".")]
    number = int.from_bytes(bytes(words), "big")
    _drop(
        host,
        [
            (_LOAD_HALF, 0, 0, _ETHERTYPE),
            (_JUMP_EQUAL, 0, 3, 0x0800),
            (_LOAD_WORD, 0, 0, _TARGET),
            (_JUMP_EQUAL, 0, 1, number),
            _MATCH,
            _PASS,
        ],
    )


def limit_rate(host: str, mbit: int) -> None:
    """Let a host send at no more than this rate."""
    rate = f"root tbf rate {mbit}mbit burst 32kb latency 50ms"
    _tc(host, f"qdisc replace dev {INTERFACE} {rate}")


def _drop(host: str, program: Sequence[tuple[int, int, int, int]]) -> None:
    """Redirect the packets that a program matches to an interface without a reader."""
    in_namespace(host, f"link add {_SINK} type veth peer name sink1")
    for name in (_SINK, "sink1"):
        in_namespace(host, f"link set {name} up")
    code = ",".join([str(len(program)), *(" ".join(map(str, line)) for line in program)])
    _tc(host, f"qdisc add dev {INTERFACE} clsact")
    _tc(
        host,
        f"filter add dev {INTERFACE} egress bpf bytecode",
        code,
        f"action mirred egress redirect dev {_SINK}",
    )


def _tc(host: str, words: str, program: str = "", rest: str = "") -> None:
    arguments = [*words.split(), *([program] if program else []), *rest.split()]
    subprocess.run(
        ["tc", "-n", host, *arguments], check=True, capture_output=True, start_new_session=True
    )
