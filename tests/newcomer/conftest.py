# SPDX-License-Identifier: Apache-2.0
"""What a newcomer has: an environment with the wheel, and no clone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import wheel as wheels
from support.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> wheels.Environment:
    """An environment in which the wheel is installed."""
    return wheels.install(wheel, tmp_path_factory.mktemp("fresh") / "venv")


@pytest.fixture
def port() -> int:
    """A port that nobody listens at."""
    return free_port()
