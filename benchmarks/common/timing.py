# SPDX-License-Identifier: Apache-2.0
"""The timing that all benchmarks share: libraries take turns, and the slowest rank counts."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pccl.bench.cases import time_calls

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from pccl.bench.cases import Array, Call, Case

WARM_UP_CALLS = 2
# Large buffers of random numbers take longer to make than to send: a prime number of them repeats.
RANDOM_NUMBERS = 65521


@dataclass(frozen=True)
class Budget:
    """How long to measure one library in one cell.

    Attributes
    ----------
    rounds
        Turns that each library gets.
    seconds
        What a turn should take, apart from barriers.
    least, most
        Bounds for the calls in a turn.
    """

    rounds: int
    seconds: float
    least: int
    most: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> Budget:
        return cls(options.rounds, options.seconds, options.least, options.most)

    def calls(self, seconds: float) -> int:
        """Return how many calls of ``seconds`` each make a turn."""
        return max(self.least, min(self.most, int(self.seconds / seconds)))


@dataclass(frozen=True)
class Team:
    """The ranks that measure together.

    Attributes
    ----------
    barrier
        Lets all ranks go at once; the same one for all libraries.
    slowest
        Takes this rank's times of some calls, and gives each call's greatest over all ranks.
    """

    rank: int
    barrier: Call
    slowest: Callable[[list[float]], list[float]]


def take_turns(
    calls: Mapping[str, Call], team: Team, budget: Budget, prepare: Call = lambda: None
) -> dict[str, float]:
    """Return microseconds by library: the median over its turns of a turn's median call.

    ``prepare`` is called before each turn.
    """
    medians: dict[str, list[float]] = {library: [] for library in calls}
    for turn in range(budget.rounds):
        for library in list(calls)[:: -1 if turn % 2 else 1]:
            call = calls[library]
            prepare()
            warm_up = team.slowest(time_calls(call, team.barrier, WARM_UP_CALLS))
            times = time_calls(call, team.barrier, budget.calls(min(warm_up)))
            medians[library].append(statistics.median(team.slowest(times)))
    return {library: statistics.median(found) * 1e6 for library, found in medians.items()}


def measure_case(
    calls: Mapping[str, Call],
    case: Case,
    buffers: tuple[Array, Array],
    team: Team,
    budget: Budget,
) -> dict[str, float]:
    """Check the result of every library, then time them on random numbers.

    ``buffers`` are those of the calls, float32.

    Raises
    ------
    ArithmeticError
        A result is wrong.
    """
    x, out = buffers
    for library, call in calls.items():
        out[:] = 0
        x[:] = case.contribution(team.rank)
        call()
        if wrong := case.wrong(team.rank, out):
            raise ArithmeticError(f"{library}: {wrong} wrong elements on rank {team.rank}: {case}")
    numbers = random_input(case, team.rank)
    return take_turns(calls, team, budget, lambda: np.copyto(x, numbers))


def random_input(case: Case, rank: int) -> Array:
    """Return what ``rank`` passes in when calls are timed: numbers below 1.

    Sums in place grow with each call: those begin so small that a hundred calls of four ranks stay
    finite. (Infinite sums take as long.)
    """
    numbers = random_numbers(rank, case.input_elements)
    if case.collective == "all_reduce":
        numbers *= np.float32(2.0**-100)
    return numbers


def random_numbers(rank: int, count: int) -> Array:
    """Return float32 from 0 to 1, others on each rank."""
    drawn = np.random.default_rng(rank).random(RANDOM_NUMBERS, np.float32)
    return np.resize(drawn, count)
