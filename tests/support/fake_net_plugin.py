# SPDX-License-Identifier: Apache-2.0
"""The strict net plug-in (tests/fakes/netplugin) in processes of tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pccl import _core

if TYPE_CHECKING:
    from collections.abc import Mapping


def shared_object(version: int | None = None) -> Path:
    """Return the plug-in with the table of one version, or of all; skip where it is not built."""
    suffix = "" if version is None else f"_v{version}"
    build = Path(_core.__file__).parents[2]
    path = build / f"fakes/netplugin/libnccl-net-strict{suffix}.so"
    if not path.exists():
        pytest.skip(f"{path} is missing: this build has no C++ tests")
    return path


def environment(version: int | None = None, rules: str = "", **settings: str) -> Mapping[str, str]:
    """Return variables by which processes use the plug-in, and nothing else, by `rules`."""
    return {
        "PCCL_NET_PLUGIN": str(shared_object(version)),
        "PCCL_TRANSPORTS": "netplugin",
        "PCCL_SOCKET_IFNAME": "lo",
        "PCCL_TEST_NET_PLUGIN": rules,
        **settings,
    }
