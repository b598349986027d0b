# SPDX-License-Identifier: Apache-2.0
"""The net plug-in of this process."""

from typing import Any

def net_plugin_report() -> dict[str, Any]:
    """Return what is known of the plug-in of ``PCCL_NET_PLUGIN``, which starts with this call.

    Returns
    -------
    dict
        ``"file"``, ``"symbol"`` (of its table, ``"ncclNetPlugin_v8"``) and ``"name"``; empty if
        there is none. ``"devices"``: a dict for each device, with ``"name"``, ``"pci_path"``,
        ``"guid"``, ``"megabits"``, ``"port"``, ``"latency_us"`` (0 if unknown), ``"max_recvs"``,
        ``"rail"`` and ``"plane"`` (-1 if unknown). ``"failure"``: why it cannot be used.

    Raises
    ------
    InvalidArgumentError
        A setting is not usable.
    """
