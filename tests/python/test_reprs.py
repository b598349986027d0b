# SPDX-License-Identifier: Apache-2.0
"""What objects show of themselves: that they are over, and nothing that is secret."""

from __future__ import annotations

import numpy as np

import pccl
from pccl import p2p


def test_a_group_that_is_over_shows_it() -> None:
    comm = pccl.Communicator(rank=0, world_size=1)
    assert repr(comm) == '<pccl.Communicator "world": rank 0 of 1>'
    comm.shutdown()
    assert repr(comm) == '<pccl.Communicator "world": rank 0 of 1, over>'
    aborted = pccl.Communicator(rank=0, world_size=1)
    aborted.abort("enough")
    assert repr(aborted).endswith(", over>")


def test_a_session_that_is_closed_shows_it() -> None:
    session = p2p.Session("alone")
    assert repr(session) == "<pccl.p2p.Session alone>"
    session.close()
    assert repr(session) == "<pccl.p2p.Session alone, closed>"


def test_a_descriptor_does_not_show_its_bytes() -> None:
    with p2p.Session("alone") as session:
        descriptor = session.register(np.zeros(8)).descriptor()
    size = len(descriptor.serialize())
    assert repr(descriptor) == f"<pccl.p2p.Descriptor of {size} bytes>"
    assert str(descriptor) == repr(descriptor)


def test_errors_show_the_blamed_rank() -> None:
    assert repr(pccl.PeerLostError("gone")) == "PeerLostError('gone')"
    lost = pccl.PeerLostError("gone", 3, "node7", 41)
    assert repr(lost) == "PeerLostError('gone', rank=3, host='node7', pid=41)"
    assert repr(pccl.PeerLostError("gone", 0)) == "PeerLostError('gone', rank=0)"
    assert repr(pccl.PeerLostError("gone", peer="bob")) == "PeerLostError('gone', peer='bob')"
    assert str(lost) == "gone"
