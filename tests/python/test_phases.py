# SPDX-License-Identifier: Apache-2.0
"""Cluster files, and phases on the fabric that is in this process."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import pccl
from pccl.phases.results import Sight
from pccl.results.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

YAML = """
devices: [{name: a}, {name: b}, {name: c}, {name: d}]
phases:
  ring: {links: ring, duplex: true}
  pairs: {links: [[0, 2], [1, 3]], duplex: true}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(YAML)
    return path


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", "phase", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_reads_yaml_and_json_alike(file: Path, tmp_path: Path) -> None:
    import yaml

    as_json = tmp_path / "cluster.json"
    as_json.write_text(json.dumps(yaml.safe_load(YAML)))
    one, other = pccl.Cluster.load(file), pccl.Cluster.load(as_json)
    assert one.phases == other.phases
    assert one.phases["pairs"] == ((0, 2), (2, 0), (1, 3), (3, 1))
    assert one.ranks == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("devices: [", "cannot be read: while parsing"),
        ("a: &x [1]\nb: *x", r"has an alias \(\*name\): write it out"),
        ("- 1", "must be a mapping of keys to values"),
        ("1: 2", "must be a mapping of keys to values"),
        ("phase: {}", r"phase: is no known key; did you mean phases\?"),
        ("a: !!python/object:os.system {}", "cannot be read: could not determine a constructor"),
        ("devices: [{rank: 1}]", "0 is missing"),
        ("{}", "devices: must list the ranks' devices: it has none"),
        ("devices: []", "devices: must list the ranks' devices: it has none"),
        ("[" * 100_000, "is nested deeper than 16"),
        ("".join(" " * i + "a:\n" for i in range(100)), "is nested deeper than 16"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(pccl.InvalidArgumentError, match=message) as refused:
        pccl.Cluster.load(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_takes_many_lists_that_are_not_nested(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    links = ", ".join(f"[{rank}, {rank + 1}]" for rank in range(39))
    path.write_text(f"devices: [{', '.join(40 * ['{}'])}]\nphases: {{line: {{links: [{links}]}}}}")
    assert len(pccl.Cluster.load(path).phases["line"]) == 39


def test_refuses_a_file_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("#" * (5 << 20))
    with pytest.raises(pccl.InvalidArgumentError, match="has more than"):
        pccl.Cluster.load(path)


def test_a_plan_is_what_switching_then_does(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    assert cluster.current is None
    cluster.switch("ring")
    before = {pair for each in cluster.show() for pair in each.circuits}
    plan = cluster.plan("ring", "pairs")
    cluster.switch("pairs")
    after = {pair for each in cluster.show() for pair in each.circuits}
    removed = {pair for each in plan.switches for pair in each.remove}
    added = {pair for each in plan.switches for pair in each.add}
    assert (before - removed) | added == after
    assert cluster.current == cluster.phase_shown() == "pairs"
    assert cluster.generation == 2
    links = set(cluster.phases["ring"])
    assert links - set(plan.lost) | set(plan.gained) == set(cluster.phases["pairs"])
    assert set(plan.kept) | set(plan.moved) == links & set(cluster.phases["pairs"])


def test_a_dry_run_switches_nothing(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    cluster.switch("ring")
    assert cluster.switch("pairs", dry_run=True).outcome == "prepared"
    assert cluster.current == cluster.phase_shown() == "ring"


def test_results_show_themselves(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    assert "now: not known" in repr(cluster)
    result = cluster.switch("ring")
    assert repr(result).startswith("<pccl.Switched to ring: 1 switch, dark for ")
    assert "<table>" in result._repr_html_()
    plan = cluster.plan("ring", "pairs")
    assert "links gained: 0->2" in str(plan)
    assert "<table>" in plan._repr_html_()
    assert len(cluster.audit()) == 2


def test_a_plan_draws_an_arrow_for_each_link(file: Path) -> None:
    plan = pccl.Cluster.load(file).plan("ring", "pairs")
    (axes,) = plan.plot().axes
    arrows = [each for each in axes.texts if getattr(each, "arrow_patch", None) is not None]
    assert len(arrows) == len({*plan.kept, *plan.moved, *plan.lost, *plan.gained})
    legend = axes.get_legend()
    assert legend is not None
    assert {each.get_text() for each in legend.get_texts()} == {"lost", "gained"}


def test_unknown_phases_and_bad_timeouts_are_refused(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    with pytest.raises(pccl.InvalidArgumentError, match=r"did you mean pairs\?"):
        cluster.switch("pair")
    for timeout in [0, -1, float("nan")]:
        with pytest.raises(pccl.InvalidArgumentError, match="timeout is "):
            cluster.switch("ring", timeout=timeout)
    assert cluster.switch("ring", timeout=float("inf"))


def test_a_call_in_the_middle_of_another_is_refused() -> None:
    """As from a signal handler, or another thread."""
    cluster = pccl.Cluster(
        {
            "switches": [{"name": "slow", "settle_ms": 300}],
            "devices": [{"ports": {"slow": 1}}, {"ports": {"slow": 2}}],
            "phases": {"pair": {"links": [[0, 1]], "duplex": True}},
        }
    )
    seen: list[object] = []

    def call_in_between(*_: object) -> None:
        seen.append(cluster.current)
        with pytest.raises(pccl.UnavailableError, match="another call of this cluster"):
            cluster.show()
        seen.append("refused")

    before = signal.signal(signal.SIGALRM, call_in_between)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        assert cluster.switch("pair").outcome == "switched"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [None, "refused"]
    assert cluster.current == "pair"


def test_only_switches_that_are_spoken_to_need_libraries(file: Path) -> None:
    program = (
        f"import pccl; pccl.Cluster.load({str(file)!r}).switch('ring');"
        "print([each for each in ('libssh', 'libxml2') if each in open('/proc/self/maps').read()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "[]\n"


def test_the_command_lists_plans_switches_and_shows(file: Path, tmp_path: Path) -> None:
    assert run("list", file).stdout.splitlines()[0] == "pairs: 0->2, 2->0, 1->3, 3->1"
    assert json.loads(run("list", file, "--json").stdout)["phases"].keys() == {"pairs", "ring"}
    planned = run("plan", file, "ring", "pairs", "--xml")
    assert "ring -> pairs: 1 switch" in planned.stdout
    assert json.loads(run("plan", file, "ring", "pairs", "--json").stdout)["target"] == "pairs"
    assert run("switch", file, "ring").stdout.startswith("ring: switched, ")
    shown = run("show", file)
    assert shown.stdout == "fabric: none\nphase: none of the file\n"
    assert "its fabric is in this process" in shown.stderr
    log = tmp_path / "log.jsonl"
    file.write_text(f"audit: {log}\n{YAML}")
    run("switch", file, "ring", "--dry-run")
    lines = run("audit", log).stdout.splitlines()
    assert lines[0].endswith("begin, from unknown, to ring")
    assert lines[1].endswith("end, to ring, outcome prepared")


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Stand for a disk that is full: no file gets longer meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_audit_log_survives_a_full_disk(file: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    file.write_text(f"audit: {log}\n{YAML}")
    cluster = pccl.Cluster.load(file)
    cluster.switch("ring")
    begin, end = log.read_text().splitlines(keepends=True)
    with files_of_at_most(len(begin + end) + 20):  # begin is cut short: nothing is done
        with pytest.raises(pccl.Error, match="cannot write to the audit log"):
            cluster.switch("pairs")
        assert log.read_text() == begin + end
        assert cluster.phase_shown() == "ring"
        assert len(cluster.audit()) == 2
    with files_of_at_most(2 * len(begin + end) - 40):  # end is: it is done, and told
        result = cluster.switch("pairs")
        assert (result.outcome, cluster.current) == ("switched", "pairs")
        assert "the audit log lacks this change" in result.unrecorded
        assert result.unrecorded in repr(result)
        with pytest.raises(pccl.Error, match="lacks this change"):
            cluster.switch("ring")
        assert cluster.current == "pairs"
    assert cluster.switch("ring").unrecorded == ""
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["event"] for each in events] == 3 * ["begin", "end"]
    assert events == cluster.audit()


def test_the_audit_log_is_shown_behind_a_line_that_was_cut_short(
    file: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    file.write_text(f"audit: {log}\n{YAML}")
    pccl.Cluster.load(file).switch("ring")
    with log.open("ab") as half:
        half.write(b'{"time":"2026-11-29T00:00:00.000Z","user":0,"ev\x1b[2J\xff')
    pccl.Cluster.load(file).switch("pairs", adopt=True)
    with log.open("ab") as nonsense:
        nonsense.write(b'[1, 2]\n{"event": "begin"}\n')
    shown = run("audit", log)
    assert shown.returncode == 2
    first, second, cut, fourth, fifth, *others = shown.stdout.splitlines()
    assert [first.split(", ")[2], second.split(", ")[2]] == ["begin", "end"]
    assert cut.startswith('no event: \'{"time"')
    assert "\x1b" not in shown.stdout
    assert [fourth.split(", ")[2], fifth.split(", ")[2]] == ["begin", "end"]
    assert [each.startswith("no event: ") for each in others] == [True, True]


def test_the_command_fails_where_the_audit_log_lacks_what_it_did(
    file: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    file.write_text(f"audit: {log}\n{YAML}")
    run("switch", file, "ring")
    begin, _ = log.read_text().splitlines(keepends=True)
    size = log.stat().st_size + len(begin) + 40
    program = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
        f"sys.argv = ['pccl', 'phase', 'switch', {str(file)!r}, 'pairs']; "
        "from pccl.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.startswith("pairs: switched, ")
    assert "the audit log lacks this change" in done.stderr
    assert done.returncode == 2


def test_watching_reports_changes_against_the_expected_phase(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    cluster.switch("ring")
    changes = cluster.watch(interval=0.001)
    assert [str(each) for each in next(changes)] == ["fabric: ring, as meant"]
    planned = cluster.plan("ring", "pairs").switches[0]
    cluster.switch("pairs")
    (drift,) = next(changes)
    assert not drift.is_as_meant
    assert (set(drift.missing), set(drift.foreign)) == (set(planned.remove), set(planned.add))
    assert str(drift).startswith("fabric: not ring: ")
    cluster.switch("ring")
    assert next(changes)[0].is_as_meant


def test_watching_leaves_switches_with_an_address_alone_between_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rests: list[float] = []
    monkeypatch.setattr("pccl.phases.watch.time.sleep", rests.append)
    switch = {
        "name": "s",
        "address": "netconf://nobody@127.0.0.1:9",
        "accept_any_host_key": True,
        "key_file": "/nowhere",
    }
    reported = {"devices": [{"ports": {"s": 1}}, {"ports": {"s": 2}}], "switches": [switch]}
    cluster = pccl.Cluster(reported | {"phases": {"a": {"links": [[0, 1]]}}})
    faults: list[str] = []
    monkeypatch.setattr(cluster, "show", lambda timeout: Table([Sight("s", (), faults.pop())]))
    for interval, rest in [(0.1, 2.0), (5.0, 5.0)]:
        faults += ["it has changed", "at first"]
        drifts = cluster.watch("a", interval=interval)
        next(drifts)
        next(drifts)
        assert rests.pop() == rest


def test_watching_requires_the_expected_phase(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    with pytest.raises(pccl.MismatchError, match="name the one that is meant"):
        next(cluster.watch())
    (drift,) = next(cluster.watch("ring"))
    assert drift.missing
    with pytest.raises(pccl.InvalidArgumentError, match="rings"):
        next(cluster.watch("rings"))
    with pytest.raises(pccl.InvalidArgumentError, match="phase"):
        next(cluster.watch(""))
    with pytest.raises(pccl.InvalidArgumentError, match="no phase has an empty name"):
        cluster.plan("", "ring")
    with pytest.raises(pccl.InvalidArgumentError, match="interval is 0"):
        next(cluster.watch("ring", interval=0))


def test_measuring_switches_back_and_forth(file: Path) -> None:
    cluster = pccl.Cluster.load(file)
    before = cluster.generation
    measured = cluster.measure("ring", "pairs", rounds=3)
    assert cluster.current == "pairs"
    assert cluster.generation - before == 6
    assert measured.switches == 5
    assert 0 <= measured.dark_ms <= measured.total_ms <= measured.longest_ms
    assert measured.seconds * 1e3 == pytest.approx(measured.total_ms)
    with pytest.raises(pccl.InvalidArgumentError, match="two phases"):
        cluster.measure("ring", "ring")


def test_the_command_watches_and_measures(file: Path) -> None:
    watched = run("watch", file, "ring", "--looks", "1")
    assert watched.returncode == 2, "nothing is connected yet"
    assert re.fullmatch(r"\d\d:\d\d:\d\d fabric: not ring: .* missing\n", watched.stdout)
    measured = run("measure", file, "ring", "pairs", "--rounds", "2")
    assert measured.stdout.startswith("ring <-> pairs: 3 times, ")


def test_the_command_complains_in_one_line(file: Path) -> None:
    refused = run("switch", file, "rings")
    assert refused.returncode == 2
    assert refused.stderr == "pccl: there is no phase rings; did you mean ring?\n"


def test_an_audit_log_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "audit"
    os.mkfifo(pipe)
    with pytest.raises(pccl.Error, match=f"audit log {pipe}"):
        pccl.Cluster({"devices": [{"name": "a"}, {"name": "b"}], "audit": str(pipe)}).switch("none")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(pccl.Error, match=f"audit log {pipe} is no regular file"):
            pccl.Cluster({"devices": [{"name": "a"}], "audit": str(pipe)}).show()
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    done = run("audit", pipe)
    assert done.returncode != 0
    assert "this is no file" in done.stderr
