# SPDX-License-Identifier: Apache-2.0
"""Connections of sessions in a process that has no descriptors left."""

from __future__ import annotations

import subprocess
import sys

PATIENCE = 120

CALLEE = r"""
import sys
from pccl.p2p import Session

session = Session("callee", transports="tcp")
print(session.connection_info().hex(), flush=True)
sys.stdin.read()
"""

CALLER = r"""
import os, resource, sys
import pccl
from pccl.p2p import Session

session = Session("caller", transports="tcp", connect_timeout=10)
session.load(bytes.fromhex(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
for left in range(12):
    held = []
    try:
        while True: held.append(os.dup(0))
    except OSError:
        pass
    for _ in range(left): os.close(held.pop())
    try:
        session.connect("callee", 10)
    except pccl.Error as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    for number in held: os.close(number)
    session.connect("callee", 10)
    session.disconnect("callee")
print("connected")
"""


def test_a_caller_without_descriptors_for_the_answer_names_them() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CALLEE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as callee:
        assert callee.stdout is not None
        info = callee.stdout.readline().strip()
        done = subprocess.run(
            [sys.executable, "-c", CALLER, info],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        callee.communicate("")
    *short, last = done.stdout.splitlines()
    assert last == "connected", done.stderr
    for line in short:
        assert line.startswith("ResourceExhaustedError: ")
        assert "Too many open files; this process may have 64 (ulimit -n)" in line
    assert any("this session cannot take the connection of a peer" in line for line in short)
