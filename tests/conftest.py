# SPDX-License-Identifier: Apache-2.0
"""Paths and settings that all Python tests share."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent

# ``from support.launch import ...`` works from every test, however pytest imports it.
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

# Ranks outnumber cores: more threads per rank only take time from each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Choices must not depend on the machine, nor tests write to the user's cache.
os.environ.setdefault("PCCL_COSTS_FILE", "off")

# What a shell runs in the background is deaf to Ctrl-C, with all that it starts; tests send that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests that share what takes long to make. (Marks of xdist_group do nothing under pytest 9.2.)
TOGETHER = {
    "tests/newcomer/": "wheel",
    "tests/python/test_packaging.py": "wheel",
    "tests/python/test_pictures.py": "pictures",
    "tests/upstream/": "upstream",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option that says what tests cost."""
    parser.addoption("--cpu-seconds", type=int, metavar="N", help="show the N that took most CPU")


def pytest_configure(config: pytest.Config) -> None:
    """Measure if that is asked for."""
    if shown := config.getoption("--cpu-seconds"):
        from support.cpu_seconds import CpuSeconds

        config.pluginmanager.register(CpuSeconds(shown))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import test modules, and torch, without collecting garbage, which there hardly is."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker have all tests that share something; begin with these."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return next((TOGETHER[each] for each in TOGETHER if nodeid.startswith(each)), nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once; or the one that PCCL_TEST_WHEEL names."""
    from support import wheel as wheels

    if given := os.environ.get("PCCL_TEST_WHEEL"):
        return Path(given)
    return wheels.build(tmp_path_factory.mktemp("wheel"))
