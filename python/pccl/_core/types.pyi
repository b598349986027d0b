# SPDX-License-Identifier: Apache-2.0
"""Types of arguments and results."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

from numpy.typing import NDArray
from typing_extensions import Buffer

_ReduceOp: TypeAlias = Literal["sum", "avg", "product", "prod", "min", "max", "band", "bor", "bxor"]

_Collective: TypeAlias = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
]

class _DLPack(Protocol):
    def __dlpack__(self) -> object: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...

class _ArrayInterface(Protocol):
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

# The stubs of numpy declare an array as a Buffer only from Python 3.12 on.
_Buffer: TypeAlias = Buffer | NDArray[Any] | _DLPack | _ArrayInterface

_Blocks: TypeAlias = _Buffer | Sequence[_Buffer]

class _Store(Protocol):
    def set(self, key: str, value: bytes, /) -> object: ...
    def get(self, key: str, /) -> bytes | str | None: ...
    def add(self, key: str, amount: int, /) -> int: ...

class _Times(TypedDict):
    issued: float
    started: float
    finished: float | None

class _Verdict(TypedDict):
    rounds: int
    bit_identical: bool
