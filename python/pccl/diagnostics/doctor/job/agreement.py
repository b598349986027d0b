# SPDX-License-Identifier: Apache-2.0
"""Comparison of versions, settings and secrets between ranks."""

from __future__ import annotations

import typing
from collections import Counter

from pccl.diagnostics.doctor.finding import Finding, error, warning
from pccl.diagnostics.doctor.job.hosts import listed

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pccl.diagnostics.doctor.job.rank_facts import RankFacts

__all__ = ["check"]

_FATAL_VERSIONS = ("pccl",)


def check(ranks: Sequence[RankFacts]) -> Iterator[Finding]:
    """Find ranks whose versions, settings or secrets differ from those of most ranks."""
    for package in ("pccl", "torch", "numpy", "python", "net_plugin"):
        yield from _check_version(ranks, package)
    for name in sorted({name for rank in ranks for name in rank.settings}):
        yield from _check_setting(ranks, name)
    for odd, value, most in _minorities(ranks, lambda rank: rank.secret):
        state = "have another secret" if value and most else "differ in having a secret"
        yield error(
            "agreement.secret",
            f"{listed(odd)} {state} than most ranks",
            "copy one file to all hosts, and name it in PCCL_SECRET_FILE of each rank",
            ranks=odd,
        ).at("job")


def _check_version(ranks: Sequence[RankFacts], package: str) -> Iterator[Finding]:
    make = error if package in _FATAL_VERSIONS else warning
    name = "the net plug-in" if package == "net_plugin" else package
    for odd, value, most in _minorities(ranks, lambda rank: rank.versions.get(package, "")):
        yield make(
            "agreement.version",
            f"{listed(odd)} of {_hosts(ranks, odd)} have {name} {value or '(none)'}, the others"
            f" {most or 'none'}",
            f"install {name} {most} there" if most else f"uninstall {name} there",
            ranks=odd,
            package=package,
            version=value,
            most=most,
        ).at("job")


def _check_setting(ranks: Sequence[RankFacts], name: str) -> Iterator[Finding]:
    for odd, value, most in _minorities(ranks, lambda rank: rank.settings.get(name)):
        found = "do not set it" if value is None else f"have {value!r}"
        yield warning(
            "agreement.setting",
            f"{name} differs: {listed(odd)} of {_hosts(ranks, odd)} {found}, the others"
            f" {'do not set it' if most is None else f'have {most!r}'}",
            f"set {name} to one value on all ranks, or unset it on all",
            ranks=odd,
            value=value,
            most=most,
        ).at("job")


def _minorities(
    ranks: Sequence[RankFacts], value_of: Callable[[RankFacts], typing.Any]
) -> Iterator[tuple[list[int], typing.Any, typing.Any]]:
    """Return the ranks with each value that most do not have, the value, and that of most.

    Where two values are equally frequent, that of the lowest rank counts as the one of most.
    """
    counts = Counter(value_of(rank) for rank in ranks)
    if len(counts) < 2:
        return
    most = counts.most_common(1)[0][0]
    for value in counts:
        if value != most:
            yield [rank.rank for rank in ranks if value_of(rank) == value], value, most


def _hosts(ranks: Sequence[RankFacts], odd: list[int]) -> str:
    names = list(dict.fromkeys(rank.host_name for rank in ranks if rank.rank in odd))
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
