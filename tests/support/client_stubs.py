# SPDX-License-Identifier: Apache-2.0
"""The parts of Ray and of torchft that PCCL's modules for them use, where neither is installed."""

from __future__ import annotations

import enum
import importlib.util
import sys
import types
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ReduceOp(enum.Enum):
    """Reductions of ``ray.util.collective``."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3


@dataclass
class RayOptions:
    """Options as Ray passes them with every call."""

    reduceOp: ReduceOp = ReduceOp.SUM
    root_rank: int = 0
    dst_rank: int = 0
    src_rank: int = 0
    timeout_ms: timedelta = timedelta(milliseconds=-1)


class RayGroup:
    """Base class of groups in Ray."""

    def __init__(self, world_size: int, rank: int, group_name: str) -> None:
        self.place = (world_size, rank, group_name)


@dataclass
class RayRegistry:
    """Backends that were registered."""

    classes: dict[str, type] = field(default_factory=dict)

    def is_registered(self, name: str) -> bool:
        return name in self.classes

    def register(self, name: str, group: type) -> None:
        assert name not in self.classes, "Ray refuses a second registration"
        self.classes[name] = group


@dataclass
class RayStore:
    """The key-value store of Ray's cluster."""

    entries: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def put(self, key: str, value: bytes, *, namespace: str) -> None:
        self.entries[namespace, key] = value

    def get(self, key: str, *, namespace: str) -> bytes | None:
        return self.entries.get((namespace, key))

    def delete(self, key: str, *, namespace: str) -> None:
        self.entries.pop((namespace, key), None)


class TorchftGroup:
    """``torchft.process_group.ProcessGroupWrapper``, without what it forwards to its group."""

    def __init__(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._pg: Any = None
        self._quorum_id: int | None = None

    def configure(self, store: Any, rank: int, world_size: int, quorum_id: int) -> None:
        self._quorum_id = quorum_id
        self.abort(errored=False)
        self._pg = self._create_pg(store, rank, world_size)

    def _create_pg(self, store: Any, rank: int, world_size: int) -> Any:
        raise NotImplementedError

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def abort(self, errored: bool = True) -> None:
        if self._pg is not None:
            self._pg.abort()
        self._pg = None

    def shutdown(self) -> None:
        self._pg = None


def module(name: str, **contents: Any) -> None:
    """Make a module and the packages above it."""
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        path = ".".join(parts[:end])
        made = sys.modules.setdefault(path, types.ModuleType(path))
        made.__spec__ = made.__spec__ or importlib.util.spec_from_loader(path, None)
        if end > 1:
            setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], made)
    vars(sys.modules[name]).update(contents)


def install_ray() -> tuple[RayRegistry, RayStore]:
    """Make Ray's modules in this process; return what is registered and stored."""
    registry, store = RayRegistry(), RayStore()
    module(
        "ray.experimental.internal_kv",
        _internal_kv_put=store.put,
        _internal_kv_get=store.get,
        _internal_kv_del=store.delete,
    )
    module(
        "ray.util.collective.backend_registry",
        _global_registry=registry,
        register_collective_backend=registry.register,
    )
    group = "ray.util.collective.collective_group.base_collective_group"
    module(group, BaseGroup=RayGroup)
    return registry, store


def module_with_client(name: str) -> types.ModuleType:
    """Return a module of PCCL; its client is a stub unless it is installed."""
    client = name.removeprefix("pccl.")
    if client in INSTALL and importlib.util.find_spec(client) is None:
        INSTALL[client]()
    return importlib.import_module(name)


def install_torchft() -> None:
    """Make torchft's module in this process."""
    module("torchft.process_group", ProcessGroupWrapper=TorchftGroup)


INSTALL: dict[str, Callable[[], object]] = {"ray": install_ray, "torchft": install_torchft}
