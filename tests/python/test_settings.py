# SPDX-License-Identifier: Apache-2.0
"""Every setting with values that cannot be used: the start ends with a sentence, and in time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import stat
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.queues import SimpleQueue

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0

SETTINGS = sorted(
    set(re.findall(r'"(PCCL_[A-Z_]+)"', (ROOT / "csrc/base/config.cc").read_text()))
    - {"PCCL_TEST_"}
)
# Names of NCCL that count, too.
OTHERS = ["NCCL_TOPO_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_FILE", "NCCL_GRAPH_DUMP_FILE"]
FOLDERS = {"PCCL_FLIGHT_DIR", "PCCL_CAPSULES"}
GUARDS = {"PCCL_SECRET_FILE", "PCCL_TRUSTED_KEYS"}


def pipe(folder: Path) -> str:
    os.mkfifo(folder / "value")
    return str(folder / "value")


def directory(folder: Path) -> str:
    (folder / "value").mkdir()
    return str(folder / "value")


def empty(_: Path) -> str:
    return ""


def too_long(_: Path) -> str:
    return "x" * 5000


def missing(folder: Path) -> str:
    return str(folder / "missing" / "value")


def loop(folder: Path) -> str:
    (folder / "value").symlink_to(folder / "value")
    return str(folder / "value")


def start() -> str:
    """Do what goes by settings: look at the machine, search, and make a group of two."""
    import numpy as np

    import pccl

    pccl.topology.detect()
    pccl.topology.example("dgx1v").search("ring")
    with tempfile.TemporaryDirectory() as folder:

        def be_rank(rank: int) -> float:
            comm = pccl.Communicator(
                rank=rank, world_size=2, rendezvous=f"file://{folder}/store", timeout=10
            )
            x = np.ones(3)
            comm.all_reduce(x)
            return float(x[0])

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(be_rank, range(2))) == [2.0, 2.0]
    return "ok"


def _child(
    environment: Mapping[str, str], body: Callable[[], str], output: SimpleQueue[str]
) -> None:
    for name in list(os.environ):
        if name.startswith(("PCCL_", "NCCL_")):
            del os.environ[name]
    os.environ.update(environment)
    with contextlib.suppress(OSError):  # whatever is printed is not looked at
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    try:
        output.put(body())
    except Exception as error:
        output.put(f"{type(error).__name__}: {error}")


def in_process(environment: Mapping[str, str], body: Callable[[], str] = start) -> str:
    """Return what it gave, or the error that it raised, in a process with these variables."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "pccl._core"])
    output: SimpleQueue[str] = context.SimpleQueue()
    process = context.Process(target=_child, args=(dict(environment), body, output))
    process.start()
    process.join(PATIENCE_S)
    try:
        assert process.exitcode is not None, f"held for {PATIENCE_S} s by {environment}"
        assert process.exitcode == 0
        return output.get()
    finally:
        process.kill()


