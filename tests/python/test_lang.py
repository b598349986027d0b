# SPDX-License-Identifier: Apache-2.0
"""The language of algorithms: what it makes of them, and what it says of mistakes."""

from __future__ import annotations

import doctest
import functools
import inspect
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pccl
import pccl.lang as pl
from pccl import schedule
from support import algorithms

if TYPE_CHECKING:
    from collections.abc import Callable


def line_of(marker: str) -> int:
    """The line of this file that ends with a comment."""
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()  # type: ignore[arg-type]
    return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {marker}"))


def error_of(build: Callable[[], object]) -> pl.ProgramError:
    with pytest.raises(pl.ProgramError) as error:
        build()
    assert error.value.line.file == __file__
    return error.value


@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("made", algorithms.ALGORITHMS, ids=lambda made: made.function.__name__)
def test_algorithms_are_built_for_any_number_of_ranks(made: pl.Algorithm, ranks: int) -> None:
    capsule = made.build(ranks=ranks)
    assert capsule.name == made.function.__name__
    assert capsule.schedule.ranks == ranks
    assert capsule.schedule.collective == made.collective
    assert capsule == made.build(ranks=ranks)


@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_the_ring_of_the_language_is_the_ring_of_the_library(ranks: int) -> None:
    """But for which chunk begins where: the same messages, and nothing stored in between."""
    built = algorithms.ring.build(ranks=ranks).schedule
    made = schedule.generate("ring", "all_reduce", ranks)
    assert [(step.action, step.receives, step.sends) for step in built.steps] == [
        (step.action, step.receives, step.sends) for step in made.steps
    ]


def test_an_algorithm_may_request_a_protocol_of_messages() -> None:
    @pl.algorithm("all_gather", protocol="ll128")
    def spread(c: pl.Program) -> None:
        for source in range(c.ranks):
            for rank in range(c.ranks):
                c.input(source).copy_to(rank)

    capsule = spread.build(ranks=3)
    # The bytes of capsules keep the name that they have had.
    assert (capsule.protocol, capsule.manifest["protocol"]) == ("ll128", "lines")
    assert pccl.Capsule.parse(capsule.data).protocol == "ll128"
    assert algorithms.ring.build(ranks=3).protocol == ""
    alone = pl.Steps("all_gather", ranks=1, protocol="ll")
    alone.lane(0).copy(pl.Slice("input", 0), pl.Slice("output", 0))
    assert alone.build("alone").protocol == "ll"


CORPUS = Path(__file__).parents[1] / "fuzz/corpus/capsule"


def test_files_of_before_there_were_links_are_read_and_keep_their_digests() -> None:
    before = pccl.Capsule.load(CORPUS / "ring")
    assert before.data == (CORPUS / "ring").read_bytes()
    assert before.digest.startswith("a1738d97cb0c")
    made = pl.from_generator("ring", "reduce_scatter", 3, name="ring")
    assert made.schedule == before.schedule
    # All that was said before is said as before: no protocol where none is asked for.
    assert made.manifest == before.manifest | {"links": "+1"}


def test_capsules_that_use_every_link_keep_the_bytes_that_they_had() -> None:
    before = pccl.Capsule.load(CORPUS / "ring_by_lines")
    made = pl.from_generator("ring", "all_reduce", 2, name="ring2", protocol="ll128")
    assert made.data == before.data
    assert made.digest.startswith("4fbc98f2675c")


@pytest.mark.parametrize("make", [pl.algorithm, functools.partial(pl.Steps, ranks=2)])
def test_a_protocol_that_there_is_not_is_refused(make: Any) -> None:
    message = "'LL' is no protocol of messages; there are ll, ll128, direct"
    with pytest.raises(pccl.InvalidArgumentError, match=message):
        make("all_reduce", protocol="LL")


@pytest.mark.parametrize(("former", "name"), [("words", "ll"), ("lines", "ll128")])
def test_former_names_of_protocols_are_taken_with_a_warning(former: Any, name: str) -> None:
    ring = schedule.generate("ring", "all_gather", 2)
    for make in (
        lambda: pccl.Capsule.of(ring, protocol=former),
        lambda: pl.from_generator("ring", "all_gather", 2, protocol=former),
        lambda: pl.from_generator("ring", "all_gather", protocol=former).build(ranks=2),
    ):
        with pytest.warns(DeprecationWarning, match=f"'{former}' is now called '{name}'") as caught:
            assert make().protocol == name
        assert [warning.filename for warning in caught] == [__file__]


