"""What a user meets first: imports, the command, the wheel, and errors when torch is not right."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def python(code: str, **environment: str) -> str:
    done = run(sys.executable, "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("imports", ["pccl, torch", "torch, pccl", "pccl"])
def test_import_works_in_any_order(imports: str) -> None:
    assert python(f"import {imports}; print(pccl.__version__)") == distribution("pccl").version


def test_import_of_the_core_leaves_torch_alone() -> None:
    loaded = python("import sys, pccl, pccl._core; print('torch' in sys.modules)")
    assert loaded == "False"


@pytest.mark.parametrize("group", ["torch.backends", "torch.distributed.backends"])
def test_torch_finds_the_backend_by_entry_point(group: str) -> None:
    entries = distribution("pccl").entry_points.select(group=group, name="pccl")
    assert [entry.value for entry in entries] == ["pccl._autoload:register"]


def test_torch_knows_the_backend_without_an_import_of_pccl() -> None:
    code = "import torch.distributed as dist; print('pccl' in dist.Backend.backend_list)"
    assert python(code) == "True"


def test_torch_imports_even_when_the_extension_cannot_load() -> None:
    # An exception in an autoloaded backend would break `import torch` for everyone.
    code = "import sys; sys.modules['pccl._torch'] = None; import torch; print(torch.__version__)"
    assert python(code)


def test_another_release_of_torch_is_refused_in_words() -> None:
    code = (
        "import torch; from pccl import _compatibility\n"
        "torch.__version__ = '2.10.1+cpu'\n"
        "try: _compatibility.require_matching_torch()\n"
        "except ImportError as error: print(error)"
    )
    message = python(code)
    assert "but torch 2.10 is installed" in message
    assert "--no-build-isolation" in message


def test_info_names_the_modules_of_this_build() -> None:
    done = run(sys.executable, "-m", "pccl", "info")
    assert done.returncode == 0, done.stderr
    assert "_core, _torch" in done.stdout


def test_libpccl_exports_only_its_own_names() -> None:
    library = Path(python("import pccl._core as core; print(core.__file__)")).parent / "libpccl.so"
    done = run("nm", "--dynamic", "--demangle", "--defined-only", library)
    names = [line.split(maxsplit=2)[2] for line in done.stdout.splitlines()]
    assert names
    assert [name for name in names if "pccl::" not in name] == []


def test_libpccl_needs_no_torch() -> None:
    library = Path(python("import pccl._core as core; print(core.__file__)")).parent / "libpccl.so"
    needed = run("readelf", "--dynamic", library).stdout
    assert "libstdc++" in needed
    assert "torch" not in needed
    assert "libc10" not in needed


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    stems = {name.split("/", 1)[1].split(".")[0] for name in names if name.startswith("pccl/")}
    assert {"__init__", "_core", "_torch", "_build_info", "libpccl", "py"} <= stems
    assert {"topology/machines/dgx1v", "bench/__init__", "cli/main"} <= stems
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pccl"}
    assert [name for name in names if name.endswith((".a", ".cc", ".h"))] == []


@pytest.mark.slow
def test_installed_wheel_runs_a_collective(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    pip = (sys.executable, "-m", "pip", "install", "--no-deps", "--target", site, wheel)
    assert run(*pip).returncode == 0
    code = (
        "import torch, torch.distributed as dist\n"
        f"dist.init_process_group('pccl', init_method='file://{tmp_path}/store', rank=0,"
        " world_size=1)\n"
        "x = torch.arange(3.0); dist.all_reduce(x); print(x.tolist())\n"
        "import pccl; print(pccl.__file__); dist.destroy_process_group()"
    )
    output = python(code, PYTHONPATH=str(site)).splitlines()
    assert output[0] == "[0.0, 1.0, 2.0]"
    assert Path(output[1]).is_relative_to(site)


@pytest.mark.slow
def test_build_without_torch_says_what_to_do(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    bare = tmp_path / "venv" / "bin" / "python"
    done = run("cmake", "-S", REPOSITORY, "-B", tmp_path / "build", f"-DPython_EXECUTABLE={bare}")
    assert done.returncode != 0
    assert (
        "torch must be installed first: pip install torch==2.13.0, "
        "then pip install . --no-build-isolation" in done.stderr
    )
