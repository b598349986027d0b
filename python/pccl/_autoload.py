# SPDX-License-Identifier: Apache-2.0
"""Entry points ``torch.backends`` and ``torch.distributed.backends``, which torch calls."""

from __future__ import annotations

import logging


def register() -> None:
    """Register the backend for ``init_process_group("pccl")``.

    The call is cheap and idempotent, and never raises: torch calls it at the end of ``import
    torch``, which an exception would break. The extension module is loaded when the first group is
    created.
    """
    try:
        from pccl.torch import registration

        registration.register()
    except Exception:
        logging.getLogger("pccl").warning("could not register with torch", exc_info=True)
