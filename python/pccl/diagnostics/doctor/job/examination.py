# SPDX-License-Identifier: Apache-2.0
"""Examination of a job: all of its ranks call ``examine``, and rank 0 has the report.

Rank 0 gathers the facts of all ranks and publishes the plan: the hosts, and the rounds in which
their first ranks examine the paths. Each rank publishes its result, and rank 0 the status.
"""

from __future__ import annotations

import dataclasses
import time
import typing

from pccl.diagnostics.doctor.job import evaluation, gathering, local, rank_facts, speed, world
from pccl.diagnostics.doctor.job.agent import Agent
from pccl.diagnostics.doctor.job.hosts import hosts_of
from pccl.diagnostics.doctor.job.options import Options
from pccl.diagnostics.doctor.job.plan import Plan, plan_of
from pccl.diagnostics.doctor.job.report import HEALTHY, Report
from pccl.errors import Error, UnavailableError

if typing.TYPE_CHECKING:
    from pccl.diagnostics.doctor.job.exchange import Exchange
    from pccl.diagnostics.doctor.job.meeting import Meeting
    from pccl.diagnostics.doctor.root import Root

__all__ = ["examine"]

_IDLE_PAUSE_S = 0.2


def examine(meeting: Meeting, root: Root, options: Options | None = None) -> Report | int:
    """Examine the job.

    Returns
    -------
    Report or int
        The report on rank 0, the exit status on the others.

    Raises
    ------
    pccl.Error
        The store does not answer, or rank 0 has ended.
    """
    options = options or Options()
    begun = time.monotonic()
    facts = rank_facts.read(root, meeting.rank)
    meeting.exchange.publish(f"facts/{meeting.rank}", dataclasses.asdict(facts))
    if meeting.rank == 0:
        return _lead(meeting, root, options, begun)
    return _follow(meeting, root, options, begun)


def _lead(meeting: Meeting, root: Root, options: Options, begun: float) -> Report:
    exchange = meeting.exchange
    facts, missing = gathering.facts(exchange, meeting.size, begun + options.timeout_s)
    # The report's time begins when the last rank has started.
    begun = time.monotonic() - max(each.seconds for each in facts)
    hosts = hosts_of(facts)
    plan = plan_of(hosts, options.rounds)
    exchange.publish("plan", dataclasses.asdict(plan))
    own = _work(meeting, root, options, plan)
    others = [each.rank for each in facts if each.rank]
    results, silent = gathering.results(exchange, others, options.silence_s)
    results[0] = own
    report = evaluation.report(hosts, results, missing=missing, silent=silent)
    forms_world = report.status == HEALTHY
    exchange.publish("world", forms_world)
    if forms_world:
        report.findings.extend(world.form(meeting))
    exchange.publish("status", report.status)
    gathering.await_departures(exchange, len(others) - len(silent))
    seconds = time.monotonic() - begun
    return dataclasses.replace(
        report, seconds=seconds, paths_left_out=plan.pairs - len(report.paths)
    )


def _follow(meeting: Meeting, root: Root, options: Options, begun: float) -> int:
    exchange = meeting.exchange
    plan = Plan(**exchange.read("plan", begun + 2 * options.timeout_s))
    if plan.host_of(meeting.rank) is None:
        raise UnavailableError(
            f"rank {meeting.rank} came more than {options.timeout_s:g} s after the others: start"
            " all ranks together, or pass a longer --timeout"
        )
    gathering.publish_result(exchange, meeting.rank, _work(meeting, root, options, plan))
    deadline = time.monotonic() + _longest_s(options, plan)
    if exchange.read("world", deadline, _IDLE_PAUSE_S):
        world.form(meeting)
    status = int(exchange.read("status", deadline + world.LIMIT_S, _IDLE_PAUSE_S))
    gathering.depart(exchange)
    return status


def _longest_s(options: Options, plan: Plan) -> float:
    return options.silence_s * (len(plan.rounds) + 2)


def _work(meeting: Meeting, root: Root, options: Options, plan: Plan) -> dict[str, typing.Any]:
    """Do the part of this rank, and return its result."""
    number = plan.host_of(meeting.rank) or 0
    ranks = plan.hosts[number]
    result: dict[str, typing.Any] = {}
    try:
        result["local"] = local.measure(
            meeting.exchange.part(f"host/{number}"),
            ranks,
            meeting.rank,
            restricted="PCCL_TRANSPORTS" in root.environment,
        )
        if meeting.rank == ranks[0]:
            result.update(_examine_paths(number, meeting.exchange, root, options, plan))
    except (Error, OSError) as error:
        result["failure"] = " ".join(str(error).split())
    return result


def _examine_paths(
    number: int, exchange: Exchange, root: Root, options: Options, plan: Plan
) -> dict[str, typing.Any]:
    agent = Agent(number, root, exchange, plan, options)
    try:
        paths = agent.examine()
        return {
            "findings": agent.findings,
            "paths": paths,
            "received": agent.received(),
            "tcp_bytes_per_s": speed.tcp_bytes_per_s(),
        }
    finally:
        agent.close()
