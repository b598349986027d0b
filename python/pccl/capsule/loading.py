# SPDX-License-Identifier: Apache-2.0
"""Functions that load capsules into groups, list them, and unload them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pccl import _core
from pccl.capsule.programs import Capsule
from pccl.results.loaded_capsule import LoadedCapsule
from pccl.results.table import Table

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from pccl._core import Communicator, Operator

__all__ = ["capsules", "load_capsule", "unload_capsule"]


def load_capsule(
    capsule: Capsule | str | os.PathLike[str],
    group: Communicator | ProcessGroup | None = None,
    sizes: str | None = None,
) -> Operator:
    """Load a capsule on all ranks of a group, which then uses it for its collective.

    Parameters
    ----------
    capsule
        A capsule, or the path of its file.
    group
        A communicator, or a process group of torch with the backend "pccl"; None for torch's
        default group. CUDA tensors use the capsule where the GPUs of the group have peer access and
        can run it; otherwise they use built-in kernels, or the capsule through host memory.
    sizes
        As for ``Communicator.load``: ``"1MB.."``.

    Returns
    -------
    Operator
        For a communicator, the operator runs the collective by this capsule at any size. For a
        process group, the operator only describes the capsule: ``dist.all_reduce`` and similar
        calls use the capsule for its sizes, and ``PCCL_ALGORITHM`` selects it for other sizes.

    Raises
    ------
    InvalidArgumentError
        The file is not a capsule, the capsule is wrong or is for other numbers of ranks (the
        message names them), its name is already in use, or the current phase of the network lacks a
        link that a rank requires.
    MismatchError
        The bytes or sizes differ between ranks; the message names the ranks.
    ValueError
        ``group`` has no backend "pccl".
    """
    if isinstance(group, _core.Communicator):
        return group.load(capsule, sizes)
    from pccl.torch.backend import require_backend

    backend = require_backend(group, "load_capsule", ["a pccl.Communicator"])
    if isinstance(capsule, Capsule):
        loaded = backend.load_capsule(capsule.data, False, sizes)
    else:
        loaded = backend.load_capsule(os.fsencode(capsule), True, sizes)
    return _core.Operator(group, *loaded)


def unload_capsule(name: str, group: Communicator | ProcessGroup | None = None) -> None:
    """Unload a capsule on all ranks of a group; all ranks must call this function.

    Parameters
    ----------
    name
        Name of the capsule.
    group
        As for ``load_capsule``.

    Raises
    ------
    InvalidArgumentError
        The group has no capsule of this name.
    """
    if isinstance(group, _core.Communicator):
        return group.unload(name)
    from pccl.torch.backend import require_backend

    return require_backend(group, "unload_capsule", ["a pccl.Communicator"]).unload_capsule(name)


def capsules(group: Communicator | ProcessGroup | None = None) -> Table[LoadedCapsule]:
    """Return the capsules that a group has loaded, by a call or from ``PCCL_CAPSULES``.

    Parameters
    ----------
    group
        As for ``load_capsule``.

    Returns
    -------
    Table of LoadedCapsule
        List of capsules, which notebooks display as a table.

    Raises
    ------
    ValueError
        ``group`` has no backend "pccl".
    """
    if isinstance(group, _core.Communicator):
        return group.capsules()
    from pccl.torch.backend import require_backend

    backend = require_backend(group, "capsules", ["a pccl.Communicator"])
    return Table(LoadedCapsule(*each) for each in backend.loaded_capsules())
