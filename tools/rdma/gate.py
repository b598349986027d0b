# SPDX-License-Identifier: Apache-2.0
"""Run rdma-core's own tests and compare their results with a list. Runs inside a machine.

    /usr/bin/python3 gate.py gate_expected.txt [--print]

A line of the list is a module and how many of its tests pass, are skipped and fail; or "!" and a
test that fails; or "-" and a test that is left out; both with the reason. --print writes what was
found in that form, and the reason of each skip.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gzip
import importlib
import json
import platform
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TESTS = Path("/usr/share/doc/rdma-core/tests")  # of Debian's python3-pyverbs
SECONDS = 30  # for a test
KINDS = ("pass", "skip", "fail")


class Result(unittest.TestResult):
    """Counts by module, and who failed or was skipped and why."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: dict[str, collections.Counter[str]] = collections.defaultdict(
            collections.Counter
        )
        self.failed: dict[str, str] = {}
        self.reasons: collections.Counter[str] = collections.Counter()

    def _count(self, test: unittest.TestCase, kind: str) -> None:
        self.counts[type(test).__module__.removeprefix("tests.")][kind] += 1

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        signal.alarm(SECONDS)

    def stopTest(self, test: unittest.TestCase) -> None:
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._count(test, "pass")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._count(test, "skip")
        self.reasons[f"{type(test).__module__}: {reason}".removeprefix("tests.")] += 1

    def addError(self, test: unittest.TestCase, error: object) -> None:
        self._count(test, "fail")
        self.failed[test.id().removeprefix("tests.")] = f"{error[1]}"  # type: ignore[index]

    addFailure = addError


@dataclasses.dataclass
class Expected:
    """What the list contains: numbers by module, reasons by test."""

    counts: dict[str, tuple[int, ...]]
    failing: dict[str, str]
    left_out: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Expected:
        found = cls({}, {}, {})
        for line in path.read_text().splitlines():
            if line.startswith(("! ", "- ")):
                name, _, reason = line[2:].partition(": ")
                (found.failing if line[0] == "!" else found.left_out)[name] = reason
            elif line and not line.startswith("#"):
                module, *numbers = line.split()
                found.counts[module] = tuple(int(number) for number in numbers)
        return found

    def differences(self, result: Result) -> list[str]:
        found = []
        for module, numbers in self.counts.items():
            got = tuple(result.counts[module][kind] for kind in KINDS)
            if got != numbers:
                found.append(f"{module}: {in_words(got)} instead of {in_words(numbers)}")
        found += [
            f"{name}: {why}" for name, why in result.failed.items() if name not in self.failing
        ]
        passing = [name for name in self.failing if name not in result.failed]
        return found + [f"{name} is listed as failing, and does not fail" for name in passing]


def in_words(numbers: Iterable[int]) -> str:
    """Return "3 pass, 0 skip, 1 fail"."""
    return ", ".join(f"{number} {kind}" for number, kind in zip(numbers, KINDS, strict=True))


def out_of_time(*_: object) -> None:
    raise TimeoutError(f"did not end within {SECONDS} s")


def unpack(modules: Iterable[str], folder: Path) -> None:
    """Write these modules of tests, and no others, which would be imported with them."""
    sys.path[:0] = [str(folder), str(folder / "tests")]
    (folder / "tests").mkdir()
    for file in TESTS.iterdir():
        name = file.name.removesuffix(".gz")
        if not name.startswith("test_") or name.removesuffix(".py") in modules:
            content = file.read_bytes()
            content = gzip.decompress(content) if file.suffix == ".gz" else content
            (folder / "tests" / name).write_bytes(content)


def use_address_of_eth0() -> None:
    """Let tests of rdma_cm run.

    They look for the address under the folder of the device in /sys, which rxe does not have.
    """
    base = importlib.import_module("tests.base")
    shown = json.loads(subprocess.check_output(["ip", "-j", "addr", "show", "eth0"]))[0]
    address = next(entry["local"] for entry in shown["addr_info"] if entry["family"] == "inet")

    def add(self, device: str, port: int, index: int) -> None:
        self.args.append([device, port, index, address, shown["address"]])

    base.RDMATestCase._get_ip_mac = add


def set_arguments() -> None:
    """Let rdma-core's parser find the device, and GID 1, which is that of the IPv4 address."""
    arguments = sys.argv[1:]
    sys.argv[1:] = ["--dev", "rxe0", "--port", "1", "--gid", "1"]
    importlib.import_module("args_parser").parser.parse_args()
    sys.argv[1:] = arguments


def load(module: str, left_out: dict[str, str]) -> unittest.TestSuite:
    loaded = unittest.TestSuite()
    waiting = [unittest.defaultTestLoader.loadTestsFromName(f"tests.{module}")]
    while waiting:
        for item in waiting.pop():
            if isinstance(item, unittest.TestSuite):
                waiting.append(item)
            elif item.id().removeprefix("tests.") not in left_out:
                loaded.addTest(item)
    return loaded


def run(expected: Expected) -> Result:
    set_arguments()
    use_address_of_eth0()
    signal.signal(signal.SIGALRM, out_of_time)
    result = Result()
    for module in expected.counts:
        begun = time.monotonic()
        with contextlib.redirect_stdout(sys.stderr):
            load(module, expected.left_out).run(result)
        counts = result.counts[module]
        numbers = " ".join(str(counts[kind]) for kind in KINDS)
        print(f"{module} {numbers}  # {time.monotonic() - begun:.1f} s", flush=True)
    return result


def main() -> int:
    expected = Expected.read(Path(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        unpack(expected.counts, Path(folder))
        result = run(expected)
    if "--print" in sys.argv:
        for name, why in result.failed.items():
            print(f"! {name}: {why}")
        for reason, count in result.reasons.items():
            print(f"# {count} skipped: {reason}")
    found = expected.differences(result)
    for line in found:
        print(f"gate: {line}")
    totals = [sum(counts[kind] for counts in result.counts.values()) for kind in KINDS]
    as_listed = "as listed" if not found else "not as listed"
    print(f"gate: rdma-core's tests on {platform.release()}: {in_words(totals)}, {as_listed}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
