# SPDX-License-Identifier: Apache-2.0
"""Collectives that move data: every type bit for bit, every layout, unequal and empty parts."""

from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from support.launch import BACKEND, not_on_gloo, run_ranks
from support.reference import COMPLEX, FLOAT8, FLOATS, MOVABLE
from support.torch_names import all_gather_single, reduce_scatter_single

COUNTS = (0, 1, 33, 5000)
TYPES = MOVABLE if BACKEND != "gloo" else (torch.float32, torch.int64, torch.uint8)
pytestmark = pytest.mark.multiproc


def payload(dtype: torch.dtype, count: int, seed: int) -> Tensor:
    """Return random bits as ``dtype``, NaNs and all; bool keeps to the two values that it has."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    size = torch.empty(0, dtype=dtype).element_size()
    return torch.randint(0, 256, (count * size,), generator=generator).byte().view(dtype)


def assert_same_bits(actual: Tensor, expected: Tensor) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert torch.equal(actual.view(torch.uint8), expected.view(torch.uint8)), expected.dtype


def gathers(rank: int, world_size: int) -> None:
    for dtype in TYPES:
        for count in COUNTS:
            everyone = [payload(dtype, count, other) for other in range(world_size)]
            parts = [torch.empty_like(part) for part in everyone]
            dist.all_gather(parts, everyone[rank])
            whole = torch.empty_like(torch.cat(everyone))
            all_gather_single(whole, everyone[rank])
            assert_same_bits(whole, torch.cat(everyone))
            for part, expected in zip(parts, everyone, strict=True):
                assert_same_bits(part, expected)


def gathers_to_a_root_and_scatters(rank: int, world_size: int) -> None:
    for number, dtype in enumerate(TYPES):
        root = number % world_size
        for count in COUNTS:
            everyone = [payload(dtype, count, other) for other in range(world_size)]
            gathered = [torch.empty_like(part) for part in everyone] if rank == root else None
            dist.gather(everyone[rank], gathered, dst=root)
            for part, expected in zip(gathered or [], everyone, strict=rank == root):
                assert_same_bits(part, expected)
            mine = torch.empty_like(everyone[rank])
            dist.scatter(mine, everyone if rank == root else None, src=root)
            assert_same_bits(mine, everyone[rank])


def broadcasts(rank: int, world_size: int) -> None:
    for number, dtype in enumerate(TYPES):
        root = number % world_size
        for count in COUNTS:
            mine = payload(dtype, count, rank)
            dist.broadcast(mine, src=root)
            assert_same_bits(mine, payload(dtype, count, root))


def exchanges(rank: int, world_size: int) -> None:
    for dtype in TYPES:
        for count in COUNTS:
            source = payload(dtype, count * world_size, rank)
            parts = [payload(dtype, count * world_size, other) for other in range(world_size)]
            expected = [part.view(world_size, count)[rank] for part in parts]
            single = torch.empty_like(source)
            dist.all_to_all_single(single, source)
            lists = [torch.empty_like(part) for part in expected]
            dist.all_to_all(lists, [*source.view(world_size, count)])
            assert_same_bits(single, torch.cat(expected))
            for actual, part in zip(lists, expected, strict=True):
                assert_same_bits(actual, part)


def sends_between_neighbours(rank: int, world_size: int) -> None:
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    for dtype in TYPES:
        for count in COUNTS:
            received = torch.empty_like(payload(dtype, count, previous))
            sending = dist.isend(payload(dtype, count, rank), following)
            dist.recv(received, previous)
            sending.wait()
            assert_same_bits(received, payload(dtype, count, previous))


def exchanges_uneven_splits(rank: int, world_size: int) -> None:
    """Rank r sends r * p rows to rank p: rank 0 takes no part, others differ, by a lot at last."""

    for scale in (1, 1000, 11_003):
        splits = [[scale * of * peer for peer in range(world_size)] for of in range(world_size)]
        sources = [payload(torch.int32, sum(rows) * 3, of) for of, rows in enumerate(splits)]
        received = torch.empty_like(sources[rank]).view(-1, 3)
        dist.all_to_all_single(received, sources[rank].view(-1, 3), splits[rank], splits[rank])
        expected = [
            source.view(-1, 3).split(rows)[rank]
            for source, rows in zip(sources, splits, strict=True)
        ]
        assert torch.equal(received, torch.cat(expected))


def exchanges_lists_of_unequal_shapes(rank: int, world_size: int) -> None:
    sources = [torch.full((rank + 1, peer), float(rank)) for peer in range(world_size)]
    received = [torch.empty(peer + 1, rank) for peer in range(world_size)]
    dist.all_to_all(received, sources)
    for peer, actual in enumerate(received):
        assert torch.equal(actual, torch.full((peer + 1, rank), float(peer)))


def gathers_unequal_lists(rank: int, world_size: int) -> None:
    """Rank r contributes r elements, so rank 0 contributes none."""
    parts = [torch.empty(other) for other in range(world_size)]
    dist.all_gather(parts, torch.full((rank,), float(rank)))
    for other, part in enumerate(parts):
        assert torch.equal(part, torch.full((other,), float(other)))


def reduce_scatters_unequal_lists(rank: int, world_size: int) -> None:
    """Random lengths, some of them 0, and whole numbers, whose sums are exact in any order."""
    for seed in range(4):
        lengths = torch.randint(
            0, 3, (world_size,), generator=torch.Generator().manual_seed(seed)
        ) * torch.randint(1, 30_000, (world_size,), generator=torch.Generator().manual_seed(seed))
        everyone = [
            [torch.arange(int(n)).float() + 7 * peer + other for peer, n in enumerate(lengths)]
            for other in range(world_size)
        ]
        mine = torch.full((int(lengths[rank]),), -1.0)
        dist.reduce_scatter(mine, everyone[rank])
        assert torch.equal(mine, torch.stack([blocks[rank] for blocks in everyone]).sum(0))


def empty_tensors_everywhere(rank: int, world_size: int) -> None:
    empty, several = torch.empty(0, 4), [torch.empty(0, 4) for _ in range(world_size)]
    dist.all_reduce(empty)
    dist.reduce(empty, 0)
    dist.broadcast(empty, 0)
    dist.all_gather(several, empty)
    all_gather_single(torch.empty(0, 4), empty)
    dist.reduce_scatter(empty, several)
    reduce_scatter_single(empty, torch.empty(0, 4))
    dist.all_to_all_single(torch.empty(0, 4), empty)
    dist.gather(empty, several if rank == 0 else None)
    dist.scatter(empty, several if rank == 0 else None)
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value.item() == world_size


LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed": lambda x: x.t(),
    "every other column": lambda x: x[:, ::2],
    "a column": lambda x: x[:, 1],
    "offset": lambda x: x[1:],
    "permuted": lambda x: x.view(2, 3, 8).permute(2, 0, 1),
}


def reads_and_writes_any_layout(rank: int, world_size: int) -> None:
    """What lies between the elements of a view must stay as it is."""
    for view in LAYOUTS.values():
        reference = torch.arange(48.0).view(6, 8)
        for collective, expected in (
            (dist.all_reduce, world_size * reference),
            (lambda x: dist.broadcast(x, 0), reference),
        ):
            base = reference.clone()
            collective(view(base))
            wanted = reference.clone()
            view(wanted).copy_(view(expected))
            assert torch.equal(base, wanted)


def gathers_into_strided_outputs(rank: int, world_size: int) -> None:
    mine = (torch.arange(12.0) + rank).view(3, 4).t()
    parts = [torch.zeros(3, 8).t()[::2] for _ in range(world_size)]
    dist.all_gather(parts, mine)
    whole = torch.zeros(4 * world_size, 6)[:, ::2]
    all_gather_single(whole, mine)
    for other, part in enumerate(parts):
        expected = (torch.arange(12.0) + other).view(3, 4).t()
        assert torch.equal(part, expected)
        assert torch.equal(whole[4 * other : 4 * other + 4], expected)


def scatters_and_exchanges_strided(rank: int, world_size: int) -> None:
    blocks = torch.arange(4.0 * world_size).view(4, world_size).t()
    mine = torch.zeros(8)[::2]
    reduce_scatter_single(mine, blocks)
    assert torch.equal(mine, world_size * blocks[rank])

    exchanged = torch.zeros(world_size, 8)[:, ::2]
    dist.all_to_all_single(exchanged, blocks + rank)
    for other, row in enumerate(exchanged):
        assert torch.equal(row, blocks[rank] + other)


def sends_and_receives_strided(rank: int, world_size: int) -> None:
    source, received = torch.arange(12.0).view(3, 4), torch.zeros(4, 6)
    following, previous = (rank + 1) % world_size, (rank - 1) % world_size
    sending = dist.isend((source + rank).t(), following)
    dist.recv(received[:, ::2], previous)
    sending.wait()
    assert torch.equal(received[:, ::2], (source + previous).t())
    assert torch.equal(received[:, 1::2], torch.zeros(4, 3))


def conjugate_views(rank: int, world_size: int) -> None:
    """A conjugate is a flag on the tensor, its memory is not conjugated.

    Python's functions refuse such tensors, and the dispatcher hands out copies of them: only those
    who call the backend itself get here.
    """
    backend, options = dist.group.WORLD._get_backend(torch.device("cpu")), dist.BroadcastOptions()
    value, zeros = torch.tensor([1 + 2j, 3 - 4j]), torch.zeros(2, dtype=torch.complex64)
    read = value.conj() if rank == 0 else zeros.clone()
    backend.broadcast([read], options).wait()
    assert torch.equal(read, torch.tensor([1 - 2j, 3 + 4j]))

    written = value.clone() if rank == 0 else zeros.clone()
    view = written if rank == 0 else written.conj()
    backend.broadcast([view], options).wait()
    assert torch.equal(written, value if rank == 0 else value.conj().resolve_conj())


def outputs_that_share_memory(rank: int, world_size: int) -> None:
    """Lists that are views of one buffer, and an output that holds the input."""
    whole = torch.zeros(world_size, 4)
    dist.all_gather([*whole], torch.full((4,), float(rank)))
    assert torch.equal(whole[:, 0], torch.arange(float(world_size)))

    in_place = torch.zeros(world_size, 4)
    in_place[rank] = rank
    all_gather_single(in_place, in_place[rank])
    assert torch.equal(in_place[:, 0], torch.arange(float(world_size)))

    blocks = torch.ones(world_size, 4)
    reduce_scatter_single(blocks[rank], blocks)
    assert torch.equal(blocks[rank], torch.full((4,), float(world_size)))


def coalesced_gathers_and_scatters(rank: int, world_size: int) -> None:
    sizes = (3, 0, 500)
    outputs = [torch.empty(size * world_size) for size in sizes]
    with dist._coalescing_manager():
        for size, output in zip(sizes, outputs, strict=True):
            all_gather_single(output, torch.full((size,), float(rank)))
    for size, output in zip(sizes, outputs, strict=True):
        expected = torch.arange(float(world_size)).repeat_interleave(size)
        assert torch.equal(output, expected)

    parts = [torch.empty(size) for size in sizes]
    with dist._coalescing_manager(async_ops=True) as coalescing:
        for size, part in zip(sizes, parts, strict=True):
            reduce_scatter_single(part, torch.ones(size * world_size))
    coalescing.wait()
    for size, part in zip(sizes, parts, strict=True):
        assert torch.equal(part, torch.full((size,), float(world_size)))


def refuses_types_that_do_not_match(rank: int, world_size: int) -> None:
    """Found before anything is sent: the group goes on."""
    with pytest.raises((ValueError, RuntimeError, TypeError)):
        all_gather_single(torch.empty(2 * world_size, dtype=torch.float64), torch.ones(2))
    with pytest.raises((ValueError, RuntimeError)):
        all_gather_single(torch.empty(2 * world_size + 1), torch.ones(2))
    with pytest.raises((ValueError, RuntimeError)):
        dist.all_to_all_single(torch.empty(4), torch.ones(4), [1] * world_size, [9] * world_size)
    value = torch.ones(1)
    dist.all_reduce(value)
    assert value.item() == world_size


ON_EVERY_BACKEND = [
    gathers,
    gathers_to_a_root_and_scatters,
    broadcasts,
    exchanges,
    exchanges_uneven_splits,
    refuses_types_that_do_not_match,
]
BEYOND_GLOO = [
    exchanges_lists_of_unequal_shapes,
    gathers_unequal_lists,
    reduce_scatters_unequal_lists,
    empty_tensors_everywhere,
    reads_and_writes_any_layout,
    gathers_into_strided_outputs,
    scatters_and_exchanges_strided,
    conjugate_views,
    outputs_that_share_memory,
    coalesced_gathers_and_scatters,
]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("check", ON_EVERY_BACKEND)
def test_movement(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@not_on_gloo("refuses or corrupts these")
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("check", BEYOND_GLOO)
def test_movement_beyond_gloo(check: Callable[[int, int], None], world_size: int) -> None:
    run_ranks(check, world_size)


@not_on_gloo("refuses or corrupts these")
@pytest.mark.parametrize("algorithm", ["pat", "ring", "recursive_halving", "one_shot"])
def test_unequal_lists_over_links(algorithm: str) -> None:
    environment = {"PCCL_ALGORITHM": f"reduce_scatter={algorithm}"}
    run_ranks(reduce_scatters_unequal_lists, 4, environment=environment)


@pytest.mark.parametrize("world_size", [2, 3, 4])
def test_messages(world_size: int) -> None:
    run_ranks(sends_between_neighbours, world_size)


@not_on_gloo("corrupts strided messages")
@pytest.mark.parametrize("world_size", [2, 4])
def test_strided_messages(world_size: int) -> None:
    run_ranks(sends_and_receives_strided, world_size)


def test_payloads_cover_every_kind_of_type() -> None:
    for dtype in (*FLOATS, *COMPLEX, *FLOAT8):
        bits = payload(dtype, 100, 1)
        assert bits.dtype == dtype
        assert bits.numel() == 100
        assert not torch.equal(bits.view(torch.uint8), payload(dtype, 100, 2).view(torch.uint8))
