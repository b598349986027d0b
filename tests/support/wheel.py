# SPDX-License-Identifier: Apache-2.0
"""The wheel, and an environment in which it is installed, as a user has them."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def build(folder: Path) -> Path:
    """Build the wheel, of the modules of build/dev where they are."""
    if (REPOSITORY / "build" / "dev" / "cmake_install.cmake").exists():
        flags = {
            "build-dir": str(folder / "build"),
            "cmake.define.PCCL_PREBUILT": str(_installed(folder / "prefix") / "pccl"),
        }
    else:
        flags = {
            "build-dir": str(REPOSITORY / "build" / "wheel-test"),
            "cmake.define.PCCL_WITH_CUDA": "ON" if Path("/dev/nvidiactl").exists() else "OFF",
        }
    options = [f"--config-settings={name}={value}" for name, value in flags.items()]
    pip = [sys.executable, "-m", "pip", "wheel", REPOSITORY, "--no-build-isolation", "--no-deps"]
    _run([*pip, *options, "-w", folder])
    (path,) = folder.glob("pccl_collectives-*.whl")
    return path


def _installed(prefix: Path) -> Path:
    """Install the package of build/dev, with the run paths of an installed one."""
    install = ["cmake", "--install", REPOSITORY / "build" / "dev", "--component", "python"]
    _run([*install, "--prefix", prefix])
    return prefix


def _run(command: list[object]) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        env=os.environ | {"CMAKE_BUILD_PARALLEL_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel; torch and tools are those of the interpreter here."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def run(
        self, *command: object, cwd: Path, timeout_s: float = 300, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command that finds the environment's programs first, and nothing of the clone."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(part) for part in command],
            env=kept | {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"} | variables,
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )


def install(wheel: Path, folder: Path) -> Environment:
    """Make an environment in ``folder`` in which ``wheel`` is installed."""
    venv.create(folder, with_pip=False, symlinks=True)
    environment = Environment(folder)
    site = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "torch_and_tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", environment.python, "install"]
    # Else pip is content with the one that make demo has put beside torch.
    done = environment.run(*pip, "--no-deps", "--no-index", "--ignore-installed", wheel, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    torchrun = folder / "bin" / "torchrun"  # as pip would make it with torch
    torchrun.write_text(f"#!{environment.python}\nfrom torch.distributed.run import main\nmain()\n")
    torchrun.chmod(0o755)
    return environment
