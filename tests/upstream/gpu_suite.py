# SPDX-License-Identifier: Apache-2.0
"""PyTorch's ``distributed_test`` on GPUs, with the list that NCCL runs, on NCCL or on pccl.

The suite decides by the name "nccl" which tests it has for GPUs and on which devices their tensors
are. It keeps that name, and groups asked for as "nccl" come up as the backend under test.
Run as a script, it does what ``suite.py`` does. Ranks are forked from a process that has imported
this file and has touched no GPU, so that torch is imported once for all of them.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import multiprocessing
import os
import unittest
from pathlib import Path
from typing import Any

from suite import JsonResult, prepare_environment

SUITE = "gpu_suite"  # this file, as ranks import it
UNDER_TEST = "PCCL_TEST_UPSTREAM_BACKEND"
SCRATCH = "PCCL_TEST_UPSTREAM_SCRATCH"


def prepare_gpu_environment(backend: str, world_size: int) -> None:
    """Set what the suite reads at import, here and in the ranks; call before torch is imported."""
    devices = os.environ.get("CUDA_VISIBLE_DEVICES")
    prepare_environment(world_size)
    del os.environ["CUDA_VISIBLE_DEVICES"]
    if devices is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = devices
    # Looking for GPUs must not start the driver in the process that ranks are forked from.
    os.environ.update(
        {
            "BACKEND": "nccl",
            UNDER_TEST: backend,
            SCRATCH: os.environ["TEMP_DIR"],
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
            "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60",
        }
    )


def environment_file() -> Path:
    """Return the file that tells ranks what the suite has set for one test."""
    return Path(os.environ[SCRATCH]) / "environment.json"


def replace_backend(backend: str) -> None:
    """Let groups that are asked for as "nccl" be of ``backend``, and call themselves "nccl"."""
    import torch.distributed as dist
    from torch.testing._internal.distributed import distributed_test as upstream

    def renamed(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            args = tuple(backend if each == "nccl" else each for each in args)
            if kwargs.get("backend") == "nccl":
                kwargs["backend"] = backend
            return function(*args, **kwargs)

        return call

    dist.init_process_group = renamed(dist.init_process_group)
    dist.new_group = renamed(dist.new_group)
    get_backend = dist.get_backend
    dist.get_backend = lambda *args, **kwargs: (
        "nccl" if get_backend(*args, **kwargs) == backend else get_backend(*args, **kwargs)
    )
    # A profiler shows an operation as "<backend>:<operation>", by the backend's own name.
    profiled = upstream.get_profiling_event

    def profiled_as_nccl(name: str, *args: Any, **kwargs: Any) -> list[Any]:
        events: list[Any] = profiled(name.replace("nccl:", f"{backend}:"), *args, **kwargs)
        for event in events:
            event.name = event.name.replace(f"{backend}:", "nccl:")
        return events

    upstream.get_profiling_event = profiled_as_nccl


def load_suite() -> type[unittest.TestCase]:
    """Return the test class, its tests running on the backend that the environment names."""
    import torch
    from torch.testing._internal.distributed import distributed_test as upstream

    if os.environ[UNDER_TEST] != "nccl":
        replace_backend(os.environ[UNDER_TEST])

    class UpstreamGpuSuite(upstream.TestDistBackend, upstream.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            environment_file().write_text(json.dumps(dict(os.environ)))
            self._start_processes(torch.multiprocessing.get_context("forkserver").Process)

        @classmethod
        def _run(cls, *args: Any, **kwargs: Any) -> None:
            os.environ.update(json.loads(environment_file().read_text()))
            super()._run(*args, **kwargs)

        def _check_return_codes(self, fn: Any, elapsed_time: float) -> None:
            super()._check_return_codes(fn, elapsed_time)
            # Upstream looks at rank 0 only: a rank that crashed after its last collective passes.
            exit_codes = {process.exitcode for process in self.processes}
            self.assertEqual(len(exit_codes), 1, f"ranks end with {exit_codes}")

    UpstreamGpuSuite.__qualname__ = "UpstreamGpuSuite"  # as pickle finds it
    return UpstreamGpuSuite


def main() -> None:
    """Run the named tests."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--results", type=Path, required=True, help="JSON-lines file to append to")
    parser.add_argument("tests", nargs="*", help="test names; none means all")
    options = parser.parse_args()
    prepare_gpu_environment(options.backend, options.world_size)
    multiprocessing.set_forkserver_preload([SUITE])
    suite_class = importlib.import_module(SUITE).UpstreamGpuSuite
    names = options.tests or unittest.defaultTestLoader.getTestCaseNames(suite_class)
    result = JsonResult(options.results)
    for name in names:
        suite_class(name).run(result)


if __name__ == "__main__":
    main()
elif __name__ == SUITE and UNDER_TEST in os.environ:
    UpstreamGpuSuite = load_suite()
