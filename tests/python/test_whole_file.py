"""What is written whole: never half there, and never through somebody's link."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from pccl.bench import tune
from pccl.topology import measure
from pccl.topology.measure import HEADING
from pccl.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import SimpleQueue
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


def write_more_than_there_is_room_for(file: Path, found: SimpleQueue[tuple[int, str]]) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        write_whole(file, "new" * 1000)
    except OSError as error:
        found.put((error.errno or 0, str(error)))


def test_what_finds_no_room_leaves_the_old_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    context = multiprocessing.get_context("spawn")
    found: SimpleQueue[tuple[int, str]] = context.SimpleQueue()
    writer = context.Process(target=write_more_than_there_is_room_for, args=(file, found))
    writer.start()
    number, message = found.get()
    writer.join()
    assert number == errno.EFBIG
    assert message.endswith(f"'{file}'")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "old"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "content")
    reader.join()
    assert read == ["content"]
    assert pipe.is_fifo()
