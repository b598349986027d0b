# SPDX-License-Identifier: Apache-2.0
"""Hosts joined by cables: a network namespace each, and a pair of interfaces for each cable.

Cable N is ``ethN`` at both ends, in the subnet ``10.115.N.0/24``. There is no switch: a host
reaches those that it shares a cable with. The kernel limits what either end of a cable sends.
"""

from __future__ import annotations

import contextlib
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from faults.network import in_namespace, join, limit_rate, namespaces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


#: 2 ms at 1 Gb/s: the timers of a busy machine are not more exact.
BURST_KB = 256


@dataclass(frozen=True)
class Cable:
    """Between two hosts, counted from 0; ``mbit`` a second go each way, None: no limit."""

    first: int
    second: int
    mbit: int | None = None


@dataclass(frozen=True)
class Cabling:
    """Hosts by their namespaces, with the cables between them."""

    names: list[str]
    cables: list[Cable]

    def cut(self, cable: int) -> None:
        """Lose all packets of a cable, while its interfaces stay up."""
        for name in self._ends(cable):
            rule = f"iifname {interface_of(cable)} drop"
            _nft(name, f"add table inet cut{cable}")
            _nft(name, f"add chain inet cut{cable} in {{ type filter hook input priority 0 ; }}")
            _nft(name, f"add rule inet cut{cable} in {rule}")

    def mend(self, cable: int) -> None:
        """Undo `cut()`."""
        for name in self._ends(cable):
            _nft(name, f"delete table inet cut{cable}")

    def take_down(self, cable: int) -> None:
        """Turn the interface of the cable's first end off."""
        in_namespace(self._ends(cable)[0], f"link set {interface_of(cable)} down")

    def take_up(self, cable: int) -> None:
        """Undo `take_down()`."""
        in_namespace(self._ends(cable)[0], f"link set {interface_of(cable)} up")

    def _ends(self, cable: int) -> tuple[str, str]:
        return self.names[self.cables[cable].first], self.names[self.cables[cable].second]


def interface_of(cable: int) -> str:
    """Return the name of the interfaces at the ends of a cable."""
    return f"eth{cable}"


def address_of(cable: int, host: int) -> str:
    """Return the address of a host at a cable."""
    return f"10.115.{cable}.{host + 1}"


@contextlib.contextmanager
def cabled_hosts(count: int, cables: Sequence[Cable]) -> Iterator[Cabling]:
    """Give hosts with these cables; they are removed at the end."""
    with namespaces(count) as names:
        for number, cable in enumerate(cables):
            ends = (cable.first, cable.second)
            first, second = (f"{address_of(number, host)}/24" for host in ends)
            joined = (names[cable.first], names[cable.second])
            join(joined, interface_of(number), (first, second))
            for name in joined if cable.mbit is not None else ():
                limit_rate(name, cable.mbit or 0, interface_of(number), burst_kb=BURST_KB)
        yield Cabling(names, list(cables))


def ring_of(count: int, mbit: int | None = None) -> list[Cable]:
    """Return the cables of a ring of hosts."""
    return [Cable(host, (host + 1) % count, mbit) for host in range(count)]


def _nft(name: str, words: str) -> None:
    subprocess.run(
        ["ip", "netns", "exec", name, "nft", words],
        check=True,
        capture_output=True,
        start_new_session=True,
    )
