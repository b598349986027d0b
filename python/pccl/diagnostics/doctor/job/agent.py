# SPDX-License-Identifier: Apache-2.0
"""The rank that examines the paths of its host to all others."""

from __future__ import annotations

import dataclasses
import time
import typing

from pccl._core import Communicator
from pccl.diagnostics import process_addresses
from pccl.diagnostics.doctor.host import examination, network
from pccl.diagnostics.doctor.job import gathering, probe, speed
from pccl.diagnostics.doctor.job.responder import Responder, sample_ports
from pccl.errors import Error

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.job.exchange import Exchange
    from pccl.diagnostics.doctor.job.options import Options
    from pccl.diagnostics.doctor.job.plan import Plan
    from pccl.diagnostics.doctor.root import Root

__all__ = ["Agent"]

GROUP_S = 8.0


class Agent:
    """Examines paths in the rounds of a tournament; the first rank of each host has one."""

    def __init__(
        self, host: int, root: Root, exchange: Exchange, plan: Plan, options: Options
    ) -> None:
        self._host, self._exchange, self._plan = host, exchange, plan
        self._options = options
        self._token = bytes.fromhex(plan.token)
        facts = network.read(root)
        self.findings = [dataclasses.asdict(each) for each in examination.of_network(root, facts)]
        self._responder = Responder(self._token, sample_ports(*facts.ports), options.clock)
        self.own = probe.End(
            probe.addresses_of(facts.interfaces, facts.requested),
            self._responder.udp_port,
            self._responder.tcp_ports,
        )
        exchange.publish(f"end/{host}", dataclasses.asdict(self.own))

    def examine(self) -> list[dict[str, typing.Any]]:
        """Examine the paths of this host, one after the other."""
        mine = [pair for each in self._plan.rounds for pair in each if self._host in pair]
        return [self._examine_path(*pair) for pair in mine]

    def received(self) -> dict[str, int]:
        """Return the pings that arrived, by the number of the host that sent them."""
        return {str(host): count for host, count in self._responder.received.items()}

    def close(self) -> None:
        """End the answers to other hosts."""
        self._responder.close()

    def _examine_path(self, a: int, b: int) -> dict[str, typing.Any]:
        peer = b if self._host == a else a
        place = self._exchange.part(f"pair/{a}-{b}")
        result: dict[str, typing.Any] = {"a": a, "b": b, "probe": None, "speed": None}
        try:
            end = probe.End.of(self._exchange.read(f"end/{peer}", self._deadline()))
            self._swap(place, "begin", peer, True)
            own = probe.probe(self._host, self.own, end, self._token, self._options.clock)
            result["probe"] = dataclasses.asdict(own)
            others = self._swap(place, "measurable", peer, own.is_measurable)
            if own.is_measurable and others:
                result.update(self._measure(place, int(self._host == b), end))
        except (Error, OSError, ValueError, KeyError, TypeError) as error:
            result["failure"] = " ".join(str(error).split())
        gathering.count_path(self._exchange)
        return result

    def _measure(self, place: Exchange, rank: int, peer: probe.End) -> dict[str, typing.Any]:
        """Measure the path by a group of two ranks."""
        comm = Communicator(
            rank=rank,
            world_size=2,
            rendezvous=place.part("group"),
            timeout=GROUP_S,
            name="doctor-path",
        )
        try:
            found = speed.measure(comm, self._plan.aim * speed.tcp_bytes_per_s())
            interface = self._interface_to(peer)
            comm.barrier()  # until then the other host keeps the connections
            return {"speed": dataclasses.asdict(found), "interface": interface}
        finally:
            comm.shutdown()

    def _interface_to(self, peer: probe.End) -> str:
        """Return the interface of this host by which a connection to the peer goes."""
        theirs = {each.address for each in peer.addresses}
        names = {each.address: each.interface for each in self.own.addresses}
        for local, remote in process_addresses.connections_of_this_process():
            if remote in theirs and local in names:
                return names[local]
        return ""

    def _swap(self, place: Exchange, name: str, peer: int, value: object) -> typing.Any:
        """Publish a value for the other host, and return the one that it publishes."""
        place.publish(f"{name}/{self._host}", value)
        return place.read(f"{name}/{peer}", self._deadline())

    def _deadline(self) -> float:
        """Return until when to wait for another host."""
        return time.monotonic() + self._options.silence_s
