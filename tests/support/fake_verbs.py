# SPDX-License-Identifier: Apache-2.0
"""The fake libibverbs (tests/fakes/verbs) in processes of tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl import _core

if TYPE_CHECKING:
    from collections.abc import Mapping


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
