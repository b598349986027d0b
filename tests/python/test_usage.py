# SPDX-License-Identifier: Apache-2.0
"""Causes that the counters of all ranks show, and their Prometheus text."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
from prometheus_client import parser

from pccl.diagnostics import causes, job_status, prometheus
from pccl.diagnostics.usage import CollectiveCounts, CpuTimes, Path, Usage, Wait, usage_of

NONE = CollectiveCounts()


def usage(between: float, within: float, *waits: Wait, calls: int = 100) -> Usage:
    return Usage(NONE, CollectiveCounts(calls, 1024 * calls, within, within / 2), between, waits)


def job(*usages: Usage, queued: float = 0.0, group: str = "world") -> job_status.Job:
    """Return a job with a rank a process."""
    processes = tuple(
        job_status.Process(
            host=f"n{rank // 2}",
            pid=100 + rank,
            door="here",
            seats=(
                job_status.Seat(
                    group=group,
                    device="cpu",
                    rank=rank,
                    size=len(usages),
                    key="ab" * 16,
                    operation="",
                    last="",
                    seconds=None,
                    awaited=(),
                    broken="",
                    usage=each,
                ),
            ),
            records=(),
            cpu=CpuTimes(10.0, queued if rank == 2 else 0.0),
        )
        for rank, each in enumerate(usages)
    )
    return job_status.Job(processes, ())


def found(after: job_status.Job) -> list[causes.Cause]:
    before = job(*[usage(0.0, 0.0, calls=0) for _ in after.processes])
    (group,) = causes.group_times([before, after])
    return causes.causes_of(group)


def waits_for(rank: int, seconds: float, act: str = "send") -> Wait:
    return Wait(rank, act, seconds)


def test_a_rank_that_computes_longer_is_late() -> None:
    prompt = [usage(3.0, 7.0, waits_for(2, 6.0)) for _ in range(3)]
    (cause,) = found(job(*prompt[:2], usage(9.0, 1.0), prompt[2]))
    assert (cause.kind, cause.ranks, cause.seconds) == ("late", (2,), 6.0)
    assert cause.part == pytest.approx(0.6)
    assert "rank 2 (process 102 on n1) spends 90% of its time between collectives" in cause.text
    assert "the others 30%" in cause.text


def test_a_rank_whose_core_is_taken_is_told_apart() -> None:
    prompt = [usage(3.0, 7.0, waits_for(2, 6.0)) for _ in range(3)]
    (cause,) = found(job(*prompt[:2], usage(9.0, 1.0), prompt[2], queued=5.0))
    assert cause.kind == "core"
    assert "waited 5.0 s for a core" in cause.text


def test_a_rank_that_is_slow_within_collectives() -> None:
    prompt = [usage(3.0, 7.0, waits_for(2, 6.0)) for _ in range(3)]
    (cause,) = found(job(*prompt[:2], usage(3.0, 7.0), prompt[2]))
    assert (cause.kind, cause.ranks) == ("slow", (2,))
    assert "within collectives" in cause.text


def test_a_full_path_is_the_pair_that_waits_for_each_other() -> None:
    # A ring, whose path from rank 1 to rank 2 is slow.
    around = [
        usage(1.0, 9.0, waits_for(3, 7.0)),
        usage(1.0, 9.0, waits_for(2, 5.0, "receive"), waits_for(0, 2.0)),
        usage(1.0, 9.0, waits_for(1, 7.0)),
        usage(1.0, 9.0, waits_for(2, 7.0)),
    ]
    (cause,) = found(job(*around))
    assert (cause.kind, cause.ranks, cause.seconds) == ("path", (1, 2), 5.0)
    assert "from rank 1 (n0) to rank 2 (n1) is full" in cause.text


def ring_of_paths(*paths: Path) -> list[causes.Cause]:
    """Return the causes of a ring in which all ranks wait alike."""
    ranks = [
        Usage(
            NONE, CollectiveCounts(100, 1, 9.0, 1.0), 1.0, (waits_for((r - 1) % 4, 6.0),), (path,)
        )
        for r, path in enumerate(paths)
    ]
    return found(job(*ranks))


def test_a_path_that_loses_packets() -> None:
    paths = [Path((r + 1) % 4, 10**9, 10**7 if r == 1 else 9, 1e-3, 1.0, "eth1") for r in range(4)]
    (cause,) = ring_of_paths(*paths)
    assert (cause.kind, cause.ranks) == ("path", (1, 2))
    assert "from rank 1 (n0) to rank 2 (n1) by eth1 loses packets" in cause.text


def test_a_receiver_that_acknowledges_late_is_no_long_path() -> None:
    """Only one direction of the pair has a long round trip."""
    forth = [Path((r + 1) % 4, 10**9, 0, 9e-3 if r == 3 else 1e-3, 1.0) for r in range(4)]
    back = [Path((r - 1) % 4, 10**9, 0, 1e-3, 1.0) for r in range(4)]
    ranks = [
        Usage(NONE, CollectiveCounts(100, 1, 9.0, 1.0), 1.0, (waits_for((r - 1) % 4, 6.0),), both)
        for r, both in enumerate(zip(forth, back, strict=True))
    ]
    assert found(job(*ranks)) == []


def test_a_path_that_is_longer_than_the_others() -> None:
    paths = [Path((r + 1) % 4, 10**9, 0, 5e-3 if r == 3 else 1e-3, 1.0) for r in range(4)]
    (cause,) = ring_of_paths(*paths)
    assert (cause.kind, cause.ranks) == ("path", (3, 0))
    assert "a round trip of 5.00 ms, the others 1.00 ms" in cause.text


def test_a_long_path_that_cannot_explain_the_waits_is_no_cause() -> None:
    paths = [Path((r + 1) % 4, 10**9, 0, 2e-3 if r == 3 else 0.1e-3, 1.0) for r in range(4)]
    assert ring_of_paths(*paths) == []


def test_a_round_trip_is_the_shortest_of_all_looks() -> None:
    """What the time of a busy process adds to it goes by."""

    def look(calls: int, round_trip: float) -> job_status.Job:
        path = Path(1, calls * 10**6, 0, round_trip, 1.0)
        counts = CollectiveCounts(calls, calls, 9.0 * calls, 1.0)
        ranks = [Usage(NONE, counts, 1.0, (), (path,)), usage(1.0, 9.0, calls=calls)]
        return job(*ranks)

    looks = itertools.chain(
        [look(0, 1e-6), look(1, 5e-3), look(2, 1e-3)], itertools.repeat(look(4, 2e-3))
    )
    (group,) = causes.group_times(causes.looks(lambda: next(looks), 0.0))
    assert group.ranks[0].usage.network == (Path(1, 4 * 10**6, 0, 1e-3, 0.0),)


def test_a_rank_that_waits_for_a_core_makes_no_path_lossy() -> None:
    def ranks(resent: int) -> list[str]:
        paths = [Path((r + 1) % 4, 10**6, resent if r == 1 else 0, 1e-3, 1.0) for r in range(4)]
        prompt = usage(3.0, 7.0, waits_for(2, 6.0))
        each = [prompt, prompt, usage(9.0, 1.0), prompt]
        both = zip(each, paths, strict=True)
        return [
            c.kind for c in found(job(*[dataclasses.replace(u, network=(p,)) for u, p in both]))
        ]

    assert ranks(17_000) == ["late"]
    assert sorted(ranks(40_000)) == ["late", "path"]


def test_like_paths_are_no_cause() -> None:
    assert ring_of_paths(*[Path((r + 1) % 4, 10**9, 0, 1e-3 * (1 + r / 9)) for r in range(4)]) == []


def looks_with(late_in: set[int], count: int = 9, waited: float = 0.9) -> list[job_status.Job]:
    """Return looks at a job in which rank 2 is late at some times, and much."""
    sums = [usage(0.0, 0.0, calls=0)] * 4
    looks = [job(*sums)]
    for n in range(1, count):
        prompt = usage(1.0 - waited, 0.1 + waited, waits_for(2, waited))
        even = usage(0.5, 0.5, waits_for(1, 0.01))
        now = [
            even if n not in late_in else usage(1.0, 0.1) if rank == 2 else prompt
            for rank in range(4)
        ]
        sums = [a + b for a, b in zip(sums, now, strict=True)]
        looks.append(job(*sums))
    return looks


def test_a_cause_that_lasts_is_named() -> None:
    ((_, (cause,)),) = causes.lasting_causes(looks_with(set(range(1, 9)) - {4}))
    assert (cause.kind, cause.ranks) == ("late", (2,))


def test_long_calls_are_compared_over_longer_parts() -> None:
    """A call ends in every second time between two looks."""
    looks = looks_with(set(range(1, 9)))
    rare = [looks[n - n % 2] for n in range(len(looks))]
    ((_, (cause,)),) = causes.lasting_causes(rare)
    assert (cause.kind, cause.ranks) == ("late", (2,))


@pytest.mark.parametrize(("waited", "count"), [(0.9, 1), (0.4, 0)])
def test_a_few_long_calls_name_a_rank_that_costs_much(waited: float, count: int) -> None:
    """Two parts of the time show any rank by chance, but not at such a cost."""
    looks = looks_with(set(range(1, 9)), waited=waited)
    rare = [looks[n - n % 4] for n in range(len(looks))]
    ((_, found),) = causes.lasting_causes(rare)
    assert len(found) == count


@pytest.mark.parametrize(("waited", "count"), [(0.9, 1), (0.4, 0)])
def test_a_great_cost_needs_no_more_than_most_parts(waited: float, count: int) -> None:
    ((_, found),) = causes.lasting_causes(looks_with(set(range(4, 9)), waited=waited))
    assert len(found) == count


def test_a_moment_is_no_cause() -> None:
    looks = looks_with({2, 3, 4})
    ((group, found),) = causes.lasting_causes(looks)
    assert [cause.ranks for cause in causes.causes_of(group)] == [(2,)], "it costs much"
    assert found == []


def test_even_ranks_have_no_cause() -> None:
    assert found(job(*[usage(5.0, 5.0, waits_for((r + 1) % 4, 0.3)) for r in range(4)])) == []


def test_waits_without_an_origin_in_a_rank_are_no_ranks_fault() -> None:
    # Rank 2 waits less, but does nothing for longer than the others.
    prompt = [usage(3.0, 7.0, waits_for(2, 6.0)) for _ in range(3)]
    assert found(job(*prompt[:2], usage(3.0, 1.0), prompt[2])) == []


def test_only_ranks_that_answered_twice_count() -> None:
    after = job(*[usage(5.0, 5.0) for _ in range(3)])
    before = job(*[usage(0.0, 0.0, calls=0) for _ in range(3)])
    before = dataclasses.replace(before, processes=before.processes[1:])
    (group,) = causes.group_times([before, after])
    assert [rank.rank for rank in group.ranks] == [1, 2]
    assert causes.group_times([after, after]) == [], "no collective has ended meanwhile"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "soon", None])
def test_times_that_are_none_are_refused(seconds: object) -> None:
    counts = {"calls": 1, "bytes": 1, "seconds": 1, "predicted_s": 1}
    report = {"shm": counts, "links": counts, "between_s": seconds, "waits": [], "paths": []}
    with pytest.raises((TypeError, ValueError)):
        usage_of(report)


def test_prometheus_text_is_read_by_its_own_client() -> None:
    text = prometheus.exposition(
        job(usage(5.0, 5.0, waits_for(1, 0.3)), usage(5.0, 5.0), group='a "b" \\ \n c')
    )
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    waits = families["pccl_wait_seconds"].samples
    assert [(s.labels["rank"], s.labels["peer"], s.value) for s in waits] == [("0", "1", 0.3)]
    assert waits[0].labels["group"] == 'a "b" \\ \n c'
    calls = families["pccl_collectives"].samples
    assert {(s.labels["rank"], s.labels["path"]): s.value for s in calls}["1", "links"] == 100
    assert {s.value for s in families["pccl_up"].samples} == {1}
