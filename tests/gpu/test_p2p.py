"""Sessions whose memory is on GPUs, beside what torch itself copies."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tests.gpu.ranks import GPUS

from pccl import PeerLostError, UnavailableError, p2p

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
