# SPDX-License-Identifier: Apache-2.0
"""Facts and results of ranks, as they publish them and as rank 0 gathers them."""

from __future__ import annotations

import contextlib
import time
import typing

from pccl.diagnostics.doctor.job.exchange import Late
from pccl.diagnostics.doctor.job.rank_facts import RankFacts
from pccl.errors import UnavailableError

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

    from pccl.diagnostics.doctor.job.exchange import Exchange

    Result: typing.TypeAlias = dict[str, typing.Any]

__all__ = ["await_departures", "count_path", "depart", "facts", "publish_result", "results"]

_LOOK_S = 0.05
_LEAVE_S = 5.0
_PROGRESS, _LEFT = "progress", "left"  # counters


def facts(exchange: Exchange, size: int, deadline: float) -> tuple[list[RankFacts], list[int]]:
    """Return the facts of the ranks that came, and the ranks that did not."""
    found, missing = [], []
    for rank in range(size):
        try:
            found.append(RankFacts.of(exchange.read(f"facts/{rank}", deadline)))
        except Late:
            missing.append(rank)
        except TypeError:
            raise UnavailableError(
                f"rank {rank} runs `pccl doctor` of another version of pccl: install one version"
                " on all hosts"
            ) from None
    return found, missing


def count_path(exchange: Exchange) -> None:
    """Count a path that was examined, as a sign of life."""
    exchange.add(_PROGRESS, 1)


def publish_result(exchange: Exchange, rank: int, result: Result) -> None:
    """Publish the result of a rank."""
    exchange.publish(f"result/{rank}", result)
    exchange.add(_PROGRESS, 1)


def results(
    exchange: Exchange, ranks: Sequence[int], silence_s: float
) -> tuple[dict[int, Result], list[int]]:
    """Return the results of ranks, and the ranks that published none.

    The wait ends when no rank has examined a path, or published its result, for ``silence_s``.
    """
    found: dict[int, Result] = {}
    progress, deadline = -1, 0.0
    while len(found) < len(ranks):
        now = exchange.add(_PROGRESS, 0)
        if progress != now:
            progress, deadline = now, time.monotonic() + silence_s
        elif time.monotonic() > deadline:
            break
        for rank in ranks:
            if rank not in found:
                with contextlib.suppress(Late):
                    found[rank] = exchange.read(f"result/{rank}", 0.0)
        time.sleep(_LOOK_S)
    return found, [rank for rank in ranks if rank not in found]


def depart(exchange: Exchange) -> None:
    """Count a rank that needs the store no longer."""
    exchange.add(_LEFT, 1)


def await_departures(exchange: Exchange, others: int) -> None:
    """Serve the store until the other ranks need it no longer."""
    deadline = time.monotonic() + _LEAVE_S
    while exchange.add(_LEFT, 0) < others and time.monotonic() < deadline:
        time.sleep(0.02)
