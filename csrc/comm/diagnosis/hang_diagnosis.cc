// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/hang_diagnosis.h"

#include <mutex>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/comm/diagnosis/other_groups.h"
#include "csrc/comm/diagnosis/wait_for_graph.h"
#include "csrc/runtime/flight/flight_dump.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kMostQueried = 4;
constexpr std::size_t kMostRemembered = 64;

}  // namespace

HangDiagnosis::HangDiagnosis(const DiagnosisSubject& subject)
    : subject_(subject),
      report_(subject_, received_),
      survey_(subject_, report_),
      group_probe_(subject_, report_, survey_, received_) {}

void HangDiagnosis::look_around(Duration idle) {
    if (idle > subject_.timing.look_after) look_at_awaited();
    if (idle > subject_.timing.query_after) query_awaited();
    if (notice_.is_due(idle)) log_awaited_ranks(idle);
}

void HangDiagnosis::log_awaited_ranks(Duration idle) const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const RankStatus now = report_.rank_status();
    if (!now.broken.is_ok() || now.awaited.empty()) return;
    const Rank first = now.awaited.front();
    std::string process;
    if (members.has_endpoints() && now.awaited.size() == 1) {
        const bootstrap::Endpoint& peer = members.endpoint(first);
        process = concat(" (process ", peer.pid, " on ", peer.host, ")");
    }
    log(LogLevel::kWarning, "group ", members.group_name(), ": rank ", members.rank(),
        " has waited ", in_seconds(idle), " for ", listed(now.awaited), process, " in ",
        now.operation.empty() ? "messages" : now.operation);
}

void HangDiagnosis::look_at_awaited() {
    const TimePoint now = system_clock().now();
    if (now - looked_.load() < subject_.timing.look_every) return;
    looked_.store(now);
    Status gone;
    {
        const std::unique_lock lock(subject_.group.mutex(), std::try_to_lock);
        const bool is_running = lock.owns_lock() && subject_.group.ended().cause.is_ok();
        if (!is_running || !subject_.peers.directory().has_endpoints()) return;
        for (const Rank peer : ranks_of(subject_.group.awaited()))
            if (gone.is_ok()) gone = subject_.peers.look(peer);
        if (gone.is_ok()) gone = subject_.peers.look_for_failure();
    }
    if (!gone.is_ok()) give_up(subject_.group, gone);
}

void HangDiagnosis::query_awaited() {
    const DiagnosisTiming& timing = subject_.timing;
    const int size = subject_.peers.directory().size();
    const TimePoint now = system_clock().now();
    if (now - queried_at_.load() < timing.query_every + size * timing.query_every_per_rank) return;
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    queried_at_.store(now);
    std::vector<Rank> ranks = report_.rank_status().awaited;
    if (ranks.size() > kMostQueried) ranks.resize(kMostQueried);
    for (const Rank rank : ranks) {
        const Status finding = judge(rank, survey_.query(rank, within(timing.glance)));
        if (!finding.is_ok()) return give_up(subject_.group, finding);
    }
}

Stall HangDiagnosis::stall_or_none() const {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const std::lock_guard lock(subject_.group.mutex());
    return subject_.group.stall().value_or(
        Stall{.self = members.rank(), .ranks = members.size(), .group = members.group_name()});
}

Status HangDiagnosis::judge(Rank rank, const Result<RankStatus>& answer) {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    PCCL_TRY(why_lost(rank, answer, members.rank(), members.size()));
    if (!answer.is_ok()) return Status::ok();
    const Stall own = stall_or_none();
    PCCL_TRY(why_different(own, rank, *answer));
    // Another thread could still call the awaited collective: then only the deadline can decide.
    const bool is_certain = report_.has_waiter() && subject_.runtime.has_one_thread() &&
                            answer->has_one_thread && is_crossed(own, *answer);
    if (!stays_out_of_order(own, *answer) || !is_certain) return Status::ok();
    fail_crossed(own, answer->other_group_wait);
    return crossed(own, rank, answer->other_group_wait);
}

bool HangDiagnosis::stays_out_of_order(const Stall& stall, const RankStatus& answer) {
    if (!is_out_of_order(stall, answer)) return false;
    if (seen_out_of_order_.size() > kMostRemembered) seen_out_of_order_.clear();
    const OtherGroupWait& there = answer.other_group_wait;
    return !seen_out_of_order_.insert(concat(stall.sequence, " ", there.name, " ", there.sequence))
                .second;
}

void HangDiagnosis::fail_crossed(const Stall& stall, const OtherGroupWait& there) {
    end_group(subject_.runtime, there.group, crossed(stall, there.rank, there));
}

Status HangDiagnosis::timeout_cause(const Status& late) const {
    if (late.code() != StatusCode::kTimeout || late.peer() == kNoRank) return late;
    return group_probe_.whom_awaits(late.peer(), within(subject_.timing.graph_walk));
}

std::optional<Stall> HangDiagnosis::timed_out_stall() const {
    const std::lock_guard lock(subject_.group.mutex());
    auto stall = subject_.group.stall();
    return stall && stall->deadline.passed() ? stall : std::nullopt;
}

