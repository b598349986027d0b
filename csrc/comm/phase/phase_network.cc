// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phase/phase_network.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/comm/phase/phase_call.h"

namespace pccl::comm {

using schedule::DirectedLink;
using schedule::LinkGraph;
using Outcome = Switching::Outcome;

namespace {

/// Returns why collectives of a group cannot run on these links.
Status why_unusable(const PhasedGroup& group, const PhaseLinks& phase, const LinkGraph& graph) {
    const std::string what = concat("phase ", phase.name, " of the network ");
    if (const auto apart = graph.apart())
        return Status::unsupported(concat(
            what, "takes group ", group.name(), " apart: no way from its rank ", apart->from,
            " to its rank ", apart->to, "; use a group that the phase joins, or switch phases"));
    if (graph.has_ring() || phase.forwards) return Status::ok();
    return Status::unsupported(concat(what, "has no ring through the ranks of group ", group.name(),
                                      ": give it the links of one, or let ranks pass on what is "
                                      "not theirs (forward: true)"));
}

/// Checks that every rank is connected to some others, and that connected ranks can be used
/// together.
Status check_whole(const PhasedGroup& group, const PhaseLinks& phase, const LinkGraph& graph) {
    if (const auto alone = graph.cut_off())
        return Status::invalid_argument(concat("phase ", phase.name, " leaves rank ", *alone,
                                               " without a way to and from any other of group ",
                                               group.name()));
    const Status unusable = why_unusable(group, phase, graph);
    if (unusable.is_ok() || graph.apart()) return Status::ok();
    return Status::invalid_argument(unusable.message());
}

/// Checks the return routes of one-way links at their receiving rank. `present`: null if the
/// current phase is in doubt.
Status check_ways_back(const PhasedGroup& group, const LinkGraph& wanted,
                       const LinkGraph* present) {
    for (const DirectedLink& link : wanted.links()) {
        if (link.to != group.rank() || wanted.has(link.to, link.from)) continue;
        const bool is_fixed = present != nullptr && !present->has(link.to, link.from);
        PCCL_TRY(group.check_reverse_route(link.from, is_fixed));
    }
    return Status::ok();
}

Status why_of(const Result<Switching::SwitchResult>& switch_result) {
    return switch_result.is_ok() ? switch_result->why : switch_result.status();
}

/// Follows rank 0 on another rank. A group that has lost a rank ends before its links are closed,
/// because the close reason of that rank arrives over them: it may be that ranks disagreed.
Result<Switching::SwitchResult> follow_to_the_end(PhaseCall& call, PhasedGroup& group) {
    Result<Switching::SwitchResult> switch_result = call.participate();
    const Status why = why_of(switch_result);
    if (why.code() != StatusCode::kPeerLost) return switch_result;
    group.end(why);
    const Status ended = group.health();
    if (ended.code() == StatusCode::kMismatch) return ended;
    return switch_result;
}

/// Returns the options of the controller. A switch that needs an hour for one step is considered
/// lost.
ControllerOptions options_of(const PhaseRequest& request) {
    return {.step_timeout = std::min<Duration>(request.timeout, std::chrono::hours(1)),
            .discard_candidate = request.discard_candidate,
            .interrupted = request.interrupted};
}

/// Runs the two-phase commit over the switches. Calls `drain` before the commit; a dry run calls it
/// after it has released the switches.
NetworkReport transact(const PhaseRequest& request, const std::function<Status()>& drain) {
    NetworkController& controller = *request.controller;
    NetworkReport report = controller.prepare(request.phase, options_of(request));
    if (report.outcome != cluster::Ending::kPrepared) return report;
    if (request.dry_run) {
        report = controller.discard(Status::ok());
        static_cast<void>(drain());
        return report;
    }
    const Status drained = drain();
    return drained.is_ok() ? controller.commit() : controller.discard(drained);
}

/// Returns the report of a switch whose coordinator has sent none.
NetworkReport report_of(Outcome outcome, bool dry_run) {
    if (outcome == Outcome::kSwitched)
        return {.outcome = dry_run ? cluster::Ending::kPrepared : cluster::Ending::kSwitched};
    return {.outcome = cluster::Ending::kRolledBack,
            .reason = Status::aborted("rank 0 was interrupted or failed, and reports the reason")};
}

/// Leads the switch on rank 0, and fills in `report`. All its ranks have called before anything is
/// switched.
Switching::SwitchResult lead(PhaseCall& call, const Status& own, const PhaseRequest& request,
                             NetworkReport& report) {
    if (!own.is_ok()) return {.why = own};
    Status gathered;
    report = transact(request, [&] { return gathered = call.gather(); });
    return {.outcome = report.is_done() ? Outcome::kSwitched : Outcome::kStayed,
            .why = gathered,
            .report = encode(report, Switching::kLongestReport)};
}

/// Reads the switches after the loss of rank 0. Returns whether they have the requested phase.
Result<bool> read_back(const PhaseRequest& request, const std::string& before) {
    if (request.dry_run) return false;
    PCCL_ASSIGN_OR_RETURN(const std::string shown,
                          request.controller->read_back(options_of(request)));
    if (shown == request.phase) return true;
    if (shown.empty() || shown == before) return false;
    return Status::unavailable(concat("the switches show phase ", shown));
}

}  // namespace

PhaseNetwork::PhaseNetwork(Settings settings) : settings_(std::move(settings)) {}

std::string PhaseNetwork::phase() const {
    const std::lock_guard lock(mutex_);
    return phase_;
}

std::uint32_t PhaseNetwork::generation() const {
    const std::lock_guard lock(mutex_);
    return generation_;
}

bool PhaseNetwork::is_in_use() const {
    const auto group = switching_group();
    return group != nullptr && group->health().is_ok();
}

bool PhaseNetwork::is_controller() const {
    const auto group = switching_group();
    return group != nullptr && group->rank() == 0;
}

std::uint64_t PhaseNetwork::digest() const {
    Digest digest;
    digest.add(concat(settings_.ranks));
    for (const PhaseLinks& phase : settings_.phases) {
        digest.add(concat(phase.name, phase.forwards ? " forwards" : ""));
        for (const DirectedLink& link : phase.links)
            digest.add(concat(" ", link.from, ">", link.to));
    }
    return digest.value();
}

const PhaseLinks* PhaseNetwork::find(const std::string& name) const {
    const auto found = std::ranges::find(settings_.phases, name, &PhaseLinks::name);
    return found == settings_.phases.end() ? nullptr : &*found;
}

std::vector<PhaseNetwork::Living> PhaseNetwork::living() const {
    const std::lock_guard lock(mutex_);
    std::vector<Living> groups;
    for (const Joined& each : joined_)
        if (auto group = each.group.lock(); group != nullptr && group->health().is_ok())
            groups.push_back({std::move(group), each.ranks, each.may_switch});
    return groups;
}

std::shared_ptr<PhasedGroup> PhaseNetwork::switching_group() const {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<PhasedGroup> found;
    for (const Joined& each : joined_) {
        auto group = each.may_switch ? each.group.lock() : nullptr;
        if (group == nullptr) continue;
        found = std::move(group);
        if (found->health().is_ok()) break;
    }
    return found;
}

std::shared_ptr<const LinkGraph> PhaseNetwork::graph_of(const PhasedGroup& group,
                                                        const std::vector<Rank>& ranks,
                                                        const PhaseLinks& phase) const {
    const auto size = static_cast<Rank>(ranks.size());
    std::vector<DirectedLink> links;
    for (Rank from = 0; from < size; ++from)
        for (Rank to = 0; to < size; ++to) {
            const DirectedLink wanted{ranks[static_cast<std::size_t>(from)],
                                      ranks[static_cast<std::size_t>(to)]};
            const bool is_linked = std::ranges::find(phase.links, wanted) != phase.links.end();
            const bool is_near = settings_.has_hosts && group.share_memory(from, to);
            if (from != to && (is_linked || is_near)) links.push_back({from, to});
        }
    auto graph = std::make_shared<const LinkGraph>(size, links);
    return graph->is_complete() ? nullptr : graph;
}

Status PhaseNetwork::join(const std::shared_ptr<PhasedGroup>& group, std::vector<Rank> ranks,
                          bool may_switch) {
    const auto is_known = [&](Rank rank) { return rank >= 0 && rank < settings_.ranks; };
    if (!std::ranges::all_of(ranks, is_known) ||
        ranks.size() != static_cast<std::size_t>(group->size()))
        return Status::invalid_argument(concat("group ", group->name(), " of ", group->size(),
                                               " ranks does not fit a cluster of ", settings_.ranks,
                                               " devices"));
    group->enter(phase_of(*group, ranks));
    if (may_switch) group->switching().publish({.number = calls_});
    const std::lock_guard lock(mutex_);
    std::erase_if(joined_, [](const Joined& each) { return each.group.expired(); });
    joined_.push_back({group, std::move(ranks), may_switch});
    return Status::ok();
}

Result<std::shared_ptr<const LinkGraph>> PhaseNetwork::links_in(const std::string& phase,
                                                                const PhasedGroup& group) const {
    const PhaseLinks* const wanted = find(phase);
    if (wanted == nullptr) return no_such_phase(phase);
    for (const Living& each : living())
        if (each.group.get() == &group) return graph_of(group, each.ranks, *wanted);
    return Status::unavailable(concat("group ", group.name(), " is on no network any more"));
}

Status PhaseNetwork::no_such_phase(const std::string& name) const {
    std::string known;
    for (const PhaseLinks& each : settings_.phases)
        known += concat(known.empty() ? "" : ", ", each.name);
    return Status::invalid_argument(concat("there is no phase ", name, "; there are ", known));
}

Status PhaseNetwork::check(const std::string& name, const std::vector<Living>& groups) const {
    const PhaseLinks* const wanted = find(name);
    if (wanted == nullptr) return no_such_phase(name);
    for (const Living& each : groups) {
        if (!each.may_switch) continue;
        const auto graph = graph_of(*each.group, each.ranks, *wanted);
        if (graph == nullptr) continue;
        PCCL_TRY(check_whole(*each.group, *wanted, *graph));
        if (!settings_.has_hosts) continue;
        const PhaseLinks* const known = find(phase());
        const auto present = known == nullptr ? nullptr : graph_of(*each.group, each.ranks, *known);
        PCCL_TRY(check_ways_back(*each.group, *graph, present.get()));
    }
    return Status::ok();
}

GroupPhase PhaseNetwork::phase_of(const PhasedGroup& group, const std::vector<Rank>& ranks) const {
    GroupPhase present{.name = phase(), .generation = generation(), .links = nullptr};
    if (const Status doubt = why_in_doubt(); !doubt.is_ok()) {
        present.links = graph_of(group, ranks, {});
        if (present.links != nullptr) present.unusable = doubt;
        return present;
    }
    const PhaseLinks* const known = find(present.name);
    if (known == nullptr) return present;
    present.links = graph_of(group, ranks, *known);
    if (present.links != nullptr) present.unusable = why_unusable(group, *known, *present.links);
    return present;
}

Status PhaseNetwork::why_in_doubt() const {
    const std::lock_guard lock(mutex_);
    return doubt_;
}

void PhaseNetwork::apply_result(const Switching::SwitchResult& switch_result,
                                const PhaseRequest& request, const std::vector<Living>& groups) {
    if (request.dry_run || switch_result.outcome == Outcome::kStayed) return;
    if (switch_result.outcome == Outcome::kSwitched)
        return enter(request.phase, Status::ok(), groups);
    enter({},
          Status::unavailable(concat("it is not known which phase the network is in: ",
                                     switch_result.why.message())),
          groups);
}

void PhaseNetwork::enter(const std::string& name, const Status& doubt,
                         const std::vector<Living>& groups) {
    {
        const std::lock_guard lock(mutex_);
        phase_ = name;
        doubt_ = doubt;
        generation_ = static_cast<std::uint32_t>(calls_);
    }
    for (const Living& each : groups) each.group->enter(phase_of(*each.group, each.ranks));
}

Result<NetworkReport> PhaseNetwork::switch_phase(const PhaseRequest& request) {
    const std::unique_lock turn(switching_, std::try_to_lock);
    if (!turn.owns_lock())
        return Status::unavailable("another thread of this process switches phases");
    const auto group = switching_group();
    if (group == nullptr) return Status::unavailable("no group of this cluster is there to switch");
    PCCL_TRY(group->health());
    if (group->rank() == 0 && request.controller == nullptr)
        return Status::invalid_argument("rank 0 has no controller of the network's switches");
    const std::vector<Living> groups = living();
    PhaseCallOptions options{
        .group = *group,
        .groups = {},
        .proposal = concat(request.phase, request.dry_run ? ", a dry run" : ""),
        .phases = digest(),
        .own = check(request.phase, groups),
        .deadline = Deadline::after(request.timeout),
        .answer_timeout = process_config().peer_timeout,
        .read_back = {}};
    if (request.controller != nullptr)
        options.read_back = [&request, before = phase()] { return read_back(request, before); };
    for (const Living& each : groups) {
        each.group->hold();
        options.groups.push_back(each.group);
    }
    const ScopeExit released([&] {
        for (const Living& each : groups) each.group->release();
    });
    const Status own = options.own;
    PhaseCall call(std::move(options));
    std::optional<NetworkReport> report;
    Result<Switching::SwitchResult> switch_result = group->rank() == 0
                                                        ? lead(call, own, request, report.emplace())
                                                        : follow_to_the_end(call, *group);
    const Status why = why_of(switch_result);
    calls_ = group->switching().published().number;
    if (switch_result.is_ok()) apply_result(*switch_result, request, groups);
    if (group->rank() == 0) call.publish_result(*switch_result);
    group->note_ended_switch(why);
    if (why.code() == StatusCode::kPeerLost) group->end(why);
    if (!why.is_ok()) return why;
    if (report) return *std::move(report);
    const auto sent = decode_report(switch_result->report);
    return sent.is_ok() ? *sent : report_of(switch_result->outcome, request.dry_run);
}

}  // namespace pccl::comm
