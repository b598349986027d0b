# SPDX-License-Identifier: Apache-2.0
"""What mypy says of a newcomer's programs; numpy's stubs differ between the versions checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from newcomer.test_readme import PROGRAMS, REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from support.wheel import Environment

pytestmark = pytest.mark.slow

# Without it, reading torch takes half a minute each time.
CACHE = REPOSITORY / ".cache" / "mypy-newcomer"
PROGRAM = """
from array import array

import numpy as np
import numpy.typing as npt
import torch
import pccl

comm = pccl.Communicator()


def step(x: npt.NDArray[np.float32], later: bool) -> None:
    event: pccl.Event | None = comm.all_reduce(x, op="max", async_op=later)
    if event is not None:
        event.wait()
    comm.broadcast(x, 0, async_op=True).wait()
    comm.reduce(x, timeout=1.0)
    comm.all_gather([x, x], x)
    comm.all_gather(np.zeros((2, x.size)), x, async_op=later)
    comm.reduce_scatter(x, [x, x], async_op=later)
    comm.gather(None, x, 1, async_op=later)
    comm.scatter(x, None, 1, async_op=later)
    comm.all_to_all([x, x], [x, x], async_op=later)
    comm.send(x, 1, async_op=later)
    comm.recv(x, async_op=later)


step(np.ones(3, np.float32), later=False)
comm.all_reduce(bytearray(8))
comm.all_reduce(array("f", [1.0]), async_op=True).flush()
comm.all_reduce(memoryview(bytearray(8)))
comm.all_reduce(torch.ones(3))
comm.all_gather([torch.ones(3), np.ones(3)], torch.ones(3))


async def wait_for(event: pccl.Event) -> None:
    event.add_done_callback(lambda done: print(done.is_done()))
    await event


part: pccl.Communicator | None = comm.split(0, key=1)
names: list[str] = list(comm.explain("all_reduce", 8)[0].algorithm)
links: list[str] = comm.links_counted_on().links
"""
MISTAKES = """
import numpy as np
import pccl

comm, x = pccl.Communicator(), np.ones(3)
comm.all_reduce([1.0, 2.0])  # expect: "list[float]"
comm.all_reduce(x, op="mean")  # expect: argument types "ndarray[tuple[int], dtype[float64]]", "str"
comm.all_reduce(x).wait()  # expect: "None" has no attribute "wait"
comm.all_reduce(x, async_op=bool(x[0])).wait()  # expect: "Event | None" has no attribute "wait"
"""


@pytest.mark.parametrize("version", ["3.11", "3.12"])
def test_programs_are_typed_and_mistakes_are_found(
    version: str, fresh: Environment, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    for page, block in PROGRAMS:
        if not block.excuse.startswith("a fragment"):
            place = "_".join(page.relative_to(REPOSITORY).with_suffix("").parts)
            (tmp_path / f"{place}_{block.line}.py").write_text(block.text)
    mypy = [fresh.python, "-m", "mypy", "--config-file=", "--strict", f"--cache-dir={CACHE}"]
    files = sorted(path.name for path in tmp_path.glob("*.py"))
    done = fresh.run(*mypy, "--python-version", version, *files, cwd=tmp_path, timeout_s=900)
    found = [line for line in done.stdout.splitlines() if ": error: " in line]
    expected = {
        f"mistakes.py:{number}": line.split("# expect: ")[1]
        for number, line in enumerate(MISTAKES.splitlines(), start=1)
        if "# expect: " in line
    }
    assert [line.split(": error: ")[0] for line in found] == list(expected), done.stdout
    for line, words in zip(found, expected.values(), strict=True):
        assert words in line
