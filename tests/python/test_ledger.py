# SPDX-License-Identifier: Apache-2.0
"""Ledgers of a job: how they merge, and since when a cause lasts by their windows."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random

import pytest
from prometheus_client import parser

from pccl.diagnostics import episodes, verdicts
from pccl.diagnostics.ledger import Ledger, Record, Window, merged
from pccl.diagnostics.usage import CollectiveCounts, CpuTimes, Path, Usage, Wait

START_S = 1_800_000_000
SHORTEST_S = 2
NONE = CollectiveCounts()
ROOM = 4
MB = 1 << 20


def usage(
    between: float, within: float, *waits: Wait, paths: tuple[Path, ...] = (), calls: int = 100
) -> Usage:
    counts = CollectiveCounts(calls, 1024 * calls, within, within / 2)
    return Usage(NONE, counts, between, waits, paths)


def window(index: int, what: Usage, length: int = 1) -> Window:
    begin = START_S + index * SHORTEST_S
    return Window(begin, length * SHORTEST_S, what, CpuTimes(1.0, 0.1))


def record(rank: int, *windows: Window, key: str = "ab" * 16, size: int = ROOM) -> Record:
    return Record("world", key, size, rank, f"n{rank}", 100 + rank, windows)


def random_history(draw: random.Random, count: int) -> list[Window]:
    """Return what a process reports at some moment: older windows are joined."""
    windows = [window(n, usage(1.0, draw.random(), calls=n + 1)) for n in range(count)]
    for length in (1, 2, 4):
        while sum(w.length_s == length * SHORTEST_S for w in windows) > 4:
            first = next(n for n, w in enumerate(windows) if w.length_s == length * SHORTEST_S)
            a, b = windows[first : first + 2]
            both = Window(a.begin_s, 2 * a.length_s, a.usage + b.usage, a.cpu + b.cpu)
            windows[first : first + 2] = [both]
    return windows


def snapshots(seed: int) -> list[Ledger]:
    """Return ledgers of two ranks and two runs that were read at different times."""
    ledgers = []
    for moment in (5, 9, 17):
        draw = random.Random(seed)
        ranks = [record(r, *random_history(draw, moment), key=k * 16) for r in (0, 1) for k in "ab"]
        last = ranks[-1].windows[-1]
        partial = dataclasses.replace(last, usage=usage(0.5, 0.1, calls=1))
        ranks[-1] = dataclasses.replace(ranks[-1], windows=(*ranks[-1].windows[:-1], partial))
        ledgers.append(Ledger(tuple(ranks[moment % 2 :])))
    return ledgers


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_merging_does_not_matter(seed: int) -> None:
    some = snapshots(seed)
    whole = merged(some)
    for a, b, c in itertools.permutations(some):
        assert merged([a, b]) == merged([b, a])
        assert merged([merged([a, b]), c]) == merged([a, merged([b, c])]) == whole
    assert merged([whole, whole, some[0]]) == whole


def test_a_window_counts_once() -> None:
    early, late = (
        record(0, window(0, usage(1, 1)), window(1, usage(1, 1, calls=7))),
        record(0, window(0, usage(2, 2, calls=200), length=2), window(2, usage(1, 1))),
    )
    (found,) = merged([Ledger((early,)), Ledger((late,))]).records
    assert found == late


def test_of_two_readings_of_a_window_the_later_one_counts() -> None:
    early, late = record(0, window(0, usage(1, 1, calls=3))), record(0, window(0, usage(1, 2)))
    assert merged([Ledger((late,)), Ledger((early,))]).records == (late,)


def test_a_ledger_is_read_from_its_text() -> None:
    (ledger,) = snapshots(1)[2:]
    path = Path(1, MB, 10, 1e-3, 0.5, "eth1")
    full = usage(1, 2, Wait(1, "send", 0.5), paths=(path,))
    ledger = merged([ledger, Ledger((record(3, window(0, full)),))])
    assert Ledger.of_text(ledger.text(), "a.json") == ledger


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"pccl_ledger": 2, "records": []}', '{"pccl_ledger": 1, "records": [1]}'],
)
def test_other_files_are_no_ledgers(text: str) -> None:
    with pytest.raises(ValueError, match=r"^a\.json is no ledger of `pccl why --save`"):
        Ledger.of_text(text, "a.json")


@pytest.mark.parametrize(("begin", "length"), [(1, 2), (-2, 2), (0, 0), (0, 6), (0, -2)])
def test_windows_of_other_times_are_refused(begin: int, length: int) -> None:
    content = json.loads(Ledger((record(0, window(0, usage(1, 1))),)).text())
    content["records"][0]["windows"][0] |= {"begin_s": begin, "length_s": length}
    with pytest.raises(ValueError, match="no window of"):
        Ledger.of_text(json.dumps(content), "a.json")


def late_at(windows: range, count: int = 30) -> Ledger:
    """Return a ledger in which rank 2 is late in some windows."""
    even = usage(1.0, 1.0, Wait(1, "send", 0.1))
    prompt, late = usage(0.3, 1.7, Wait(2, "send", 1.4)), usage(1.8, 0.2)
    return Ledger(
        tuple(
            record(
                rank,
                *[
                    window(n, even if n not in windows else late if rank == 2 else prompt)
                    for n in range(count)
                ],
            )
            for rank in range(ROOM)
        )
    )


def steps_in(ledger: Ledger) -> list[episodes.Step]:
    (steps,) = episodes.steps_of(ledger).values()
    return steps


def test_a_cause_lasts_since_its_first_window() -> None:
    (found,) = episodes.episodes_of(steps_in(late_at(range(20, 30))))
    assert (found.cause.kind, found.cause.ranks) == ("late", (2,))
    assert (found.begin_s, found.end_s) == (START_S + 40, None)
    assert found.cause.part == pytest.approx(0.7)


def test_a_cause_that_is_over_has_an_end() -> None:
    (found,) = episodes.episodes_of(steps_in(late_at(range(8, 12))))
    assert (found.begin_s, found.end_s) == (START_S + 16, START_S + 24)


def test_a_cause_as_old_as_the_ledger_has_no_begin() -> None:
    (found,) = episodes.episodes_of(steps_in(late_at(range(30))))
    assert (found.begin_s, found.end_s) == (None, None)


def test_what_lasted_for_a_moment_is_no_episode() -> None:
    assert episodes.episodes_of(steps_in(late_at(range(8, 10)))) == []


def test_an_even_group_has_no_episode() -> None:
    assert episodes.episodes_of(steps_in(late_at(range(0)))) == []


def test_ranks_with_windows_of_different_lengths_are_compared() -> None:
    """One rank was queried later than the others, and has joined its windows."""
    ledger = late_at(range(20, 30))
    first = ledger.records[0]
    joined = tuple(
        Window(a.begin_s, 2 * a.length_s, a.usage + b.usage)
        for a, b in zip(first.windows[0:20:2], first.windows[1:20:2], strict=True)
    )
    odd = dataclasses.replace(first, windows=(*joined, *first.windows[20:]))
    (found,) = episodes.episodes_of(steps_in(Ledger((odd, *ledger.records[1:]))))
    assert (found.cause.ranks, found.begin_s) == ((2,), START_S + 40)


def ring_with(rate_of: dict[int, float], since: int, *, longer: float, count: int = 20) -> Ledger:
    """Return a ledger of a ring, in which ranks send at a part of their rate since a window."""
    ranks = []
    for rank in range(ROOM):
        windows = []
        for n in range(count):
            is_slow = n >= since
            rate = rate_of.get(rank, 1.0) if is_slow else 1.0
            to_next = Path((rank + 1) % ROOM, 10 * MB, 0, 1e-3, 0.5 / rate, "eth1")
            within = 1.0 * (longer if is_slow else 1.0)
            counts = CollectiveCounts(100, MB, within, 0.5)
            waits = (Wait((rank - 1) % ROOM, "send", within / 2),)
            windows.append(window(n, Usage(NONE, counts, 1.0, waits, (to_next,))))
        ranks.append(record(rank, *windows))
    return Ledger(tuple(ranks))


def test_a_path_that_carries_less_than_it_did_is_named_with_its_interface() -> None:
    (found,) = episodes.episodes_of(steps_in(ring_with({2: 0.4}, 12, longer=1.5)))
    assert (found.cause.kind, found.cause.ranks) == ("path", (2, 3))
    assert found.begin_s == START_S + 24
    assert found.rate == pytest.approx(0.4)
    assert found.cause.part == pytest.approx(0.5 / 2.5)
    assert "from rank 2 (n2) to rank 3 (n3) by eth1 carries 0.40 of what it did" in found.cause.text


def test_a_path_whose_slowness_costs_nothing_is_no_cause() -> None:
    assert episodes.episodes_of(steps_in(ring_with({2: 0.4}, 12, longer=1.0))) == []


def test_paths_that_all_carry_less_are_no_fault_of_one() -> None:
    """The job makes shorter calls."""
    assert (
        episodes.episodes_of(steps_in(ring_with(dict.fromkeys(range(4), 0.4), 12, longer=1.5)))
        == []
    )


def test_runs_of_one_job_follow_each_other() -> None:
    first, second = late_at(range(0), 10), late_at(range(0, 5), 5)
    moved = tuple(
        dataclasses.replace(
            r,
            key="cd" * 16,
            windows=tuple(dataclasses.replace(w, begin_s=w.begin_s + 100) for w in r.windows),
        )
        for r in second.records
    )
    steps = steps_in(merged([first, Ledger(moved)]))
    assert len(steps) == 15
    (found,) = episodes.episodes_of(steps)
    assert (found.begin_s, found.end_s) == (START_S + 100, None)


def test_groups_of_one_name_at_the_same_time_are_apart() -> None:
    ledger = late_at(range(0), 10)
    other = tuple(dataclasses.replace(r, key="cd" * 16) for r in ledger.records)
    found = episodes.steps_of(merged([ledger, Ledger(other)]))
    assert {key[:2]: len(steps) for key, steps in found.items()} == {"ab": 10, "cd": 10}


def test_times_are_local_and_have_a_day_if_it_is_another() -> None:
    (over,) = episodes.episodes_of(steps_in(late_at(range(8, 12))))
    text = verdicts.since_text(over, today_s=START_S)
    assert len(text.split(" to ")[0]) == len("12:03:10")
    assert text.count(":") == 4
    other_day = verdicts.since_text(over, today_s=START_S + 10 * 86400)
    assert other_day.count("-") == 4


def test_causes_have_metrics() -> None:
    (verdict,) = verdicts.verdicts_of([], ring_with({2: 0.4}, 12, longer=1.5))
    text = verdicts.exposition([verdict])
    families = {each.name: each for each in parser.text_string_to_metric_families(text)}
    (since,) = families["pccl_cause_since_timestamp_seconds"].samples
    assert since.value == START_S + 24
    assert since.labels == {"group": "world", "kind": "path", "ranks": "2,3"}
    assert families["pccl_path_rate_ratio"].samples[0].value == pytest.approx(0.4)