void HangDiagnosis::on_deadline() {
    if (inquiring_.exchange(true)) return;
    const ScopeExit done([this] { inquiring_.store(false); });
    const std::optional<Stall> stall = timed_out_stall();
    if (!stall) return;
    const Deadline deadline = within(subject_.timing.graph_walk);
    OtherGroupWait there;
    const Status finding = find_culprit(*stall, [&](Rank rank) {
        auto answer = survey_.query(rank, deadline.within(subject_.timing.answer_timeout));
        if (!answer.is_ok()) return answer;
        answer->other_group_wait.lacks_requester = stays_out_of_order(*stall, *answer);
        if (answer->other_group_wait.lacks_requester) there = answer->other_group_wait;
        return answer;
    });
    // Data that a rank sent before it left still counts, and ends the operation.
    subject_.group.progress();
    const std::optional<Stall> still = timed_out_stall();
    if (!still || still->sequence != stall->sequence) return;
    if (there.lacks_requester) fail_crossed(*stall, there);
    subject_.group.end(finding);
}

Status HangDiagnosis::reconsidered(const Status& cause, const abi::CollectiveHeader& latest) {
    if (cause.code() == StatusCode::kAborted) return cause;
    const runtime::PeerDirectory& members = subject_.peers.directory();
    const Rank reported_by = received_.from.load();
    // Both headers of a mismatch may be here, which gives more detail than another rank's report.
    if (cause.code() == StatusCode::kMismatch && reported_by != kNoRank)
        PCCL_TRY(subject_.peers.compare_latest(latest));
    const bool is_lost = cause.code() == StatusCode::kPeerLost;
    // A finding of another rank gives more detail than its absence.
    const bool may_be_known = is_lost || cause.code() == StatusCode::kTimeout;
    if (may_be_known && members.has_endpoints()) PCCL_TRY(subject_.peers.look_for_failure());
    const Rank reporter = reported_by == kNoRank && is_lost ? cause.peer() : reported_by;
    const bool is_peer = reporter >= 0 && reporter < members.size() && reporter != members.rank();
    if (!is_peer || !members.has_endpoints()) return cause;
    const bool shows_all = shows_all_of(reporter);
    // If the reporter differs from a third rank, a comparison with this rank's own call gives the
    // side that differs.
    const bool is_mismatch = cause.code() == StatusCode::kMismatch;
    const DiagnosisTiming& timing = subject_.timing;
    const auto answer = subject_.peers.query(
        reporter, within(is_mismatch ? timing.answer_timeout : timing.second_opinion));
    if (answer.is_ok() && is_mismatch)
        PCCL_TRY(why_different({.self = members.rank(), .header = latest}, reporter, *answer));
    if (answer.is_ok()) PCCL_TRY(why_lost(reporter, answer, members.rank(), members.size()));
    const bool is_gone = answer.status().code() == StatusCode::kPeerLost;
    if (is_gone || !shows_all) PCCL_TRY(last_words_of(reporter));
    // The reporter's last data are in a link that has arrived only now.
    const bool has_come = is_lost && reported_by == kNoRank && subject_.peers.has_new_link();
    return has_come ? Status::ok() : cause;
}

bool HangDiagnosis::shows_all_of(Rank rank) const {
    if (subject_.peers.has_link_from(rank)) return true;
    return subject_.peers.has_segment() && !subject_.group.uses_links();
}

Status HangDiagnosis::last_words_of(Rank reporter) {
    const Deadline soon = within(subject_.timing.last_words);
    for (transport::Backoff backoff(*subject_.runtime.waiter()); !soon.passed(); backoff.pause()) {
        // A rank notifies the others before it releases the group.
        if (has_received_reason()) return received_reason();
        // A close reason may follow data that no operation reads any more: it becomes visible a
        // moment later.
        const bool has_ended = shows_all_of(reporter) && !subject_.peers.look(reporter).is_ok();
        PCCL_TRY(subject_.peers.look_for_failure());
        if (has_ended) return Status::ok();
    }
    return Status::ok();
}

Status HangDiagnosis::compare_latest(const abi::CollectiveHeader& latest) {
    PCCL_TRY(subject_.peers.compare_latest(latest));
    const Status received =
        has_received_reason() ? received_reason() : subject_.peers.look_for_failure();
    return received.code() == StatusCode::kMismatch ? received : Status::ok();
}

void HangDiagnosis::receive_reason(Rank from, const Status& reason) {
    const runtime::PeerDirectory& members = subject_.peers.directory();
    Rank nobody = kNoRank;
    received_.from.compare_exchange_strong(nobody, from);
    conclude(transport::why_gone(
        reason, {.self = members.rank(), .leaver = from, .ranks = members.size()}));
}

void HangDiagnosis::report_end() const {
    const GroupEnd& end = subject_.group.ended();
    const Status& cause = end.cause;
    if (cause.code() != StatusCode::kAborted) runtime::dump_flight_record(end.shown.to_string());
    const Deadline deadline = Deadline::after(subject_.timing.notification);
    for (const Rank rank : unnotified_) {
        if (deadline.passed()) return;
        if (rank == cause.peer()) continue;
        static_cast<void>(subject_.peers.notify(
            rank, cause, deadline.within(subject_.timing.notification_of_one)));
    }
}

}  // namespace pccl::comm
