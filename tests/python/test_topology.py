# SPDX-License-Identifier: Apache-2.0
"""pccl.topology and ``pccl topo`` as a user meets them."""

from __future__ import annotations

import doctest
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import pccl
from pccl import _build_info, _core, topology
from support.topology_judge import Judge

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"
NDV5 = {"sm": 90, "nvlinks": 18, "net_speed": 400000}


def topo(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl", "topo", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_examples_of_the_docstring_are_true() -> None:
    failed, tried = doctest.testmod(topology)
    assert tried >= 4
    assert failed == 0


def test_machines_that_come_with_the_package() -> None:
    assert topology.examples() == ["dgx1v", "dgx2", "gb200", "h200_vm", "l40s", "p4d"]
    gpus = {name: len(topology.example(name).gpus) for name in topology.examples()}
    assert gpus == {"dgx1v": 8, "dgx2": 16, "gb200": 8, "h200_vm": 8, "l40s": 8, "p4d": 8}
    assert topology.example("l40s").warnings == []
    with pytest.raises(pccl.InvalidArgumentError, match="'p5'; there are dgx1v, dgx2, gb200"):
        topology.example("p5")
    with pytest.raises(pccl.InvalidArgumentError, match="strict: unknown_numa"):
        topology.example("h200_vm", strict=True)


@pytest.mark.alone  # the search has a limit of time
def test_a_partial_file_with_assumptions() -> None:
    t = pccl.topology.load(DATA / "ndv5-topo.xml", assume=NDV5)
    assert [warning.name for warning in t.warnings] == ["undescribed_gpu", "undescribed_nic"]
    path = t.path("gpu0", "net3")
    assert (path.type, path.bandwidth, path.hops) == ("PXN", 48.0, 5)
    plan = t.search(pattern="ring", nodes=2)
    assert plan.optimal
    assert plan.bandwidth == pytest.approx(384)
    assert (plan.type_intra, plan.type_inter) == ("NVL", "PIX")
    channel = plan.channels[0]
    assert sorted(channel.order) == list(range(8))
    assert channel.nets is not None
    assert channel.bandwidth > 0
    assert plan.seconds < 0.25


def test_files_go_out_and_come_back(tmp_path: Path) -> None:
    t = topology.load(DATA / "H100-topology-kubernetes.xml")
    t.to_xml(tmp_path / "topo.xml")
    assert topology.load(tmp_path / "topo.xml") == t
    assert topology.load(tmp_path / "topo.xml").digest == t.digest
    plan = t.search("ring", nodes=2)
    plan.to_xml(tmp_path / "graph.xml")
    assert t.load_plans(tmp_path / "graph.xml") == [plan]


def test_every_fact_names_its_source() -> None:
    t = topology.load(DATA / "ndv5-topo.xml", assume=NDV5)
    output = {(fact.attribute, fact.source, fact.provenance) for fact in t.facts}
    assert ("busid", "file", "declared") in output
    assert ("sm", "assumption", "assumed") in output
    vm = topology.load(DATA / "h200x8_vm.xml")
    assert ("link_width", "repair", "assumed") in {
        (fact.attribute, fact.source, fact.provenance) for fact in vm.facts
    }


def test_errors_are_pccls_own_and_name_the_right_form(tmp_path: Path) -> None:
    t = topology.load(DATA / "h100_1gpu_1nic.xml")
    with pytest.raises(pccl.InvalidArgumentError, match=r"no device.*'gpu7'.*1 GPUs \(gpu0"):
        t.path("gpu7", "net0")
    with pytest.raises(pccl.InvalidArgumentError, match="'star' is no pattern"):
        t.search("star")  # type: ignore[arg-type]
    with pytest.raises(pccl.InvalidArgumentError, match="'gpus' cannot be assumed: sm, nvlinks"):
        topology.load(DATA / "h100_1gpu_1nic.xml", assume={"gpus": 8})
    with pytest.raises(pccl.InvalidArgumentError, match="must be 0 or 1"):
        topology.load(DATA / "h100_1gpu_1nic.xml", assume={"p2p": 2})
    with pytest.raises(TypeError, match=r"assume is 0 .*: it must be a mapping"):
        topology.load(DATA / "h100_1gpu_1nic.xml", assume=0)  # type: ignore[arg-type]
    with pytest.raises(pccl.UnsupportedError, match="only 1, NCCL's, is read; 2 is RCCL's"):
        topology.parse('<system version="2"/>')
    with pytest.raises(pccl.UnavailableError, match="cannot read"):
        topology.load(tmp_path / "none.xml")
    with pytest.raises(pccl.InvalidArgumentError, match="strict: unknown_numa"):
        topology.load(DATA / "h200x8_vm.xml", strict=True)


def test_the_judge_of_plans_sees_a_link_over_its_capacity() -> None:
    healthy = topology.load(DATA / "dgx1v_cubemesh.xml")
    text = (DATA / "dgx1v_cubemesh.xml").read_text().replace('count="2"', 'count="1"')
    worn = topology.parse(text)
    path = healthy.search().to_xml()
    plans = [topology.Plan(plan, worn) for plan in worn._core.read_plans(path, "healthy")]
    with pytest.raises(AssertionError, match="carries"):
        Judge(worn).check(plans[0])


def test_pictures() -> None:
    t = topology.load(DATA / "dgx1v_cubemesh.xml")
    subjects = [(t, "gpu7"), (t.search(), "7"), (t.search("tree", nodes=2), "7")]
    for subject, text in subjects:
        picture = subject._repr_svg_()
        assert picture is not None
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert f"<!-- {text} -->" in picture, "matplotlib names what it draws as outlines"
    graph = t.to_networkx()
    assert graph.edges["gpu0", "gpu3"] == {"type": "NVL", "bandwidth": 40.0}
    assert len(graph.nodes) == len(t.nodes)


def test_the_command_reads_well_in_80_columns() -> None:
    for name in ["p4d-24xl-topo.xml", "H100-topology-kubernetes.xml", "dgx2_16xV100.xml"]:
        done = topo("--load", DATA / name, "--search", "ring", "--nodes", 2)
        assert done.returncode == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80
        assert "gpu7" in done.stdout
        assert "ring for 2 nodes" in done.stdout


def test_the_command_prints_one_json_object(tmp_path: Path) -> None:
    done = topo(
        *("--load", DATA / "ndv5-topo.xml", "--assume", "sm=90,nvlinks=18,net_speed=400000"),
        *("--search", "ring", "--nodes", 2, "--json", "--xml", tmp_path / "t.xml"),
        *("--graph", tmp_path / "g.xml", "--svg", tmp_path / "p.svg"),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {warning["name"] for warning in found["warnings"]} == {
        "undescribed_gpu",
        "undescribed_nic",
    }
    assert {"from": "gpu0", "to": "gpu1", "type": "NVL", "bandwidth": 370.8, "hops": 2} in [
        {**path, "bandwidth": round(path["bandwidth"], 6)} for path in found["paths"]
    ]
    plan = found["plan"]
    assert set(plan) >= {"channels", "type_intra", "type_inter", "seconds", "optimal"}
    assert set(plan["channels"][0]) == {"bandwidth", "order", "nets"}
    assert topology.load(tmp_path / "t.xml").load_plans(tmp_path / "g.xml")[0].nodes == 2
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--load", "/none.xml"], "cannot read /none.xml"),
        (["--assume", "sm"], "write name=number"),
        (["--load", DATA / "h200x8_vm.xml", "--search", "star"], "ring, tree, heads"),
        (["--load", DATA / "h200x8_vm.xml", "--graph", "g.xml"], "--graph needs --search"),
        (["--load", DATA / "h200x8_vm.xml", "--strict"], "strict: unknown_numa"),
        (["--load", DATA / "g5.48xl-topo.xml", "--search", "ring"], "has no GPU"),
    ],
)
def test_the_command_complains_in_one_line(arguments: list[object], message: str) -> None:
    done = topo(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_this_machine_is_described_modestly() -> None:
    done = topo("--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    here = topology.detect()
    assert found["gpus"] == len(here.gpus)
    assert found["nets"] == len(here.nets)
    cards = {
        path.resolve().name
        for path in Path("/sys/class/net").glob("*")
        if (path / "device").exists()
    }
    rdma = {path.name for path in Path("/sys/class/infiniband").glob("*")}
    assert {net.label for net in here.nets} <= cards | rdma, "no NIC that the kernel does not know"
    measured = [fact for fact in here.facts if fact.attribute == "numaid"]
    assert measured
    assert {fact.provenance for fact in measured} == {"measured"}


def test_files_that_the_environment_names(tmp_path: Path) -> None:
    machine = DATA / "dgx1v_cubemesh.xml"
    graphs = tmp_path / "graphs.xml"
    dump = {"NCCL_TOPO_FILE": str(machine), "PCCL_GRAPH_DUMP_FILE": str(graphs)}
    for pattern in ("ring", "tree"):
        done = topo("--search", pattern, **dump, PCCL_TOPO_DUMP_FILE=str(tmp_path / "t.xml"))
        assert done.returncode == 0, done.stderr
    t = topology.load(tmp_path / "t.xml")
    assert len(t.gpus) == 8
    assert [plan.pattern for plan in t.load_plans(graphs)] == ["ring", "tree"]
    # A file counts instead of a search: here one with a narrower ring.
    narrow = graphs.read_text().replace('bandwidth="20"', 'bandwidth="7"')
    graphs.write_text(narrow)
    again = topo(
        "--json", "--search", "ring", PCCL_TOPO_FILE=str(machine), PCCL_GRAPH_FILE=str(graphs)
    )
    plan = json.loads(again.stdout)["plan"]
    assert plan["bandwidth"] == 42
    assert plan["bound"] is None, "a file proves nothing"


def test_jobs_join_hosts_and_report_their_differences(tmp_path: Path) -> None:
    fast = topology.load(DATA / "H100-topology-kubernetes.xml")
    slow = topology.load(DATA / "dgx1v_cubemesh.xml")
    job = topology.Job.of([("fast", range(8), fast), ("slow", range(8, 16), slow)])
    assert repr(job) == "2 hosts, 16 ranks, 12.5 GB/s between hosts, 4 rails"
    assert job.host_of(9).name == "slow"
    assert [plan.nodes for plan in job.search("ring")] == [2, 2]
    assert [warning.name for warning in job.warnings] == ["nic_sets_differ"]
    older = topology.load(DATA / "ndv5-topo.xml", assume=NDV5 | {"sm": 80})
    newer = topology.load(DATA / "ndv5-topo.xml", assume=NDV5)
    unlike = topology.Job.of([("newer", range(8), newer), ("older", range(8, 16), older)])
    assert ("hosts_differ", "older") in {(one.name, one.subject) for one in unlike.warnings}
    assert sorted(job.order) == list(range(16))
    assert not job.is_uniform
    with pytest.raises(IndexError, match="rank 99"):
        job.host_of(99)
    pytest.importorskip("matplotlib", reason="matplotlib draws the pictures")
    job.plot().savefig(tmp_path / "job.svg")
    assert "slow" in (job._repr_svg_() or "")


def test_bytes_that_are_no_job_are_refused() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="no description of a job"):
        _core.JobTopology.decode(b"pccl")


def test_copies_between_gpus_are_measured_where_there_are_gpus() -> None:
    if topology.detect().gpus and _build_info.CUDA:
        assert all(gigabytes > 0 for _, _, _, gigabytes in _core.measure_gpu_copies())
    else:
        with pytest.raises(pccl.UnavailableError, match=r"(?i)cuda"):
            _core.measure_gpu_copies()


def test_one_host_shows_itself(tmp_path: Path) -> None:
    comm = pccl.Communicator()
    job = topology.job(comm)
    assert [host.ranks for host in job.hosts] == [[0]]
    assert job.hosts[0].topology.digest == topology.detect().digest
    explanation = pccl.explain("all_reduce", 1 << 20, comm)
    assert explanation.order == (0,)
    assert explanation.links[0].startswith("memory of one host")


def _make_group(**environment: str) -> str:
    """Make a group in a process of its own; return what a prediction over links says."""
    code = (
        "from pccl._internal.local_ranks import run_ranks\n"
        "from support.topology_pair import explain\n"
        "print(*run_ranks(explain, 2))"
    )
    path = os.pathsep.join([str(DATA.parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


def test_measurements_are_kept_and_count(tmp_path: Path) -> None:
    from pccl.topology import measure

    def seconds(output: str) -> float:
        way = next(line for line in output.splitlines() if line.split()[:2] == ["ring", "links"])
        return float(way.split()[2])

    usual = _make_group(XDG_CACHE_HOME=str(tmp_path))
    assert "memory of one host: built-in figures (pccl topo --measure measures it)" in usual
    measured = topo("--measure", "--json", XDG_CACHE_HOME=str(tmp_path))
    found = json.loads(measured.stdout)["measured"]
    assert {"memory", "sockets"} <= {figure["kind"] for figure in found}
    assert all(figure["gigabytes"] > 0 for figure in found)
    (file,) = (tmp_path / "pccl").iterdir()
    assert file.name == f"links-{topology.detect().digest}.txt"
    assert "memory" in topo(XDG_CACHE_HOME=str(tmp_path)).stdout
    measure.save([measure.Figure("memory", ("0", "0"), 5e6, 1.0)], file)
    slow = _make_group(XDG_CACHE_HOME=str(tmp_path))
    assert "memory of one host: measured" in slow
    assert seconds(slow) > 1e6, "five seconds of latency, in microseconds"
    file.write_text("memory 0\n")
    broken = topo(XDG_CACHE_HOME=str(tmp_path))
    assert "line 1: after memory must come two NUMA nodes" in broken.stderr + broken.stdout


def test_groups_write_the_files_that_the_environment_names(tmp_path: Path) -> None:
    dump = tmp_path / "seen.xml"
    _make_group(NCCL_TOPO_DUMP_FILE=str(dump))
    assert topology.load(dump).digest == topology.detect().digest
    machine, graph = DATA / "dgx1v_cubemesh.xml", tmp_path / "graph.xml"
    _make_group(PCCL_TOPO_FILE=str(machine), PCCL_GRAPH_DUMP_FILE=str(graph))
    patterns = {plan.pattern for plan in topology.load(machine).load_plans(graph)}
    assert patterns == {"ring", "tree"}
