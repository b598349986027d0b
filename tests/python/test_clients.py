# SPDX-License-Identifier: Apache-2.0
"""The table of docs/guide/frameworks.md has the clients and versions of make test-clients."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from clients.environments import reason_in

TESTS = Path(__file__).resolve().parents[1]
CLIENTS = tomllib.loads((TESTS / "clients" / "clients.toml").read_text())
PAGE = (TESTS.parent / "docs" / "guide" / "frameworks.md").read_text()
ROWS = [row.lower() for row in re.findall(r"^\| .* \|$", PAGE.split("\n## ")[0], re.MULTILINE)]


def rows_of(name: str) -> list[str]:
    return [row for row in ROWS if name in row.split("|")[1]]


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_has_a_row_with_its_version(name: str) -> None:
    client = CLIENTS[name]
    pins = [*client["requires"], *client.get("without_dependencies", [])]
    main = next((pin for pin in pins if name.split("-")[0] in pin), pins[0] if pins else "")
    assert rows_of(name)
    for row in rows_of(name):
        assert main.partition("==")[2] in row


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_has_tests(name: str) -> None:
    programs = [run["program"] for run in CLIENTS[name].get("runs", {}).values()]
    assert all((TESTS / "clients" / "programs" / program).is_file() for program in programs)
    assert programs or (TESTS / "clients" / f"test_{name}.py").is_file()


def test_each_row_is_of_a_client() -> None:
    header, _, *rows = ROWS
    assert "client" in header
    for row in rows:
        assert any(row in rows_of(name) for name in CLIENTS), row


def test_reason_of_pip_is_shown() -> None:
    lines = ["WARNING: a mirror", "ERROR: Ignored: Requires-Python >=3.12", "ERROR: No match for x"]
    assert reason_in(lines) == "Ignored: Requires-Python >=3.12; No match for x"
    assert reason_in(["Killed"]) == "Killed"
    assert reason_in([]) == "pip printed no reason"
