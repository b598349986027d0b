# SPDX-License-Identifier: Apache-2.0
"""Benchmark cases of collectives: sizes, inputs, expected results, and the timing of calls.

The module requires numpy only. Sizes are bytes of the whole buffer: the output of an all_gather,
the input of a reduce_scatter, and the buffer of one rank otherwise.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np

from pccl.bench.names import COLLECTIVES, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pccl._core import Communicator

__all__ = [
    "COLLECTIVES",
    "REDUCE_OPS",
    "REDUCTIONS",
    "Array",
    "Call",
    "Case",
    "ReduceOp",
    "make_call",
    "make_call_by",
    "time_calls",
]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Call: TypeAlias = "Callable[[], object]"
ReduceOp: TypeAlias = Literal["sum", "avg", "product", "prod", "min", "max", "band", "bor", "bxor"]

REDUCE_OPS: dict[str, np.ufunc] = {
    "sum": np.add,
    "avg": np.add,
    "product": np.multiply,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
ROOT = 0
# Inputs repeat a pattern, because random numbers for large buffers take longer than the collective.
# A prime length shifts it relative to the blocks of ranks and the chunks of schedules.
PATTERN = 251


@dataclass(frozen=True)
class Case:
    """One collective at one size.

    Attributes
    ----------
    count
        Elements per block of a rank, or of the whole buffer for collectives without blocks.
    """

    collective: str
    ranks: int
    count: int
    dtype: str = "float32"
    op: ReduceOp = "sum"

    @classmethod
    def of_bytes(
        cls, collective: str, ranks: int, size: int, dtype: str = "float32", op: ReduceOp = "sum"
    ) -> Case:
        """Return the case of at most ``size`` bytes: whole elements, at least one per block."""
        blocks = 1 if collective in ("all_reduce", "broadcast") else ranks
        return cls(collective, ranks, max(1, size // np.dtype(dtype).itemsize // blocks), dtype, op)

    @property
    def is_in_place(self) -> bool:
        """Whether input and output are the same buffer."""
        return self.collective in ("all_reduce", "broadcast")

    @property
    def is_reduction(self) -> bool:
        """Whether the collective is a reduction, which uses ``op``."""
        return self.collective in REDUCTIONS

    @property
    def elements(self) -> int:
        """Elements of the whole buffer."""
        return self.count if self.is_in_place else self.count * self.ranks

    @property
    def size(self) -> int:
        """Bytes of the whole buffer."""
        return self.elements * np.dtype(self.dtype).itemsize

    @property
    def input_elements(self) -> int:
        """Elements of the input of a rank."""
        return self.count if self.collective == "all_gather" else self.elements

    @property
    def output_elements(self) -> int:
        """Elements of the output of a rank."""
        return self.count if self.collective == "reduce_scatter" else self.elements

    def buffers(self) -> tuple[Array, Array]:
        """Return the input and the output; both are the same array for an in-place collective."""
        x = np.zeros(self.input_elements, self.dtype)
        return x, x if self.is_in_place else np.zeros(self.output_elements, self.dtype)

    def contribution(self, rank: int) -> Array:
        """Return the input of ``rank``: small integers with exact sums and products."""
        return self._contributed(rank, 0, self.input_elements)

    def expected(self, rank: int) -> Array:
        """Return the expected output of ``rank``, computed with numpy."""
        if self.collective == "broadcast":
            return self.contribution(ROOT)
        begin = rank * self.count if self.collective in ("reduce_scatter", "all_to_all") else 0
        # Use a generator: the whole inputs of many ranks together exceed the memory of a machine.
        parts = (self._contributed(peer, begin, self.count) for peer in range(self.ranks))
        return self._reduced(parts) if self.is_reduction else np.concatenate(list(parts))

    def wrong(self, rank: int, out: Array) -> int:
        """Return the number of elements of ``out`` that differ from ``expected(rank)``."""
        expected = self.expected(rank)
        if self.op != "avg" or not self.is_reduction or expected.dtype.kind not in "fc":
            return int(np.count_nonzero(out != expected))
        precision = 2 * float(np.finfo(expected.dtype).eps)
        return int(np.count_nonzero(~np.isclose(out, expected, rtol=precision, atol=0)))

    def _contributed(self, rank: int, begin: int, count: int) -> Array:
        """Return elements [begin, begin + count) of the input of ``rank``."""
        is_product = self.op in ("product", "prod")
        low, high = (1, 3) if is_product else (0, 2 if self.dtype == "bool" else 16)
        pattern = np.random.default_rng(rank).integers(low, high, PATTERN).astype(self.dtype)
        return np.resize(np.roll(pattern, -begin), count)

    def _reduced(self, inputs: Iterable[Array]) -> Array:
        total = functools.reduce(REDUCE_OPS[self.op], inputs)
        return (total / self.ranks).astype(self.dtype) if self.op == "avg" else total


def make_call(comm: Communicator, case: Case, x: Array, out: Array) -> Call:
    """Return a function that runs ``case`` once, synchronously, on the buffers of this rank."""
    calls: dict[str, Call] = {
        "all_reduce": lambda: comm.all_reduce(out, case.op),
        "all_gather": lambda: comm.all_gather(out, x),
        "reduce_scatter": lambda: comm.reduce_scatter(out, x, case.op),
        "broadcast": lambda: comm.broadcast(out, ROOT),
        "all_to_all": lambda: comm.all_to_all(out, x),
    }
    return calls[case.collective]


def make_call_by(algorithm: str, comm: Communicator, case: Case, x: Array, out: Array) -> Call:
    """Return a function that runs ``case`` once with an algorithm, which must support it."""
    into = None if case.is_in_place else out
    collective = cast("Any", case.collective)  # a supported collective
    return comm.operator(collective, x, into, op=case.op, root=ROOT, algorithm=algorithm).run


def time_calls(call: Call, barrier: Call, repeats: int) -> list[float]:
    """Return the seconds of each of ``repeats`` calls on this rank, each after a barrier."""
    times = []
    for _ in range(repeats):
        barrier()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times
