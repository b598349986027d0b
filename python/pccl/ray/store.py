# SPDX-License-Identifier: Apache-2.0
"""The rendezvous of a group in the key-value store of Ray's cluster, which needs no port."""

from __future__ import annotations

import typing

from pccl._internal.client import missing_client

try:
    from ray.experimental import internal_kv
except ModuleNotFoundError as error:
    raise missing_client("pccl.ray", "ray", error) from error

__all__ = ["ClusterStore"]

_NAMESPACE = "pccl"


class ClusterStore:
    """Store for ``pccl.Communicator(rendezvous=...)`` of one group name.

    Groups of this name may meet there one after the other; the communicator removes the entries of
    earlier ones.

    Parameters
    ----------
    group_name
        Name of the group in ``ray.util.collective``.
    """

    def __init__(self, group_name: str) -> None:
        self._prefix = f"collective/{group_name}/"

    def set(self, key: str, value: bytes) -> None:
        """Set an entry."""
        internal_kv._internal_kv_put(self._prefix + key, value, namespace=_NAMESPACE)

    def get(self, key: str) -> bytes | None:
        """Return an entry; None if there is none yet."""
        value: typing.Any = internal_kv._internal_kv_get(self._prefix + key, namespace=_NAMESPACE)
        return None if value is None else bytes(value)

    def add(self, key: str, amount: int) -> int:
        """Raise NotImplementedError: the rendezvous of a group has no counters."""
        raise NotImplementedError(f"Ray's store has no counters: {key} += {amount}")

    def delete_key(self, key: str) -> None:
        """Remove an entry."""
        internal_kv._internal_kv_del(self._prefix + key, namespace=_NAMESPACE)
