# SPDX-License-Identifier: Apache-2.0
"""``pccl capsule``, as a shell sees it."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import pccl
import pccl.lang as pl
from pccl.cli import program_files
from support import algorithms, msccl_xml, mscclpp_plans

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", "capsule", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def printed(folder: Path, *arguments: str) -> Any:
    done = run(folder, *arguments, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    algorithms.ring.build("ring4", ranks=4).save(tmp_path / "ring4.capsule")
    damaged = bytearray((tmp_path / "ring4.capsule").read_bytes())
    damaged[-40] ^= 1
    (tmp_path / "damaged.capsule").write_bytes(damaged)
    (tmp_path / "ring.xml").write_text(msccl_xml.ring_all_reduce(4).xml())
    return tmp_path


def test_check_proves_each_file(folder: Path) -> None:
    done = run(folder, "check", "ring4.capsule")
    assert done.returncode == 0
    assert done.stdout == (
        "ring4.capsule: right: ring4, all_reduce, 4 ranks, 6 rounds, 28 steps, links +1\n"
    )
    done = run(folder, "check", "ring4.capsule", "damaged.capsule", "missing.capsule")
    assert done.returncode == 1
    assert "damaged.capsule: its digest is not that of its bytes" in done.stderr
    assert "missing.capsule: there is no such file" in done.stderr
    found = printed(folder, "check", "ring4.capsule", "damaged.capsule")["capsules"]
    assert [each["is_right"] for each in found] == [True, False]


def test_the_requested_protocol_is_shown(folder: Path) -> None:
    pl.from_generator("ring", "all_gather", 2, protocol="ll128").save(folder / "lines.capsule")
    done = run(folder, "check", "lines.capsule")
    assert done.stdout.endswith(" 6 steps, by ll128 between GPUs\n")
    found = printed(folder, "check", "lines.capsule", "ring4.capsule")["capsules"]
    assert [each["protocol"] for each in found] == ["ll128", ""]
    assert printed(folder, "show", "lines.capsule")["protocol"] == "lines"


def test_the_links_that_are_needed_are_shown(folder: Path) -> None:
    @pl.algorithm("all_gather")
    def backwards(c: pl.Program) -> None:
        for rank in range(c.ranks):
            x = c.input(rank).copy_to(rank)
            for _ in range(1, c.ranks):
                x = x.copy_to((x.rank - 1) % c.ranks)

    backwards.build(ranks=5).save(folder / "backwards.capsule")
    pl.from_generator("pairwise", "all_to_all", 4).save(folder / "pairs.capsule")
    pl.from_generator("binomial", "broadcast", 64).save(folder / "tree.capsule")
    names = ["backwards.capsule", "pairs.capsule", "tree.capsule"]
    lines = run(folder, "check", *names).stdout.splitlines()
    assert lines[0].endswith(" steps, links -1")
    assert all(line.endswith(" steps") for line in lines[1:])
    one_way, pairs, tree = (each["links"] for each in printed(folder, "check", *names)["capsules"])
    assert (one_way, pairs) == ("-1", "")
    schedule = pccl.Capsule.load(folder / "tree.capsule").schedule
    sends = {(step.rank, step.sends.peer) for step in schedule.steps if step.sends}
    assert tree.split() == [f"{sender}->{receiver}" for sender, receiver in sorted(sends)]
    assert printed(folder, "show", "tree.capsule")["links"] == tree


def test_show_prints_manifest_and_steps(folder: Path) -> None:
    text = run(folder, "show", "ring4.capsule").stdout
    capsule = pccl.Capsule.load(folder / "ring4.capsule")
    assert '"collective": "all_reduce"' in text
    assert f"sha256 {capsule.digest}" in text
    assert "rank 3 lane 0 step 6: recv output" in text
    found = printed(folder, "show", "ring4.capsule")
    assert found["digest"] == capsule.digest
    assert len(found["all_steps"]) == found["steps"] == 28


def test_plot_writes_a_picture(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert run(folder, "plot", "ring4.capsule", "--output", "ring.svg").returncode == 0
    assert "<svg" in (folder / "ring.svg").read_text()


def test_simulate_predicts(folder: Path) -> None:
    machine = ("--example", "h200_vm", "--size", "1M")
    found = printed(folder, "simulate", "ring4.capsule", *machine)
    assert found["rounds"] == 6
    assert found["bytes_sent"] == 1.5 * (1 << 20)
    assert found["ways"][0]["algorithm"] == "ring4"
    across = printed(folder, "simulate", "ring4.capsule", *machine, "--hosts", "2")
    assert across["ways"][0]["seconds"] > found["ways"][0]["seconds"]
    done = run(folder, "simulate", "ring4.capsule", *machine, "--hosts", "3")
    assert done.returncode == 2
    assert "4 ranks do not divide among 3 hosts" in done.stderr


def test_import_makes_a_capsule(folder: Path) -> None:
    done = run(folder, "import", "ring.xml", "--output", "new.capsule", "--name", "mine")
    assert done.returncode == 0, done.stderr
    assert pccl.Capsule.load(folder / "new.capsule").name == "mine"
    (folder / "bad.xml").write_text((folder / "ring.xml").read_text().replace("rrcs", "put", 1))
    done = run(folder, "import", "bad.xml", "--output", "bad.capsule")
    assert done.returncode == 2
    assert 'bad.xml:7: <step> has type="put"' in done.stderr
    assert not (folder / "bad.capsule").exists()


@pytest.mark.multiproc
def test_bench_checks_and_times(folder: Path) -> None:
    algorithms.ring_reduce_scatter.build("rs2", ranks=2).save(folder / "rs2.capsule")
    rows = printed(folder, "bench", "rs2.capsule", "--min", "1K", "--max", "4K")["rows"]
    assert [row["size"] for row in rows] == [1024, 4096]
    assert all(row["wrong"] == 0 and row["capsule_us"] > 0 for row in rows)
    algorithms.chain_gather.build("gather", ranks=2).save(folder / "gather.capsule")
    done = run(folder, "bench", "gather.capsule")
    assert done.returncode == 2
    assert "gather from root 1 is not measured" in done.stderr
    done = run(folder, "bench", "rs2.capsule", "--device", "cuda")
    assert done.returncode == 2
    assert "cuda is for --timeline" in done.stderr


def test_plans_are_imported_and_capsules_exported(folder: Path) -> None:
    (folder / "plan.json").write_text(mscclpp_plans.ring_all_gather(4).text())
    done = run(folder, "import", "plan.json", "--output", "plan.capsule")
    assert done.returncode == 0, done.stderr
    assert run(folder, "check", "plan.capsule").returncode == 0
    done = run(folder, "export", "ring4.capsule", "--output", "ring4.xml")
    assert done.returncode == 0, done.stderr
    done = run(folder, "import", "ring4.xml", "--output", "again.capsule")
    assert done.returncode == 0, done.stderr
    before, after = (pccl.Capsule.load(folder / f"{name}.capsule") for name in ("ring4", "again"))
    assert before.manifest["sums"] == after.manifest["sums"]
    done = run(folder, "export", "ring4.capsule", "--output", "x", "--format", "mscclpp")
    assert done.returncode != 0
    assert "--format is 'mscclpp'; there is msccl-xml" in done.stderr


def test_a_custom_program_is_imported_with_its_collective(folder: Path) -> None:
    algo = msccl_xml.all_pairs_all_reduce(3)
    (folder / "custom.xml").write_text(algo.xml().replace('coll="allreduce"', 'coll="custom"'))
    requested = ("import", "custom.xml", "--output", "custom.capsule")
    for command in (requested, ("check", "custom.xml")):
        done = run(folder, *command)
        assert done.returncode != 0
        assert "(pccl capsule import --collective broadcast --root 0" in done.stderr
    done = run(folder, *requested, "--collective", "all_reduce", "--root", "0")
    assert done.returncode == 0, done.stderr
    assert pccl.Capsule.load(folder / "custom.capsule").schedule.collective == "all_reduce"
    (folder / "plan.json").write_text(mscclpp_plans.ring_all_gather(4).text())
    done = run(
        folder, "import", "plan.json", "--output", "plan.capsule", "--collective", "all_gather"
    )
    assert done.returncode != 0
    assert "--collective is for MSCCL's XML" in done.stderr


def test_replay_plays_capsules_and_built_in_algorithms(folder: Path) -> None:
    network = ("--network", "ring", "--size", "4M", "--trace", "trace.json")
    found = printed(folder, "replay", "ring4.capsule", *network)
    seconds = 6 * (6e-6 + (1 << 20) / 12.5e9)
    assert found["seconds"] == pytest.approx(seconds)
    assert (found["rounds"], found["messages"]) == (6, 24)
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]
    assert printed(folder, "replay", "ring:all_reduce:4", *network)["seconds"] == found["seconds"]
    done = run(folder, "replay", "ring:all_gather:1024", "--network", "hosts:8", "--across", "25")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ring: all_gather of 67108864 bytes, 1024 ranks\n")
    for wrong, why in (
        (("ring:all_gather:x",), "'ring:all_gather:x' has 'x' ranks"),
        (("ring:all_gather:8", "--network", "torus"), "--network is 'torus'; there are ring"),
        (("rings:all_gather:8",), "rings"),
        (("ring:all_gather:8", "--network", "hosts:8", "--across", "0"), "bandwidth"),
    ):
        done = run(folder, "replay", *wrong)
        assert done.returncode != 0
        assert why in done.stderr


def test_reproduce_prints_paper_simulation_and_times(folder: Path) -> None:
    assert "pat\nswing\n" in run(folder, "reproduce", "list").stdout
    found = printed(folder, "reproduce", "all_pairs")
    assert all(claim["published"] == claim["simulated"] for claim in found["claims"])
    assert [row["size"] for row in found["rows"]] == [4 << 10, 256 << 10, 4 << 20]
    assert not any(row["wrong"] for row in found["rows"])
    done = run(folder, "reproduce", "circuits", "rotation", "--no-measure")
    assert "444.186" in done.stdout
    assert "41.607" in done.stdout
    done = run(folder, "reproduce", "other")
    assert done.returncode == 2
    assert "'other' is none of ring, pat," in done.stderr


def test_check_draws_the_steps_in_conflict_of_any_file(folder: Path) -> None:
    algo = msccl_xml.all_pairs_all_reduce(3)
    algo.blocks[1][0].steps[1].update(depid=-1, deps=-1)  # adds what may not have come yet
    (folder / "race.xml").write_text(algo.xml())
    done = run(folder, "check", "ring4.capsule", "race.xml", "--plot", "race.svg")
    assert done.returncode == 1
    assert "ring4.capsule: right" in done.stdout
    assert "in no order with" in done.stderr
    picture = (folder / "race.svg").read_text()
    assert picture.startswith("<?xml")
    # Nothing to draw: what is wrong is no step.
    (folder / "none.xml").write_text("<algo/>")
    done = run(folder, "check", "none.xml", "--plot", "none.svg")
    assert done.returncode == 1
    assert not (folder / "none.svg").exists()


def test_the_steps_of_a_damaged_capsule_are_drawn(folder: Path) -> None:
    """Every byte of its programs made one more, in turn: most are wrong at a step."""
    capsule = pccl.Capsule.load(folder / "ring4.capsule")
    head = capsule.data.partition(b"\n")[0]
    programs = len(head) + 1 + int(head.split()[2])
    drawn = 0
    for at in range(programs, len(capsule.data) - 32):
        data = bytearray(capsule.data[:-32])
        data[at] = (data[at] + 1) % 128
        (folder / "damaged.capsule").write_bytes(data + hashlib.sha256(data).digest())
        with pytest.raises(pccl.Error) as error:
            program_files.program_in(folder / "damaged.capsule")
        figure = program_files.drawn_conflict(folder / "damaged.capsule", str(error.value))
        drawn += figure is not None
    assert drawn > 0


def test_capsules_travel_between_processes(folder: Path) -> None:
    capsule = pccl.Capsule.load(folder / "ring4.capsule")
    assert pickle.loads(pickle.dumps(capsule)) == capsule


@pytest.fixture
def several(tmp_path: Path) -> Path:
    algorithms.ring.build("any", ranks=[2, 3, 4]).save(tmp_path / "ring.capsule")
    return tmp_path


def test_a_capsule_for_several_numbers_of_ranks_is_checked_and_shown(several: Path) -> None:
    capsule = pccl.Capsule.load(several / "ring.capsule")
    done = run(several, "check", "ring.capsule")
    assert done.stdout == "ring.capsule: right: any, all_reduce, 2..4 ranks\n"
    text = run(several, "show", "ring.capsule").stdout
    assert '"ranks": "2..4"' in text
    assert f"sha256 {capsule.digest}" in text
    assert "4 ranks: 6 rounds, 28 steps, links +1\n" in text
    found = printed(several, "show", "ring.capsule")
    assert found["digest"] == capsule.digest
    assert [each["ranks"] for each in found["all_programs"]] == [2, 3, 4]
    one = printed(several, "show", "ring.capsule", "--ranks", "4")
    assert (one["ranks"], len(one["all_steps"])) == (4, 28)
    assert one["digest"] == capsule.for_ranks(4).digest


def test_one_number_of_ranks_is_required(several: Path) -> None:
    for requested in (
        ("plot", "ring.capsule", "--output", "ring.svg"),
        ("simulate", "ring.capsule", "--example", "h200_vm"),
        ("replay", "ring.capsule"),
        ("export", "ring.capsule", "--output", "ring.xml"),
        ("bench", "ring.capsule"),
    ):
        done = run(several, *requested)
        assert done.returncode == 2, requested
        assert "ring.capsule is for 2..4 ranks: choose one of them, --ranks 2" in done.stderr
        done = run(several, *requested, "--ranks", "5")
        assert done.returncode == 2, requested
        assert "capsule any is for 2..4 ranks, not for 5" in done.stderr
    assert not (several / "ring.svg").exists()


def test_programs_for_one_number_of_ranks_are_taken_out(several: Path) -> None:
    replayed = printed(several, "replay", "ring.capsule", "--ranks", "3", "--size", "1M")
    alone = algorithms.ring.build("any", ranks=3)
    alone.save(several / "alone.capsule")
    assert replayed == printed(several, "replay", "alone.capsule", "--size", "1M")
    machine = ("--example", "h200_vm", "--size", "1M")
    simulated = printed(several, "simulate", "ring.capsule", "--ranks", "3", *machine)
    assert simulated == printed(several, "simulate", "alone.capsule", *machine)
    done = run(several, "export", "ring.capsule", "--ranks", "3", "--output", "ring.xml")
    assert done.returncode == 0, done.stderr
    assert (several / "ring.xml").read_text() == alone.to_msccl()


@pytest.mark.multiproc
def test_bench_times_one_number_of_ranks(several: Path) -> None:
    done = run(several, "bench", "ring.capsule", "--ranks", "2", "--max", "1K", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["name"] == "any"
    assert [row["wrong"] for row in found["rows"]] == [0]
