"""What a newcomer has: an environment with the wheel, and no clone."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from support import wheel as wheels

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> wheels.Environment:
    """An environment in which the wheel is installed."""
    return wheels.install(wheel, tmp_path_factory.mktemp("fresh") / "venv")


@pytest.fixture
def port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
