#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often ``pccl why`` names an injected fault.

Each rank is a host of its own: a network namespace, joined to the others by a bridge. A job runs
all_reduces with some computing between them. Then one of these faults begins, and the causes that
the counters of the next seconds show are compared with it:

    delay               of one host's cable: a relay holds its frames (netem is not in every kernel)
    loss, rate          of one host's interface, by nft and tc
    slow                one rank computes longer
    core                processes beside the job compete for one rank's core

    sudo PYTHONPATH=build/dev/python:tests python benchmarks/named_faults.py --trials 8

It needs iproute2 and nftables.

Before each fault the healthy job is looked at, which must show no cause. A fault counts as named if
the right cause comes first, MOST_S after its begin at the latest. ``--healthy MINUTES`` looks at a
job without a fault instead, beside other processes that compute for moments.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import multiprocessing
import os
import random
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent import futures
from pathlib import Path
from typing import TYPE_CHECKING

from faults.network import enter, in_namespace
from pccl.diagnostics import causes, job_status

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Event

INTERFACE = "eth0"
KINDS = ("delay", "loss", "rate", "slow", "core")
RIGHT = {"delay": {"path"}, "loss": {"path"}, "rate": {"path"}}
RIGHT |= {"slow": {"late", "core"}, "core": {"core", "late", "slow"}}
COMPUTE_S = 0.002
SLOW_S = 0.03
DELAY_S = 0.003
RIVALS = 6
QUERIES = 10  # until all ranks answer
LOST_PERCENT = 3
_SOL_PACKET = 263  # linux/socket.h, linux/if_packet.h
_PACKET_VNET_HDR = 15
_PACKET_IGNORE_OUTGOING = 23
WARM_S = 2.0
LOOK_S = 3.0
MOST_S = 5.0
NOISE_S = (0.05, 0.5)  # of computing, and of each pause


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextlib.contextmanager
def hosts(count: int, relayed: int | None) -> Iterator[tuple[str, list[str]]]:
    """Give the namespace of a bridge, and those of hosts 10.113.0.1 and up that it joins.

    The port of host ``relayed`` is no part of the bridge, but one end of a cable to it is.
    """
    stem = f"pccl-why-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        bridge = f"{stem}-br"
        names = [f"{stem}-{n}" for n in range(count)]
        for name in (bridge, *names):
            _run("ip", "netns", "add", name)
            stack.callback(_run, "ip", "netns", "delete", name)
            in_namespace(name, "link set lo up")
        in_namespace(bridge, "link add br0 type bridge")
        in_namespace(bridge, "address add 10.113.0.254/24 dev br0")
        in_namespace(bridge, "link set br0 up")
        for n, name in enumerate(names):
            in_namespace(name, f"link add {INTERFACE} type veth peer name p{n} netns {bridge}")
            in_namespace(bridge, f"link set p{n} up")
            port = f"p{n}"
            if n == relayed:
                in_namespace(bridge, "link add q0 type veth peer name q1")
                in_namespace(bridge, "link set q0 up")
                port = "q1"
            in_namespace(bridge, f"link set {port} master br0 up")
            in_namespace(name, f"address add 10.113.0.{n + 1}/24 dev {INTERFACE}")
            in_namespace(name, f"link set {INTERFACE} up")
        yield bridge, names


def _relay(bridge: str, ports: tuple[str, str], is_late: Event) -> None:
    """Pass frames between two interfaces, DELAY_S late while the fault lasts."""
    enter(bridge)
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) for _ in ports]
    for end, port in zip(ends, ports, strict=True):
        # With their headers for offloads: checksums are not filled in on veth.
        end.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
        end.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
        end.bind((port, 0))
    held: deque[tuple[float, socket.socket, bytes]] = deque()
    while True:
        wait = max(held[0][0] - time.monotonic(), 0) if held else 1.0
        ready, _, _ = select.select(ends, [], [], wait)
        for end in ready:
            frame = end.recv(1 << 17)
            due = time.monotonic() + (DELAY_S if is_late.is_set() else 0.0)
            held.append((due, ends[1] if end is ends[0] else ends[0], frame))
        while held and held[0][0] <= time.monotonic():
            _, to, frame = held.popleft()
            with contextlib.suppress(OSError):  # its queue is full: the frame is lost
                to.send(frame)