def private(folder: Path) -> dict[str, str]:
    """Return a home that costs may be kept in."""
    return {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def test_settings_are_found_and_documented() -> None:
    documented = re.findall(r"^\| `(PCCL_[A-Z_]+)` \|", configuration(), re.MULTILINE)
    assert len(SETTINGS) > 20
    assert sorted(set(documented)) == sorted({*documented, *SETTINGS})


def configuration() -> str:
    return (ROOT / "docs/reference/configuration.md").read_text()


def test_without_settings_it_starts(tmp_path: Path) -> None:
    assert in_process(private(tmp_path)) == "ok"


@pytest.mark.parametrize("make", [pipe, directory, too_long, missing, loop])
@pytest.mark.parametrize("name", SETTINGS)
def test_what_cannot_be_used_ends_the_start(
    name: str, make: Callable[[Path], str], tmp_path: Path
) -> None:
    value = make(tmp_path)
    output = in_process({**private(tmp_path), name: value})
    may_be_missing = {"PCCL_TUNING_FILE", "PCCL_COSTS_FILE"}
    fits = (
        (make is directory and name in FOLDERS)
        or (make is missing and name in may_be_missing)
        or (make is loop and name.endswith("_DUMP_FILE"))  # a link is replaced, not followed
    )
    if fits:
        assert output == "ok"
    else:
        assert name in output
        assert output.partition(":")[0].endswith("Error")
        assert "\n" not in output
    if make is pipe:
        assert stat.S_ISFIFO(os.lstat(value).st_mode)
    elif make is directory:
        assert list(Path(value).iterdir()) == []
    elif make is missing:
        assert not Path(value).parent.exists()
    elif make is loop:
        assert "no such file" not in output


@pytest.mark.parametrize("make", [pipe, directory, missing])
@pytest.mark.parametrize("name", OTHERS)
def test_names_of_nccl_end_it_alike(name: str, make: Callable[[Path], str], tmp_path: Path) -> None:
    value = make(tmp_path)
    output = in_process({**private(tmp_path), name: value})
    assert name.removeprefix("NCCL") in output
    assert value in output


@pytest.mark.parametrize("name", SETTINGS)
def test_empty_values_count_as_unset_but_for_what_keeps_others_out(
    name: str, tmp_path: Path
) -> None:
    output = in_process({**private(tmp_path), name: ""})
    if name in GUARDS:
        assert output.startswith(f'InvalidArgumentError: {name}="" is not usable: name a file')
    else:
        assert output == "ok"


def open_session() -> str:
    import pccl

    pccl.p2p.Session("a").close()
    return "ok"


def open_store() -> str:
    import pccl

    with tempfile.TemporaryDirectory() as folder:
        pccl.p2p.RendezvousStore(f"file://{folder}/store", host=True)
    return "ok"


def be_alone() -> str:
    import pccl

    pccl.Communicator(rank=0, world_size=1)
    return "ok"


@pytest.mark.parametrize("body", [open_session, open_store, be_alone])
def test_whatever_goes_by_settings_begins_with_them(
    body: Callable[[], str], tmp_path: Path
) -> None:
    assert in_process(private(tmp_path), body) == "ok"
    for wrong in (
        {"PCCL_SECRET_FILE": "x" * 5000},
        {"PCCL_SECRET_FILE": ""},
        {"PCCL_TCP_SOCKETS": "0"},
    ):
        output = in_process({**private(tmp_path), **wrong}, body)
        assert output.startswith("InvalidArgumentError: PCCL_")


@pytest.mark.parametrize("name", ["PCCL_SECRET_FILE", "PCCL_TRUSTED_KEYS"])
@pytest.mark.parametrize("content", ["", "x" * 70_000], ids=["empty", "long"])
def test_secrets_and_keys_that_are_none_end_the_start(
    name: str, content: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(content)
    file.chmod(0o600)
    output = in_process({**private(tmp_path), name: str(file)})
    assert output.startswith("InvalidArgumentError: ")
    assert name in output
    assert str(file) in output


@pytest.mark.parametrize("name", ["PCCL_SECRET_FILE", "PCCL_TRUSTED_KEYS"])
def test_secrets_and_keys_that_others_may_write_end_the_start(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a" * 64)
    file.chmod(0o666)
    output = in_process({**private(tmp_path), name: str(file)})
    assert output.startswith("InvalidArgumentError: ")
    assert "by other users (mode 0666); take that away: chmod 600" in output


def test_blanks_in_lists_are_no_matter(tmp_path: Path) -> None:
    lists = {
        "PCCL_TRANSPORTS": "shm, tcp",
        "PCCL_ALGORITHM": "all_reduce = ring, all_gather=bruck",
        "PCCL_SOCKET_IFNAME": "eth, lo, en, ib, v, d",
    }
    assert in_process({**private(tmp_path), **lists}) == "ok"


@pytest.mark.parametrize("name", ["PCCL_SOCKET_IFNAME", "PCCL_MANAGEMENT_IFNAME"])
def test_a_missing_interface_is_reported_at_once(name: str, tmp_path: Path) -> None:
    output = in_process({**private(tmp_path), name: "=eth77"})
    assert f'{name}: no running network interface fits "=eth77"; there are: ' in output
    alone = {name: "=eth77", "PCCL_TRANSPORTS": "shm"}  # which needs none
    assert in_process({**private(tmp_path), **alone}) == "ok"


@pytest.mark.parametrize("value", ["inf", "99999999999999999999"])
def test_times_may_be_without_limit(value: str, tmp_path: Path) -> None:
    times = dict.fromkeys(("PCCL_CONNECT_TIMEOUT_MS", "PCCL_PEER_TIMEOUT_MS"), value)
    assert in_process({**private(tmp_path), **times, "PCCL_TRANSPORTS": "tcp"}) == "ok"


@pytest.mark.parametrize("value", ["nan", "-1", "-inf", "0"])
@pytest.mark.parametrize("name", ["PCCL_CONNECT_TIMEOUT_MS", "PCCL_PEER_TIMEOUT_MS"])
def test_times_that_are_none_end_the_start(name: str, value: str, tmp_path: Path) -> None:
    output = in_process({**private(tmp_path), name: value})
    assert output.startswith(f'InvalidArgumentError: {name}="{value}" is not usable: use whole ')


@pytest.mark.parametrize("target", ["/dev/null", "/dev/stdout", "pipe"])
@pytest.mark.parametrize("name", ["NCCL_TOPO_DUMP_FILE", "PCCL_GRAPH_DUMP_FILE"])
def test_dumps_go_to_what_is_no_file(name: str, target: str, tmp_path: Path) -> None:
    path = target
    if target == "pipe":
        path = pipe(tmp_path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    kind = stat.S_IFMT(os.lstat(path).st_mode)
    output = in_process({**private(tmp_path), name: path}, look_at_machine)
    assert output == "ok"
    assert stat.S_IFMT(os.lstat(path).st_mode) == kind
    if target == "pipe":
        with os.fdopen(reader, "rb") as read:
            assert read.read(5) in {b"<syst", b"<grap", b"<?xml"}


def look_at_machine() -> str:
    import pccl

    pccl.topology.detect()
    pccl.topology.example("dgx1v").search("ring")
    return "ok"


def test_a_dump_without_room_is_reported(tmp_path: Path) -> None:
    output = in_process({**private(tmp_path), "PCCL_TOPO_DUMP_FILE": "/dev/full"}, look_at_machine)
    assert "PCCL_TOPO_DUMP_FILE: cannot write to /dev/full: No space left on device" in output
    assert stat.S_ISCHR(os.lstat("/dev/full").st_mode)
