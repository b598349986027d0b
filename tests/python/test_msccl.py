# SPDX-License-Identifier: Apache-2.0
"""Programs in MSCCL's XML as capsules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import pccl
from support import msccl_xml, synthesised_xml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PROGRAMS = [*msccl_xml.programs(), *synthesised_xml.programs()]
COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
}


def imported(text: str, folder: Path) -> pccl.Capsule:
    file = folder / "algo.xml"
    file.write_text(text)
    return pccl.Capsule.from_msccl(file)


def test_there_are_twenty_programs_and_more() -> None:
    assert len({algo.xml() for algo in PROGRAMS}) == len(PROGRAMS) >= 20


@pytest.mark.parametrize(
    "algo", PROGRAMS, ids=lambda algo: f"{algo.name}-{algo.inplace}-{algo.proto}"
)
def test_programs_are_imported_and_proven(algo: msccl_xml.Algo, tmp_path: Path) -> None:
    capsule = imported(algo.xml(), tmp_path)
    assert capsule.schedule.collective == COLLECTIVES[algo.coll]
    assert capsule.schedule.ranks == algo.ranks
    assert capsule.name == re.sub(r"[^a-z0-9]", "_", algo.name.lower())
    assert capsule.protocol == {"LL": "ll", "LL128": "ll128", "Simple": "direct"}[algo.proto]
    assert pccl.Capsule.parse(capsule.data) == capsule


def custom(algo: msccl_xml.Algo) -> str:
    """As synthesisers write it: without the collective."""
    return algo.xml().replace(f'coll="{algo.coll}"', 'coll="custom"')


@pytest.mark.parametrize(
    "algo", PROGRAMS, ids=lambda algo: f"{algo.name}-{algo.inplace}-{algo.proto}"
)
def test_a_custom_program_is_its_declared_collective(algo: msccl_xml.Algo, tmp_path: Path) -> None:
    (tmp_path / "custom.xml").write_text(custom(algo))
    given = pccl.Capsule.from_msccl(tmp_path / "custom.xml", collective=COLLECTIVES[algo.coll])
    assert given == imported(algo.xml(), tmp_path)


def test_a_collective_is_given_where_none_is_named_alone(tmp_path: Path) -> None:
    algo = msccl_xml.ring_all_reduce(3)
    file = tmp_path / "algo.xml"
    file.write_text(custom(algo))
    with pytest.raises(pccl.UnsupportedError, match=r"algo\.xml:1: .* names no collective: import"):
        pccl.Capsule.from_msccl(file)
    with pytest.raises(
        pccl.InvalidArgumentError, match=r"algo\.xml:1: the root given is 3; it must"
    ):
        pccl.Capsule.from_msccl(file, collective="broadcast", root=3)
    with pytest.raises(pccl.InvalidArgumentError, match="'sum' is no collective"):
        pccl.Capsule.from_msccl(file, collective="sum")
    with pytest.raises(pccl.InvalidArgumentError):
        pccl.Capsule.from_msccl(file, collective="broadcast")
    file.write_text(algo.xml())
    with pytest.raises(pccl.InvalidArgumentError, match='is given for coll="custom" alone'):
        pccl.Capsule.from_msccl(file, collective="all_reduce")


def test_a_step_that_waits_for_itself_is_refused(tmp_path: Path) -> None:
    text = msccl_xml.ring_all_reduce(3).xml()
    for awaited in (0, 1):
        waits = text.replace('depid="-1" deps="-1"', f'depid="0" deps="{awaited}"', 1)
        assert waits != text
        with pytest.raises(
            pccl.InvalidArgumentError,
            match=rf"algo\.xml:\d+: <step> 0 waits for step {awaited} of its own <tb>",
        ):
            imported(waits, tmp_path)


def test_a_program_that_needs_no_copy_gets_none(tmp_path: Path) -> None:
    """Step by step as in the file."""
    algo = msccl_xml.ring_all_reduce(4)
    kinds = {
        "s": "send",
        "rrs": "recv_reduce_send",
        "rrcs": "recv_reduce_copy_send",
        "rcs": "recv_copy_send",
        "r": "recv",
    }
    found = imported(algo.xml(), tmp_path).schedule.steps
    assert [step.action for step in found] == [
        kinds[str(step["type"])] for gpu in algo.blocks for tb in gpu for step in tb.steps
    ]


def test_later_attributes_are_the_sizes(tmp_path: Path) -> None:
    assert imported(msccl_xml.all_pairs_all_reduce(2).xml(), tmp_path).sizes == "1KB..64KB"
    assert imported(msccl_xml.ring_all_reduce(2).xml(), tmp_path).sizes == ".."


def test_a_file_that_names_no_protocol_requests_none(tmp_path: Path) -> None:
    text = re.sub(r' proto="\w+"', "", msccl_xml.ring_all_reduce(2).xml())
    assert imported(text, tmp_path).protocol == ""


def test_sizes_beyond_any_call_are_any(tmp_path: Path) -> None:
    algo = msccl_xml.ring_all_reduce(2)
    algo.later = {"minBytes": 1024, "maxBytes": 2**63 - 1}
    assert imported(algo.xml(), tmp_path).sizes == "1KB.."


def copies_of(capsule: pccl.Capsule, rank: int) -> list[str]:
    steps = capsule.schedule.steps
    return [step.text for step in steps if step.rank == rank and step.action == "copy"]


def test_copies_of_two_buffers_are_steps_and_of_one_buffer_are_none(tmp_path: Path) -> None:
    apart = imported(synthesised_xml.all_to_all_around(3).xml(), tmp_path)
    assert [copies_of(apart, rank) for rank in range(3)] == [
        [f"copy input[{rank}+1] -> output[{rank}+1]"] for rank in range(3)
    ]
    whole = imported(synthesised_xml.all_gather_both_ways(4).xml(), tmp_path)
    assert copies_of(whole, 1) == ["copy input[0+2] -> output[2+2]"]


def test_scratch_may_be_numbered_behind_the_output(tmp_path: Path) -> None:
    behind = imported(synthesised_xml.all_to_all_with_scratch_behind_the_output(5).xml(), tmp_path)
    assert behind == imported(synthesised_xml.all_to_all_around(5).xml(), tmp_path)


@pytest.mark.parametrize(
    ("algo", "copy", "message"),
    [
        (synthesised_xml.all_gather_both_ways(4), (2, 2), 'i_off="2"; it must be 0 to 1'),
        (synthesised_xml.all_to_all_around(3), (1, 3), 'o_off="3"; it must be 0 to 2'),
        (synthesised_xml.all_gather_both_ways(4), (1, 2), 'o_off="2", which are not one place'),
        (synthesised_xml.reduce_scatter_around(4), (0, 0), 'o_off="0", which are not one place'),
    ],
    ids=["input", "output", "in place", "own block"],
)
def test_a_wrong_copy_is_refused_with_its_line(
    algo: msccl_xml.Algo, copy: tuple[int, int], message: str, tmp_path: Path
) -> None:
    algo.copies[1][0] = copy
    text = algo.xml()
    with pytest.raises(pccl.InvalidArgumentError) as error:
        imported(text, tmp_path)
    assert message in str(error.value)
    line = int(str(error.value).partition("algo.xml:")[2].partition(":")[0])
    assert text.splitlines()[line - 1].strip() == f'<copy i_off="{copy[0]}" o_off="{copy[1]}"/>'


def test_a_missing_copy_is_found(tmp_path: Path) -> None:
    algo = synthesised_xml.all_to_all_around(3)
    algo.copies[2] = []
    with pytest.raises(pccl.InvalidArgumentError, match=r"output\[2"):
        imported(algo.xml(), tmp_path)


def test_a_fault_in_a_program_of_one_buffer_is_not_laid_to_its_buffer(tmp_path: Path) -> None:
    algo = synthesised_xml.all_gather_both_ways(4)
    for step in algo.blocks[1][1].steps:
        step.update(depid=-1, deps=-1)
    with pytest.raises(pccl.InvalidArgumentError) as error:
        imported(algo.xml(), tmp_path)
    assert "in no order with" in str(error.value)


def test_a_name_can_be_given(tmp_path: Path) -> None:
    file = tmp_path / "a.xml"
    file.write_text(msccl_xml.ring_all_reduce(2).xml())
    assert pccl.Capsule.from_msccl(file, name="mine").name == "mine"


def change(algo: msccl_xml.Algo, gpu: int, tb: int, step: int, **fields: object) -> None:
    algo.blocks[gpu][tb].steps[step].update(fields)


def drop_a_step(algo: msccl_xml.Algo) -> None:
    algo.blocks[1][0].steps.pop()


def wrong_chunk(algo: msccl_xml.Algo) -> None:
    change(algo, 2, 0, 1, srcoff=0)


def out_of_range(algo: msccl_xml.Algo) -> None:
    change(algo, 1, 0, 2, srcoff=9)


def unknown_type(algo: msccl_xml.Algo) -> None:
    change(algo, 0, 0, 0, type="put")


def no_such_dependency(algo: msccl_xml.Algo) -> None:
    change(algo, 3, 0, 1, depid=7, deps=0)


def no_peer(algo: msccl_xml.Algo) -> None:
    algo.blocks[2][0].send = -1


def steps_out_of_order(algo: msccl_xml.Algo) -> None:
    change(algo, 1, 0, 3, s=9)


@pytest.mark.parametrize(
    ("damage", "gpu", "step", "message"),
    [
        (drop_a_step, None, None, "has no counterpart"),
        (wrong_chunk, None, None, "input"),
        (out_of_range, 1, 2, "chunks 9 to 9 are not in input, which has 4"),
        (unknown_type, 0, 0, 'has type="put"; there are s, r, rcs'),
        (no_such_dependency, 3, 1, "waits for step 0 of <tb> 7, which is not there"),
        (no_peer, 2, 0, 'a step of type s in a <tb> with send="-1"'),
        (steps_out_of_order, 1, 3, 'has s="9" where 3 follows'),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(
    damage: Callable[[msccl_xml.Algo], None],
    gpu: int | None,
    step: int | None,
    message: str,
    tmp_path: Path,
) -> None:
    algo = msccl_xml.ring_all_reduce(4)
    damage(algo)
    text = algo.xml()
    with pytest.raises(pccl.Error) as error:
        imported(text, tmp_path)
    printed = str(error.value)
    found = re.search(r"algo\.xml:(\d+): ", printed)
    assert found, printed
    assert message in printed
    assert "\n" not in printed
    line = int(found[1])
    if gpu is not None and step is not None:
        steps = len(algo.blocks[0][0].steps)
        assert line == 1 + gpu * (steps + 4) + 2 + step + 1
    assert "<step" in text.splitlines()[line - 1]


def test_a_race_is_refused_with_the_line_of_the_step(tmp_path: Path) -> None:
    algo = msccl_xml.all_pairs_all_reduce(3)
    change(algo, 1, 0, 1, depid=-1, deps=-1)
    text = algo.xml()
    with pytest.raises(pccl.InvalidArgumentError, match="in no order with") as error:
        imported(text, tmp_path)
    line = int(str(error.value).partition("algo.xml:")[2].partition(":")[0])
    assert 'type="r' in text.splitlines()[line - 1]


def test_a_deadlock_is_refused_with_the_line_of_a_step_in_it(tmp_path: Path) -> None:
    algo = msccl_xml.all_pairs_all_reduce(2)
    for gpu in range(2):
        change(algo, gpu, 1, 0, depid=0, deps=1)
    with pytest.raises(pccl.InvalidArgumentError, match=r"algo\.xml:\d+: deadlock with 8 slots"):
        imported(algo.xml(), tmp_path)


def test_scratch_for_chunks_of_unlike_indices_is_refused(tmp_path: Path) -> None:
    algo = msccl_xml.all_pairs_all_reduce(3)
    # Two parts of the vector, one after the other in one place of scratch.
    tb = algo.blocks[0][1]
    tb.add("cpy", ("i", 1), ("s", 1))
    with pytest.raises(pccl.UnsupportedError, match="holds chunks of blocks with unlike indices"):
        imported(algo.xml(), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no XML element|no XML"),
        ("<system/>", r"the root is <system>; MSCCL's XML begins with <algo>"),
        ("<algo", "this is no XML"),
        ('<algo coll="custom" ngpus="2" nchunksperloop="2"/>', 'coll="custom"'),
        ('<algo coll="allreduce" ngpus="1000000000" nchunksperloop="2"/>', "must be 1 to 65536"),
        ('<algo coll="allreduce" ngpus="2" nchunksperloop="2"/>', "a <gpu> is missing of 2"),
        ('<algo coll="allgather" ngpus="2" nchunksperloop="3"/>', "no multiple of its 2 blocks"),
        ('<algo coll="allreduce" proto="LL256" ngpus="1" nchunksperloop="1"/>', 'proto="LL256"'),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><algo coll="&b;" ngpus="1" nchunksperloop="1"/>',
            'coll="&b;"',
        ),
    ],
)
def test_what_is_no_program_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(pccl.Error, match=message):
        imported(text, tmp_path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "huge.xml"
    with file.open("wb") as out:
        out.truncate(1 << 30)
    with pytest.raises(pccl.InvalidArgumentError, match="has more than 8388608 bytes"):
        pccl.Capsule.from_msccl(file)
