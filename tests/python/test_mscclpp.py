# SPDX-License-Identifier: Apache-2.0
"""Execution plans of MSCCL++ as capsules."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import pccl
from support import mscclpp_plans

if TYPE_CHECKING:
    from pathlib import Path

PLANS = mscclpp_plans.plans()
COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


def imported(value: dict[str, Any] | str, folder: Path) -> pccl.Capsule:
    file = folder / "plan.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return pccl.Capsule.from_mscclpp(file)


def test_there_are_ten_plans_and_more() -> None:
    assert len({plan.text() for plan in PLANS}) == len(PLANS) >= 10


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.name}-{plan.ranks}")
def test_plans_are_imported_and_proven(plan: mscclpp_plans.Plan, tmp_path: Path) -> None:
    capsule = imported(plan.value(), tmp_path)
    assert capsule.schedule.collective == COLLECTIVES[plan.collective]
    assert capsule.schedule.ranks == plan.ranks
    assert capsule.name == re.sub(r"[^a-z0-9]", "_", plan.name.lower())
    assert capsule.protocol == {"LL": "ll", "Simple": "direct"}[plan.protocol]
    assert pccl.Capsule.parse(capsule.data) == capsule


def test_sizes_are_the_messages_of_the_plan(tmp_path: Path) -> None:
    assert imported(mscclpp_plans.one_shot_all_reduce(2).value(), tmp_path).sizes == "..64KB"
    any_size = mscclpp_plans.put_all_gather(2).value()
    assert imported(any_size, tmp_path).sizes == ".."
    no_call_has_more = any_size | {"max_message_size": 2**64 - 2}
    capsule = imported(no_call_has_more, tmp_path)
    assert capsule.sizes == ".."
    assert pccl.Capsule.parse(capsule.data) == capsule


def ops(value: dict[str, Any], gpu: int, block: int = 0) -> list[dict[str, Any]]:
    return value["gpus"][gpu]["threadblocks"][block]["ops"]


def test_a_share_that_no_thread_block_does_is_missed(tmp_path: Path) -> None:
    value = mscclpp_plans.grouped_all_reduce(3).value()
    ops(value, 1, 2).pop()
    with pytest.raises(
        pccl.InvalidArgumentError, match=r"plan\.json: no step of rank 1 writes output\["
    ):
        imported(value, tmp_path)


def test_groups_that_cut_chunks_too_small_are_refused(tmp_path: Path) -> None:
    value = mscclpp_plans.put_all_gather(3).value()
    for block, parts in enumerate((997, 991, 983)):
        ops(value, block)[0]["tbg_info"] = {"tb_id": 0, "tbg_size": parts}
    with pytest.raises(
        pccl.UnsupportedError, match=r"op 0 \(copy\): shared by 9\d\d thread blocks, it cuts chunks"
    ):
        imported(value, tmp_path)


def test_thread_blocks_of_a_plan_are_lanes(tmp_path: Path) -> None:
    """In a ring of packets, one that forwards receives before one that unpacks the last first."""
    capsule = imported(mscclpp_plans.packet_ring_all_gather(4).value(), tmp_path)
    lanes = {(step.rank, step.lane) for step in capsule.schedule.steps}
    assert lanes == {(rank, lane) for rank in range(4) for lane in range(4)}


def test_a_wrong_chunk_is_an_error_at_its_operation(tmp_path: Path) -> None:
    """Rank 1 writes rank 0's block where rank 1's belongs."""
    value = mscclpp_plans.put_all_gather(3).value()
    ops(value, 1)[1]["dst_buff"][0]["index"] = 0
    with pytest.raises(
        pccl.InvalidArgumentError, match=r"plan\.json:1: gpu \d, threadblock 0, op "
    ):
        imported(value, tmp_path)


def line_of(marked: str, text: str) -> int:
    """Of the brace before a name that is there once."""
    assert text.count(marked) == 1
    return text.count("\n", 0, text.rindex("{", 0, text.index(marked))) + 1


@pytest.mark.parametrize("indent", [1, 4])
def test_errors_name_the_line_of_their_operation(indent: int, tmp_path: Path) -> None:
    """Of what is no operation, of one that nobody awaits, and of a buffer of one."""
    value = mscclpp_plans.put_all_gather(3).value()
    ops(value, 1)[2]["name"] = "unheard_of"
    text = json.dumps(value, indent=indent)
    with pytest.raises(pccl.UnsupportedError) as unknown:
        imported(text, tmp_path)
    line = line_of('"unheard_of"', text)
    assert f"plan.json:{line}: gpu 1, threadblock 0, op 2 (unheard_of): " in str(unknown.value)

    value = mscclpp_plans.put_all_gather(3).value()
    ops(value, 0).append({"marked": 1} | ops(value, 0)[1])
    text = json.dumps(value, indent=indent)
    with pytest.raises(pccl.UnsupportedError) as untold:
        imported(text, tmp_path)
    line = line_of('"marked"', text)
    assert f"plan.json:{line}: gpu 0, threadblock 0, op 5 (put): writes" in str(untold.value)

    value = mscclpp_plans.put_all_gather(3).value()
    ops(value, 2)[1]["src_buff"][0]["index"] = -17
    text = json.dumps(value, indent=indent)
    with pytest.raises(pccl.InvalidArgumentError) as index:
        imported(text, tmp_path)
    line = line_of("-17", text)
    assert f'plan.json:{line}: gpu 2, threadblock 0, op 1 (put): "index" is -17' in str(index.value)


def test_semaphores_that_are_never_free_are_an_error_at_their_operation(tmp_path: Path) -> None:
    value = mscclpp_plans.put_all_gather(3).value()
    ops(value, 1).append({"name": "sem_acquire", "semaphore_ids": [3]})
    with pytest.raises(
        pccl.InvalidArgumentError,
        match=r"plan\.json:1: gpu 1, threadblock 0, op 5 \(sem_acquire\): waits for semaphore 3 of "
        r"gpu 1 to be free a 1\. time, which never comes",
    ):
        imported(value, tmp_path)


def test_what_is_counted_twice_is_an_error_at_its_operation(tmp_path: Path) -> None:
    value = mscclpp_plans.scratch_reduce_scatter(3).value()
    reduce = ops(value, 2)[-1]
    reduce["src_buff"][2] = reduce["src_buff"][1]
    with pytest.raises(
        pccl.InvalidArgumentError, match=r"gpu 2, threadblock 0, op 4 \(re\).*a second time"
    ):
        imported(value, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda v: ops(v, 1).pop(-1),
            r"gpu \d, threadblock 0, op \d \(signal\): signals its writes to gpu 1",
        ),
        (
            lambda v: ops(v, 0).append(dict(ops(v, 0)[1])),
            r"gpu 0, threadblock 0, op 5 \(put\): writes to gpu 1, and sends no signal after it",
        ),
        *[
            (
                lambda v, name=name: ops(v, 0).append({"name": name}),
                rf"op 5 \({name}\): needs a switch channel \(multicast\); capsules have memory and",
            )
            for name in ("glre", "glres", "gstore", "gstorepkt")
        ],
        (
            lambda v: ops(v, 0)[-1].update(channel_type="switch"),
            r"op 4 \(wait\): needs a switch channel",
        ),
        (
            lambda v: ops(v, 0).append(
                {
                    "name": "pipeline",
                    "iter_context": {"unit_size": 1, "num_chunks": 2},
                    "ops": [ops(v, 0)[0]],
                }
            ),
            r"op 5\.0 \(copy\): moves 1 chunks in a pipeline that goes over 2",
        ),
        (
            lambda v: v["gpus"][0].update(inputChunks=v["gpus"][0].pop("input_chunks")),
            r'plan\.json:1: gpu 0: has "inputChunks", so the plan is of MSCCL\+\+ before 0\.8; '
            r"write it again",
        ),
        (
            lambda v: v.update(collective="sendrecv"),
            r"\"collective\" is \"sendrecv\", which is none of PCCL's",
        ),
        (
            lambda v: ops(v, 0)[1].update(reduce_op="min"),
            r"op 1 \(put\): \"reduce_op\" is \"min\"",
        ),
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_operation(
    change: Any, message: str, tmp_path: Path
) -> None:
    value = mscclpp_plans.put_all_gather(3).value()
    change(value)
    with pytest.raises(pccl.UnsupportedError, match=message):
        imported(value, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.pop("name"), r'plan\.json:1: has no "name"'),
        (lambda v: v.pop("gpus"), r'plan\.json:1: has no "gpus"'),
        (lambda v: v["gpus"].reverse(), r'gpu 0: "id" is 2 where 0 follows'),
        (lambda v: v["gpus"][1].update(output_chunks=4), r'"output_chunks" is 4, no multiple of 3'),
        (
            lambda v: ops(v, 0)[1]["src_buff"][0].update(index=-1),
            r'op 1 \(put\): "index" is -1; it must be 0 to',
        ),
        (
            lambda v: ops(v, 0)[1]["src_buff"][0].update(type="x"),
            r'op 1 \(put\): "type" is "x"; it must be i, o or s',
        ),
        (
            lambda v: ops(v, 0)[1]["dst_buff"][0].update(buffer_id=9),
            r'op 1 \(put\): "buffer_id" is 9; it must be 0 to 1',
        ),
        (
            lambda v: ops(v, 0)[-1].update(channel_ids=[7]),
            r'op 4 \(wait\): "channel_ids" is 7; it must be 0 to 1',
        ),
        (
            lambda v: ops(v, 0)[1]["src_buff"][0].update(size=2),
            r"op 1 \(put\): has chunks of sizes 2 and 1",
        ),
        (lambda v: ops(v, 0)[1].update(src_buff=7), r'"src_buff" is no list'),
        (
            lambda v: ops(v, 0)[-1].update(dst_buff=ops(v, 0)[1]["dst_buff"]),
            r"op 4 \(wait\): moves nothing, but has src_buff or dst_buff",
        ),
        (
            lambda v: ops(v, 0)[1]["src_buff"][0].update(index=5),
            r"op 1 \(put\): chunks 5 to 5 are not in input of gpu 0, which has 1",
        ),
        (
            lambda v: ops(v, 0).append(dict(ops(v, 0)[-1])),
            r"gpu 0, threadblock 0, op 5 \(wait\): waits for signal 1 of gpu 1, which never comes",
        ),
        (
            lambda v: ops(v, 1).append({"name": "barrier", "barrier_id": 4, "num_threadblocks": 2}),
            r"gpu 1, threadblock 0, op 5 \(barrier\): waits for 2 thread blocks at barrier 4, of "
            r"which 1 come",
        ),
        (
            lambda v: [each.insert(0, each.pop(-1)) for each in map(ops, [v] * 3, range(3))],
            r"op 0 \(wait\): waits for signal 0 of gpu 1, which waits for this thread block",
        ),
        (
            lambda v: (
                v["gpus"][2].update(scratch_chunks=1)
                or ops(v, 2).append(
                    {
                        "name": "upkt",
                        "src_buff": [{"type": "s", "index": 0, "size": 1}],
                        "dst_buff": [{"type": "o", "index": 0, "size": 1}],
                    }
                )
            ),
            r"gpu 2, threadblock 0, op 5 \(upkt\): waits for packets in scratch of gpu 2, which n",
        ),
        (
            lambda v: ops(v, 0)[0].update(tbg_info={"tb_id": 2, "tbg_size": 2}),
            r'op 0 \(copy\): "tb_id" is 2; it must be 0 to 1',
        ),
        (
            lambda v: ops(v, 0).append({"name": "pipeline", "ops": []}),
            r'op 5 \(pipeline\): has no "iter_context"',
        ),
        (
            lambda v: v["gpus"][0]["channels"][0].update(channel_type="wire"),
            r'gpu 0: "channel_type" is "wire"; it must be memory, port or switch',
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_its_place(
    change: Any, message: str, tmp_path: Path
) -> None:
    value = mscclpp_plans.put_all_gather(3).value()
    change(value)
    with pytest.raises(pccl.InvalidArgumentError, match=message):
        imported(value, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"plan\.json:1: this is no JSON object$"),
        ("[]", r"plan\.json:1: this is no JSON object$"),
        ("{", r"plan\.json:1: this is no JSON object$"),
        ("{}", r'plan\.json:1: has no "name"'),
        ('{\n"name": "a",\n"protocol" "LL"\n}', r"plan\.json:3: this is no JSON object$"),
        ("[" * 100_000, r"plan\.json:1: this is no JSON object nested at most 16 deep"),
        ('{"a":\n' * 1000 + "1" + "}" * 1000, r"plan\.json:17: this is .* at most 16 deep"),
        (f"[{'{},' * (1 << 20)}{{}}]", r"plan\.json:1: this is no JSON object of at most 1048576"),
    ],
    ids=["empty", "list", "open", "nothing", "wrong", "deep list", "deep", "many objects"],
)
def test_what_is_no_json_object_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match=message):
        imported(text, tmp_path)


def test_too_large_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="has more than 8388608 bytes"):
        imported(" " * (9 << 20), tmp_path)
