# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own ``distributed_test`` suite, bound to one backend and one world size.

Run as a script, it executes the named tests one after another and appends one JSON object per
finished test to the results file. ``run.py`` starts several of these side by side.

The suite reads ``BACKEND`` and ``WORLD_SIZE`` at import, where its decorators decide what to skip.
It is therefore imported as Gloo, so that nothing Gloo runs is skipped, and pointed at the backend
under test afterwards.

Upstream runs its CPU all-to-all tests on MPI alone. Nothing in them needs MPI: they are taken in.

Ranks are forked from this process instead of spawned: torch is then imported once, not once per
rank and test. That is sound as long as this process starts no thread and computes nothing, which
``_spawn_processes`` checks.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import shutil
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

TEST_TIMEOUT_S = 90

# These make their model for the CPU only if the name is gloo (or mpi), and use it for nothing else.
TESTS_THAT_ASK_FOR_GLOO = (
    "test_accumulate_gradients_no_sync",
    "test_accumulate_gradients_no_sync_allreduce_hook",
    "test_accumulate_gradients_no_sync_allreduce_with_then_hook",
    "test_accumulate_gradients_no_sync_grad_is_view",
)


def prepare_environment(world_size: int) -> None:
    """Set what the suite reads at import; call before torch is imported."""
    scratch = Path(tempfile.mkdtemp(prefix="pccl-upstream-"))
    owner = os.getpid()  # ranks are forked and must not remove it when they exit
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(scratch, ignore_errors=True))
    for name in ("barrier", "test_dir", "init_dir"):
        (scratch / name).mkdir()
    os.environ.update(
        BACKEND="gloo",
        WORLD_SIZE=str(world_size),
        TEMP_DIR=str(scratch),
        INIT_METHOD=f"file://{scratch}/init_dir/shared_init_file",
        CUDA_VISIBLE_DEVICES="",
        OMP_NUM_THREADS="1",
        PYTORCH_PRINT_REPRO_ON_FAILURE="0",
        DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(TEST_TIMEOUT_S),
    )


def load_suite(backend: str) -> type[unittest.TestCase]:
    """Return the test class, its tests running on ``backend``."""
    from torch.testing._internal import common_distributed

    for backends in common_distributed.DistTestCases.backend_feature.values():
        backends.add(backend)

    import torch
    from torch.testing._internal.distributed import distributed_test as upstream

    upstream.BACKEND = backend
    if backend not in upstream.PROFILING_SUPPORTED_BACKENDS:
        upstream.PROFILING_SUPPORTED_BACKENDS.append(backend)
        upstream.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append(backend)

    class UpstreamSuite(upstream.TestDistBackend, upstream.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._spawn_processes()

        def _spawn_processes(self) -> None:
            threads = sum(1 for _ in Path("/proc/self/task").iterdir())
            if threads != 1:
                raise RuntimeError(f"cannot fork ranks: {threads} threads run in the parent")
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        def run_test(self, test_name: str, parent_pipe: Any) -> None:
            if test_name in TESTS_THAT_ASK_FOR_GLOO:  # the process group exists by now
                upstream.BACKEND = "gloo"
            super().run_test(test_name, parent_pipe)

        def _check_return_codes(self, fn: Any, elapsed_time: float) -> None:
            super()._check_return_codes(fn, elapsed_time)
            # Upstream looks at rank 0 only: a rank that crashed after its last collective passes.
            if fn not in self.skip_return_code_checks:
                exit_codes = [process.exitcode for process in self.processes]
                self.assertEqual(exit_codes, [0] * len(exit_codes))

    take_in_mpi_tests(UpstreamSuite)
    return UpstreamSuite


def take_in_mpi_tests(suite: type[unittest.TestCase]) -> None:
    """Undo the skip of the tests that upstream reserves for MPI by name."""
    for name in unittest.defaultTestLoader.getTestCaseNames(suite):
        method = getattr(suite, name)
        if getattr(method, "__unittest_skip_why__", "").startswith("Only MPI supports"):
            method.__unittest_skip__ = False


def use_library_monitored_barrier() -> None:
    """Replace the Python function that refuses every backend but Gloo by the library's own."""
    import torch.distributed as dist

    import pccl

    dist.monitored_barrier = pccl.torch.monitored_barrier


class JsonResult(unittest.TestResult):
    """Append each finished test's outcome to a file, as one JSON object per line."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._started = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._started = time.monotonic()
        print(f"=== {test._testMethodName}", flush=True)

    def _record(self, test: unittest.TestCase, outcome: str, reason: str = "") -> None:
        record = {
            "test": test._testMethodName,
            "outcome": outcome,
            "seconds": round(time.monotonic() - self._started, 1),
            "reason": reason,
        }
        with self._path.open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._record(test, "pass")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._record(test, "skip", reason)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._record(test, "fail", self._exc_info_to_string(err, test))

    addError = addFailure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", required=True)
    parser.add_argument("--world-size", type=int, required=True)
    parser.add_argument("--results", type=Path, required=True, help="JSON-lines file to append to")
    parser.add_argument("--library-monitored-barrier", action="store_true")
    parser.add_argument("tests", nargs="*", help="test names; none means all")
    args = parser.parse_args()

    prepare_environment(args.world_size)
    suite_class = load_suite(args.backend)
    if args.library_monitored_barrier:
        use_library_monitored_barrier()
    names = args.tests or unittest.defaultTestLoader.getTestCaseNames(suite_class)
    result = JsonResult(args.results)
    gc.freeze()  # else collections in ranks walk, and thereby copy, all that is imported here
    for name in names:
        suite_class(name).run(result)


if __name__ == "__main__":
    main()
