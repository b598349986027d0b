# SPDX-License-Identifier: Apache-2.0
"""Sessions whose memory is on GPUs, beside what torch itself copies."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tests.gpu.ranks import GPUS

from pccl import PeerLostError, UnavailableError, UnsupportedError, p2p

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.gpu
if GPUS == 0:
    pytest.skip("needs a GPU, this machine has none", allow_module_level=True)

NBYTES = (8 << 20) + 48
PATIENCE = 60.0
CPU = "cpu"
HERE, THERE = "cuda:0", f"cuda:{min(1, GPUS - 1)}"


def stamps(seed: int, device: str = CPU) -> torch.Tensor:
    """Bytes that tell where they are from."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (NBYTES,), dtype=torch.uint8, generator=generator).to(device)


def serve(pipe: Any, transports: str, device: str) -> None:
    """Register stamped memory, and make no further call but to show it."""
    if device != CPU:
        torch.cuda.set_device(device)
    with p2p.Session("target", transports=transports) as session:
        tensor = stamps(1, device)
        torch.cuda.synchronize()
        memory = session.register(tensor)
        pipe.send((session.connection_info(), memory.descriptor().serialize()))
        while pipe.recv() == "show":
            pipe.send(tensor.cpu().numpy())
        memory.deregister()
        pipe.send("deregistered")
        pipe.recv()


class Target:
    """Another process with memory."""

    def __init__(self, transports: str, device: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, transports, device), daemon=True)
        self.process.start()
        there.close()
        self.info, self.descriptor = self.said()

    def said(self) -> Any:
        assert self.pipe.poll(PATIENCE), "the target says nothing"
        return self.pipe.recv()

    def shown(self) -> np.ndarray[Any, Any]:
        self.pipe.send("show")
        return self.said()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


WAYS = [
    ("shm", HERE, THERE, "shm, by CUDA IPC"),
    ("shm", CPU, THERE, "shm, through pinned memory"),
    ("shm", HERE, CPU, "shm, through pinned memory"),
    ("tcp", HERE, THERE, "tcp, by messages"),
]


class Sides:
    def __init__(self, transports: str, here: str, there: str) -> None:
        self.target = Target(transports, there)
        self.session = p2p.Session("initiator", transports=transports)
        self.session.load(self.target.info)
        self.remote = self.session.import_memory("target", self.target.descriptor)
        self.tensor = stamps(2, here)
        torch.cuda.synchronize()
        self.local = self.session.register(self.tensor)

    def close(self) -> None:
        self.session.close()
        self.target.kill()


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}-{way[2]}")
def way(request: pytest.FixtureRequest) -> tuple[str, str, str, str]:
    return request.param


@pytest.fixture
def sides(way: tuple[str, str, str, str]) -> Iterator[Sides]:
    made = Sides(*way[:3])
    yield made
    made.close()


def test_reads_and_writes_as_torch_copies(sides: Sides, way: tuple[str, str, str, str]) -> None:
    work = sides.session.read(sides.local, sides.remote)
    work.wait(PATIENCE)
    assert work.stats().path == way[3], work.stats().reasons
    assert torch.equal(sides.tensor.cpu(), stamps(1))
    sides.tensor.copy_(stamps(3))
    torch.cuda.synchronize()
    sides.session.write(sides.local, sides.remote).wait(PATIENCE)
    assert (sides.target.shown() == stamps(3).numpy()).all()


def test_scattered_blocks_land_where_index_select_puts_them(sides: Sides) -> None:
    count, size = 2000, 1024
    order = np.random.default_rng(5).permutation(count)
    here = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
    sides.session.post_read(
        sides.session.prepare(sides.local, here, sides.remote, here[order])
    ).wait(PATIENCE)
    rows = stamps(1)[: count * size].view(count, size)
    expected = rows.index_select(0, torch.from_numpy(order)).flatten()
    assert torch.equal(sides.tensor.cpu()[: count * size], expected)


