# SPDX-License-Identifier: Apache-2.0
"""``pccl.explain`` of GPUs that need not exist: the plans that a group would launch."""

from __future__ import annotations

import numpy as np
import pytest

import pccl

KINDS = ("all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all")
MIB = 1 << 20


@pytest.mark.parametrize("nbytes", [64, 64 << 10, MIB, 64 * MIB, 2 << 30])
@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("collective", KINDS)
def test_one_launch_is_what_device_plan_gives(collective: str, count: int, nbytes: int) -> None:
    explained = pccl.explain(collective, nbytes, pccl.explanation.Gpus(count))
    has_blocks = collective not in ("all_reduce", "reduce", "broadcast")
    if len(explained.launches) == 1:
        (launch,) = explained.launches
        plan = pccl.gpu.device_plan(collective, nbytes // count if has_blocks else nbytes, count)
        assert (launch.protocol, launch.blocks, launch.threads) == (
            plan.protocol,
            plan.blocks,
            plan.threads,
        )
        assert launch.nbytes == (nbytes // count if has_blocks else nbytes)
    assert all(launch.why for launch in explained.launches)


def test_a_very_large_all_reduce_is_two_launches() -> None:
    explained = pccl.explain("all_reduce", 512 * MIB, pccl.explanation.Gpus(4))
    assert [launch.kernel for launch in explained.launches] == ["reduce_scatter", "copy engines"]
    assert [launch.nbytes for launch in explained.launches] == [128 * MIB] * 2
    assert len(pccl.explain("all_reduce", 512 * MIB, pccl.explanation.Gpus(2)).launches) == 1


@pytest.mark.parametrize(
    ("collective", "nbytes", "kernel", "protocol"),
    [
        ("reduce", 1024, "all_reduce", "ll"),
        ("gather", 1024, "all_to_all", "direct"),
        ("scatter", 1024, "all_to_all", "direct"),
        ("broadcast", 64 * MIB, "broadcast", "direct"),
        ("all_gather", 2048 * MIB, "copy engines", "copy_engine"),
        ("all_to_all", 64 * MIB, "all_to_all", "staggered"),
    ],
)
def test_kernels_are_those_that_make_the_collective(
    collective: str, nbytes: int, kernel: str, protocol: str
) -> None:
    (launch,) = pccl.explain(collective, nbytes, pccl.explanation.Gpus(4)).launches
    assert (launch.kernel, launch.protocol) == (kernel, protocol)


def test_an_explanation_shows_itself() -> None:
    explained = pccl.explain("all_reduce", 1024, pccl.explanation.Gpus(4, 100))
    heading, line = repr(explained).splitlines()
    assert heading == (
        "all_reduce of 1024 bytes, 4 GPUs of sm_100, by what was measured on 4 x H200"
    )
    assert line.startswith("* all_reduce       ll          1 x 128 threads")
    assert "arrival flag" in line
    assert "<td>ll</td>" in explained._repr_html_()
    (row,) = explained.rows
    assert row["collective"] == "all_reduce"
    assert row["blocks"] == 1
    assert np.isscalar(row["threads"])


@pytest.mark.parametrize(
    ("gpus", "words"),
    [
        (pccl.explanation.Gpus(1), "2 to 8 work"),
        (pccl.explanation.Gpus(9), "2 to 8 work"),
        (pccl.explanation.Gpus(4, 0), "no GPU is of architecture 0"),
    ],
)
def test_gpus_that_make_no_group_are_refused(gpus: pccl.explanation.Gpus, words: str) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=words):
        pccl.explain("all_reduce", 1024, gpus)
