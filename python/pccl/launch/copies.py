# SPDX-License-Identifier: Apache-2.0
"""Pickling of functions for ranks of ``pccl.run``, with file and line in tracebacks."""

from __future__ import annotations

import collections
import io
import marshal
import types
from typing import Any, ClassVar

import cloudpickle

__all__ = ["dumps"]


def dumps(value: object) -> bytes:
    """Pickle a value for another process of this interpreter, with functions of notebook cells."""
    with io.BytesIO() as copy:
        _Copier(copy).dump(value)
        return copy.getvalue()


def _copy_code(code: types.CodeType) -> tuple[object, tuple[bytes]]:
    return marshal.loads, (marshal.dumps(code),)


class _Copier(cloudpickle.Pickler):  # type: ignore[misc]  # cloudpickle has no types
    # The method of cloudpickle supports other interpreter releases, but omits the file name.
    dispatch_table: ClassVar[Any] = collections.ChainMap(
        {types.CodeType: _copy_code}, cloudpickle.Pickler.dispatch_table
    )