# Thakur, Rabenseifner and Gropp 2005: lg p rounds, in which (p - 1) blocks are sent by each.
def test_joined_chunks_are_one_message() -> None:
    capsule = algorithms.doubling_all_gather.build(ranks=8)
    rounds, messages, sent, _ = capsule._core.cost(8 * 1000)
    assert (rounds, messages, sent) == (3, 3, 7 * 1000)


def test_instances_run_side_by_side_on_channels_of_their_own() -> None:
    once = algorithms.ring_reduce_scatter.build(ranks=4)
    twice = algorithms.ring_reduce_scatter.build(ranks=4, instances=2)
    assert twice.manifest["channels"] == 2 * once.manifest["channels"]
    assert twice.manifest["lanes"] == 2 * once.manifest["lanes"]
    assert twice.schedule.chunks == 2 * once.schedule.chunks
    assert twice.manifest["rounds"] == once.manifest["rounds"]


def test_parameters_reach_the_function() -> None:
    @pl.algorithm("all_reduce")
    def star(c: pl.Program, hub: int = 0) -> None:
        for rank in range(c.ranks):
            if rank != hub:
                c.input(rank).reduce_to(hub)
        for rank in range(c.ranks):
            if rank != hub:
                c.output(hub).copy_to(rank)

    built = star.build("star2", ranks=3, hub=2)
    assert built.manifest["sums"] == [{"chunks": "0..0", "order": "(0+2)+1"}]


def test_an_algorithm_is_a_part_of_another() -> None:
    @pl.algorithm("all_reduce", chunks=lambda ranks: ranks)
    def same(c: pl.Program) -> None:
        algorithms.ring(c)

    assert str(same.build("x", ranks=4).schedule) == str(
        algorithms.ring.build("x", ranks=4).schedule
    )


def test_steps_describe_the_lanes() -> None:
    built = algorithms.two_rank_steps().build("two", sizes="..1KB", author="Ada")
    assert [step.text for step in built.schedule.steps if step.rank == 1] == [
        "send input[0+1] to 0/0",
        "recv_reduce input[0+1] -> output[0+1] from 0/0 after 0:0",
    ]
    assert built.sizes == "..1KB"
    assert built.manifest["author"] == "Ada"


def test_generators_can_be_read() -> None:
    capsule = pl.from_generator("pat", "all_gather", 8)
    assert capsule.name == "pat8"
    made = schedule.generate("pat", "all_gather", 8)
    assert [step.text for step in capsule.schedule.steps] == [step.text for step in made.steps]


def random_tree(ranks: list[int], draw: random.Random) -> list[tuple[int, int]]:
    """(parent, child) of each edge, the root first."""
    order = draw.sample(ranks, len(ranks))
    return [(order[draw.randrange(i)], order[i]) for i in range(1, len(order))]


# Whatever trees the contributions take, and on whatever channels: they are all right, and the
# verifier, which knows nothing of trees, must find them so.
@pytest.mark.parametrize("seed", range(40))
def test_random_trees_are_right(seed: int) -> None:
    draw = random.Random(seed)
    ranks = draw.randint(2, 9)

    @pl.algorithm("all_reduce", ranks=ranks, chunks=draw.randint(1, 4), slots=draw.randint(1, 3))
    def trees(c: pl.Program) -> None:
        for chunk in range(c.chunks):
            edges = random_tree(list(range(c.ranks)), draw)
            root = edges[0][0]
            have = {rank: c.input(rank, chunk) for rank in range(c.ranks)}
            for parent, child in reversed(edges):
                have[parent] = have[child].reduce_to(parent, channel=draw.randrange(3))
            x = have[root]
            reached = {root: x}
            for parent, child in edges:
                reached[child] = reached[parent].copy_to(child, channel=draw.randrange(3))

    assert trees.build(instances=draw.randint(1, 2)).manifest["bit_identical"]


def test_a_contribution_that_is_added_twice_is_found_at_its_line() -> None:
    @pl.algorithm("all_reduce", ranks=3)
    def twice(c: pl.Program) -> None:
        x = c.input(0)
        x = x.reduce_to(1)
        x = x.reduce_to(2)
        x = x.reduce_to(1)  # again
        for rank in (0, 2):
            x.copy_to(rank)

    error = error_of(twice.build)
    assert error.line.number == line_of("again")
    assert "x = x.reduce_to(1)  # again" in str(error)
    assert "a second time" in str(error)


