# SPDX-License-Identifier: Apache-2.0
"""What ``import pccl`` offers: the names that documents use, and nothing for its own use."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pccl

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = ["pccl", "pccl.errors", *(f"pccl.{name}" for name in sorted(pccl._MODULES))]
NEED_OTHER_PACKAGES = {
    *("pccl.Options", "pccl.ray.register", "pccl.torchft.ProcessGroupPCCL"),
    *(f"{module}.{name}" for module in ("pccl", "pccl.torch") for name in ("health", "shrink")),
    "pccl.torch.monitored_barrier",
}


def test_public_modules_are_those_of_the_documents() -> None:
    page = (REPOSITORY / "docs/site/python.md").read_text()
    named = set(re.findall(r"`(pccl(?:\.\w+)*)`", page.split("## pccl")[0]))
    assert named <= set(MODULES)
    assert {"pccl.bench", "pccl.published", "pccl.timeline"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_offers_what_it_is_for_alone(name: str) -> None:
    module = importlib.import_module(name)
    offered = [each for each in dir(module) if not each.startswith("_")]
    promised = {*module.__all__, *(pccl._MODULES if name == "pccl" else ())}
    assert offered == sorted(each for each in promised if not each.startswith("_"))
    for each in offered:
        if f"{name}.{each}" not in NEED_OTHER_PACKAGES:
            assert hasattr(module, each), f"{name}.{each}"


def test_pccl_itself_offers_what_one_page_needs() -> None:
    errors = {name for name in pccl.errors.__all__ if name[0].isupper()}
    assert set(pccl.__all__) - errors == {
        *("Capsule", "Cluster", "Communicator", "Event", "Operator", "Options", "__version__"),
        *("errors", "explain", "health", "phase", "register", "run", "shrink", "switch_phase"),
    }
    readme = (REPOSITORY / "README.md").read_text()
    used = set(re.findall(r"\bpccl\.([A-Za-z_]\w*)", readme))
    assert used <= {*pccl.__all__, *pccl._MODULES}


def test_names_in_documents_are_there_after_import_pccl() -> None:
    pages = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))]
    text = "\n".join(page.read_text() for page in pages)
    names = sorted(set(re.findall(r"`(pccl(?:\.[a-z]\w*)+)[`(]", text)))
    assert "pccl.bench.tune.run" in names
    program = f"""
import importlib, pccl
for name in {names}:
    value = pccl
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except ImportError as error:  # of a package that PCCL extends, where there is none
            if not any(package in str(error) for package in ("torch", "ray")):
                raise
            break
        except AttributeError:
            print(name)
            break
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


CLIENTS = {"ray": "pccl.ray.register", "torchft": "pccl.torchft.ProcessGroupPCCL"}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_are_loaded_at_the_first_use_alone(client: str) -> None:
    program = f"""
import sys, pccl
pccl.ray, pccl.torchft
assert not {{"ray", "torchft", "torch"}} & set(sys.modules)
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "{client}":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
try:
    {CLIENTS[client]}
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    missing = f"pccl.{client} needs {client}, which is not installed: pip install {client}"
    assert done.stdout.strip() == missing