@pytest.mark.parametrize(("size", "count"), [(1000, 4000), (3, 100_000), (100_000, 50)])
def test_strided_blocks_land_where_strided_tensors_are(sides: Sides, size: int, count: int) -> None:
    here, there = size + 5, size + 9  # from block to block: no address is aligned
    before = stamps(2)

    def blocks(memory: torch.Tensor, stride: int, begin: int) -> torch.Tensor:
        return memory.as_strided((count, size), (stride, 1), begin)

    plan = sides.session.prepare(
        sides.local, (1, size, here, count), sides.remote, (2, size, there, count)
    )
    sides.session.post_read(plan).wait(PATIENCE)
    blocks(before, here, 1).copy_(blocks(stamps(1), there, 2))
    assert torch.equal(sides.tensor.cpu(), before)
    sides.tensor.copy_(stamps(3))
    torch.cuda.synchronize()
    sides.session.post_write(plan).wait(PATIENCE)
    after = stamps(1)
    blocks(after, there, 2).copy_(blocks(stamps(3), here, 1))
    assert (sides.target.shown() == after.numpy()).all()


def test_what_is_deregistered_is_reached_no_more(sides: Sides) -> None:
    sides.session.read(sides.local, sides.remote).wait(PATIENCE)
    sides.target.pipe.send("end")
    assert sides.target.said() == "deregistered"
    with pytest.raises(UnavailableError):
        sides.session.read(sides.local, sides.remote).wait(PATIENCE)


def test_who_is_killed_is_lost_and_what_was_read_is_whole(sides: Sides) -> None:
    sides.session.read(sides.local, sides.remote).wait(PATIENCE)
    sides.target.kill()
    with pytest.raises(PeerLostError):  # noqa: PT012, the loop waits for the very loss
        while True:
            sides.session.read(sides.local, sides.remote).wait(PATIENCE)
            assert torch.equal(sides.tensor.cpu(), stamps(1))


def test_a_transfer_waits_for_the_stream_that_it_is_given(sides: Sides) -> None:
    if not sides.tensor.is_cuda:
        pytest.skip("the local memory of this way is the host's")
    sides.session.read(sides.local, sides.remote).wait(PATIENCE)
    stream = torch.cuda.Stream(sides.tensor.device)
    stamped = stamps(7, sides.tensor.device)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # cycles: a tenth of a second
        sides.tensor.copy_(stamped)
    work = sides.session.write(sides.local, sides.remote, stream=stream)
    assert not work.done()
    work.wait(PATIENCE)
    assert (sides.target.shown() == stamps(7).numpy()).all()


