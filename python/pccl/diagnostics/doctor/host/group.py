# SPDX-License-Identifier: Apache-2.0
"""A group of one rank on this host: whether PCCL accepts its settings."""

from __future__ import annotations

import dataclasses
import subprocess
import typing

from pccl._internal import own_path
from pccl.diagnostics.doctor.finding import Finding, error, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Attempt", "check", "read"]

LIMIT_S = 30.0
_PROGRAM = "import pccl; pccl.Communicator(rank=0, world_size=1)"
_NOISE = ("Traceback", " ", "\t")
_ADVICE = "correct that variable as docs/reference/configuration.md describes it, or unset it"


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Outcome of a process that made a group."""

    failure: str = ""
    warnings: tuple[str, ...] = ()


def read(root: Root) -> Attempt:
    """Make a group of one rank in a process of its own."""
    try:
        done = subprocess.run(
            own_path.command_for(_PROGRAM),
            env=dict(root.environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return Attempt(failure=f"no group was made within {LIMIT_S:g} s")
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith(_NOISE)]
    if done.returncode:
        return Attempt(failure=(lines or [f"it ended with status {done.returncode}"])[-1])
    return Attempt(warnings=tuple(lines))


def check(attempt: Attempt) -> Iterator[Finding]:
    """Find settings that PCCL refuses or does not have."""
    if attempt.failure:
        text = attempt.failure.partition(": ")[2] or attempt.failure
        yield error("group.settings", f"a group of one rank cannot be made: {text}", _ADVICE)
    for line in attempt.warnings:
        yield warning("group.warning", f"a group of one rank warns: {line}", _ADVICE)
