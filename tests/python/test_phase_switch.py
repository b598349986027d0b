# SPDX-License-Identifier: Apache-2.0
"""Phases of a running job, on the fabric of its rank 0: what ranks get, and how it fails."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pccl

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RANKS = 4
PHASES: dict[str, Any] = {
    "ring": {"links": "ring"},
    "both_ways": {"links": "ring", "duplex": True},
    "pairs": {"links": [[0, 2], [1, 3]], "duplex": True},
    "one_pair": {"links": [[0, 1]], "duplex": True},
    "star": {"links": [[0, 1], [0, 2], [1, 3]], "duplex": True},
    "passed_on": {"links": [[0, 1], [0, 2], [1, 3]], "duplex": True, "forward": True},
}


def cluster_of(ranks: int = RANKS) -> pccl.Cluster:
    return pccl.Cluster({"devices": [{}] * ranks, "phases": PHASES if ranks == RANKS else {}})


def run(body: Any, *args: object, ranks: int = RANKS) -> list[Any]:
    results: list[Any] = pccl.run(body, *args, ranks=ranks, cluster=cluster_of(ranks), timeout=60)
    return results


def report(folder: Path, what: object) -> None:
    (folder / str(what)).touch()


def await_notified(folder: Path, *what: object) -> None:
    """Wait until ranks have told all of it, which is no call of the library."""
    while not all((folder / str(each)).exists() for each in what):
        time.sleep(0.01)


@pytest.fixture(params=["shm,tcp", "tcp"])
def transports(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PCCL_TRANSPORTS", request.param)
    return str(request.param)


def total(comm: pccl.Communicator, elements: int = 1000) -> list[float]:
    """Return the first and last of a sum whose elements numpy knows."""
    x = np.arange(elements, dtype=np.float64) + comm.rank
    comm.all_reduce(x)
    return [float(x[0]), float(x[-1])]


def expected(ranks: list[int], elements: int = 1000) -> list[float]:
    whole = np.sum([np.arange(elements) + rank for rank in ranks], axis=0)
    return [float(whole[0]), float(whole[-1])]


def test_collectives_follow_the_phase(transports: str) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        seen: list[Any] = [pccl.phases.current_phase()]
        for phase in ["ring", "both_ways", "passed_on", "ring"]:
            result = pccl.switch_phase(phase)
            gathered = np.empty(RANKS * 3)
            comm.all_gather(gathered, np.full(3, float(comm.rank)))
            reported = np.full(5, float(comm.rank))
            comm.broadcast(reported, root=2)
            ways = {way.over for way in comm.explain("all_reduce", 8000)}
            seen.append([phase, result.outcome, total(comm), gathered.tolist(), reported[0], ways])
            assert pccl.phases.current_phase() == phase
        return seen

    for seen in run(body):
        assert seen[0] is None
        for phase, outcome, summed, gathered, reported, ways in seen[1:]:
            assert (phase, outcome) == (phase, "switched")
            assert summed == expected([0, 1, 2, 3])
            assert gathered == np.repeat(np.arange(4.0), 3).tolist()
            assert reported == 2.0
            assert ways == {"links"}


def test_results_are_the_same_on_all_ranks() -> None:
    def body(comm: pccl.Communicator) -> tuple[str, float, list[str]]:
        result = pccl.switch_phase("ring")
        return result.outcome, result.total_ms, [step for step, _ in result.switches[0].steps]

    results = run(body)
    assert all(each == results[0] for each in results)
    assert results[0][2][:5] == ["connect", "lock", "read", "prepare", "commit"]


def test_groups_that_were_split_off_follow(transports: str) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        before = comm.split(comm.rank % 2)
        assert before is not None
        pccl.switch_phase("ring")
        alone = ""
        try:
            total(before)
        except pccl.UnsupportedError as error:
            alone = str(error)
        whole = total(comm)
        with pccl.phase("pairs"):
            apart = ""
            try:
                total(comm)
            except pccl.UnsupportedError as error:
                apart = str(error)
            pair = total(before)
        return [alone, whole, apart, pair, pccl.phases.current_phase(), total(comm)]

    for rank, (alone, whole, apart, pair, phase, again) in enumerate(run(body)):
        assert "phase ring of the network " in alone
        assert "takes group world/" in alone
        assert whole == again == expected([0, 1, 2, 3])
        assert "phase pairs of the network takes group world apart: no way from its rank 0" in apart
        assert pair == expected([0, 1])
        assert phase == "ring", rank


def test_what_was_issued_comes_first(transports: str) -> None:
    def body(comm: pccl.Communicator) -> list[float]:
        arrays = [np.full(200_000, float(i + comm.rank)) for i in range(8)]
        events = [comm.all_reduce(each, async_op=True) for each in arrays]
        if comm.rank == 3:
            time.sleep(0.3)
        pccl.switch_phase("ring")
        assert all(event.is_done() for event in events if event is not None)
        return [float(each[-1]) for each in arrays]

    assert run(body) == [[4.0 * i + 6 for i in range(8)]] * RANKS


def test_a_dry_run_changes_nothing() -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        result = pccl.switch_phase("both_ways", dry_run=True)
        return [result.outcome, pccl.phases.current_phase(), total(comm)]

    assert run(body) == [["prepared", "ring", expected([0, 1, 2, 3])]] * RANKS


def failure_of(phase: str, timeout: float = 20.0, progress: Any = None) -> tuple[str, str]:
    try:
        pccl.switch_phase(phase, timeout=timeout, progress=progress)
    except pccl.Error as error:
        return type(error).__name__, str(error)
    return "", "switched"


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("one_pair", "phase one_pair leaves rank 2 without a way to and from any other"),
        (
            "star",
            r"phase star of the network has no ring through the ranks of group world: .*forward:",
        ),
        ("rings", r"there is no phase rings; did you mean ring\?"),
    ],
)
def test_a_phase_that_cannot_be_used_is_refused_before_anything_is_switched(
    phase: str, message: str
) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        kind, reason = failure_of(phase)
        return [kind, reason, pccl.phases.current_phase(), total(comm)]

    for kind, reason, current, summed in run(body):
        assert kind == "InvalidArgumentError"
        assert re.search(message, reason)
        assert (current, summed) == ("ring", expected([0, 1, 2, 3]))


def test_ranks_that_request_different_phases_get_both_names() -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        kind, reason = failure_of("pairs" if comm.rank == 2 else "ring")
        pccl.switch_phase("ring")
        return [kind, reason, total(comm)]

    for kind, reason, summed in run(body):
        assert kind == "MismatchError"
        assert "rank 0 switches to ring but rank 2 switches to pairs" in reason
        assert summed == expected([0, 1, 2, 3])


def test_a_rank_that_does_not_come_is_named_and_may_come_again(
    transports: str, tmp_path: Path
) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        if comm.rank == 3:
            await_notified(tmp_path, 0, 1, 2)
        kind, reason = failure_of("ring", timeout=3.0)
        report(tmp_path, comm.rank)
        pccl.switch_phase("ring", timeout=20.0)
        return [kind, reason, total(comm)]

    for kind, reason, summed in run(body):
        assert kind == "TimeoutError"
        assert "waits for rank 3: rank 3 has not called switch_phase" in reason
        assert summed == expected([0, 1, 2, 3])


def test_the_controller_that_does_not_come_is_named(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        if comm.rank == 0:
            await_notified(tmp_path, 1, 2, 3)
        failures = [failure_of("ring", timeout=2.0) for _ in range(1 if comm.rank == 0 else 2)]
        report(tmp_path, comm.rank)
        pccl.switch_phase("ring", timeout=20.0)
        return [failures, total(comm)]

    for rank, (failures, summed) in enumerate(run(body)):
        reasons = [reason for _, reason in failures]
        assert {kind for kind, _ in failures} == {"TimeoutError"}
        if rank == 0:
            assert "had given up waiting for rank 0" in reasons[0]
        else:
            assert all("rank 0 has not called switch_phase" in reason for reason in reasons)
        assert summed == expected([0, 1, 2, 3])


@pytest.mark.parametrize("killed", [0, 2])
def test_a_rank_that_dies_meanwhile_is_named(transports: str, killed: int) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        if comm.rank == killed:
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        return [*failure_of("ring", timeout=20.0), ""]

    with pytest.raises(pccl.launch.RankError) as caught:
        run(lambda comm: named(body(comm), killed))
    assert caught.value.rank == killed


def named(outcome: list[Any], killed: int) -> None:
    kind, reason, _ = outcome
    assert kind == "PeerLostError", outcome
    assert f"rank {killed}" in reason


def slow_cluster() -> pccl.Cluster:
    """A fabric whose light takes longer than the first second, after which progress is shown."""
    return pccl.Cluster(
        {
            "switches": [{"name": name, "settle_ms": 2500} for name in ("one", "two")],
            "devices": [{"ports": {"one": n, "two": n}} for n in range(1, RANKS + 1)],
            "phases": PHASES,
        }
    )


def when_committed(act: Callable[[], None]) -> Callable[[Any], None]:
    """Act once, as soon as the switches have been told to commit, on the thread of the progress."""
    is_due = [True]

    def look(progress: Any) -> None:
        if progress.part == "commit" and is_due:
            is_due.clear()
            act()

    return look


@pytest.mark.parametrize(("killed", "left_in"), [(0, "pairs"), (2, "passed_on")])
def test_those_who_are_left_are_in_one_phase(killed: int, left_in: str) -> None:
    """A rank dies once all switches have changed, and before anybody hears of it.

    Where it is rank 0 its fabric dies with it, so that nothing has been switched.
    """

    def body(comm: pccl.Communicator) -> None:
        part = comm.split(comm.rank % 2)
        assert part is not None
        pids = np.zeros(RANKS, dtype=np.int64)
        comm.all_gather(pids, np.array([os.getpid()]))
        pccl.switch_phase("pairs")
        kill = when_committed(lambda: os.kill(int(pids[killed]), signal.SIGKILL))
        kind, reason = failure_of("passed_on", timeout=20.0, progress=kill)
        assert killed != 0 or (kind == "PeerLostError" and "rank 0" in reason), (kind, reason)
        assert pccl.phases.current_phase() == left_in
        if comm.rank in {1, 3}:
            assert total(part) == expected([0, 1])

    with pytest.raises(pccl.launch.RankError) as caught:
        pccl.run(body, ranks=RANKS, cluster=slow_cluster(), timeout=60)
    assert caught.value.rank == killed, str(caught.value)


def test_a_collective_on_one_rank_is_no_switch() -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        total(comm)
        if comm.rank != 1:
            return list(failure_of("ring", timeout=20.0))
        try:
            x = np.ones(4)
            comm.all_reduce(x, timeout=3.0)
        except pccl.Error as error:
            return [type(error).__name__, str(error)]
        return ["", ""]

    results = run(body)
    for rank in (0, 2, 3):
        kind, reason = results[rank]
        assert kind == "MismatchError"
        assert "rank 0 switches to phase ring but rank 1 runs all_reduce #2" in reason


def test_a_late_rank_receives_the_disagreement(transports: str, tmp_path: Path) -> None:
    """Rank 1 calls something else, and rank 2 only when nobody is left to ask."""

    def body(comm: pccl.Communicator) -> tuple[str, str]:
        total(comm)
        if comm.rank == 2:
            await_notified(tmp_path, 0, 3)
        try:
            if comm.rank == 1:
                comm.all_reduce(np.ones(4), timeout=20.0)
            else:
                pccl.switch_phase("ring", timeout=20.0)
        except pccl.Error as error:
            return type(error).__name__, str(error)
        finally:
            if comm.rank in {0, 3}:
                comm.shutdown()
                report(tmp_path, comm.rank)
        return "", ""

    for kind, reason in run(body):
        assert kind == "MismatchError", reason
        assert re.search("something else|rank 0 switches to phase ring but rank 1 runs", reason)


def test_messages_that_nobody_has_received_are_not_lost(transports: str) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        x = np.full(4, 7.0)
        if comm.rank == 0:
            comm.send(x, 1, tag=5)
        kind, reason = failure_of("both_ways")
        if comm.rank == 1:
            x[:] = 0
            comm.recv(x, 0, tag=5)
        pccl.switch_phase("both_ways")
        return [kind, reason, x[0]]

    for kind, reason, value in run(body):
        assert kind == "UnavailableError"
        assert "1 of the messages that were sent have not been received" in reason
        assert value == 7.0


def test_messages_go_where_links_are() -> None:
    def body(comm: pccl.Communicator) -> list[str]:
        pccl.switch_phase("ring")
        peer = (comm.rank + 1) % RANKS
        x = np.full(4, float(comm.rank))
        sent = comm.send(x, peer, async_op=True)
        y = np.empty(4)
        comm.recv(y, (comm.rank - 1) % RANKS)
        assert sent is not None
        sent.wait()
        assert y[0] == (comm.rank - 1) % RANKS
        with pytest.raises(pccl.UnsupportedError, match="has no link from rank"):
            comm.send(x, (comm.rank + 2) % RANKS)
        with pytest.raises(pccl.UnsupportedError, match="along the links of this phase"):
            comm.all_to_all(np.empty(4), np.ones(4))
        comm.barrier()  # none leaves while its neighbour still receives
        return []

    run(body)


def test_a_job_and_its_cluster_are_one() -> None:
    def body(comm: pccl.Communicator, own: pccl.Cluster) -> None:
        with pytest.raises(pccl.UnavailableError, match="a job is on this cluster"):
            pccl.phases.switching._cluster().switch("ring")
        with pytest.raises(pccl.InvalidArgumentError, match="is another group's"):
            pccl.Communicator(cluster=pccl.phases.switching._cluster())
        with pytest.raises(pccl.InvalidArgumentError, match="4 devices for a group of 1"):
            pccl.Communicator(rendezvous="none", cluster=own)

    run(body, cluster_of())


def test_the_environment_names_a_cluster(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cluster.json"
    file.write_text('{"devices": [{}, {}], "phases": {"ring": {"links": "ring"}}}')
    monkeypatch.setenv("PCCL_CLUSTER", str(file))

    def body(comm: pccl.Communicator) -> str | None:
        pccl.switch_phase("ring")
        return pccl.phases.current_phase()

    assert pccl.run(body, ranks=2, timeout=60) == ["ring", "ring"]


def test_two_hundred_switches(transports: str) -> None:
    def body(comm: pccl.Communicator) -> float:
        x = np.ones(100)
        for turn in range(200):
            pccl.switch_phase(["ring", "both_ways", "passed_on"][turn % 3])
            x[:] = comm.rank
            comm.all_reduce(x)
            assert x[0] == x[99] == 6.0
        return float(pccl.phases.switching._cluster().generation if comm.rank == 0 else 200)

    assert run(body) == [200.0] * RANKS


def interrupted(phase: str, after: float) -> tuple[str, str]:
    """Switch, with a Ctrl-C while that waits."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        return failure_of(phase, timeout=20.0)
    except KeyboardInterrupt:
        return "KeyboardInterrupt", ""
    finally:
        timer.join()


