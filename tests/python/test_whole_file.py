# SPDX-License-Identifier: Apache-2.0
"""What is written whole: never half there, and never through somebody's link."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl._internal import whole_file
from pccl._internal.whole_file import check_writable, write_whole
from pccl.bench import tune
from pccl.topology import measure
from pccl.topology.measure import HEADING

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.queues import SimpleQueue


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


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_file, "_FOR_READER_S", 0.05)
    monkeypatch.setattr(whole_file, "_PATIENCE_S", 0.1)


@pytest.mark.usefixtures("impatient")
def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (lambda: write_whole(pipe, "content"), lambda: check_writable(pipe)):
        with pytest.raises(OSError, match="nobody reads from it") as error:
            write()
        assert error.value.filename == str(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        with pytest.raises(OSError, match="no reader has taken any bytes"):
            write_whole(pipe, b"x" * 1_000_000)
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_devices_and_descriptors_are_written_to_in_place(tmp_path: Path) -> None:
    null = tmp_path / "null"
    null.symlink_to("/dev/null")
    write_whole(null, "content")
    assert null.is_symlink()
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device"):
        write_whole(full, "content")
    assert full.is_symlink()
    file = tmp_path / "file"
    with file.open("wb", buffering=0) as out:
        out.write(b"before ")
        link = tmp_path / "link"
        link.symlink_to(f"/proc/self/fd/{out.fileno()}")
        write_whole(Path(f"/dev/fd/{out.fileno()}"), "one ")
        write_whole(link, "two ")
        out.write(b"after")
    assert file.read_text() == "before one two after"
    assert link.is_symlink()


def test_sockets_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    os.mknod(path, 0o600 | stat.S_IFSOCK)
    with pytest.raises(OSError, match="this is a socket"):
        write_whole(path, "content")
    assert path.is_socket()


def test_whether_it_could_be_written_is_tried_without_a_trace(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file"
    check_writable(file)
    assert list(file.parent.iterdir()) == []
    file.write_text("old")
    check_writable(file)
    assert file.read_text() == "old"
    below = file / "below"
    for write in (check_writable, lambda path: write_whole(path, "content")):
        with pytest.raises(OSError, match=r"exists|directory") as error:
            write(below)
        assert error.value.filename == str(below)


@pytest.mark.parametrize(
    "command",
    [
        ["tune", "--ranks", "2", "--max", "1K"],
        ["topo", "--measure"],
        ["bench", "all_reduce", "--output", "/proc/1/rows.json"],
        ["p2p", "bench", "--output", "/proc/1/rows.json"],
    ],
    ids=lambda command: command[0],
)
def test_commands_try_the_file_before_they_work(command: list[str], tmp_path: Path) -> None:
    """Of a home that cannot be written to, as one that is mounted read-only."""
    environment = {name: value for name, value in os.environ.items() if name[:5] != "PCCL_"}
    done = subprocess.run(
        [sys.executable, "-m", "pccl", *command],
        env={**environment, "XDG_CACHE_HOME": "/proc/1", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "/proc/1/" in done.stderr
