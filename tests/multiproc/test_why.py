# SPDX-License-Identifier: Apache-2.0
"""``pccl why`` and the counters of a running job, over shared memory and TCP."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import parser

from multiproc.test_status import PATIENCE_S, job, queried_until, secret_in, status
from pccl.diagnostics import exporter, ledger

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.multiproc

# The last rank is late by 20 ms each time.
LATE_JOB = """
import time
import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://", timeout=60.0)
x = np.ones(1000, dtype=np.float32)
while True:
    if comm.rank == comm.world_size - 1:
        time.sleep(0.02)
    comm.all_reduce(x)
"""
COUNTED_JOB = """
import time
import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://", timeout=60.0)
for _ in range(10):
    comm.all_reduce(np.ones(1000, dtype=np.float32))
time.sleep(120)
"""
MESSAGE_JOB = """
import time
import numpy as np
import pccl

comm = pccl.Communicator(rendezvous="env://", timeout=60.0)
for _ in range(COUNT):
    if comm.rank == 0:
        time.sleep(0.02)
        comm.send(np.ones(1000, dtype=np.float32), 1)
    elif comm.rank == 1:
        comm.recv(np.ones(1000, dtype=np.float32), 0)
time.sleep(120)
"""
RANKS = 3
WHY = [sys.executable, "-m", "pccl", "why"]


def usages(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["usage"] for process in answer["processes"] for group in process["groups"]]


def have_called(answer: dict[str, Any], path: str) -> bool:
    calls = [usage[path]["calls"] for usage in usages(answer)]
    return len(calls) == RANKS and min(calls) >= 10


@pytest.mark.parametrize(("transports", "path"), [("shm", "shm"), ("tcp", "links")])
def test_the_late_rank_is_named(tmp_path: Path, transports: str, path: str) -> None:
    # Over TCP alone, processes answer those who prove the job's secret.
    variables = {"PCCL_TRANSPORTS": transports, "PCCL_SECRET_FILE": secret_in(tmp_path)}
    with job(LATE_JOB, "pccl", "run", "-n", str(RANKS), folder=tmp_path, **variables) as launcher:
        queried_until(lambda answer: have_called(answer, path), launcher, **variables)
        done = subprocess.run(
            [sys.executable, "-m", "pccl", "why", str(launcher), "--seconds", "2", "--json"],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_S,
        )
    (group,) = json.loads(done.stdout)["groups"]
    assert [rank["rank"] for rank in group["ranks"]] == [0, 1, 2]
    late = [cause for cause in group["causes"] if cause["ranks"] == [2]]
    assert [cause["kind"] for cause in late] == ["late"], group
    assert late[0]["part"] > 0.3


def test_counters_are_in_the_format_of_prometheus(tmp_path: Path) -> None:
    with job(COUNTED_JOB, "pccl", "run", "-n", str(RANKS), folder=tmp_path) as launcher:
        queried_until(lambda answer: have_called(answer, "shm"), launcher)
        done = status(launcher, "--prometheus")
    families = {each.name: each for each in parser.text_string_to_metric_families(done.stdout)}
    calls = {
        sample.labels["rank"]: sample.value
        for sample in families["pccl_collectives"].samples
        if sample.labels["path"] == "shm"
    }
    assert calls == {"0": 10, "1": 10, "2": 10}
    moved = families["pccl_collective_bytes"].samples
    assert {s.value for s in moved if s.labels["path"] == "shm"} == {10 * 4000}
    assert all(sample.value > 0 for sample in families["pccl_cpu_seconds"].samples)
    assert len(families["pccl_up"].samples) == RANKS


def test_messages_are_counted_with_whom_they_wait_for(tmp_path: Path) -> None:
    def have_ended(answer: dict[str, Any]) -> bool:
        received = [usage["messages"]["received"]["calls"] for usage in usages(answer)]
        return sorted(received) == [0, 0, 10]

    script = MESSAGE_JOB.replace("COUNT", "10")
    with job(script, "pccl", "run", "-n", str(RANKS), folder=tmp_path) as launcher:
        queried_until(have_ended, launcher)
        done = status(launcher, "--prometheus")
    families = {each.name: each for each in parser.text_string_to_metric_families(done.stdout)}
    moved = {
        (sample.labels["rank"], sample.labels["direction"]): sample.value
        for sample in families["pccl_message_bytes"].samples
        if sample.value
    }
    assert moved == {("0", "sent"): 40_000, ("1", "received"): 40_000}
    waits = {
        (sample.labels["rank"], sample.labels["peer"], sample.labels["act"])
        for sample in families["pccl_message_wait_seconds"].samples
    }
    assert ("1", "0", "send") in waits


def test_a_job_of_messages_alone_shows_their_waits(tmp_path: Path) -> None:
    def have_begun(answer: dict[str, Any]) -> bool:
        return any(usage["messages"]["received"]["calls"] for usage in usages(answer))

    script = MESSAGE_JOB.replace("COUNT", "100_000")
    with job(script, "pccl", "run", "-n", str(RANKS), folder=tmp_path) as launcher:
        queried_until(have_begun, launcher)
        lines = why(str(launcher), "--seconds", "2").splitlines()
    assert re.fullmatch(r"group world: 0 collectives, \d+ messages", lines[0])
    assert re.fullmatch(
        r"rank 1 sent 0 messages of 0 bytes and received \d+ of \d+; it waited \S+ s for rank 0 to"
        r" send",
        lines[2],
    )


def test_the_history_is_saved_and_read_again(tmp_path: Path) -> None:
    saved = tmp_path / "a.json"
    variables = {"PCCL_TRANSPORTS": "tcp", "PCCL_SECRET_FILE": secret_in(tmp_path)}
    with job(LATE_JOB, "pccl", "run", "-n", str(RANKS), folder=tmp_path, **variables) as launcher:
        queried_until(lambda answer: have_called(answer, "links"), launcher, **variables)
        looked_at = why(
            str(launcher), "--seconds", "8", "--save", str(saved), "--json", **variables
        )
    (seen,) = json.loads(looked_at)["groups"]
    assert [cause["ranks"] for cause in seen["causes"]] == [[2]]
    history = ledger.Ledger.of_text(saved.read_text(), "a.json")
    assert [record.rank for record in history.records] == [0, 1, 2]
    assert all(record.windows for record in history.records)
    paths = [p for r in history.records for w in r.windows for p in w.usage.network]
    interfaces = {path.interface for path in paths if path.bytes}
    assert interfaces
    assert "" not in interfaces
    (read,) = json.loads(why(str(saved), str(saved), "--json"))["groups"]
    assert [episode["cause"]["ranks"] for episode in read["episodes"]] == [[2]]
    assert "rank 2" in why(str(saved))
    assert 'pccl_cause_ratio{group="world"' in why(str(saved), "--prometheus")


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    done = subprocess.run(
        [*WHY, str(tmp_path / "a.json")], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "a.json is no ledger of `pccl why --save`" in done.stderr


def why(*arguments: str, **variables: str) -> str:
    return subprocess.run(
        [*WHY, *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    ).stdout


def test_counters_are_served_until_the_job_ends(tmp_path: Path) -> None:
    with job(COUNTED_JOB, "pccl", "run", "-n", str(RANKS), folder=tmp_path) as launcher:
        queried_until(lambda answer: have_called(answer, "shm"), launcher)
        with subprocess.Popen(
            [sys.executable, "-m", "pccl", "status", str(launcher), "--serve", "0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                text = answer.read().decode()
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(url.replace("/metrics", "/"), timeout=PATIENCE_S)
            os.kill(launcher, signal.SIGTERM)
            status_after = await_unavailable(url)
            server.send_signal(signal.SIGINT)
    assert 'pccl_collectives_total{group="world"' in text
    assert status_after == 503


def await_unavailable(url: str) -> int:
    for _ in range(PATIENCE_S * 10):
        try:
            urllib.request.urlopen(url, timeout=PATIENCE_S).close()
        except urllib.error.HTTPError as error:
            return error.code
        time.sleep(0.1)
    raise AssertionError("the job still answers")


@pytest.mark.parametrize("address", ["", "x", ":9400", "65536", "-1", "host:", "1.2.3.4:x"])
def test_an_address_to_serve_at_is_checked(address: str) -> None:
    with pytest.raises(ValueError, match="is neither a port"):
        exporter.address_of(address)


def test_an_address_has_a_port_and_maybe_a_host() -> None:
    assert exporter.address_of("9400") == ("127.0.0.1", 9400)
    assert exporter.address_of("0.0.0.0:1") == ("0.0.0.0", 1)
    assert exporter.address_of("[::1]:1") == ("::1", 1)


def test_two_formats_at_once_are_refused() -> None:
    done = status("10.0.0.1:1", "--json", "--prometheus")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--json, --prometheus and --serve exclude each other" in done.stderr