@pytest.mark.parametrize(("who", "late"), [(0, 3), (2, 0)])
def test_a_rank_that_is_interrupted_takes_all_back(who: int, late: int, tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        if comm.rank == late:
            await_notified(tmp_path, who)
        wait = interrupted if comm.rank == who else failure_of
        kind, reason = wait("both_ways", 0.5 if comm.rank == who else 20.0)
        phase = pccl.phases.current_phase()
        report(tmp_path, comm.rank)
        await_notified(
            tmp_path, *range(RANKS)
        )  # who calls again at once does not say why it gave up
        pccl.switch_phase("both_ways", timeout=20.0)
        return [kind, reason, phase, total(comm)]

    for rank, (kind, reason, phase, summed) in enumerate(run(body)):
        assert kind == ("KeyboardInterrupt" if rank == who else "AbortedError"), reason
        assert rank == who or "a signal interrupted this rank" in reason
        assert phase == "ring"
        assert summed == expected([0, 1, 2, 3])


def test_an_interrupt_between_the_switches_steps_rolls_back() -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        interrupt = when_committed(lambda: os.kill(os.getpid(), signal.SIGINT))
        try:
            kind, reason = failure_of("both_ways", progress=interrupt)
        except KeyboardInterrupt:
            kind, reason = "KeyboardInterrupt", ""
        phase = pccl.phases.current_phase()
        if comm.rank == 0:
            assert pccl.phases.switching._cluster().phase_shown() == "ring"
        return [kind, reason, phase, total(comm)]

    results = pccl.run(body, ranks=RANKS, cluster=slow_cluster(), timeout=60)
    for rank, (kind, reason, phase, summed) in enumerate(results):
        assert kind == ("KeyboardInterrupt" if rank == 0 else "SwitchError")
        assert rank == 0 or "rolled back: a signal interrupted this rank" in reason
        assert phase == "ring"
        assert summed == expected([0, 1, 2, 3])


def test_a_switch_that_refuses_is_an_error_on_all_ranks(tmp_path: Path) -> None:
    """Rank 0 may not begin what it cannot write to its audit log."""
    audit = tmp_path / "audit.jsonl"

    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        with audit.open() as file:
            if comm.rank == 0:
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                pccl.switch_phase("both_ways")
            except pccl.phases.SwitchError as error:
                found = [error.result.outcome, error.code, str(error)]
        return [*found, pccl.phases.current_phase(), total(comm)]

    cluster = pccl.Cluster({"devices": [{}] * RANKS, "phases": PHASES, "audit": str(audit)})
    for outcome, code, reason, phase, summed in pccl.run(
        body, ranks=RANKS, cluster=cluster, timeout=60
    ):
        assert (outcome, code) == ("refused", "unavailable")
        assert f"{audit}: another process has it locked" in reason
        assert (phase, summed) == ("ring", expected([0, 1, 2, 3]))


def test_a_rank_that_aborts_is_lost_to_those_who_switch(tmp_path: Path) -> None:
    def body(comm: pccl.Communicator) -> list[str]:
        pccl.switch_phase("ring")
        if comm.rank == 2:
            comm.abort()
            await_notified(tmp_path, 0, 1, 3)
            return []
        reported = failure_of("both_ways", timeout=20.0)
        report(tmp_path, comm.rank)
        return list(reported)

    for kind, reason in [each for each in run(body) if each]:
        assert kind == "PeerLostError"
        assert "rank 2 has left the group: abort was called" in reason


def test_those_who_are_left_switch_on() -> None:
    def body(comm: pccl.Communicator) -> list[Any]:
        pccl.switch_phase("ring")
        if comm.rank == 2:
            comm.shutdown()
            return []
        kind, reason = failure_of("both_ways", timeout=20.0)
        smaller = comm.shrink([2])
        refused = failure_of("ring")
        result = pccl.switch_phase("passed_on")
        return [kind, reason, refused, result.outcome, total(smaller)]

    for kind, reason, refused, outcome, summed in [each for each in run(body) if each]:
        assert kind == "PeerLostError"
        assert "rank 2" in reason
        assert "phase ring leaves rank 1 without a way" in refused[1]
        assert (outcome, summed) == ("switched", expected([0, 1, 2]))
