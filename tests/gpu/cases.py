# SPDX-License-Identifier: Apache-2.0
"""Collectives on GPUs, each against a float64 reference that every rank computes for itself."""

from __future__ import annotations

import random
from dataclasses import dataclass

import torch
from tests.gpu.ranks import meet_in_host

from pccl import _core

NAMES = {
    torch.bfloat16: "bfloat16",
    torch.float16: "float16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "float8_e4m3fn",
    torch.float8_e5m2: "float8_e5m2",
}
REDUCING = ["all_reduce", "reduce_scatter", "reduce"]
COLLECTIVES = [*REDUCING, "all_gather", "all_to_all", "broadcast", "gather", "scatter"]
# By direct alone: only some ranks know the lengths of blocks.
DIRECT_ONLY = ["gather", "scatter"]
POISON = 93


@dataclass(frozen=True)
class Case:
    """One collective; ``count`` is of elements in a block, ``offset`` shifts the tensors.

    By a kernel of its own, and then perhaps one protocol, or by the schedule of ``algorithm``.
    """

    collective: str
    dtype: torch.dtype
    count: int
    op: str = "sum"
    root: int = 0
    offset: int = 0
    in_place: bool = False
    protocol: str | None = None
    algorithm: str | None = None
    seed: int = 0

    def plan(self, world_size: int) -> _core.DevicePlan | None:
        """Return the plan of the case's protocol in few blocks; None for the library's own."""
        if self.protocol is None:
            return None
        if self.algorithm is not None:
            return _core.DevicePlan(protocol=self.protocol, blocks=64, threads=256)
        nbytes = self.count * self.dtype.itemsize
        if self.protocol == "ll" and self.collective not in DIRECT_ONLY:
            words = -(-nbytes // 8)
            threads = 128 if words <= 128 * 64 else 256
            return _core.DevicePlan(protocol="ll", blocks=-(-words // threads), threads=threads)
        protocol = "direct" if self.collective in DIRECT_ONLY else self.protocol
        return _core.DevicePlan(protocol=protocol, blocks=min(12, -(-nbytes // 32768)))

    def blocks(self, side: str, rank: int, world_size: int) -> int:
        """Return how many blocks ``rank`` has on its side, "input" or "output"."""
        many = {
            "input": ("reduce_scatter", "all_to_all", "scatter"),
            "output": ("all_gather", "all_to_all", "gather"),
        }[side]
        roots = {"input": ("scatter", "broadcast"), "output": ("gather", "reduce")}[side]
        if self.collective in roots and rank != self.root:
            return 0
        return world_size if self.collective in many else 1


def random_case(world_size: int, seed: int) -> Case:
    """Return a case that fits any device group of ``world_size``; the same on all ranks."""
    rng = random.Random(seed)
    collective = rng.choice(COLLECTIVES)
    dtype = rng.choice(list(NAMES))
    count = max(1, int(2 ** rng.uniform(0, 19))) + rng.choice([0, 0, 1, 3])
    ops = ["sum", "product", "min", "max"]
    ops += ["avg"] if dtype is not torch.bool else []
    ops += ["band", "bor", "bxor"] if not dtype.is_floating_point else []
    words = count * dtype.itemsize <= 64 * 256 * 8
    protocol = rng.choice([None, "direct", "staggered", "copy_engine", *(["ll"] if words else [])])
    return Case(
        collective,
        dtype,
        count,
        op=rng.choice(ops),
        root=rng.randrange(world_size),
        offset=rng.choice([0, 0, 0, 1, 2, 5]),
        in_place=rng.random() < 0.4,
        protocol=protocol,
        seed=seed,
    )


def values(case: Case, rank: int, numel: int) -> torch.Tensor:
    """Return what ``rank`` contributes; every rank can compute it."""
    generator = torch.Generator("cuda").manual_seed(1000 * case.seed + rank)
    if case.dtype is torch.bool:
        return torch.rand(numel, device="cuda", generator=generator) < 0.5
    if case.dtype.is_floating_point:
        drawn = torch.randn(numel, device="cuda", generator=generator, dtype=torch.float32)
        if case.op == "product":
            drawn.clamp_(-2, 2)  # of 8 ranks: still within float8
        return drawn.to(case.dtype)
    low, high = (0 if case.dtype is torch.uint8 else -5), 6
    if case.op == "avg" and case.dtype.itemsize < 8:  # whose sum fits the reference's int64
        limits = torch.iinfo(case.dtype)
        low, high = limits.min, limits.max + 1
    return torch.randint(low, high, (numel,), device="cuda", generator=generator, dtype=case.dtype)


def reduced(case: Case, parts: list[torch.Tensor]) -> torch.Tensor:
    """Reduce as the definition says, in float64, or exactly for integers."""
    if case.dtype is torch.bool:
        folded = {"sum": "max", "product": "min", "bor": "max", "band": "min"}.get(case.op, case.op)
        whole = torch.stack([part.to(torch.int32) for part in parts])
        if folded == "bxor":
            return whole.sum(0) % 2 == 1
        return (whole.amax(0) if folded == "max" else whole.amin(0)).bool()
    wide = torch.float64 if case.dtype.is_floating_point else torch.int64
    total = parts[0].to(wide)
    for part in parts[1:]:
        other = part.to(wide)
        total = {
            "sum": torch.add,
            "avg": torch.add,
            "product": torch.mul,
            "min": torch.minimum,
            "max": torch.maximum,
            "band": torch.bitwise_and,
            "bor": torch.bitwise_or,
            "bxor": torch.bitwise_xor,
        }[case.op](total, other)
    if case.op == "avg":
        if wide is torch.float64:
            return total / len(parts)
        return torch.div(total, len(parts), rounding_mode="trunc")
    return total


def expected(case: Case, rank: int, world_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the reference, and for each of its elements the size of what was added up."""
    inputs = [
        values(case, peer, case.blocks("input", peer, world_size) * case.count)
        for peer in range(world_size)
    ]
    count = case.count
    if case.collective == "reduce_scatter":
        inputs = [each[rank * count : (rank + 1) * count] for each in inputs]
    if case.collective in REDUCING:
        size = inputs[0].to(torch.float64).abs()
        for each in inputs[1:]:
            size += each.to(torch.float64).abs()
        return reduced(case, inputs), size
    if case.collective == "broadcast":
        whole = inputs[case.root]
    elif case.collective == "scatter":
        whole = inputs[case.root][rank * count : (rank + 1) * count]
    elif case.collective in ("all_gather", "gather"):
        whole = torch.cat(inputs)
    else:
        whole = torch.cat([each[rank * count : (rank + 1) * count] for each in inputs])
    return whole, torch.zeros(1, device="cuda", dtype=torch.float64)


def poisoned(numel: int, case: Case) -> torch.Tensor:
    tensor = torch.empty(numel + case.offset, device="cuda", dtype=case.dtype)
    return tensor.view(torch.uint8).fill_(POISON).view(case.dtype)[case.offset :]


def tensors(case: Case, rank: int, world_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the input, filled, and the output, which may share its memory."""
    count = case.count
    source = values(case, rank, count * case.blocks("input", rank, world_size))
    output = poisoned(count * case.blocks("output", rank, world_size), case)
    own = slice(rank * count, (rank + 1) * count)
    # A block that is kept, and peers that may have written to it before it was read.
    apart = case.collective == "all_to_all" or 0 in (source.numel(), output.numel())
    if not case.in_place or apart:
        return poisoned(source.numel(), case).copy_(source), output
    if source.numel() > output.numel():
        shifted = poisoned(source.numel(), case).copy_(source)
        return shifted, shifted[own]
    if source.numel() < output.numel():
        return output[own].copy_(source), output
    return output.copy_(source), output


def launch(
    group: _core.DeviceGroup, case: Case, source: torch.Tensor, output: torch.Tensor
) -> None:
    group.launch(
        case.collective,
        input=source.data_ptr(),
        output=output.data_ptr(),
        count=case.count,
        dtype=NAMES[case.dtype],
        op=case.op,
        root=case.root,
        stream=torch.cuda.current_stream().cuda_stream,
        plan=case.plan(group.world_size),
        algorithm=case.algorithm,
    )


def check(case: Case, rank: int, world_size: int, output: torch.Tensor) -> None:
    if case.blocks("output", rank, world_size) == 0:
        return
    want, size = expected(case, rank, world_size)
    if not case.dtype.is_floating_point or case.collective not in REDUCING:
        same = output.view(torch.uint8) == want.to(case.dtype).contiguous().view(torch.uint8)
        wrong = (~same).sum().item()
        assert wrong == 0, f"{case}: {wrong} of {output.nbytes} bytes differ"
        return
    # Rounded once to the element's type, after sums in float32 (float64 for float64); a schedule,
    # which carries long tensors through the host, rounds at every hop.
    eps = torch.finfo(case.dtype).eps
    steps = 2.0**-50 if case.dtype is torch.float64 else 2.0**-21
    if case.algorithm is not None or meet_in_host():
        steps = max(steps, eps)
    tiny = torch.finfo(case.dtype).smallest_normal
    error = (output.to(torch.float64) - want).abs()
    if case.op == "product":
        size = want.abs()
    allowed = want.abs() * eps + size * steps * world_size + tiny
    worst = (error - allowed).max().item()
    assert worst <= 0, f"{case}: off by {error.max().item()}, {worst} more than rounding"


def digest(tensor: torch.Tensor) -> int:
    raw = tensor.contiguous().view(torch.uint8)
    weights = torch.arange(1, min(raw.numel(), 1 << 24) + 1, device="cuda") % 65521 + 1
    total = torch.zeros((), device="cuda", dtype=torch.int64)
    for chunk in raw.split(weights.numel()):
        total = 31 * total + (chunk * weights[: chunk.numel()]).sum()
    return int(total.item())


def run_case(group: _core.DeviceGroup, case: Case) -> int:
    """Run one case and check it; return a digest of the output."""
    source, output = tensors(case, group.rank, group.world_size)
    torch.cuda.synchronize()
    launch(group, case, source, output)
    torch.cuda.synchronize()
    group.check()
    check(case, group.rank, group.world_size, output)
    return digest(output)
