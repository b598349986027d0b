# SPDX-License-Identifier: Apache-2.0
"""Copies of functions for ranks of ``pccl.run``, whose tracebacks name file and line."""

from __future__ import annotations

import collections
import io
import marshal
import types
from typing import Any, ClassVar

import cloudpickle

__all__ = ["dumps"]


def dumps(value: object) -> bytes:
    """Pickle for another process of this interpreter: functions of a cell, too."""
    with io.BytesIO() as copy:
        _Copier(copy).dump(value)
        return copy.getvalue()


def _copy_code(code: types.CodeType) -> tuple[object, tuple[bytes]]:
    return marshal.loads, (marshal.dumps(code),)


class _Copier(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    # Its own way serves interpreters of other releases, too, but leaves the name of the file out.
    dispatch_table: ClassVar[Any] = collections.ChainMap(
        {types.CodeType: _copy_code}, cloudpickle.Pickler.dispatch_table
    )
