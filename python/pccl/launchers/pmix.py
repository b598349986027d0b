# SPDX-License-Identifier: Apache-2.0
"""PMIx by libpmix: mpiexec of Open MPI 4 and 5, and srun --mpi=pmix.

Calls of libpmix block, so each of them runs on a thread that is abandoned at the deadline.
"""

from __future__ import annotations

import ctypes
import os
import time
import typing

from pccl._internal.bounded_call import call_within
from pccl.errors import TimeoutError as PcclTimeoutError
from pccl.errors import UnavailableError
from pccl.launchers import variables
from pccl.launchers.key_values import KeyValueExchange
from pccl.launchers.launcher import Launcher
from pccl.launchers.pmix_library import NAME, Info, Process, Value, library
from pccl.launchers.wire import LONGEST_ANSWER

if typing.TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PmixStore", "find"]

_GLOBAL = 3  # PMIX_GLOBAL, the scope of a value
_STRING, _BOOL, _INT, _UINT32 = 3, 1, 6, 14  # types of values
_WILDCARD = 2**32 - 2  # PMIX_RANK_WILDCARD: the whole job
_CONNECT_S = 30.0


def find(notes: list[str]) -> Launcher | None:
    """Return the launcher whose PMIx server this process can use, or None."""
    namespace, rank = os.environ.get("PMIX_NAMESPACE"), variables.number("PMIX_RANK")
    if not namespace or rank is None:
        return None
    pmix = library()
    if pmix is None:
        notes.append(f"PMIX_RANK={rank} is set, and {NAME} was not found")
        return None
    server = f"the PMIx server of {_name()} (PMIX_NAMESPACE={namespace})"
    size = _size(pmix, server)
    if rank >= size:
        notes.append(f"PMIX_RANK={rank} is not below the size of the job, {size}")
        return None
    return Launcher(
        name=f"{_name()}, PMIx ({namespace})",
        rank=rank,
        size=size,
        meeting=KeyValueExchange(lambda deadline: PmixStore(pmix, server, deadline), is_own=True),
        local_rank=_first("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"),
        local_size=variables.number("OMPI_COMM_WORLD_LOCAL_SIZE"),
    )


def _name() -> str:
    is_slurm = os.environ.get("PMIX_NAMESPACE", "").startswith("slurm.")
    return "srun" if is_slurm else variables.OPEN_MPI.launcher


def _first(*names: str) -> int | None:
    return next((value for name in names if (value := variables.number(name)) is not None), None)


def _size(pmix: ctypes.CDLL, server: str) -> int:
    """Return the number of ranks, from the environment or else from the server."""
    counts = variables.SLURM if _name() == "srun" else variables.OPEN_MPI
    size = variables.number(counts.size)
    if size is not None:
        return size
    deadline = time.monotonic() + _CONNECT_S
    store = PmixStore(pmix, server, deadline)
    try:
        return store.size(deadline)
    finally:
        store.close(deadline)


class PmixStore:
    """Key-value store of a PMIx server."""

    def __init__(self, pmix: ctypes.CDLL, server: str, deadline: float) -> None:
        self._pmix, self._server = pmix, server
        self._own = Process()
        self._call("PMIx_Init", deadline, ctypes.byref(self._own), None, 0)

    def put(self, key: str, value: str, deadline: float) -> None:
        """Set a key of this rank, for all ranks."""
        content = Value(type=_STRING)
        content.data.string = value.encode("ascii")
        self._call("PMIx_Put", deadline, _GLOBAL, key.encode("ascii"), ctypes.byref(content))
        self._call("PMIx_Commit", deadline)

    def fence(self, deadline: float) -> None:
        """Wait for all ranks of the job, and collect their values."""
        collect = _attribute("pmix.collect", _BOOL)
        collect.value.data.flag = True
        self._call("PMIx_Fence", deadline, ctypes.byref(self._job()), 1, collect, 1)

    def get(self, key: str, deadline: float) -> str:
        """Return the value that rank 0 has put."""
        first = Process(namespace=self._own.namespace, rank=0)
        value = self._value(first, key, _STRING, deadline)
        text = ctypes.string_at(value.data.bytes.bytes, _length_of(value))
        try:
            return text.decode("ascii")
        except UnicodeDecodeError:
            raise UnavailableError(f"{self._server} has a value of {key} that is no text") from None

    def size(self, deadline: float) -> int:
        """Return the number of ranks of the job."""
        size: int = self._value(self._job(), "pmix.job.size", _UINT32, deadline).data.uint32
        return size

    def close(self, deadline: float) -> None:
        """End this use of the library; an MPI library of this process continues with its own."""
        self._call("PMIx_Finalize", deadline, None, 0)

    def _job(self) -> Process:
        return Process(namespace=self._own.namespace, rank=_WILDCARD)

    def _value(self, process: Process, key: str, kind: int, deadline: float) -> Value:
        found = ctypes.POINTER(Value)()
        limit = _attribute("pmix.timeout", _INT)
        limit.value.data.integer = max(1, min(int(deadline - time.monotonic()), 2**31 - 1))
        arguments = (ctypes.byref(process), key.encode("ascii"), limit, 1, ctypes.byref(found))
        self._call("PMIx_Get", deadline, *arguments)
        if not found or found.contents.type != kind:
            shown = found.contents.type if found else "nothing"
            raise UnavailableError(
                f"{self._server} has a value of {key} of type {shown} instead of {kind}"
            )
        return found.contents

    def _call(self, function: str, deadline: float, *arguments: typing.Any) -> None:
        """Call a function of the library, and raise the error that it returns."""
        call: Callable[..., int] = getattr(self._pmix, function)
        status = call_within(
            max(0.0, deadline - time.monotonic()),
            lambda: call(*arguments),
            late=lambda: PcclTimeoutError(f"{self._server} did not answer {function} in time"),
        )
        if status != 0:
            reason = self._pmix.PMIx_Error_string(status) or b""
            raise UnavailableError(
                f"{self._server} refused {function}: status {status}, "
                f"{reason.decode('ascii', 'backslashreplace')}"
            )


def _attribute(key: str, kind: int) -> Info:
    return Info(key=key.encode("ascii"), value=Value(type=kind))


def _length_of(value: Value) -> int:
    """Return the length of a string, up to the longest answer of a launcher."""
    address = value.data.bytes.bytes
    if not address:
        return 0
    length: int = ctypes.CDLL(None).strnlen(ctypes.c_void_p(address), LONGEST_ANSWER)
    return length
