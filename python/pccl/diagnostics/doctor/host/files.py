# SPDX-License-Identifier: Apache-2.0
"""Files of PCCL on this host: the secret, and the folder of measurements."""

from __future__ import annotations

import dataclasses
import os
import stat
import tempfile
import typing
from pathlib import Path

from pccl.diagnostics.doctor.finding import Finding, error, warning

if typing.TYPE_CHECKING:
    from collections.abc import Iterator

    from pccl.diagnostics.doctor.root import Root

__all__ = ["Files", "Secret", "check", "read"]

LEAST_SECRET, MOST_SECRET = 16, 4096
_MAKE = "head -c 32 /dev/urandom > FILE && chmod 600 FILE"


@dataclasses.dataclass(frozen=True)
class Secret:
    """The file that ``PCCL_SECRET_FILE`` names."""

    path: str
    failure: str = ""  # the reason why it cannot be read
    size: int = 0
    mode: int = 0o600
    owner: int = 0


@dataclasses.dataclass(frozen=True)
class Files:
    """The secret, and the folder in which measurements are kept."""

    user: int = 0
    secret: Secret | None = None
    cache: str = ""  # empty: the environment names none
    cache_failure: str = ""


def read(root: Root) -> Files:
    """Read the state of the secret and of the folder."""
    folder = _cache_of(root)
    return Files(
        user=os.geteuid(),
        secret=_secret_of(root),
        cache=folder,
        cache_failure=_why_not_writable(root.path(folder)) if folder else "",
    )


def check(files: Files) -> Iterator[Finding]:
    """Find a secret that PCCL refuses, and a folder to which it cannot write."""
    if files.secret is not None:
        yield from _check_secret(files.secret, files.user)
    if not files.cache or files.cache_failure:
        why = f"{files.cache} {files.cache_failure}" if files.cache else "HOME is not set"
        yield warning(
            "files.cache",
            f"{why}, so that each process measures the costs of this machine again",
            "set XDG_CACHE_HOME to a folder that can be written, or PCCL_COSTS_FILE and"
            " PCCL_TUNING_FILE",
            folder=files.cache,
        )


def _check_secret(secret: Secret, user: int) -> Iterator[Finding]:
    name = f"PCCL_SECRET_FILE={secret.path}"
    if not secret.path:
        yield error(
            "files.secret", "PCCL_SECRET_FILE is empty", f"name a file, or unset it: {_MAKE}"
        )
    elif secret.failure:
        yield error("files.secret", f"{name}: {secret.failure}", f"make the file: {_MAKE}")
    elif secret.mode & 0o077 or secret.owner not in (user, 0):
        yield error(
            "files.secret",
            f"{name} has mode {secret.mode:o} and belongs to user {secret.owner}, so that others"
            " than this user can read or write it",
            f"run `chmod 600 {secret.path}` as user {user}, its owner",
            mode=secret.mode,
            owner=secret.owner,
        )
    elif not LEAST_SECRET <= secret.size <= MOST_SECRET:
        yield error(
            "files.secret",
            f"{name} has {secret.size} bytes; {LEAST_SECRET} to {MOST_SECRET} are right",
            f"make it anew: {_MAKE}",
            size=secret.size,
        )


def _secret_of(root: Root) -> Secret | None:
    name = root.environment.get("PCCL_SECRET_FILE")
    if not name:
        return None if name is None else Secret("")
    try:
        found = root.path(name).stat()
        if not stat.S_ISREG(found.st_mode):
            return Secret(name, failure="it is no regular file")
        root.path(name).open("rb").close()
    except OSError as refusal:
        return Secret(name, failure=str(refusal.strerror))
    return Secret(name, size=found.st_size, mode=stat.S_IMODE(found.st_mode), owner=found.st_uid)


def _cache_of(root: Root) -> str:
    environment = root.environment
    if {"PCCL_COSTS_FILE", "PCCL_TUNING_FILE"} <= environment.keys():
        return str(Path(environment["PCCL_TUNING_FILE"]).parent)
    if folder := environment.get("XDG_CACHE_HOME"):
        return f"{folder}/pccl"
    return f"{environment['HOME']}/.cache/pccl" if environment.get("HOME") else ""


def _why_not_writable(folder: Path) -> str:
    """Return the reason why files cannot be made in a folder, or in the parent that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".pccl-doctor-"):
            return ""
    except OSError as refusal:
        return f"cannot be written ({refusal.strerror})"