def _rank(
    rank: int, size: int, namespace: str, folder: str, count: int, slow: Event, cores: set[int]
) -> None:
    import numpy as np

    import pccl

    enter(namespace)
    os.sched_setaffinity(0, cores)
    os.environ["PCCL_SECRET_FILE"] = f"{folder}/secret"
    comm = pccl.Communicator(
        rank=rank, world_size=size, rendezvous=f"file://{folder}/store", timeout=60.0
    )
    data = np.random.default_rng(rank).random(count, dtype=np.float32)
    comm.barrier()
    (Path(folder) / f"pid-{rank}").write_text(str(os.getpid()))
    while not (Path(folder) / "stop").exists():
        for _ in range(8):
            _compute(COMPUTE_S + (SLOW_S if slow.is_set() else 0.0))
            comm.all_reduce(data)


def _compute(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def _disturb() -> None:
    while True:
        _compute(NOISE_S[0])
        time.sleep(NOISE_S[1])


class Job:
    """A running job whose ranks are hosts."""

    def __init__(
        self, size: int, count: int, relayed: int | None, stack: contextlib.ExitStack
    ) -> None:
        self.size = size
        self.bridge, self.names = stack.enter_context(hosts(size, relayed))
        self.folder = stack.enter_context(tempfile.TemporaryDirectory())
        Path(self.folder, "secret").write_text("0" * 64)
        Path(self.folder, "secret").chmod(0o600)
        context = multiprocessing.get_context("spawn")
        self.slow = [context.Event() for _ in range(size)]
        self.context = context
        self.delayed = context.Event()
        if relayed is not None:
            ends = (f"p{relayed}", "q0")
            relay = context.Process(target=_relay, args=(self.bridge, ends, self.delayed))
            relay.start()
            stack.callback(relay.kill)
        all_cores = os.sched_getaffinity(0)
        self.cores = [all_cores for _ in range(size)]
        self.processes = [
            context.Process(
                target=_rank,
                args=(r, size, self.names[r], self.folder, count, self.slow[r], self.cores[r]),
            )
            for r in range(size)
        ]
        for process in self.processes:
            process.start()
            stack.callback(process.kill)
        self._await_start()

    def _await_start(self) -> None:
        end = time.monotonic() + 60
        while any(not Path(self.folder, f"pid-{r}").exists() for r in range(self.size)):
            if time.monotonic() > end or any(p.exitcode is not None for p in self.processes):
                sys.exit("the job has not started within 60 s")
            time.sleep(0.05)

    @contextlib.contextmanager
    def fault(self, kind: str, rank: int) -> Iterator[None]:
        """Let one fault last until the block ends."""
        if kind == "rate":
            shape = ("tbf", "rate", "5mbit", "burst", "32kb", "latency", "50ms")
            tc = ("tc", "-n", self.names[rank], "qdisc")
            _run(*tc, "replace", "dev", INTERFACE, "root", *shape)
            yield
        elif kind == "loss":
            # Of what comes in: TCP takes a packet that is dropped on its way out for one not sent.
            rule = f'iifname "{INTERFACE}" numgen random mod 100 < {LOST_PERCENT} drop;'
            rules = "table ip f { chain i { type filter hook input priority 0; " + rule + " }; }"
            _run("ip", "netns", "exec", self.names[rank], "nft", rules)
            yield
        elif kind in ("slow", "delay"):
            event = self.slow[rank] if kind == "slow" else self.delayed
            event.set()
            yield
            event.clear()
        else:
            with self._competition(rank):
                yield

    @contextlib.contextmanager
    def _competition(self, rank: int) -> Iterator[None]:
        """Bind one rank to a core, beside processes that never sleep."""
        pid = self.processes[rank].pid or 0
        core = {max(os.sched_getaffinity(0))}
        threads = [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
        for thread in threads:
            os.sched_setaffinity(thread, core)
        busy = ("taskset", "-c", str(min(core)), "sh", "-c", "while :; do :; done")
        rivals = [subprocess.Popen(busy) for _ in range(RIVALS)]
        yield
        for rival in rivals:
            rival.kill()
            rival.wait()
        for thread in threads:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, self.cores[rank])

    def causes(self) -> list[causes.Cause]:
        """Return what the counters of LOOK_S seconds show."""
        found = causes.lasting_causes(causes.looks(self._query, LOOK_S))
        return [cause for _, lasting in found for cause in lasting]

    @functools.cached_property
    def _known(self) -> job_status.RepeatedQuery:
        """A query that begins at the address at which rank 0 listens."""
        words = subprocess.run(
            ["ss", "-N", self.names[0], "-Hltn"], check=True, capture_output=True, text=True
        ).stdout.split()
        door = next(word for word in words if word.startswith("10.113.0.1:"))
        return job_status.RepeatedQuery([(door,)], 3.0)

    def _query(self) -> job_status.Job:
        for _ in range(QUERIES):
            job = self._known()
            if len(job.processes) == self.size:
                return job
        sys.exit(f"{len(job.processes)} of {self.size} ranks answered: {job.unheard}")

    def stop(self) -> None:
        """End the ranks."""
        Path(self.folder, "stop").touch()
        for process in self.processes:
            process.join(20)


def trial(size: int, count: int, kind: str, rank: int) -> dict[str, object]:
    """Inject one fault, and return what was named."""
    with contextlib.ExitStack() as stack:
        job = Job(size, count, rank if kind == "delay" else None, stack)
        enter(job.bridge)
        os.environ["PCCL_SECRET_FILE"] = f"{job.folder}/secret"
        time.sleep(WARM_S)
        healthy = [cause.text for cause in job.causes()]
        with job.fault(kind, rank):
            begun = time.monotonic()
            time.sleep(0.5)
            found = job.causes()
            took_s = time.monotonic() - begun
        first = found[0] if found else None
        is_right = first is not None and first.kind in RIGHT[kind] and rank in first.ranks
        is_right = is_right and took_s <= MOST_S
        return {
            "kind": kind,
            "ranks": size,
            "bytes": 4 * count,
            "rank": rank,
            "right": is_right,
            "seconds": round(took_s, 2),
            "named": [f"{cause.part:.0%} {cause.kind}: {cause.text}" for cause in found],
            "before": healthy,
        }


def watch(size: int, minutes: float) -> None:
    """Look at a healthy job again and again beside noise, and print each cause that is named."""
    with contextlib.ExitStack() as stack:
        job = Job(size, 1 << 14, None, stack)
        noise = job.context.Process(target=_disturb)
        noise.start()
        stack.callback(noise.kill)
        enter(job.bridge)
        os.environ["PCCL_SECRET_FILE"] = f"{job.folder}/secret"
        time.sleep(WARM_S)
        looks, alarms = 0, 0
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            found = job.causes()
            looks, alarms = looks + 1, alarms + bool(found)
            for cause in found:
                load = os.getloadavg()[0]
                print(f"look {looks}, load {load:.1f}: {cause.part:.0%} {cause.text}", flush=True)
        print(f"{alarms} of {looks} looks at a healthy job of {size} ranks name a cause")


def main() -> None:
    """Run the trials, each in a process of its own, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=8, help="of each kind")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--healthy", type=float, metavar="MINUTES", help="without faults")
    options = parser.parse_args()
    if options.healthy:
        watch(options.ranks[0], options.healthy)
        return
    draw = random.Random(options.seed)
    context = multiprocessing.get_context("fork")
    results = []
    for kind in options.kinds:
        for n in range(options.trials):
            size = options.ranks[n % len(options.ranks)]
            count = draw.choice([1 << 12, 1 << 16, 1 << 18])
            arguments = (size, count, kind, draw.randrange(size))
            with futures.ProcessPoolExecutor(1, context) as pool:
                result = pool.submit(trial, *arguments).result()
            results.append(result)
            print(json.dumps(result), flush=True)
    right = sum(bool(result["right"]) for result in results)
    alarms = sum(bool(result["before"]) for result in results)
    print(f"{right} of {len(results)} named right; {alarms} healthy looks with a cause")


if __name__ == "__main__":
    main()