def test_a_missing_contribution_is_found_where_the_result_is_written() -> None:
    @pl.algorithm("all_reduce", ranks=3)
    def short(c: pl.Program) -> None:
        x = c.input(0).reduce_to(1)
        x.copy_to(0)  # short
        x.copy_to(2)

    error = error_of(short.build)
    assert error.line.number == line_of("short")
    assert "lacks input[0] of rank 2" in str(error)


def test_a_result_that_nobody_writes_is_the_function_s() -> None:
    @pl.algorithm("broadcast", ranks=3)  # nobody
    def nobody(c: pl.Program) -> None:
        c.input(0).copy_to(0)
        c.input(0).copy_to(1)

    error = error_of(nobody.build)
    assert error.line.number == line_of("nobody")
    assert "no step of rank 2 writes output[" in str(error)


def test_a_value_that_was_overwritten_cannot_be_read() -> None:
    @pl.algorithm("all_reduce", ranks=2)
    def stale(c: pl.Program) -> None:
        room = c.scratch(0)
        x = c.input(0).copy_to(room)
        c.input(1).reduce_to(x)  # overwrites
        x.copy_to(1)  # stale

    error = error_of(stale.build)
    assert error.line.number == line_of("stale")
    assert f"overwritten at test_lang.py:{line_of('overwrites')}" in str(error)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.input(4), "4 is no rank; ranks are 0 to 3"),
        (lambda c: c.input(0, chunk=2), "input of rank 0 has chunks 0 to 1, not 1 from 2 on"),
        (lambda c: c.output(0).copy_to(1), "output chunk 0 of rank 0 holds nothing yet"),
        (lambda c: c.input(0).copy_to(c.input(1)), "input belongs to the caller"),
        (lambda c: c.input(0, count=2).copy_to(c.output(1)), "2 chunks do not fit 1"),
        (lambda c: pl.join(c.input(0), c.input(1)), "only chunks of one rank"),
        (lambda c: c.input(0).copy_to(1, channel=-1), "-1 is no channel"),
        (lambda c: c.input(0)[3], "has no chunks"),
        (lambda c: pl.join(c.input(0), c.input(0)).copy_to(1), "two chunks would come to one"),
    ],
)
def test_mistakes_are_found_where_they_are_made(
    wrong: Callable[[pl.Program], Any], message: str
) -> None:
    made = pl.algorithm("all_reduce", ranks=4, chunks=2)(wrong)
    error = error_of(made.build)
    assert message in str(error)


def test_a_copy_that_does_not_reduce_is_refused() -> None:
    made = pl.algorithm("all_gather", ranks=2)(lambda c: c.input(0).reduce_to(1))
    assert "all_gather adds nothing up" in str(error_of(lambda: made.build("x")))


def test_shapes_that_there_are_not_are_refused() -> None:
    with pytest.raises(pccl.InvalidArgumentError, match="'all_dance' is no collective"):
        pl.algorithm("all_dance")  # type: ignore[arg-type]
    with pytest.raises(pccl.InvalidArgumentError, match=r"pass build\(ranks=...\)"):
        algorithms.ring.build()
    with pytest.raises(pccl.InvalidArgumentError, match="1 chunks and root 1"):
        pl.algorithm("broadcast", ranks=1, root=1)(lambda c: None).build("x")
    assert "instances is 0" in str(error_of(_no_instances))


def _no_instances() -> object:
    made = pl.algorithm("broadcast", ranks=1)(lambda c: c.input(0).copy_to(0))
    return made.build("x", instances=0)


def test_a_race_between_lanes_shows_both_steps() -> None:
    steps = pl.Steps("all_reduce", ranks=2)
    for rank in range(2):
        whole, out = pl.Slice("input", 0), pl.Slice("output", 0)
        first, second = steps.lane(rank), steps.lane(rank)
        first.send(whole, 1 - rank)
        first.recv_reduce(1 - rank, out, src=whole)  # one
        second.copy(whole, out)  # other
    message = str(error_of(lambda: steps.build("race")))
    assert "in no order with" in message
    for marker in ("one", "other"):
        assert re.search(rf"step \d is of test_lang.py:{line_of(marker)}: ", message), marker


