# SPDX-License-Identifier: Apache-2.0
"""Point-to-point transfers between processes that need not be ranks of one group.

A session listens for peers, and accesses their registered memory by one-sided reads and writes: the
remote program makes no call. Peers have names, and may connect and disconnect at any time. See
``docs/guide/p2p.md``.
"""

from pccl.p2p.directory import Directory, KeyStore, TorchStore
from pccl.p2p.etcd import EtcdStore
from pccl.p2p.memory import Descriptor, LocalSlice, Memory, RemoteMemory, RemoteSlice
from pccl.p2p.notification import Notification
from pccl.p2p.rendezvous import RendezvousStore
from pccl.p2p.session import Session
from pccl.p2p.transfer import Message, Transfer
from pccl.p2p.work import Plan, Work, WorkStats

__all__ = [
    "Descriptor",
    "Directory",
    "EtcdStore",
    "KeyStore",
    "LocalSlice",
    "Memory",
    "Message",
    "Notification",
    "Plan",
    "RemoteMemory",
    "RemoteSlice",
    "RendezvousStore",
    "Session",
    "TorchStore",
    "Transfer",
    "Work",
    "WorkStats",
]


def __dir__() -> list[str]:
    return sorted(__all__)
