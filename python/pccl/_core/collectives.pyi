# SPDX-License-Identifier: Apache-2.0
"""Collectives and messages of a communicator."""

from datetime import timedelta
from typing import Any, Literal, overload

from pccl._core.events import Event
from pccl._core.types import _Blocks, _Buffer, _ReduceOp

class PremulSum:
    """Reduction that multiplies each rank's elements by that rank's factor, and sums them.

    It corresponds to ``PREMUL_SUM`` of torch and ``ncclRedOpCreatePreMulSum``: the factor may
    differ between ranks. The input of a rank is unchanged unless the collective is in place. The
    products take temporary memory while the collective runs.
    """

    def __init__(self, factor: float) -> None:
        """Create the reduction.

        Parameters
        ----------
        factor
            Factor for this rank's elements, which must be floating-point or complex numbers. It is
            converted to their type.
        """
    @property
    def factor(self) -> float:
        """The factor for this rank's elements."""

class _Collectives:
    """Collectives and messages of ``pccl.Communicator``."""

    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks, in place on each rank.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank. The result
            replaces its content.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x`` is not a valid buffer, or ``op`` does not exist; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_reduce(
        self,
        x: _Buffer,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Copy the root's ``x`` to all ranks.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank.
        root
            Rank that sends its ``x`` and only reads it, 0 <= root < world_size; the same on all
            ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def broadcast(
        self,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks, in place on the root; other ranks keep their ``x``.

        Parameters
        ----------
        x
            Buffer with the same number of elements and the same type on every rank.
        root
            Rank that receives the result, 0 <= root < world_size; the same on all ranks.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``root`` or ``op`` is invalid; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def reduce(
        self,
        x: _Buffer,
        root: int = 0,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Gather the ``x`` of all ranks on every rank.

        Parameters
        ----------
        out
            One block for each rank, as long as that rank's ``x``.
        x
            Input of this rank.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_gather(
        self,
        out: _Blocks,
        x: _Buffer,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Reduce ``x`` over all ranks; each rank receives its own block of the result.

        Parameters
        ----------
        out
            Buffer as long as this rank's block.
        x
            One block for each rank. The block for a given rank has the same length on all ranks.
        op
            ``"sum"``, ``"avg"`` (integers: exact, towards zero), ``"product"`` (or ``"prod"``),
            ``"min"``, ``"max"``; for integers and bool also ``"band"``, ``"bor"``, ``"bxor"``.
            Complex numbers support sum, avg and product; bool supports all but avg. Or a
            ``PremulSum``.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``op`` is invalid; nothing was sent.
        UnsupportedError
            The element type does not support ``op``; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def reduce_scatter(
        self,
        out: _Buffer,
        x: _Blocks,
        op: _ReduceOp | PremulSum = "sum",
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Gather the ``x`` of all ranks on the root.

        Parameters
        ----------
        out
            On the root: one block for each rank, as long as that rank's ``x``. Other ranks may pass
            None.
        x
            Input of this rank.
        root
            Rank that receives all blocks, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def gather(
        self,
        out: _Blocks | None,
        x: _Buffer,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send each rank its block of the root's ``x``.

        Parameters
        ----------
        out
            Buffer as long as this rank's block.
        x
            On the root: one block for each rank. Other ranks may pass None.
        root
            Rank that sends the blocks, 0 <= root < world_size; the same on all ranks.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out``, ``x`` or ``root`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def scatter(
        self,
        out: _Buffer,
        x: _Blocks | None,
        root: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send block i of ``x`` to rank i, which stores it in its ``out`` block for this rank.

        Parameters
        ----------
        out
            One block for each rank, as long as the block that this rank sends here.
        x
            One block for each rank. ``out`` and ``x`` are either arrays on all ranks, with blocks
            of equal length, or lists on all ranks, with blocks that may differ in length.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``out`` or ``x`` is invalid; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed, here or on another rank; every later operation of the group raises
            the same error.
        """
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def all_to_all(
        self,
        out: _Blocks,
        x: _Blocks,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Send ``x`` to one rank.

        Parameters
        ----------
        x
            Message. The receiver's buffer must have the same number of bytes and the same element
            type.
        peer
            Rank of the receiver, 0 <= peer < world_size.
        tag
            Tag of the message, 0 <= tag < 2**30. Messages with the same tag between two ranks keep
            their order; messages with different tags may be received in any order.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` is invalid, or this rank would wait for itself; nothing was
            sent.
        MismatchError
            The two sides differ in number of bytes or in element type.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def send(
        self,
        x: _Buffer,
        peer: int,
        tag: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: Literal[False] = False,
        timeout: float | timedelta | None = None,
    ) -> None:
        """Receive a message into ``x``.

        Parameters
        ----------
        x
            Buffer with the same number of bytes and the same element type as the message.
        peer
            Rank of the sender; None for any rank (``Event.source`` returns the sender).
        tag
            Tag that the sender uses.
        async_op
            Return an ``Event`` at once; the caller must not touch the buffers until it is done.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        None
            With ``async_op``, an ``Event``.

        Raises
        ------
        InvalidArgumentError
            ``x``, ``peer`` or ``tag`` is invalid, or this rank would wait for itself; nothing was
            sent.
        MismatchError
            The two sides differ in number of bytes or in element type.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: Literal[True],
        timeout: float | timedelta | None = None,
    ) -> Event: ...
    @overload
    def recv(
        self,
        x: _Buffer,
        peer: int | None = None,
        tag: int = 0,
        *,
        async_op: bool,
        timeout: float | timedelta | None = None,
    ) -> Event | None: ...
    def send_object(
        self, value: object, peer: int, tag: int = 0, *, timeout: float | timedelta | None = None
    ) -> None:
        """Send an object, pickled; ``recv_object`` receives it.

        Parameters
        ----------
        value
            Object that pickle supports, at most 2 GiB when pickled.
        peer
            Rank of the receiver, not this rank.
        tag
            Tag as for ``send``. Use different tags for objects and for arrays.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` is invalid, or the object is too large; nothing was sent.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not support the object; nothing was sent.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        """
    def recv_object(
        self, peer: int | None = None, tag: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Receive an object from another rank's ``send_object``.

        **pickle runs code that the sender chooses.** Use it only if you trust all ranks as you
        trust this program; docs/reference/security.md describes how a group is protected from
        strangers. Only one thread at a time may receive objects of one peer and tag.

        Parameters
        ----------
        peer
            Rank of the sender; None for any rank.
        tag
            Tag that the sender uses.
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Returns
        -------
        object
            A copy of the sent object.

        Raises
        ------
        InvalidArgumentError
            ``peer`` or ``tag`` is invalid.
        MismatchError
            The other side sent a message that is not an object.
        PeerLostError, TimeoutError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        Exception
            Any error of unpickling; for example, the class of the object is missing here.
        """
    def broadcast_object(
        self, value: object, root: int = 0, *, timeout: float | timedelta | None = None
    ) -> Any:
        """Copy the root's object to all ranks, by pickle.

        **pickle runs code that the root chooses.** Use it only if you trust all ranks as you trust
        this program; docs/reference/security.md describes how a group is protected from strangers.

        Parameters
        ----------
        value
            On the root: object of at most 2 GiB when pickled. Other ranks may pass None.
        root
            Rank that sends its object; the same on all ranks.
        timeout
            Maximum seconds of each of the two broadcasts; None for the group's timeout.

        Returns
        -------
        object
            ``value`` itself on the root, a copy on the other ranks.

        Raises
        ------
        InvalidArgumentError
            ``root`` is invalid; nothing was sent. The object is too large, or, on ranks other than
            the root, the root cannot pickle its object; the group remains usable.
        pickle.PicklingError, TypeError, AttributeError
            pickle does not support the object, on the root; the group remains usable.
        PeerLostError, TimeoutError, MismatchError, AbortedError
            The operation failed; every later operation of the group raises the same error.
        Exception
            Any error of unpickling; for example, the class of the object is missing here.
        """
    def barrier(self, timeout: float | timedelta | None = None) -> None:
        """Wait until all ranks have called it.

        Parameters
        ----------
        timeout
            Maximum seconds of the operation; None for the group's timeout.

        Raises
        ------
        TimeoutError
            A rank did not call it in time.
        PeerLostError, MismatchError, AbortedError
            A rank is lost, or called another operation; every later operation raises the same
            error.
        """
    def monitored_barrier(
        self, timeout: float | timedelta, *, wait_all_ranks: bool = False
    ) -> None:
        """Wait until all ranks have called it; rank 0 names the missing ranks.

        Parameters
        ----------
        timeout
            Seconds that rank 0 waits for the other ranks.
        wait_all_ranks
            Whether rank 0 names all missing ranks instead of the first one.

        Raises
        ------
        TimeoutError
            A rank did not call it in time; rank 0 reports this to the other ranks.
        PeerLostError, MismatchError, AbortedError
            A rank is lost, or called another operation; every later operation raises the same
            error.
        """
