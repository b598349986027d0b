# SPDX-License-Identifier: Apache-2.0
"""What ``import pccl`` promises. Each program runs in an interpreter of its own."""

import importlib.metadata
import os
import subprocess
import sys
import textwrap

import pytest


def run(program: str, **environment: str) -> str:
    """Run a program and return what it printed."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_loads_neither_torch_nor_the_extension_modules() -> None:
    loaded = run("""
        import sys
        import pccl
        heavy = {"torch", "numpy", "pccl._core", "pccl._torch"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert loaded.strip() == "[]"


def test_the_command_starts_without_what_some_of_it_needs() -> None:
    loaded = run("""
        import sys
        import pccl.cli.main
        heavy = {"torch", "numpy", "pccl._core", "pccl._torch"}
        print(sorted(heavy & set(sys.modules)))
    """)
    assert loaded.strip() == "[]"


def test_communicator_works_where_torch_cannot_be_imported() -> None:
    program = """
        import sys
        sys.modules["torch"] = None
        import array, pccl
        comm = pccl.Communicator()
        x = array.array("f", [1, 2, 3])
        comm.all_reduce(x)
        print(list(x))
    """
    assert run(program).strip() == "[1.0, 2.0, 3.0]"


@pytest.mark.parametrize("first", ["import pccl, torch", "import torch, pccl"])
@pytest.mark.parametrize("autoload", ["0", "1"])
def test_the_backend_is_known_in_either_order_of_imports(first: str, autoload: str) -> None:
    if first == "import pccl, torch" and autoload == "0":
        first += "; import torch.distributed; pccl.register()"
    program = f"""
        {first}
        import torch.distributed as dist
        print(dist.Backend.PCCL, dist.Backend.backend_capability["pccl"])
    """
    assert run(program, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload).split("\n")[0] == (
        "pccl ['cpu', 'cuda']"
    )


@pytest.mark.parametrize("group", ["torch.backends", "torch.distributed.backends"])
def test_the_entry_points_register_twice_without_complaint(group: str) -> None:
    found = importlib.metadata.entry_points(group=group, name="pccl")
    assert found, "the package that is under test has no metadata"
    for _ in range(2):
        next(iter(found)).load()()


def test_torch_imports_although_registration_fails() -> None:
    program = """
        import sys
        sys.modules["pccl.torch.registration"] = None
        import torch
        print(torch.ones(1).item())
    """
    assert run(program).strip() == "1.0"


def test_every_public_name_can_be_had() -> None:
    import pccl

    missing = [name for name in pccl.__all__ if getattr(pccl, name, None) is None]
    assert missing == []
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = pccl.no_such_name


def test_options_of_another_type_are_refused(tmp_path: object) -> None:
    import torch.distributed as dist

    with pytest.raises(TypeError, match=r"pccl\.Options"):
        dist.init_process_group(
            "pccl",
            init_method=f"file://{tmp_path}/store",
            rank=0,
            world_size=1,
            pg_options=dist.Backend.Options("gloo")
            if hasattr(dist.Backend, "Options")
            else object(),
        )
