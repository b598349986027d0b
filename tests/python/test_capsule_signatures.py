# SPDX-License-Identifier: Apache-2.0
"""Signed capsules: vectors of RFC 8032, keys that are trusted, and all that can be wrong."""

from __future__ import annotations

import base64
import functools
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl._internal.local_ranks import run_ranks
from support import algorithms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# RFC 8032, 7.1: seeds and public keys of tests 1 to 3.
SEEDS = (
    "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
    "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
    "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
)
PUBLIC = (
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
    "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
)
# RFC 8410: what comes before the seed in PKCS 8.
PREFIX = "302e020100300506032b657004220420"
RING = algorithms.ring.build("ring2", ranks=2)


def pem(seed: str) -> str:
    body = base64.b64encode(bytes.fromhex(PREFIX + seed)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"


@pytest.fixture
def keys(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{number}.pem" for number in range(3)]
    for file, seed in zip(files, SEEDS, strict=True):
        file.write_text(pem(seed))
    return files


def trusted(folder: Path, *keys: str) -> Path:
    file = folder / "trusted.txt"
    file.write_text("# whom we trust\n" + "".join(f"{key} somebody\n" for key in keys))
    return file


@pytest.mark.parametrize("number", range(3))
def test_public_keys_are_those_of_the_rfc(keys: list[Path], number: int) -> None:
    assert RING.signed(keys[number]).signer == PUBLIC[number]


def test_a_signed_capsule_is_the_same_capsule(keys: list[Path], tmp_path: Path) -> None:
    signed = RING.signed(keys[0])
    assert RING.signer is None
    assert signed.digest == RING.digest
    assert signed.data.startswith(RING.data)
    signed.save(tmp_path / "signed.capsule")
    again = pccl.Capsule.load(tmp_path / "signed.capsule")
    assert again == signed
    assert again.signer == PUBLIC[0]
    assert signed.signed(keys[1]).signer == PUBLIC[1]
    # Ed25519 is deterministic.
    assert signed.signed(keys[0]) == signed


def test_every_changed_bit_of_a_signature_is_found(keys: list[Path]) -> None:
    data = RING.signed(keys[0]).data
    for place in range(len(RING.data), len(data)):
        for bit in (1, 4):
            changed = bytearray(data)
            changed[place] ^= bit
            with pytest.raises(pccl.InvalidArgumentError):
                pccl.Capsule.parse(bytes(changed))
    for end in range(len(RING.data) + 1, len(data)):
        with pytest.raises(pccl.InvalidArgumentError):
            pccl.Capsule.parse(data[:end])


def test_the_signature_of_another_capsule_is_refused(keys: list[Path]) -> None:
    other = algorithms.all_pairs.build("other", ranks=2)
    line = other.signed(keys[0]).data[len(other.data) :]
    with pytest.raises(pccl.InvalidArgumentError, match="is not one of these bytes by the key d75"):
        pccl.Capsule.parse(RING.data + line)


def test_signers_are_checked_against_keys(keys: list[Path], tmp_path: Path) -> None:
    file = trusted(tmp_path, PUBLIC[1], PUBLIC[2])
    RING.signed(keys[1]).check_signer(file)
    with pytest.raises(
        pccl.InvalidArgumentError, match="it is not signed: sign it with pccl capsule sign"
    ):
        RING.check_signer(file)
    with pytest.raises(
        pccl.InvalidArgumentError, match=f"signed by {PUBLIC[0]}, which is no trusted key"
    ):
        RING.signed(keys[0]).check_signer(file)
    file.write_text(f"{PUBLIC[0]}\nabc\n")
    with pytest.raises(pccl.InvalidArgumentError, match=r"trusted\.txt: line 2: a public key has"):
        RING.check_signer(file)


@pytest.mark.parametrize("text", ["", "secret", pem(SEEDS[0])[:-40], pem("00" * 16)])
def test_what_is_no_private_key_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "no.pem"
    file.write_text(text)
    with pytest.raises(pccl.InvalidArgumentError, match="this is no private Ed25519 key in PEM"):
        RING.signed(file)


def load_all(folder: Path, rank: int, rendezvous: str, send: Callable[[object], None]) -> None:
    comm = pccl.Communicator(rank=rank, world_size=2, rendezvous=rendezvous, timeout=60)
    output = []
    for file in ("ring2.capsule", "strange.capsule", "signed.capsule"):
        try:
            comm.load(pccl.Capsule.load(folder / file))
            output.append("loaded")
        except pccl.InvalidArgumentError as error:
            output.append(str(error))
    send(output)
    comm.barrier()


@pytest.mark.multiproc
def test_groups_load_what_a_trusted_key_has_signed_alone(
    keys: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    RING.save(tmp_path / "ring2.capsule")
    RING.signed(keys[0]).save(tmp_path / "strange.capsule")
    RING.signed(keys[1]).save(tmp_path / "signed.capsule")
    monkeypatch.setenv("PCCL_TRUSTED_KEYS", str(trusted(tmp_path, PUBLIC[1])))
    for unsigned, strange, signed in run_ranks(functools.partial(load_all, tmp_path), 2):
        assert unsigned == (
            "PCCL_TRUSTED_KEYS does not let capsule ring2 in: it is not signed: "
            "sign it with pccl capsule sign"
        )
        assert f"it is signed by {PUBLIC[0]}, which is no trusted key here" in strange
        assert signed == "loaded"


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", "capsule", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_command_signs_and_verifies(keys: list[Path], tmp_path: Path) -> None:
    RING.save(tmp_path / "a.capsule")
    trusted(tmp_path, PUBLIC[0])
    done = command(tmp_path, "verify", "a.capsule", "--keys", "trusted.txt")
    assert done.returncode == 1
    assert "a.capsule: it is not signed" in done.stderr
    done = command(tmp_path, "sign", "a.capsule", "--key", keys[0].name)
    assert done.stdout == f"a.capsule: signed by {PUBLIC[0]}\n"
    done = command(tmp_path, "verify", "a.capsule", "--keys", "trusted.txt")
    assert (done.returncode, done.stdout) == (0, f"a.capsule: signed by {PUBLIC[0]}\n")
    assert command(tmp_path, "verify", "a.capsule").returncode != 0


def test_a_signature_is_of_all_numbers_of_ranks(keys: list[Path], tmp_path: Path) -> None:
    several = algorithms.ring.build("ring", ranks=[2, 3])
    file = tmp_path / "ring.capsule"
    signed = several.signed(keys[0])
    signed.save(file)
    read = pccl.Capsule.load(file)
    assert (read.signer, read.digest) == (PUBLIC[0], several.digest)
    assert read.data == signed.data
    read.check_signer(trusted(tmp_path, PUBLIC[0]))
    assert read.for_ranks(2).signer is None
    assert RING.signed(keys[0]).for_ranks(2).signer == PUBLIC[0]
    assert pccl.Capsule.join([read]).signer is None
    moved = algorithms.ring.build("ring", ranks=[2, 4]).data + signed.data[len(several.data) :]
    with pytest.raises(pccl.InvalidArgumentError, match="not one of these bytes"):
        pccl.Capsule.parse(moved)
