# SPDX-License-Identifier: Apache-2.0
"""The fake libibverbs (tests/fakes/verbs) in processes of tests."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

FAIL, STALL = 1, 5  # enum fake_verbs_effect (tests/fakes/verbs/control.h)
WRITE, WRITE_WITH_IMMEDIATE = 0, 1  # enum ibv_wr_opcode


class Rule(ctypes.Structure):
    """struct fake_verbs_rule (tests/fakes/verbs/control.h)."""

    _fields_ = (
        ("effect", ctypes.c_int),
        ("qp", ctypes.c_uint32),
        ("device", ctypes.c_char * 64),
        ("port", ctypes.c_int),
        ("opcode", ctypes.c_int),
        ("empty", ctypes.c_int),
        ("skip", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("status", ctypes.c_int),
        ("vendor_err", ctypes.c_uint32),
        ("ms", ctypes.c_uint32),
        ("jitter_ms", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("operations", ctypes.c_uint64),
        ("other_qp", ctypes.c_uint32),
        ("all_processes", ctypes.c_int),
    )


def shared_object() -> Path:
    """Return the fake of the build that pccl comes from; skip without it."""
    build = Path(_core.__file__).parents[2]
    path = build / "fakes/verbs/libibverbs.so.1"
    if not path.exists():
        pytest.skip(f"{path} is missing: this build has no RDMA (libibverbs-dev)")
    return path


def environment(fabric: Path, **settings: str) -> Mapping[str, str]:
    """Return variables by which a process uses the fake, and takes part in a fabric."""
    manager = shared_object().parents[1] / "rdmacm/librdmacm.so.1"
    return {
        "PCCL_IBVERBS_LIBRARY": str(shared_object()),
        **({"PCCL_RDMACM_LIBRARY": str(manager)} if manager.exists() else {}),
        "FAKE_VERBS_FABRIC": str(fabric),
        **settings,
    }


def ranks_over(transports: str, fabric: Path) -> dict[str, str]:
    """Return variables of ranks that use these transports alone; "verbs" is the fake."""
    if transports != "verbs":
        return {"PCCL_TRANSPORTS": transports}
    devices = {"FAKE_VERBS_DEVICES": "mlx5_0,mlx5_1"}
    return {**environment(fabric, **devices), "PCCL_TRANSPORTS": transports}
