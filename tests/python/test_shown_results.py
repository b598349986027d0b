# SPDX-License-Identifier: Apache-2.0
"""What public objects print as, what notebooks show of results, and data frames made of them."""

from __future__ import annotations

import importlib
import inspect
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars
import pytest
from matplotlib.quiver import Quiver

import pccl
from pccl import bench, schedule, topology
from pccl.bench import tune
from pccl.results.named import Charge, LinksCountedOn, Ports
from pccl.results.schedule_steps import Step, rounds_of
from pccl.results.table import Table, html_table
from pccl.schedule.html import MOST_RANKS, MOST_ROUNDS

if TYPE_CHECKING:
    from collections.abc import Sequence


class Cells(HTMLParser):
    """The texts of a table's cells, line by line."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[list[str]] = []
        self.caption = ""
        self._into = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Sequence[object]) -> None:
        if tag == "tr":
            self.lines.append([])
        if tag in ("td", "th"):
            self.lines[-1].append("")
        self._into = {"td": "cell", "th": "cell", "caption": "caption"}.get(tag, self._into)

    def handle_data(self, data: str) -> None:
        if self._into == "caption":
            self.caption += data
        elif self._into == "cell":
            self.lines[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "caption"):
            self._into = ""


ROW = bench.Row("all_reduce", 1024, 256, "float32", "sum", -1, 12.5, 0.08, 0.08, 0)
CELL = tune.Cell("broadcast", 2, 1024, 512, "b", {"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 1.0})
DGX1V = topology.example("dgx1v")


def job_of_two() -> topology.Job:
    return topology.Job.of([(f"node{i}", range(8 * i, 8 * i + 8), DGX1V) for i in range(2)])


class Public(NamedTuple):
    """An object that users get, and what it prints as."""

    value: object
    printed: str


def public_objects() -> list[Public]:
    program = schedule.generate("ring", "all_gather", 3)
    explained = pccl.explain("all_reduce", 1 << 20, job_of_two())
    return [
        Public(pccl.gpu.device_plan("all_reduce", 1024, 2), r"(ll|direct), \d+ blocks of \d+"),
        Public(program, "<pccl.Schedule ring: all_gather, 3 ranks, 1 chunk, 2 slots>"),
        Public(program.steps[0], r"Step\(rank=0, lane=0, step=0, action='.*"),
        Public(
            explained, r"all_reduce of 1048576 bytes, 16 ranks\n(?s:.*)\n\* \w+ +links .*(?s:.*)"
        ),
        Public(explained.chosen, r"Way\(algorithm='.*"),
        Public(DGX1V, "8 GPUs, 4 NIC ports, 2 CPUs, .*"),
        Public(DGX1V.search("ring", nodes=2), "ring for 2 nodes: .*"),
        Public(
            DGX1V.search("ring", nodes=2).channels[0],
            r"GPUs \d( \d){7}: [\d.]+ GB/s, in by net\d, out by net\d",
        ),
        Public(DGX1V.path("gpu0", "net0"), "PIX, 12 GB/s, 3 hops"),
        Public(DGX1V.nodes[0], r"\w+\d"),
        Public(DGX1V.facts[0], r".*=.* \(.*\)"),
        Public(DGX1V.links[0], r"Link\(source='.*"),
        Public(job_of_two(), "2 hosts, 16 ranks, .*"),
        Public(job_of_two().links[0], r"hosts 0 and 1: [\d.]+ GB/s"),
        Public(job_of_two().rails[0], r"ports 0 0: [\d.]+ GB/s"),
        Public(job_of_two().hosts[0], r"Host\(name='node0'.*"),
        Public(pccl.Communicator().health()[0], r"PeerHealth\(rank=0, state='here'.*"),
        Public(ROW, r"Row\(collective='all_reduce'.*"),
        Public(CELL, r"Cell\(collective='broadcast'.*"),
    ]


@pytest.mark.parametrize(
    "public", [pytest.param(p, id=type(p.value).__name__) for p in public_objects()]
)
def test_public_objects_have_a_repr(public: Public) -> None:
    assert re.fullmatch(public.printed, repr(public.value))


def test_no_public_class_prints_as_an_address() -> None:
    importlib.import_module("torch")
    bare = [
        f"{module.__name__}.{name}"
        for module in (pccl, pccl.communicator, pccl.gpu, pccl.phases, schedule, topology)
        for name in module.__all__
        if inspect.isclass(value := getattr(module, name))
        and not issubclass(value, Exception)
        and "__repr__"
        not in {
            each
            for base in value.__mro__[:-1]
            for each in vars(base)
            if not base.__module__.startswith("pybind11")
        }
    ]
    assert bare == []


def test_options_print_their_values() -> None:
    importlib.import_module("torch")
    options = pccl.Options(transports="shm", least=3)
    assert repr(options) == (
        "pccl.Options(transports='shm', algorithm='', copy_engines=None, max_blocks=None, "
        "protocol='', least=3, timeline=0)"
    )
    options = pccl.Options(
        algorithm="all_reduce=ring", copy_engines=True, max_blocks=16, timeline=99
    )
    options.protocol = "direct"
    assert repr(options) == (
        "pccl.Options(transports='', algorithm='all_reduce=ring', copy_engines=True, "
        "max_blocks=16, protocol='direct', least=None, timeline=99)"
    )


def test_options_that_cannot_be_are_refused() -> None:
    importlib.import_module("torch")
    for max_blocks in (0, 129):
        with pytest.raises(ValueError, match=f"at most {max_blocks} blocks: .* from 1 to 128"):
            pccl.Options(max_blocks=max_blocks)
    options = pccl.Options(protocol="ll")
    with pytest.raises(ValueError, match="'LL' is no protocol: ll, direct, staggered, copy_engine"):
        options.protocol = "LL"
    assert options.protocol == "ll"
    with pytest.warns(DeprecationWarning, match="'turns' is now called 'staggered'"):
        options.protocol = "turns"
    assert options.protocol == "staggered"


def test_an_explanation_is_a_table_in_a_notebook() -> None:
    explained = pccl.explain("all_reduce", 1 << 20, job_of_two())
    page = explained._repr_html_()
    table = Cells(page)
    assert "1048576 bytes, 16 ranks" in table.caption
    assert "the network of node0" in table.caption
    assert table.lines[0] == list(explained.chosen._fields)
    assert [line[0] for line in table.lines[1:]] == [way.algorithm for way in explained.ways]
    assert page.count("bold") == 1
    assert f'bold"><td>{explained.chosen.algorithm}<' in page


def test_health_is_a_table_in_a_notebook() -> None:
    health = pccl.Communicator().health()
    assert isinstance(health, list)
    heading, line = Cells(health._repr_html_()).lines
    assert dict(zip(heading, line, strict=True))["state"] == "here"


@pytest.mark.parametrize("result", [ROW, CELL])
def test_measurements_are_a_table_in_a_notebook(result: bench.Row | tune.Cell) -> None:
    heading, line = Cells(Table([result])._repr_html_()).lines
    assert dict(zip(heading, line, strict=True))["collective"] == result.collective


@pytest.mark.multiproc
def test_what_a_benchmark_returns_is_such_a_table() -> None:
    found = bench.run(bench.Job(sizes=(64, 256), collectives=("broadcast",)))
    assert [row.size for row in found] == [64, 256]
    assert [line[1] for line in Cells(found._repr_html_()).lines[1:]] == ["64", "256"]


def test_a_schedule_is_a_table_of_ranks_and_rounds() -> None:
    program = schedule.generate("ring", "all_gather", 3)
    table = Cells(program._repr_html_())
    assert repr(program) in table.caption
    assert table.lines[0] == ["rank", "round 0", "round 1", "round 2"]
    assert [line[0] for line in table.lines[1:]] == ["0", "1", "2"]
    shown = "\n".join(cell for line in table.lines for cell in line)
    assert all(step.text in shown for step in program.steps)


def test_the_beginning_of_a_long_schedule_is_shown_as_such() -> None:
    table = Cells(schedule.generate("ring", "all_reduce", 40)._repr_html_())
    assert len(table.lines) == 1 + MOST_RANKS
    assert len(table.lines[0]) == 1 + MOST_ROUNDS + 1
    assert f"the first {MOST_RANKS} of its 40 ranks" in table.caption
    assert f"up to round {MOST_ROUNDS} of 78" in table.caption


def test_text_of_results_is_no_markup() -> None:
    page = html_table([{"name": "<b>&"}], caption="<i>")
    assert "<b>" not in page
    assert "<i>" not in page
    assert Cells(page).lines == [["name"], ["<b>&"]]
    assert "nothing" in html_table([])


COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "all_to_all",
)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_steps_take_as_many_rounds_as_the_verifier_counts(collective: str) -> None:
    for algorithm in schedule.algorithms(collective):  # type: ignore[arg-type]
        for ranks in (2, 3, 8):
            program = schedule.generate(algorithm, collective, ranks)
            rounds = rounds_of(program.steps)
            assert max(rounds.values()) == program.verify()["rounds"], (algorithm, ranks)


def test_steps_are_all_that_a_schedule_prints() -> None:
    program = schedule.generate("double_binary_tree", "all_reduce", 5, chunks=4)
    lines = [f"rank {s.rank} lane {s.lane} step {s.step}: {s.text}" for s in program.steps]
    assert str(program).splitlines()[1:] == lines
    sends = [step for step in program.steps if step.sends]
    assert all(
        f" to {step.sends.peer}/{step.sends.channel}" in step.text for step in sends if step.sends
    )


def test_steps_that_wait_for_ever_are_refused() -> None:
    program = schedule.generate("ring", "all_gather", 3)
    with pytest.raises(ValueError, match="that no step sends"):
        rounds_of([step for step in program.steps if step.rank != 0])


@pytest.mark.parametrize("ranks", [1, 2, 9])
def test_the_picture_of_a_schedule_has_an_arrow_for_each_message(ranks: int) -> None:
    program = schedule.generate("recursive_halving", "all_reduce", ranks)
    (axes,) = program.plot().axes
    arrows = [each for each in axes.collections if isinstance(each, Quiver)]
    assert sum(each.N for each in arrows) == sum(step.sends is not None for step in program.steps)
    for each in arrows:
        for left, begin, right, rise in zip(each.X, each.Y, each.U, each.V, strict=True):
            assert right == 1
            assert axes.get_xlim()[0] < left < left + right < axes.get_xlim()[1]
            for rank in (begin, begin + rise):
                assert axes.get_ylim()[1] < rank < axes.get_ylim()[0]


def results() -> list[object]:
    explained = pccl.explain("all_reduce", 1 << 20, job_of_two())
    program = schedule.generate("ring", "all_gather", 3)
    health = pccl.Communicator().health()
    return [explained, program.steps, health, Table([ROW, ROW]), Table([CELL])]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_rows_make_a_data_frame(result: object) -> None:
    rows = result.rows  # type: ignore[attr-defined]
    frame = polars.DataFrame(rows)
    assert frame.height == len(rows)
    assert frame.columns == list(rows[0])
    assert frame.rows(named=True) == rows
    # What pandas asks of a list of rows.
    assert all(isinstance(row, dict) and list(row) == list(rows[0]) for row in rows)


def test_rows_of_tuning_have_a_column_for_each_algorithm() -> None:
    (row,) = Table([CELL]).rows
    assert (row["a_us"], row["b_us"], row["best"], row["loss"]) == (1.0, 3.0, "a", 3.0)


def test_several_results_have_names() -> None:
    comm = pccl.Communicator()
    counted_on = comm.links_counted_on()
    assert isinstance(counted_on, LinksCountedOn)
    assert counted_on.order == [0]
    assert counted_on.lanes == 1
    path = DGX1V.path("gpu0", "net0")
    assert all(isinstance(charge, Charge) for charge in path.charges)
    assert DGX1V.links[path.charges[0].link].source == "gpu0"
    channel = DGX1V.search("ring", nodes=2).channels[0]
    assert channel.nets == Ports(entry=channel.nets[0], exit=channel.nets[1])  # type: ignore[index]
    assert DGX1V.search("ring").channels[0].nets is None
    assert isinstance(schedule.generate("ring", "all_gather", 3).steps[0], Step)


def test_tables_are_lists() -> None:
    table = Table([ROW])
    assert table == [ROW]
    assert np.size(table) == 1
