# SPDX-License-Identifier: Apache-2.0
"""Files of others that never end, or that nobody writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl._internal import given_file
from pccl.diagnostics import flight_files
from support import algorithms

if TYPE_CHECKING:
    from collections.abc import Callable

READERS: dict[str, Callable[[Path], object]] = {
    "msccl": pccl.Capsule.from_msccl,
    "mscclpp": pccl.Capsule.from_mscclpp,
    "signed": algorithms.ring.build("ring2", ranks=2).signed,
    "cluster": pccl.Cluster.load,
    "flight record": flight_files.load,
    "plans": pccl.topology.example("dgx1v").load_plans,
}


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def device(folder: Path) -> Path:
    (folder / "zeros").symlink_to("/dev/zero")
    return folder / "zeros"


@pytest.mark.parametrize("read", [*READERS.values(), pccl.Capsule.load, pccl.topology.load])
@pytest.mark.parametrize("make", [pipe, device, Path])
def test_what_is_no_file_is_refused_without_being_read(
    make: Callable[[Path], Path], read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = make(tmp_path)
    with pytest.raises(pccl.UnavailableError) as error:
        read(path)
    assert f"{path}: this is no file" in str(error.value)


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_file_that_is_missing_is_named(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing\.xml"):
        read(tmp_path / "missing.xml")


def test_no_more_than_the_bound_is_read_whatever_the_stated_size(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("é" * 50)
    assert given_file.text_of(file, 100) == "é" * 50
    with pytest.raises(pccl.InvalidArgumentError, match="has more than 99 bytes"):
        given_file.text_of(file, 99)
    # /proc says 0 of files that have bytes.
    assert Path("/proc/self/maps").stat().st_size == 0
    with pytest.raises(pccl.InvalidArgumentError, match="has more than 64 bytes"):
        given_file.text_of("/proc/self/maps", 64)
