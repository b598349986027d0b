"""What is written whole: never half there, and never through somebody's link."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pccl.bench import tune
from pccl.topology import measure
from pccl.topology.measure import HEADING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("save", "text"),
    [
        (lambda file: tune.save("table\n", file), "table\n"),
        (lambda file: measure.save([], file), HEADING),
    ],
)
def test_nothing_is_written_through_a_link(
    tmp_path: Path, save: Callable[[Path], None], text: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    file = tmp_path / "shared" / "file"
    file.parent.mkdir()
    for link in (file, file.with_name(f".{file.name}.{os.getpid()}")):
        link.symlink_to(precious)
    save(file)
    assert precious.read_text() == "precious"
    assert file.read_text() == text
    assert [entry.name for entry in file.parent.iterdir()] == ["file"]
