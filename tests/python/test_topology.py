"""pccl.topology and ``pccl topo`` as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import pccl
from pccl import topology
from support.topology_judge import Judge

DATA = Path(__file__).resolve().parents[1] / "data" / "topology" / "nccl"
NDV5 = {"sm": 90, "nvlinks": 18, "net_speed": 400000}


def topo(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pccl.cli", "topo", *map(str, arguments)],
        env={**os.environ, "COLUMNS": "80", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_example_of_the_readme() -> None:
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
    said = {(fact.attribute, fact.source, fact.provenance) for fact in t.facts}
    assert ("busid", "file", "declared") in said
    assert ("sm", "assumption", "assumed") in said
    vm = topology.load(DATA / "h200x8_vm.xml")
    assert ("link_width", "repair", "assumed") in {
        (fact.attribute, fact.source, fact.provenance) for fact in vm.facts
    }


def test_errors_are_pccls_own_and_say_what_is_right(tmp_path: Path) -> None:
    t = topology.load(DATA / "h100_1gpu_1nic.xml")
    with pytest.raises(pccl.InvalidArgumentError, match=r"no device.*'gpu7'.*1 GPUs \(gpu0"):
        t.path("gpu7", "net0")
    with pytest.raises(pccl.InvalidArgumentError, match="'star' is no pattern"):
        t.search("star")  # type: ignore[arg-type]
    with pytest.raises(pccl.InvalidArgumentError, match="'gpus' cannot be assumed: sm, nvlinks"):
        topology.load(DATA / "h100_1gpu_1nic.xml", assume={"gpus": 8})
    with pytest.raises(pccl.InvalidArgumentError, match="must be 0 or 1"):
        topology.load(DATA / "h100_1gpu_1nic.xml", assume={"p2p": 2})
    with pytest.raises(pccl.UnsupportedError, match="only version 1"):
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
    assert json.loads(again.stdout)["plan"]["bandwidth"] == 42
