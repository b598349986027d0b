#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run the suites of tools/rdma/suites.txt in machines with RDMA devices, as make test-rdma.

    tools/rdma_suites.py            all of them
    tools/rdma_suites.py ci         those that CI runs, in one boot
    tools/rdma_suites.py gate NAME  these, in the order of the list

Suites for one machine share a boot, those for two machines another one. One in which the second
machine ends has a boot of its own. A suite is skipped only where a package of others is missing:
the list OPTIONAL names their files. All else that keeps a suite from running is a failure.
"""

from __future__ import annotations

import dataclasses
import shlex
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from rdma_machine import CANNOT, MADE, ROOT

if TYPE_CHECKING:
    from pathlib import Path

LIST = ROOT / "tools/rdma/suites.txt"
SHARED = MADE / "io/suites"
MEMORY = "3000"  # MiB of a machine
BOOT_SECONDS = 100
TIMED_OUT = 124
NOT_RUN = "did not run"
OPTIONAL = {
    "build/rdma/nixl": "the PyPI package nixl is missing: tools/setup_rdma.sh",
    "build/dev/python/pccl/libplugin_PCCL.so": "NIXL's headers are missing: tools/setup_nixl.sh",
}


class Refused(Exception):
    """The list or the selection is wrong; the reason is the text."""


@dataclasses.dataclass
class Suite:
    """A line of the list, and then what came of it."""

    name: str
    machines: int
    seconds: int
    in_ci: bool
    command: str
    survivors: int  # machines that are left at its end
    result: str = NOT_RUN
    took: float | None = None

    @property
    def is_ok(self) -> bool:
        return self.result == "ok" or self.result.startswith("skipped")


def parse(text: str, source: str) -> list[Suite]:
    """Read the list. Raises Refused."""
    suites: list[Suite] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(maxsplit=4)
        where = f"{source}:{number}"
        if len(fields) < 5:
            raise Refused(f"{where}: not 'name machines seconds ci|- command': {line}")
        name, machines, seconds, ci, command = fields
        if name in {suite.name for suite in suites}:
            raise Refused(f"{where}: a second suite {name}")
        if machines not in ("1", "2", "2-1"):
            raise Refused(f"{where}: {machines} machines: 1, 2, or 2-1 where the second one ends")
        if not seconds.isdigit() or seconds == "0":
            raise Refused(f"{where}: {seconds} seconds: a whole number above 0")
        if ci not in ("ci", "-"):
            raise Refused(f"{where}: {ci}: 'ci' or '-'")
        if ci == "ci" and machines != "1":
            raise Refused(f"{where}: CI boots one machine alone")
        count = int(machines[0])
        survivors = 1 if machines == "2-1" else count
        suites.append(Suite(name, count, int(seconds), ci == "ci", command, survivors))
    return suites


def select(suites: list[Suite], wanted: str) -> list[Suite]:
    """Return those that are wanted: "all", "ci", or names between commas. Raises Refused."""
    if wanted == "all":
        return suites
    if wanted == "ci":
        return [suite for suite in suites if suite.in_ci]
    names = wanted.split(",")
    known = [suite.name for suite in suites]
    for name in names:
        if name not in known:
            raise Refused(f"no suite {name}: there are {', '.join(known)}, and all and ci")
    return [suite for suite in suites if suite.name in names]


def missing(suite: Suite, root: Path) -> str | None:
    """Return why a suite cannot run: what it lacks, after "skipped: " if that is optional."""
    words = shlex.split(suite.command)
    while words and "=" in words[0]:
        words.pop(0)
    paths = [path for path in (word.partition("::")[0] for word in words) if is_path(path)]
    lacking = [path for path in paths if not any(root.glob(path))]
    for path in lacking:
        if path not in OPTIONAL:
            return f"there is no {path}"
    if lacking:
        return f"skipped: {OPTIONAL[lacking[0]]}"
    filters = [word for word in words if word.startswith("--gtest_filter=")]
    if filters and not has_test(root / words[0], filters[0]):
        return f"{words[0]} has no test for {filters[0]}"
    return None


def is_path(word: str) -> bool:
    return "/" in word and not word.startswith("-") and "$" not in word and "=" not in word


def has_test(program: Path, gtest_filter: str) -> bool:
    command = [str(program), gtest_filter, "--gtest_list_tests"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return any(line.startswith("  ") for line in listed.splitlines())


def boots_of(suites: list[Suite]) -> list[list[Suite]]:
    """Return the suites of each boot, in the order of boots."""
    boots: dict[tuple[int, bool, str], list[Suite]] = {}
    for suite in suites:
        ends_one = suite.survivors < suite.machines
        key = (suite.machines, ends_one, suite.name if ends_one else "")
        boots.setdefault(key, []).append(suite)
    return [boots[key] for key in sorted(boots)]


def boot(suites: list[Suite], machines: int) -> None:
    """Run suites in machines and note their results."""
    shutil.rmtree(SHARED, ignore_errors=True)
    SHARED.mkdir(parents=True)
    lines = [f"{suite.name} {suite.seconds} {suite.command}\n" for suite in suites]
    (SHARED / "list").write_text("".join(lines))
    timeout = BOOT_SECONDS + sum(suite.seconds + 10 for suite in suites)
    relative = SHARED.relative_to(ROOT)
    # An emulated machine may miss its own clock while it boots on a busy host.
    for _ in range(2):
        done = subprocess.run(
            [
                *(sys.executable, ROOT / "tools/rdma_machine.py", "run"),
                *("--machines", str(machines), "--memory", MEMORY, "--timeout", str(timeout), "--"),
                f"bash tools/rdma/suites.sh {relative}/list {machines}",
            ],
            check=False,
        )
        if done.returncode != CANNOT:
            break
    else:
        for suite in suites:
            suite.result = "the machine did not start"
        return
    results: dict[str, list[tuple[int, float]]] = {}
    for file in SHARED.glob("results.*"):
        for line in file.read_text().splitlines():
            name, status, tenths = line.split()
            results.setdefault(name, []).append((int(status), int(tenths) / 10))
    for suite in suites:
        found = results.get(suite.name, [])
        if len(found) == suite.survivors:
            suite.took = max(took for _, took in found)
            suite.result = describe(max(status for status, _ in found), suite.seconds)


def describe(status: int, seconds: int) -> str:
    if status == 0:
        return "ok"
    return f"did not end within {seconds} s" if status == TIMED_OUT else f"failed ({status})"


def table(suites: list[Suite]) -> str:
    rows = []
    for suite in suites:
        took = "" if suite.took is None else f"{suite.took:.1f} s"
        rows.append(
            f"{suite.name:<16} {suite.machines} machine{'s' * (suite.machines > 1):<1} "
            f"{took:>8}  {suite.result}"
        )
    return "\n".join(rows)


def main(arguments: list[str]) -> int:
    try:
        known = parse(LIST.read_text(), str(LIST.relative_to(ROOT)))
        suites = select(known, ",".join(arguments) or "all")
    except Refused as refused:
        print(f"rdma_suites: {refused}", file=sys.stderr)
        return 2
    if not (MADE / "vmlinux").exists():
        print("rdma_suites: build/rdma has no kernel: run tools/setup_rdma.sh", file=sys.stderr)
        return CANNOT
    begun = time.monotonic()
    for suite in suites:
        suite.result = missing(suite, ROOT) or NOT_RUN
    for chosen in boots_of([suite for suite in suites if suite.result == NOT_RUN]):
        boot(chosen, chosen[0].machines)
        if any(suite.name == "gate" and not suite.is_ok for suite in suites):
            break
    print(table(suites))
    print(f"{'all':<16} {'':10} {time.monotonic() - begun:6.1f} s")
    failed = [suite.name for suite in suites if not suite.is_ok]
    if failed:
        print(f"rdma_suites: failed: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
