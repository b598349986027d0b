# SPDX-License-Identifier: Apache-2.0
"""Sessions whose transfers are RDMA reads and writes, on the fake libibverbs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support import fake_verbs

TESTS = Path(__file__).parents[1]

BEGINNING = """
import numpy as np
from pccl import p2p

def random_bytes(seed, nbytes=1 << 20):
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)

with p2p.Session("a", transports="verbs") as a, p2p.Session("b", transports="verbs") as b:
    b.load(a.connection_info())
    theirs, mine = random_bytes(1), random_bytes(2)
    there, here = a.register(theirs), b.register(mine)
    remote = b.import_memory("a", there.descriptor().serialize())
"""


def run(body: str, folder: Path, **settings: str) -> None:
    script = BEGINNING + textwrap.indent(textwrap.dedent(body), "    ")
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": path, **fake_verbs.environment(folder, **settings)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("devices", ["mlx5_0", "mlx5_0,mlx5_1"])
def test_slices_are_read_and_written_and_the_notification_follows(
    tmp_path: Path, devices: str
) -> None:
    run(
        """
        work = b.read(here[5:1000], remote[7:1002], notify=b"done")
        work.wait(20)
        assert (mine[5:1000] == theirs[7:1002]).all()
        assert work.stats().path == "verbs, by RDMA", work.stats()
        assert a.notifications(timeout=20) == [("b", b"done")]
        mine[:] = random_bytes(3)
        b.write(here[:], remote[:]).wait(20)
        assert (theirs == mine).all()
        """,
        tmp_path,
        FAKE_VERBS_DEVICES=devices,
    )


def test_memory_whose_registration_has_ended_is_refused_and_the_connection_goes_on(
    tmp_path: Path,
) -> None:
    run(
        """
        import pccl
        other = random_bytes(4)
        ended = a.register(other)
        gone = b.import_memory("a", ended.descriptor().serialize())
        b.read(here[:], gone[:]).wait(20)
        ended.deregister()
        before = mine.copy()
        other[:] = 0
        for _ in range(3):
            try:
                b.read(here[:], gone[:]).wait(20)
            except pccl.UnavailableError as error:
                assert "ended the registration" in str(error), error
            else:
                raise AssertionError("it was read")
        b.read(here[:], remote[:]).wait(20)
        assert (mine == theirs).all()
        """,
        tmp_path,
        FAKE_VERBS_DEVICES="mlx5_0,mlx5_1",
    )


def test_messages_with_tags_and_plans_of_many_blocks(tmp_path: Path) -> None:
    run(
        """
        a.load(b.connection_info())
        outgoing, incoming = a.transfer("b", chunk=4096), b.transfer("a")
        received = incoming.post_recv(here, 10_000, 50_000, tag=3)
        outgoing.post_send(there, 8000, 50_000, tag=3)
        outgoing.wait(timeout=20)
        incoming.wait(timeout=20)
        assert received.nbytes == 50_000
        assert (mine[10_000:60_000] == theirs[8000:58_000]).all()
        blocks = np.array([(at, 4096) for at in range(0, 1 << 20, 4096)])
        plan = b.prepare(here, blocks, remote, blocks[::-1].copy())
        b.post_read(plan).wait(20)
        assert (mine.reshape(-1, 4096)[::-1] == theirs.reshape(-1, 4096)).all()
        """,
        tmp_path,
        FAKE_VERBS_DEVICES="mlx5_0,mlx5_1",
    )


def test_each_of_eight_devices_reaches_registered_memory(tmp_path: Path) -> None:
    run(
        """
        import ctypes, os
        from support.fake_verbs import STALL, WRITE, Rule
        b.write(here[:1], remote[:1]).wait(20)
        fake = ctypes.CDLL(os.environ["PCCL_IBVERBS_LIBRARY"])
        rule = fake.fake_verbs_add_rule(ctypes.byref(Rule(effect=STALL, opcode=WRITE + 1)))
        # The least loaded device takes each write: all have some until the first one completes.
        parts = [slice(at, at + 4096) for at in range(0, 1 << 20, 4096)]
        writes = [b.write(here[part], remote[part]) for part in parts]
        assert not any(write.done() for write in writes)
        fake.fake_verbs_remove_rule(rule)
        for write in writes:
            write.wait(20)
        assert (theirs == mine).all()
        """,
        tmp_path,
        FAKE_VERBS_DEVICES=",".join(f"mlx5_{number}" for number in range(8)),
    )
