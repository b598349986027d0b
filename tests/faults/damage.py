# SPDX-License-Identifier: Apache-2.0
"""What the victim does to itself and to its connections."""

from __future__ import annotations

import os
import random
import re
import signal
import stat
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.cells import Cell

_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-s \S+ \S+ \S+\s+/memfd:(pccl-\w+)")
_PAGE = 4096
_COUNTER = 8  # bytes in front of a header in shared memory, which say that it is there


def close(cell: Cell) -> None:
    """Leave in good order, while the others go on."""
    if cell.step == "absent":
        time.sleep(3600)
    if cell.step:
        os._exit(0)
    if cell.delay_s is None:
        dist.destroy_process_group()
    else:
        dist.group.WORLD._get_backend(torch.device("cpu")).abort()
    time.sleep(3600)


def kill(cell: Cell) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop(cell: Cell) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def garbage(cell: Cell) -> None:
    """Random bytes, where a collective or a message would begin."""
    draw = random.Random(str(cell))
    _write_everywhere(cell, lambda size: draw.randbytes(min(size, 64 << 10)))
    time.sleep(3600)


def half_frame(cell: Cell) -> None:
    """The front of a header, then death."""
    front = struct.pack("<HBB", 0xC012, 0, 9)
    _write_everywhere(cell, lambda size: front, offset=_COUNTER)
    kill(cell)


def _write_everywhere(cell: Cell, make: Callable[[int], bytes], offset: int = 0) -> None:
    for descriptor in _connections():
        os.set_blocking(descriptor, False)
        try:
            os.write(descriptor, make(4096))
        except OSError:
            continue  # a listening socket
    _overwrite_memory(cell, make, offset)


def _connections() -> list[int]:
    """Sockets of the library: those that torch's store does not hold since before it was there."""
    found = []
    for descriptor in _open_descriptors():
        try:
            mode = os.fstat(descriptor).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode) and descriptor not in _foreign:
            found.append(descriptor)
    return found


def _open_descriptors() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


_foreign: set[int] = set()


def spare_open_sockets() -> None:
    """What is open now is not the library's."""
    _foreign.update(_open_descriptors())


def _overwrite_memory(cell: Cell, make: Callable[[int], bytes], offset: int) -> None:
    """Write into what others read: the rank's area of the segment, and its rings."""
    for start, end, name in _mappings():
        if name == "pccl-region":
            usable = end - start - _PAGE
            segment = usable // cell.ranks // _PAGE * _PAGE
            _poke(start + _PAGE + cell.victim * segment + offset, make(segment))
        elif name == "pccl-ring" and end - start == _PAGE and offset == 0:
            _poke(start, make(_PAGE))


def _mappings() -> list[tuple[int, int, str]]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    matches = filter(None, map(_MAPPING.match, lines))
    return [(int(m[1], 16), int(m[2], 16), m[3]) for m in matches]


def _poke(address: int, data: bytes) -> None:
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(data)


DAMAGE = {
    "kill": kill,
    "stop": stop,
    "close": close,
    "garbage": garbage,
    "half_frame": half_frame,
}
