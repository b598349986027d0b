# SPDX-License-Identifier: Apache-2.0
"""Called by torch: the entry points ``torch.backends`` and ``torch.distributed.backends``."""

from __future__ import annotations

import logging


def register() -> None:
    """Make ``init_process_group("pccl")`` known.

    Cheap, repeatable, and never raises: torch calls it at the end of ``import torch``, which an
    exception would break. The extension module is loaded when the first group is made.
    """
    try:
        from pccl import _register

        _register.register()
    except Exception:
        logging.getLogger("pccl").warning("could not register with torch", exc_info=True)
