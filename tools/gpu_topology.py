# SPDX-License-Identifier: Apache-2.0
"""The Python half of tools/gpu_topology.sh: runs NCCL in torch, and compares."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import pccl
from pccl import topology

ELEMENTS = 1 << 24


def detect(folder: Path) -> None:
    """Detect this machine, print it, and write what came of it."""
    machine = topology.detect()
    plan = machine.search("ring")
    machine.to_xml(folder / "pccl.xml")
    plan.to_xml(folder / "ring.xml")
    found = {
        "gpus": len(machine.gpus),
        "nets": len(machine.nets),
        "warnings": [[warning.name, repr(warning)] for warning in machine.warnings],
        "channels": len(plan.channels),
        "bandwidth": plan.bandwidth,
        "plan": repr(plan),
        "optimal": plan.optimal,
    }
    (folder / "pccl.json").write_text(json.dumps(found, indent=1))
    try:
        from rich.console import Console

        from pccl.topology import report
    except ImportError as error:
        print(f"no tree and no tables: {error}")
        print(machine, *machine.facts, plan, sep="\n")
        return
    console = Console(width=100, highlight=False)
    console.print(report.machine(machine))
    console.print(report.plan(plan))


def _rank(rank: int, size: int, store: str) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{store}", rank=rank, world_size=size)
    x = torch.full((ELEMENTS,), float(rank + 1), device="cuda")
    dist.all_reduce(x)
    if not bool((x == size * (size + 1) / 2).all()):
        raise AssertionError(f"rank {rank}: NCCL's sum is wrong")
    dist.destroy_process_group()


def reduce() -> None:
    """Sum 64 MiB over all GPUs with NCCL, and check every element."""
    size = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, args=(size, f"{folder}/store"), nprocs=size)
    print(f"NCCL summed over {size} GPUs")


def _logs(folder: Path, name: str) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.glob(f"{name}.*.log"))


def _ring(graph: Path) -> tuple[int, float]:
    """Return channels and GB/s of each, of NCCL's ring."""
    text = graph.read_text()
    ring = re.search(r'<graph id="0"[^>]*>', text)
    if ring is None:
        raise AssertionError(f"{graph} has no ring")
    values = dict(re.findall(r'(\w+)="([^"]*)"', ring.group()))
    return int(values["nchannels"]), float(values["speedintra"])


def compare(folder: Path) -> list[str]:
    """Return what is not as it should be; print what is."""
    faults = []
    ours = json.loads((folder / "pccl.json").read_text())
    log = _logs(folder, "nccl_ours")
    read = [line for line in log.splitlines() if "NCCL_TOPO_FILE set by environment" in line]
    print(read[0] if read else "NCCL says nothing of NCCL_TOPO_FILE")
    if not read:
        faults.append("NCCL did not take the file")
    complaints = [line for line in log.splitlines() if "WARN" in line or "Could not open" in line]
    print("\n".join(complaints[:8]) or "NCCL warns of nothing")
    if any("xml" in line.lower() or "topo" in line.lower() for line in complaints):
        faults.append("NCCL complains of the file")
    found = {}
    for name in ("nccl_alone", "nccl_ours"):
        channels, speed = _ring(folder / f"{name}.graph.xml")
        found[name] = channels * speed
        dump = folder / f"{name}.topo.xml"
        print(f"-- the first lines of {dump.name}", *dump.read_text().splitlines()[:9], sep="\n")
        try:
            machine = topology.load(dump)
        except pccl.Error as error:
            faults.append(f"what NCCL wrote cannot be read: {error}")
            continue
        nvlinks = sum(link.bandwidth for link in machine.links if link.type == "NVL") / 2
        print(
            f"{name}: {channels} channels x {speed:g} GB/s; {len(machine.gpus)} GPUs, "
            f"{len(machine.nets)} NIC ports, NVLinks {nvlinks:.4g} GB/s"
        )
        if len(machine.gpus) != ours["gpus"]:
            faults.append(f"{name} knows {len(machine.gpus)} GPUs, detection {ours['gpus']}")
    print(f"pccl: {ours['plan']}")
    print("pccl warns of:", ", ".join(name for name, _ in ours["warnings"]) or "nothing")
    if found["nccl_ours"] < found["nccl_alone"]:
        faults.append("NCCL finds less with our file than by itself")
    if ours["bandwidth"] < found["nccl_alone"] - 1e-6:
        faults.append("our plan has less bandwidth than NCCL's")
    return faults


if __name__ == "__main__":
    if sys.argv[1] == "reduce":
        reduce()
    elif sys.argv[1] == "detect":
        detect(Path(sys.argv[2]))
    else:
        wrong = compare(Path(sys.argv[2]))
        print("topology: " + ("; ".join(wrong) or "passed"))
        sys.exit(bool(wrong))