def test_a_deadlock_shows_the_steps_that_wait_for_each_other() -> None:
    steps = pl.Steps("all_reduce", ranks=2)
    for rank in range(2):
        lane = steps.lane(rank)
        lane.recv_reduce(1 - rank, pl.Slice("output", 0), src=pl.Slice("input", 0))  # waits
        lane.send(pl.Slice("input", 0), 1 - rank)
    error = error_of(lambda: steps.build("stuck"))
    assert "deadlock" in str(error)
    assert f"test_lang.py:{line_of('waits')}" in str(error)


def test_steps_that_cannot_be_are_refused() -> None:
    steps = pl.Steps("all_reduce", ranks=2)
    there = steps.lane(0).nop()
    assert "cannot wait for one of 0" in str(error_of(lambda: steps.lane(1).nop(after=there)))
    assert "2 is no rank" in str(error_of(lambda: steps.lane(2)))


def test_results_show_themselves() -> None:
    pytest.importorskip("matplotlib")
    capsule = algorithms.ring.build("ring4", ranks=4, sizes="1MB..")
    assert re.fullmatch(
        r"<pccl.Capsule ring4: all_reduce, 4 ranks, 6 rounds, sizes 1MB.., [0-9a-f]{12}>",
        repr(capsule),
    )
    assert repr(algorithms.ring) == "<pccl.lang algorithm ring: all_reduce, any number of ranks>"
    assert capsule.plot().axes
    node = pccl.topology.example("dgx1v")
    simulated = capsule.simulate(node, "64MB")
    # A ring sends, and passes on, 2 (n - 1) / n of the vector, and adds up half of that.
    assert (simulated.rounds, simulated.messages) == (6, 6)
    assert simulated.bytes_sent == 1.5 * (64 << 20)
    assert simulated.bytes_reduced == 0.75 * (64 << 20)
    built_in = next(way for way in simulated.others if way.algorithm == "ring")
    assert simulated.seconds == pytest.approx(built_in.seconds)
    assert simulated.plot().axes
    assert "ring4" in simulated._repr_html_()
    job = pccl.topology.Job.of([("a", [0, 1], node), ("b", [2, 3], node)])
    assert capsule.simulate(job, 1 << 20).busiest


def test_a_capsule_comes_back_from_its_file(tmp_path: Any) -> None:
    capsule = algorithms.all_pairs.build("pairs", ranks=4, note="two\nlines")
    capsule.save(tmp_path / "pairs.capsule")
    again = pccl.Capsule.load(tmp_path / "pairs.capsule")
    assert again == capsule
    assert hash(again) == hash(capsule)
    assert pccl.Capsule.parse(capsule.data).digest == capsule.digest
    with pytest.raises(pccl.InvalidArgumentError, match="this is no capsule"):
        pccl.Capsule.parse(b"<algo/>")


def test_examples_of_the_docstring_run() -> None:
    found = doctest.testmod(pl, optionflags=doctest.ELLIPSIS)
    assert found.attempted >= 3
    assert found.failed == 0


def test_steps_in_conflict_are_drawn_with_their_lines() -> None:
    """Two lanes write one chunk: both are marked, and an arrow joins them."""
    pytest.importorskip("matplotlib")
    steps = pl.Steps("broadcast", ranks=2)
    steps.lane(1).recv(0, pl.Slice("output", 0))
    sends, copies = steps.lane(0), steps.lane(0)
    sends.copy(pl.Slice("input", 0), pl.Slice("output", 0))
    sends.send(pl.Slice("output", 0), 1)
    copies.copy(pl.Slice("input", 0), pl.Slice("output", 0))
    with pytest.raises(pl.ProgramError) as raised:
        steps.build("race")
    conflict = raised.value.conflict
    assert conflict is not None
    assert sorted(conflict.places) == [(0, 0, 0), (0, 1, 0)]
    texts = [text.get_text() for text in raised.value.plot().axes[0].texts]
    assert sum("test_lang.py" in text for text in texts) == 2
    assert "1: send output[0+1] to 1/0" in texts


def test_an_error_of_no_step_has_no_picture() -> None:
    with pytest.raises(pl.ProgramError) as raised:
        pl.Steps("all_reduce", ranks=2).lane(2)
    assert raised.value.conflict is None
    with pytest.raises(ValueError, match="it is no step that is wrong"):
        raised.value.plot()
