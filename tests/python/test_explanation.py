"""What ``print(pccl.explain(...))`` shows."""

from __future__ import annotations

import pytest

from pccl.explanation import Explanation, Way

BOARD = Way("shm_two_shot", "board", 20e-6, "", is_chosen=True)


def lines_of(*ways: Way) -> list[str]:
    links = ("memory of one host: 10 GB/s, assumed",)
    return str(Explanation("all_reduce", 4096, 2, ways, links, (0, 1), 1)).splitlines()


def test_the_choice_has_a_star_and_each_way_a_line() -> None:
    heading, link, *ways = lines_of(BOARD, Way("ring", "links", 30e-6, "", is_chosen=False))
    assert heading == "all_reduce of 4096 bytes, 2 ranks"
    assert link.endswith("assumed")
    assert [way.split()[:3] for way in ways] == [
        ["*", "shm_two_shot", "board"],
        ["ring", "links", "30.0"],
    ]


@pytest.mark.parametrize(("micros", "says_why"), [(10, True), (30, False)])
def test_links_that_seem_faster_are_explained(micros: float, says_why: bool) -> None:
    ring = Way("ring", "links", micros * 1e-6, "", is_chosen=False)
    assert ("PCCL_ALGORITHM" in lines_of(BOARD, ring)[-1]) == says_why
