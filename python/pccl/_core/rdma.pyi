# SPDX-License-Identifier: Apache-2.0
"""RDMA devices of this machine, and their examination."""

from datetime import timedelta
from typing import Any

def rdma_report() -> dict[str, Any]:
    """Return what is known of RDMA on this machine.

    Returns
    -------
    dict
        ``"library"``, the path of libibverbs, and ``"version"``, that of rdma-core; empty if there
        is none. ``"rdma_cm"``: a dict with ``"library"`` and ``"version"`` of librdmacm likewise,
        and ``"failure"`` (why there is none). ``"devices"``: a dict for each device, with
        ``"name"``, ``"soft"``, ``"iwarp"``, ``"gpu_access"`` (how it reaches memory of GPUs: "by
        dmabuf"), ``"failure"`` (why it cannot be opened) and ``"ports"``. Each port has
        ``"number"``, ``"state"``, ``"link_layer"``, ``"gigabits"``, ``"mtu"``, ``"lid"``,
        ``"gids"``, ``"used"``,
        ``"gid_index"`` (of the chosen GID, or None) and ``"reason"`` (why that GID is chosen, or
        why the port is not used). ``"failure"``: why the devices are unknown, or their ports not
        chosen.

    Raises
    ------
    InvalidArgumentError
        A setting is not usable.
    """

def _doctor_secret() -> bytes | None:
    """Return the secret of all examinations by ``PCCL_SECRET_FILE``; None if that is not set."""

class _RdmaDoctor:
    """Examination of a port, step by step."""

    def __init__(self) -> None: ...
    def run(self, step: str, peer: bytes, timeout: float | timedelta) -> str:
        """Run a step, and return what it found; the error names the setting to change."""
    def end(self) -> bytes:
        """Return the description of this end for the peer, after the step ``"memory"``."""
