# SPDX-License-Identifier: Apache-2.0
"""Algorithms of collectives in Python. Building an algorithm verifies it.

>>> import pccl.lang as pl
>>> @pl.algorithm(collective="all_reduce", ranks=8, chunks=8)
... def ring(c):
...     for i in range(c.ranks):
...         x = c.input(i, chunk=i)
...         for hop in range(1, c.ranks):
...             x = x.reduce_to((i + hop) % c.ranks)
...         for hop in range(1, c.ranks):
...             x = x.copy_to((x.rank + 1) % c.ranks)
>>> ring.build(name="ring8")
<pccl.Capsule ring8: all_reduce, 8 ranks, 14 rounds, sizes ...>
"""

from pccl.lang.algorithm import Algorithm, Program, algorithm
from pccl.lang.chunks import Chunks, join
from pccl.lang.composing import compose
from pccl.lang.generated import from_generator
from pccl.lang.origin import Conflict, Line, ProgramError
from pccl.lang.steps import Lane, Slice, StepRef, Steps

__all__ = [
    "Algorithm",
    "Chunks",
    "Conflict",
    "Lane",
    "Line",
    "Program",
    "ProgramError",
    "Slice",
    "StepRef",
    "Steps",
    "algorithm",
    "compose",
    "from_generator",
    "join",
]


def __dir__() -> list[str]:
    return sorted(__all__)
