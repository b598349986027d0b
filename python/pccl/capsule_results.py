"""What groups tell of the capsules that they have loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pccl import table
from pccl.errors import UnsupportedError

__all__ = ["LoadedCapsule", "Operator"]


@dataclass(frozen=True)
class LoadedCapsule:
    """A capsule that a group may use.

    Attributes
    ----------
    name
        As ``PCCL_ALGORITHM`` has it.
    collective
        What it makes.
    sizes
        Bytes of the largest buffer for which the group takes it before all others.
    """

    name: str
    collective: str
    sizes: str

    def row(self) -> table.Fields:
        """Return its fields."""
        return table.fields_of(self)


@dataclass(frozen=True)
class Operator:
    """A collective by one capsule, for a group that has loaded it.

    Attributes
    ----------
    group
        A communicator, or a process group of torch.
    name, collective, root
        Of the capsule.
    """

    group: Any
    name: str
    collective: str
    root: int

    def execute(
        self,
        x: Any,
        out: Any = None,
        *,
        op: str = "sum",
        async_op: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Run the collective by this capsule, whatever the size; all ranks call it.

        Parameters
        ----------
        x
            What this rank gives: as ``Communicator`` takes it for the collective. Where that has
            one buffer for both (all_reduce, broadcast, reduce), the result comes into it.
        out
            Where the result goes, for the others.
        op
            Of reductions.
        async_op
            Whether to return an event at once, instead of waiting.
        timeout
            Seconds; None for that of the group.

        Returns
        -------
        Event or None
            None unless ``async_op``.

        Raises
        ------
        UnsupportedError
            The group is one of torch: ``torch.distributed`` has no call for one algorithm, and
            takes the capsule for the sizes that it was loaded for.
        """
        run_by = getattr(self.group, "_run_by", None)
        if run_by is None:
            raise UnsupportedError("a process group of torch takes capsules by size, not by call")
        return run_by(self.collective, self.name, x, out, op, self.root, async_op, timeout)
