# SPDX-License-Identifier: Apache-2.0
"""Run the clients of clients.toml on PCCL and on Gloo, each in an environment of its own.

    run.py [CLIENT...]    all of them if none is named

A client that cannot be installed is reported with pip's reason, and is no failure. The exit status
is 1 if a test failed, and 2 for an unknown name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from environments import NotInstalledError, environment

HERE = Path(__file__).resolve().parent
CLIENTS: dict[str, dict[str, Any]] = tomllib.loads((HERE / "clients.toml").read_text())
NO_TEST_RAN = 5  # pytest's exit status


def tests_of(name: str) -> list[str]:
    """Return the files with the tests of one client."""
    own = HERE / f"test_{name}.py"
    shared = HERE / "test_programs.py"
    files = [shared] if "runs" in CLIENTS[name] else []
    return [str(file) for file in (*files, own) if file.exists()]


def outcome_of(name: str) -> str:
    """Install and test one client; return what came of it."""
    try:
        python = environment(name, CLIENTS[name])
    except NotInstalledError as error:
        return f"not installed: {error}"
    home = python.parents[1] / "home"  # clients write caches there
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [python, "-m", "pytest", "-v", *tests_of(name)],
        cwd=HERE.parents[1],
        env={**os.environ, "PCCL_TEST_CLIENT": name, "HOME": str(home)},
        check=False,
    )
    return {0: "passed", NO_TEST_RAN: "failed: no test ran"}.get(done.returncode, "failed")


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(CLIENTS))
    if unknown:
        print(f"no client {', '.join(unknown)}: there are {', '.join(CLIENTS)}", file=sys.stderr)
        return 2
    outcomes = {}
    for name in names or CLIENTS:
        print(f"== {name}: {' '.join(CLIENTS[name]['requires'])}", flush=True)
        outcomes[name] = outcome_of(name)
        print(f"== {name}: {outcomes[name]}", flush=True)
    print()
    for name, outcome in outcomes.items():
        print(f"{name:14} {outcome}")
    return any(outcome.startswith("failed") for outcome in outcomes.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
