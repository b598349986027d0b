# SPDX-License-Identifier: Apache-2.0
"""Daemon threads that are in a call when the interpreter ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

STARTS = """
import sys, tempfile, threading, time
import numpy as np
import pccl
from pccl import p2p

def again_and_again(call):
    def run():
        while True:
            try:
                call()
            except pccl.Error:
                pass
    threading.Thread(target=run, daemon=True).start()

class Store(dict):
    def set(self, key, value): self[key] = value
    def add(self, key, number): return number
"""
CALLS = {
    "a wait in slices": """
session = p2p.Session("a")
again_and_again(lambda: session.accept(timeout=10))
""",
    "a call": """
comm = pccl.Communicator()
again_and_again(comm.health)
""",
    "a collective": """
comm = pccl.Communicator()
again_and_again(lambda: comm.all_reduce(np.ones(4)))
""",
    "a wait for an operation": """
comm = pccl.Communicator()
again_and_again(lambda: comm.all_reduce(np.ones(4), async_op=True).wait())
""",
    "a store in Python": """
again_and_again(lambda: pccl.Communicator(rank=1, world_size=2, rendezvous=Store(), timeout=10))
""",
}


@pytest.mark.parametrize("call", CALLS)
def test_the_exit_code_is_the_programs(call: str) -> None:
    code = f"{STARTS}{CALLS[call]}time.sleep(0.3)\nsys.exit(7)\n"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (7, "")
