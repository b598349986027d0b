# SPDX-License-Identifier: Apache-2.0
"""Exchange of values between the ranks of a job, through the store at which they meet.

The store needs a path from each rank to its server alone, so that ranks can report broken paths
between each other. The format is JSON, in pieces that fit a store's entries.
"""

from __future__ import annotations

import json
import time
import typing

from pccl.errors import UnavailableError

__all__ = ["Exchange", "Late", "Store"]

_PIECE = 48 * 1024
_MOST_PIECES = 4096
_PAUSES_S = (0.002, 0.05)


class Store(typing.Protocol):
    """A store; ``look_up`` returns None at once if there is no such key."""

    def set(self, key: str, value: bytes) -> None:
        """Set a key."""

    def look_up(self, key: str) -> bytes | None:
        """Return the value of a key."""

    def add(self, key: str, delta: int) -> int:
        """Add to a counter, and return the sum."""
        ...


class Late(UnavailableError):
    """A value that did not come before the deadline."""


class Exchange:
    """A part of a store, by the prefix of its keys.

    It is itself a store at which a ``Communicator`` can meet.
    """

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix

    def part(self, name: str) -> Exchange:
        """Return the part of this exchange for one purpose."""
        return Exchange(self._store, f"{self._prefix}/{name}")

    def set(self, key: str, value: bytes) -> None:
        """Set a key."""
        self._store.set(f"{self._prefix}/{key}", value)

    def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it is not set."""
        return self._store.look_up(f"{self._prefix}/{key}")

    def add(self, key: str, amount: int) -> int:
        """Add to the counter of a key, and return the sum."""
        return self._store.add(f"{self._prefix}/{key}", amount)

    def publish(self, key: str, value: object) -> None:
        """Publish a value of JSON."""
        data = json.dumps(value).encode()
        pieces = [data[at : at + _PIECE] for at in range(0, len(data), _PIECE)]
        for number, piece in enumerate(pieces):
            self.set(f"{key}/{number}", piece)
        self.set(key, str(len(pieces)).encode())

    def read(self, key: str, deadline: float, longest_pause_s: float = _PAUSES_S[1]) -> typing.Any:
        """Return a published value.

        Parameters
        ----------
        key
            Its key.
        deadline
            Time of ``time.monotonic()`` until which to wait for it.
        longest_pause_s
            Seconds between two looks, after the first ones.

        Raises
        ------
        Late
            Nobody has published it.
        """
        count = self._await(key, deadline, longest_pause_s)
        if not count.isdigit() or not 0 < int(count) <= _MOST_PIECES:
            raise UnavailableError(f"the entry {key} of the store has {count[:20]!r} pieces")
        pieces = [self.get(f"{key}/{number}") or b"" for number in range(int(count))]
        try:
            return json.loads(b"".join(pieces))
        except ValueError as error:
            raise UnavailableError(f"the entry {key} of the store is no JSON: {error}") from None

    def _await(self, key: str, deadline: float, longest_pause_s: float) -> bytes:
        pause = _PAUSES_S[0]
        while (value := self.get(key)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Late(f"nobody has published {key} in the store in time")
            time.sleep(min(pause, left))
            pause = min(2 * pause, longest_pause_s)
        return value
