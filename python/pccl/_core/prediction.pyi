# SPDX-License-Identifier: Apache-2.0
"""Predicted times."""

from typing import Literal

class Prediction:
    """Predicted time of one way to run a collective. Prints as one line."""

    @property
    def algorithm(self) -> str:
        """Name of the algorithm, as in ``PCCL_ALGORITHM``."""
    @property
    def over(self) -> str:
        """``"shm"`` (shared memory of one host) or ``"links"``."""
    @property
    def seconds(self) -> float:
        """Predicted time of one call, in seconds."""
    @property
    def busiest(self) -> str:
        """The most shared link of the ranks of one host, and its GB/s; empty if there is none."""
    @property
    def aggregation(self) -> int:
        """Most blocks in one message, if the algorithm has a choice (PAT); 0: no limit.

        ``pccl.schedule.generate`` takes the same value.
        """
    @property
    def is_chosen(self) -> bool:
        """Whether the group uses this way for calls of this length."""
    @property
    def chosen_by(self) -> Literal["", "request", "capsule", "tuning", "prediction"]:
        """The reason of the choice, as in ``pccl.explanation.Way``; empty if it is not chosen."""
