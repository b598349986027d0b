# SPDX-License-Identifier: Apache-2.0
"""NIXL's agents over libplugin_PCCL.so, and its installer.

The agents run in processes of their own, with a wheel of NIXL that is installed for them alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pccl
from pccl.cli import nixl
from support import fake_verbs

AGENTS = Path(__file__).parents[1] / "nixl" / "agents.py"
PLUGIN = Path(pccl.__file__).parent / nixl.PLUGIN


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a PYTHONPATH with NIXL, which has our plugin."""
    if not PLUGIN.exists():
        pytest.skip("built without NIXL's headers, so there is no plugin: tools/setup_nixl.sh")
    folder = tmp_path_factory.mktemp("nixl")
    install = run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder),
        "nixl-cu12",
    )
    if install.returncode != 0:
        pytest.skip(f"NIXL's wheel does not install here: {install.stderr[-300:]}")
    path = os.pathsep.join([str(folder), str(Path(pccl.__file__).parents[1])])
    done = run(sys.executable, "-m", "pccl", "nixl", "install", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    assert all(Path(line).samefile(line) for line in done.stdout.splitlines())
    return path


@pytest.mark.parametrize(
    "scenario", ["read", "write", "local", "notifications", "threads", "death"]
)
def test_agents_do_over_sessions_what_they_do_over_ucx(path: str, scenario: str) -> None:
    ours = run(sys.executable, AGENTS, "PCCL", scenario, PYTHONPATH=path)
    assert ours.returncode == 0, f"{ours.stdout[-1000:]} {ours.stderr[-3000:]}"
    # Where an agent has loaded UCX, a library of NIXL's wheel (libnl-route-3) crashes in its
    # destructor, whatever the program did: so this is judged by what it printed at its end.
    theirs = run(sys.executable, AGENTS, "UCX", scenario, PYTHONPATH=path)
    lines = theirs.stdout.splitlines()
    assert lines, theirs.stderr[-3000:]
    assert lines[-1] == "ok", f"{theirs.stdout[-1000:]} {theirs.stderr[-3000:]}"


def test_agents_use_rdma_where_nothing_else_is_permitted(path: str, tmp_path: Path) -> None:
    environment = fake_verbs.ranks_over("verbs", tmp_path)
    scenarios = "read,write,notifications"
    done = run(sys.executable, AGENTS, "PCCL", scenarios, PYTHONPATH=path, **environment)
    assert done.returncode == 0, f"{done.stdout[-1000:]} {done.stderr[-3000:]}"


def test_the_plugin_is_copied_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "built.so"
    source.write_bytes(b"new")
    monkeypatch.setattr(nixl, "plugin", lambda: source)
    folder = tmp_path / "plugins"
    with pytest.raises(ValueError, match="no folder for the plugin"):
        nixl.install(folder)
    folder.mkdir()
    (folder / nixl.PLUGIN).write_bytes(b"old")
    nixl.install(folder)
    assert [each.name for each in folder.iterdir()] == [nixl.PLUGIN]
    assert (folder / nixl.PLUGIN).read_bytes() == b"new"


def test_without_nixl_one_line_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nixl, "PACKAGES", ("nixl-of-nobody",))
    with pytest.raises(ValueError, match="nixl-of-nobody is installed here"):
        nixl.plugin_folders()
