# SPDX-License-Identifier: Apache-2.0
"""Notifications from peers."""

from __future__ import annotations

from typing import NamedTuple

from pccl.former_names import warn_of_former_name

__all__ = ["Notification"]


class Notification(NamedTuple):
    """Payload from a peer; all data of the transfer that carried it is visible.

    Attributes
    ----------
    peer
        The name of the session that sent it.
    payload
        The payload, 1 byte to 16 KiB.
    """

    peer: str
    payload: bytes

    @property
    def word(self) -> bytes:
        """The payload, under the name that it had before 0.2."""
        warn_of_former_name("Notification.word", "Notification.payload")
        return self.payload
