# SPDX-License-Identifier: Apache-2.0
"""Phases on real NETCONF servers, and what others read from these afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest

import pccl
from support import netconf_servers as servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.netconf_servers import TestBed

pytestmark = [
    pytest.mark.alone,  # switches that answer late are what some of these are about
    pytest.mark.multiproc,
    pytest.mark.skipif(bool(servers.missing()), reason=servers.missing() or "all is installed"),
]

NETCONF = "{urn:ietf:params:xml:ns:netconf:base:1.0}"
NAMESPACE = "{urn:pccl:yang:optical-switch}"
ELECTRICAL = "{urn:pccl:yang:electrical-switch}"
INTERFACES = "{urn:ietf:params:xml:ns:yang:ietf-interfaces}"
PHASES = {
    "ring": {"links": "ring"},
    "pairs": {"links": [[0, 2], [1, 3]], "duplex": True},
    "dark": {"links": []},
}
EDIT = """<nc:config xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">
<cross-connects xmlns="urn:pccl:yang:optical-switch"><pair><ingress>100</ingress>
<egress>101</egress></pair></cross-connects></nc:config>"""
RING = {(1, 2), (2, 3), (3, 4), (4, 1)}
PAIRS = {(1, 3), (3, 1), (2, 4), (4, 2)}


@pytest.fixture(scope="module")
def started() -> Iterator[TestBed]:
    with servers.netconf_servers(2) as bed:
        yield bed


@pytest.fixture
def bed(started: TestBed) -> TestBed:
    """Both switches, dark, whatever a test before has left."""
    cluster = cluster_of(started)
    if cluster.phase_shown() != "dark":
        cluster.switch("dark", adopt=True)
    return started


def cluster_of(bed: TestBed, **changes: Any) -> pccl.Cluster:
    """Both switches; ring and pairs use the first alone. ``changes`` are of its entry."""
    reported = bed.description(ranks=4, phases=PHASES)
    reported["switches"][0] |= changes
    return pccl.Cluster(reported)


def pairs_in(data: ElementTree.Element) -> set[tuple[int, int]]:
    """Return what is in a configuration, read without PCCL."""
    return {
        (
            int(pair.findtext(f"{NAMESPACE}ingress", "")),
            int(pair.findtext(f"{NAMESPACE}egress", "")),
        )
        for pair in data.iter(f"{NAMESPACE}pair")
    }


def ncclient_session(bed: TestBed, index: int = 0) -> Any:
    """Connect with ncclient."""
    manager = pytest.importorskip("ncclient.manager", reason="ncclient is not installed")
    return manager.connect(
        host="127.0.0.1",
        port=bed.servers[index].port,
        username=servers.user(),
        key_filename=str(bed.key_file),
        hostkey_verify=False,
        allow_agent=False,
        look_for_keys=False,
    )


def others_read(bed: TestBed, index: int = 0) -> set[tuple[int, int]]:
    """Return what ncclient reads of a server."""
    return pairs_in(ncclient_data(bed, index))


def test_switches_and_reads_back(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    result = cluster.switch("ring")
    assert result.outcome == "switched"
    assert cluster.phase_shown() == "ring"
    cluster.switch("pairs")
    assert cluster.phase_shown() == "pairs"
    # Another session, another process's view.
    assert cluster_of(bed).phase_shown(timeout=30.0) == "pairs"
    assert {pair for each in cluster.show() for pair in each.circuits} == PAIRS


def test_ncclient_reads_what_was_written(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")
    assert others_read(bed) == RING
    cluster.switch("pairs")
    assert others_read(bed) == PAIRS
    assert others_read(bed, 1) == set()


def yangcli_data(bed: TestBed, index: int = 0) -> ElementTree.Element:
    """Return the <data> that yangcli shows of the running configuration of a server."""
    if servers.is_netopeer2():
        pytest.skip("yangcli is netconfd's client")
    if not Path(servers.YANGCLI).exists():
        pytest.skip("yangcli is not installed (tools/setup_netconf_servers.sh)")
    shown = servers.yangcli(bed, index, "get-config source=running")
    reply = re.search(r"<rpc-reply .*</rpc-reply>", shown, re.DOTALL)
    assert reply, shown
    data = ElementTree.fromstring(reply.group()).find(f"{NETCONF}data")
    assert data is not None, shown
    return data


def ncclient_data(bed: TestBed, index: int = 0) -> ElementTree.Element:
    """Return the same as ncclient reads it."""
    with ncclient_session(bed, index) as session:
        return ElementTree.fromstring(session.get_config("running").data_xml)


def leaves_in(data: ElementTree.Element) -> list[tuple[str, str]]:
    """Return what a configuration says, in the order of its lists, without how it is laid out."""
    return [(each.tag, (each.text or "").strip()) for each in data.iter() if each is not data]


def test_yangcli_reads_what_was_written(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    for phase, circuits in [("ring", RING), ("pairs", PAIRS), ("dark", set())]:
        cluster.switch(phase)
        data = yangcli_data(bed)
        assert pairs_in(data) == circuits
        assert leaves_in(data) == leaves_in(ncclient_data(bed))
    assert pairs_in(yangcli_data(bed, 1)) == set()


def test_a_dry_run_is_checked_by_the_server_and_changes_nothing(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    assert cluster.switch("ring", dry_run=True).outcome == "prepared"
    assert cluster.phase_shown() == "dark"


def test_both_switches_change_or_none(bed: TestBed) -> None:
    reported = bed.description(ranks=4, phases={"star": {"links": [[0, 1], [0, 2]]}})
    cluster = pccl.Cluster(reported)
    assert len(cluster.switch("star").switches) == 2
    assert [each.circuits for each in cluster.show()] == [((1, 2),), ((1, 3),)]


def electrical(bed: TestBed, dialect: str) -> pccl.Cluster:
    """An optical switch, and an electrical one at the second server."""
    reported = bed.description(
        ranks=4,
        phases={
            "pairs": {"links": [[0, 1], [2, 3], [0, 2]], "duplex": True},
            "dark": {"links": []},
        },
    )
    reported["switches"][1] |= {"kind": "electrical", "dialect": dialect}
    return pccl.Cluster(reported)


@pytest.mark.parametrize(
    ("dialect", "shown", "leaf"),
    [
        ("pccl-vlan", ((1, 101), (3, 101)), f"{ELECTRICAL}vlan"),
        ("ietf-interfaces", ((1, 1), (3, 1)), f"{INTERFACES}enabled"),
    ],
)
def test_one_transaction_over_light_and_packets(
    bed: TestBed, dialect: str, shown: tuple[tuple[int, int], ...], leaf: str
) -> None:
    cluster = electrical(bed, dialect)
    result = cluster.switch("pairs", adopt=True)
    assert {each.name for each in result.switches} == {"ocs0", "ocs1"}
    light, packets = cluster.show()
    assert light.circuits == ((1, 2), (2, 1), (3, 4), (4, 3))
    assert packets.circuits == shown
    on = [each.text for each in ncclient_data(bed, 1).iter(leaf)]
    assert on in (["101", "101"], ["true", "true"])
    cluster.switch("dark")
    assert [each.circuits for each in cluster.show()] == [(), ()]


@pytest.mark.parametrize(
    ("dialect", "entry", "key", "leaf", "value"),
    [
        ("pccl-vlan", f"{ELECTRICAL}port", f"{ELECTRICAL}number", f"{ELECTRICAL}vlan", "101"),
        (
            "ietf-interfaces",
            f"{INTERFACES}interface",
            f"{INTERFACES}name",
            f"{INTERFACES}enabled",
            "true",
        ),
    ],
)
def test_yangcli_reads_the_commands_of_an_electrical_switch(
    bed: TestBed, dialect: str, entry: str, key: str, leaf: str, value: str
) -> None:
    yangcli_data(bed, 1)  # is it there?
    electrical(bed, dialect).switch("pairs", adopt=True)
    data = yangcli_data(bed, 1)
    assert {each.findtext(key) for each in data.iter(entry) if each.findtext(leaf) == value} == {
        "1",
        "3",
    }
    assert leaves_in(data) == leaves_in(ncclient_data(bed, 1))


def test_the_cpp_example_switches_them(bed: TestBed, tmp_path: Path) -> None:
    example = Path(pccl._core.__file__).parents[2] / "example_switch_phases"
    library = example.parent / "python/pccl/libpccl.so"
    if not example.exists() or example.stat().st_mtime < library.stat().st_mtime:
        pytest.skip("the C++ examples are not built, or older than the library (PCCL_BUILD_TESTS)")
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(bed.description(ranks=4, phases={})))
    done = subprocess.run([example, file], capture_output=True, text=True, check=True, timeout=120)
    phases = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert phases == ["example-forwards", "example-backwards", "no phase", "example-forwards"]
    assert others_read(bed) == RING


def _until(cluster: pccl.Cluster, phase: str) -> None:
    """Wait until the switches show it."""
    deadline = time.monotonic() + 10
    while cluster.phase_shown() != phase and time.monotonic() < deadline:
        time.sleep(0.1)
    assert cluster.phase_shown() == phase


def _once_unlocked(switch: Callable[[], pccl.Switched]) -> pccl.Switched:
    """Switch once the server has seen the end of the session that held its lock."""
    deadline = time.monotonic() + 10
    while True:
        try:
            return switch()
        except pccl.phases.SwitchError as error:
            if "held by session" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_the_server_takes_back_what_a_controller_that_died_has_not_confirmed(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):  # it ends while light settles
            cluster_of(bed, settle_ms=20_000, confirm_timeout_s=60).switch("pairs")
        os._exit(1)
    _until(cluster, "pairs")
    os.kill(pid, signal.SIGKILL)
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    _until(cluster, "ring")
    cluster.switch("pairs")  # the lock is gone, too


def test_ctrl_c_rolls_back(bed: TestBed) -> None:
    cluster = cluster_of(bed, settle_ms=500)
    cluster.switch("ring")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cluster.switch("pairs")
    timer.join()
    assert cluster.phase_shown() == "ring"
    assert cluster.audit()[-1]["outcome"] == "rolled back"
    assert cluster.switch("pairs").outcome == "switched"


def test_survives_a_restart_of_a_server(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")
    bed.servers[0].stop()
    bed.servers[0].start()  # dark: it kept nothing
    with pytest.raises(pccl.MismatchError, match=r"somebody else has changed it|no phase"):
        cluster.switch("ring")
    assert cluster.switch("ring", adopt=True).outcome == "switched"
    assert cluster.phase_shown() == "ring"


def test_a_server_that_is_gone_is_named_and_nothing_changes(bed: TestBed) -> None:
    cluster = cluster_of(bed, address="netconf://nobody@127.0.0.1:9")
    with pytest.raises(pccl.UnavailableError, match=r"switch ocs0: 127\.0\.0\.1:9: "):
        cluster.switch("ring")


def test_a_silent_server_ends_with_the_deadline(bed: TestBed) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        cluster = cluster_of(bed, address=f"netconf://nobody@127.0.0.1:{port}")
        with pytest.raises(pccl.TimeoutError, match="no answer to connect"):
            cluster.switch("ring", timeout=0.3)


@pytest.mark.parametrize("call", ["show", "switch", "adopt"])
def test_ctrl_c_works_while_a_server_is_silent(bed: TestBed, call: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        cluster = cluster_of(bed, address=f"netconf://nobody@127.0.0.1:{port}")
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            getattr(cluster, call)(*(["ring"] if call == "switch" else []), timeout=3600.0)
        timer.join()


@pytest.mark.parametrize(
    "words", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-x\r\n" + 999 * b"\0"]
)
def test_a_server_without_ssh_is_named(bed: TestBed, words: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:

        def answer() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.sendall(words)

        thread = threading.Thread(target=answer)
        thread.start()
        port = stranger.getsockname()[1]
        cluster = cluster_of(bed, address=f"netconf://nobody@127.0.0.1:{port}")
        with pytest.raises(
            pccl.PeerLostError, match=rf"switch ocs0: 127\.0\.0\.1:{port}: SSH failed"
        ):
            cluster.switch("ring")
        thread.join()


def test_what_dies_after_its_commit_is_brought_back(bed: TestBed) -> None:
    """With another switch: both end as they were, though one lost what it had."""
    phases = {"one": {"links": [[0, 1], [0, 2]]}, "two": {"links": [[1, 0], [1, 2]]}}
    reported = bed.description(ranks=4, phases=phases)
    for each in reported["switches"]:
        each |= {"settle_ms": 1000}
    cluster = pccl.Cluster(reported)
    cluster.switch("one", adopt=True)
    before = [each.circuits for each in cluster.show()]

    def kill() -> None:
        bed.servers[1].stop()
        bed.servers[1].start()  # dark: it kept nothing

    timer = threading.Timer(0.5, kill)
    timer.start()
    with pytest.raises(
        pccl.phases.SwitchError, match="phase two: rolled back: switch ocs1: "
    ) as failed:
        cluster.switch("two")
    timer.join()
    assert [each.found for each in failed.value.result.switches] == before
    assert [each.circuits for each in cluster.show()] == before
    assert cluster.current == "one"
    assert cluster.switch("two").outcome == "switched"


@pytest.mark.skipif(servers.is_netopeer2(), reason="the log of OpenSSH tells who logged in")
def test_refuses_another_host_key_before_it_logs_in(bed: TestBed) -> None:
    first = dataclasses.replace(bed, servers=bed.servers[:1])
    other = servers.fingerprint(bed.folder / "other_key.pub")
    before = _words(bed, "Accepted", "authenticating")
    with pytest.raises(pccl.MismatchError, match=re.escape(f"is {bed.host_key}, not {other}")):
        cluster_of(first, host_key=other).switch("ring")
    assert _words(bed, "Accepted", "authenticating") == before
    # Without a pin only where that is wanted.
    cluster = cluster_of(first, host_key=None, accept_any_host_key=True)
    assert cluster.switch("ring").outcome == "switched"
    assert _words(bed, "Accepted", "authenticating") > before


def _words(bed: TestBed, *words: str) -> int:
    log = (bed.folder / "sshd.log").read_text()
    return sum(map(log.count, words))


def test_names_a_key_that_is_refused_and_one_that_is_none(bed: TestBed) -> None:
    other = str(bed.folder / "other_key")
    with pytest.raises(pccl.InvalidArgumentError, match=r"it refuses user .* with the key"):
        cluster_of(bed, key_file=other).switch("ring")
    with pytest.raises(pccl.InvalidArgumentError, match="the private key /nowhere cannot be read"):
        cluster_of(bed, key_file="/nowhere").switch("ring")
    no_key = str(bed.folder / "host_key.pub")
    Path(no_key).chmod(0o600)
    with pytest.raises(pccl.InvalidArgumentError, match=f"{no_key} cannot be used: it is none"):
        cluster_of(bed, key_file=no_key).switch("ring")
    open_key = bed.folder / "open_key"
    open_key.write_bytes(bed.key_file.read_bytes())
    open_key.chmod(0o640)
    with pytest.raises(pccl.InvalidArgumentError, match=r"by other users \(mode 0640\)"):
        cluster_of(bed, key_file=str(open_key)).switch("ring")


def test_names_who_holds_the_lock(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    with ncclient_session(bed) as session, session.locked("candidate"):
        holder = f"held by session {session.session_id}"
        with pytest.raises(pccl.phases.SwitchError, match=holder) as denied:
            cluster.switch("ring")
        assert denied.value.result.outcome == "refused"
    assert cluster.switch("ring").outcome == "switched"


def left_edited(bed: TestBed) -> None:
    """Have another client edit the candidate, and go."""
    with ncclient_session(bed) as session:
        session.edit_config(EDIT, target="candidate")


def candidate_of(bed: TestBed) -> set[tuple[int, int]]:
    """Return what is in the candidate, read without PCCL."""
    with ncclient_session(bed) as session:
        return pairs_in(ElementTree.fromstring(session.get_config("candidate").data_xml))


def test_a_candidate_that_was_left_edited_is_reported_and_cleared_on_demand(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")
    left_edited(bed)
    words = r"holds edits .*adds pair \(ingress 100, egress 101\).*discard_candidate=True"
    for _ in range(2):  # the first refusal has thrown nothing away
        with pytest.raises(pccl.phases.SwitchError, match=words) as refused:
            cluster.switch("pairs")
        assert refused.value.result.outcome == "refused"
        assert candidate_of(bed) == RING | {(100, 101)}
    result = cluster.switch("pairs", discard_candidate=True)
    assert result.switches[0].discarded == "adds pair (ingress 100, egress 101)"
    assert others_read(bed) == PAIRS
    assert candidate_of(bed) == PAIRS


def test_what_a_controller_had_prepared_when_it_died_is_in_nobodys_way(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")

    def body(comm: pccl.Communicator) -> None:
        """Rank 0 prepares and waits for the others, which do not call; then it dies."""
        if comm.rank != 0:
            time.sleep(60)
        pccl.phases.switching._cluster().adopt()
        pccl.switch_phase("pairs", timeout=30.0, progress=die)

    def die(progress: Any) -> None:
        if progress.part == "drain":
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(pccl.launch.RankError) as caught:
        pccl.run(body, ranks=4, cluster=cluster_of(bed), timeout=60)
    assert caught.value.rank == 0
    assert _once_unlocked(lambda: cluster.switch("pairs")).outcome == "switched"
    assert others_read(bed) == PAIRS


def test_a_switch_that_restarts_keeps_its_circuits_where_they_are_copied(bed: TestBed) -> None:
    server = bed.servers[1]
    reported = bed.description(ranks=4, phases=PHASES)
    reported["switches"] = [reported["switches"][1]]
    reported["devices"] = [{"ports": {"ocs1": rank + 1}} for rank in range(4)]
    server.stop()
    server.start(keeps_startup=True)
    try:
        cluster = pccl.Cluster(reported)
        assert cluster.switch("ring", adopt=True).switches[0].startup == "not copied"
        reported["switches"][0]["copy_to_startup"] = True
        cluster = pccl.Cluster(reported)
        assert cluster.switch("pairs").switches[0].startup == "copied"
        server.stop()
        server.start(keeps_startup=True)
        assert others_read(bed, 1) == PAIRS
        assert pccl.Cluster(reported).phase_shown() == "pairs"
        pccl.Cluster(reported).switch("dark")
    finally:
        server.stop()
        server.start()


def test_watching_lets_a_server_take_back_what_nobody_confirms(bed: TestBed) -> None:
    cluster = cluster_of(bed)
    cluster.switch("ring")
    drifts = cluster.watch("ring", interval=0.1)
    assert next(drifts)[0].is_as_meant
    with ncclient_session(bed) as session:
        session.edit_config(EDIT, target="candidate")
        session.commit(confirmed=True, timeout="4", persist="watched")
    assert next(drifts)[0].foreign == ((100, 101),)
    assert next(drifts)[0].is_as_meant  # netconfd waits for a second without questions


def test_sessions_leave_no_descriptor(bed: TestBed) -> None:
    cluster_of(bed).show()
    before = _descriptors()
    for _ in range(5):
        assert cluster_of(bed).phase_shown() == "dark"
        with pytest.raises(pccl.MismatchError):
            cluster_of(bed, host_key="SHA256:" + 43 * "A").switch("ring")
    assert _descriptors() == before


def _descriptors() -> int:
    gc.collect()  # clusters of tests before
    return len(list(Path("/proc/self/fd").iterdir()))


def test_the_audit_log_has_each_request(bed: TestBed, tmp_path: Path) -> None:
    reported = bed.description(ranks=4, phases=PHASES) | {"audit": str(tmp_path / "audit.jsonl")}
    pccl.Cluster(reported).switch("ring")
    begin, end = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert begin["event"] == "begin"
    assert begin["switches"][0]["to"] == [list(pair) for pair in sorted(RING)]
    operations = [each["operation"] for each in end["switches"][0]["requests"]]
    assert operations == [
        "lock", "discard-changes", "get-config", "edit-config", "commit", "get-config", "get",
        "commit", "discard-changes", "unlock",
    ]  # fmt: skip
    assert str(bed.key_file) not in (tmp_path / "audit.jsonl").read_text()


def test_a_job_switches_the_servers(bed: TestBed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCL_TRANSPORTS", "tcp")

    def body(comm: pccl.Communicator) -> list[Any]:
        half = comm.split(comm.rank % 2)
        assert half is not None
        x = np.ones(1000)
        pccl.switch_phase("ring", timeout=30.0)
        comm.all_reduce(x)
        with pccl.phase("pairs", timeout=30.0) as switched:
            half.all_reduce(x)
        return [switched.outcome, float(x[-1]), pccl.phases.current_phase()]

    found = pccl.run(body, ranks=4, cluster=cluster_of(bed), timeout=60)
    assert found == [["switched", 8.0, "ring"]] * 4
    assert others_read(bed) == RING
