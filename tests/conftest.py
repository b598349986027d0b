"""Paths and settings that all Python tests share."""

import os
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

# ``from support.launch import ...`` works from every test, however pytest imports it.
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

# Ranks outnumber cores: more threads per rank only take time from each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once; or the one that PCCL_TEST_WHEEL names."""
    from support import wheel as wheels

    if given := os.environ.get("PCCL_TEST_WHEEL"):
        return Path(given)
    return wheels.build(tmp_path_factory.mktemp("wheel"))