def busy_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream that is at work for half a second."""
    stream = torch.cuda.Stream(device)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000_000)  # cycles
    return stream


def keeps_order(way: tuple[str, str, str, str]) -> bool:
    return way[3] == "shm, by CUDA IPC"


@pytest.fixture
def ordered(sides: Sides, way: tuple[str, str, str, str]) -> Sides:
    """Sides whose reads keep the order of a stream."""
    if not keeps_order(way):
        pytest.skip(f"reads keep no order of streams {way[3]}")
    return sides


def test_kernels_behind_a_read_find_its_bytes_with_no_wait_of_the_host(ordered: Sides) -> None:
    # Connects, and maps the memory.
    ordered.session.read(ordered.local, ordered.remote).wait(PATIENCE)
    old, expected = stamps(9, ordered.tensor.device), stamps(1)
    stream = busy_stream(ordered.tensor.device)
    with torch.cuda.stream(stream):
        ordered.tensor.copy_(old)
    work = ordered.session.read(ordered.local, ordered.remote, notify=b"read", stream=stream)
    assert not work.done()
    with torch.cuda.stream(stream):
        found = ordered.tensor.clone()
        ordered.tensor.zero_()
    stream.synchronize()  # and no look at the work
    assert torch.equal(found.cpu(), expected)
    work.wait(PATIENCE)
    assert work.stats().path == "shm, by CUDA IPC"
    assert not ordered.tensor.any(), "the copy came after what is behind it"


def test_blocks_keep_the_order_of_a_stream_too(ordered: Sides) -> None:
    count, size = 8000, 1024
    order = np.random.default_rng(6).permutation(count)
    here = np.stack([np.arange(count) * size, np.full(count, size)], axis=1)
    plan = ordered.session.prepare(ordered.local, here, ordered.remote, here[order])
    stream = busy_stream(ordered.tensor.device)
    work = ordered.session.post_read(plan, stream=stream)
    with torch.cuda.stream(stream):
        found = ordered.tensor[: count * size].clone()
    stream.synchronize()
    rows = stamps(1)[: count * size].view(count, size)
    assert torch.equal(found.cpu().view(count, size), rows[torch.from_numpy(order)])
    work.wait(PATIENCE)


def test_the_default_stream_and_its_address_keep_their_order(ordered: Sides) -> None:
    with torch.cuda.device(ordered.tensor.device):
        current = torch.cuda.current_stream()
        for stream in (current, current.cuda_stream):
            ordered.tensor.zero_()
            work = ordered.session.read(ordered.local, ordered.remote, stream=stream)
            found = ordered.tensor.clone()
            assert torch.equal(found.cpu(), stamps(1))
            work.wait(PATIENCE)


def test_a_stream_goes_on_where_its_read_fails(ordered: Sides) -> None:
    ordered.session.read(ordered.local, ordered.remote).wait(PATIENCE)
    ordered.target.pipe.send("end")
    assert ordered.target.said() == "deregistered"
    stream = busy_stream(ordered.tensor.device)
    work = ordered.session.read(ordered.local, ordered.remote, stream=stream)
    with torch.cuda.stream(stream):
        mark = torch.ones(1, device=ordered.tensor.device)
    stream.synchronize()
    assert mark.item() == 1
    with pytest.raises(UnavailableError):
        work.wait(PATIENCE)


def test_reads_by_other_paths_refuse_a_stream_with_the_reason(
    sides: Sides, way: tuple[str, str, str, str]
) -> None:
    if keeps_order(way):
        pytest.skip("reads by CUDA IPC keep the order of streams")
    stream = torch.cuda.Stream(HERE)
    with pytest.raises(UnsupportedError, match=r"keeps the order of a stream only where .*: sync"):
        sides.session.read(sides.local, sides.remote, stream=stream)
    sides.session.read(sides.local, sides.remote).wait(PATIENCE)


def test_a_stream_that_is_captured_is_refused(ordered: Sides) -> None:
    ordered.session.connect("target", PATIENCE)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(ordered.tensor.device), torch.cuda.graph(graph):
        ordered.tensor[:8].zero_()
        with pytest.raises(UnsupportedError, match="captured"):
            ordered.session.read(
                ordered.local, ordered.remote, stream=torch.cuda.current_stream()
            ).wait(PATIENCE)
    ordered.session.read(ordered.local, ordered.remote).wait(PATIENCE)


def test_the_current_device_of_the_caller_stays(sides: Sides) -> None:
    torch.cuda.set_device(GPUS - 1)
    sides.session.read(sides.local, sides.remote).wait(PATIENCE)
    assert torch.cuda.current_device() == GPUS - 1
    torch.cuda.set_device(0)


def test_a_tensor_an_address_and_an_interface_are_one_memory() -> None:
    class Interface:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.__cuda_array_interface__ = tensor.__cuda_array_interface__

    tensor = stamps(1, HERE)
    with p2p.Session("one") as session:
        for memory in (
            session.register(tensor),
            session.register(Interface(tensor)),
            session.register(tensor.data_ptr(), tensor.nbytes, device=HERE),
            session.register(tensor.data_ptr(), tensor.nbytes, device="cuda"),
        ):
            assert memory.nbytes == NBYTES
            assert len(memory.descriptor().serialize()) < 256
