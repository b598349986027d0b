"""What a peer has sent beside its transfers."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Notification"]


class Notification(NamedTuple):
    """A word of a peer; all data of the transfer that it came with is visible.

    Attributes
    ----------
    peer
        The name of the session that sent it.
    word
        1 byte to 16 KiB.
    """

    peer: str
    word: bytes
