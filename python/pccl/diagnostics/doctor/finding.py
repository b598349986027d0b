# SPDX-License-Identifier: Apache-2.0
"""Findings: the results of checks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from pccl.diagnostics.doctor.root import Root

__all__ = ["Finding", "Severity", "Subject", "error", "examine", "warning"]

Severity: TypeAlias = Literal["error", "warning"]


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fault of a host, of a rank, or of the path between two hosts.

    Attributes
    ----------
    check
        Name of the check, as in ``"limits.descriptors"``.
    severity
        ``"error"`` if something fails, ``"warning"`` if it works slower or for some jobs only.
    text
        The fault, with the value that was found.
    setting
        The setting to change, with its right value.
    where
        Host, rank or path; empty for the host of this process.
    data
        The facts of the finding, for programs.
    """

    check: str
    severity: Severity
    text: str
    setting: str
    where: str = ""
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def at(self, where: str) -> Finding:
        """Return the finding of another place."""
        return dataclasses.replace(self, where=where)

    @property
    def line(self) -> str:
        """The finding as one line."""
        place = f"{self.where}: " if self.where else ""
        return " ".join(f"{place}{self.text}; {self.setting}".split())


# A function that reads facts, and one that checks them.
Subject: TypeAlias = tuple[Callable[["Root"], Any], Callable[[Any], Iterable[Finding]]]


def examine(subject: Subject, root: Root) -> list[Finding]:
    """Read the facts of a subject, and return the findings of its checks."""
    read, check = subject
    return list(check(read(root)))


def error(check: str, text: str, setting: str, **data: Any) -> Finding:
    """Return the finding of something that fails."""
    return Finding(check, "error", text, setting, data=data)


def warning(check: str, text: str, setting: str, **data: Any) -> Finding:
    """Return the finding of something that works slower, or for some jobs only."""
    return Finding(check, "warning", text, setting, data=data)
