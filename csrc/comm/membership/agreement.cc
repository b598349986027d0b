// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/membership/agreement.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::comm {

namespace {

constexpr Duration kShortestPause = std::chrono::microseconds(200);
constexpr Duration kLongestPause = std::chrono::milliseconds(5);
constexpr Duration kLinger = std::chrono::milliseconds(50);
// Maximum age of an answer; more in large groups.
constexpr Duration kFresh = std::chrono::milliseconds(500);
constexpr Duration kFreshPerRank = std::chrono::milliseconds(2);

sys::Digest digest(const bootstrap::GroupIdentity& old, std::string_view label,
                   std::string_view content) {
    std::vector<std::uint8_t> message(label.begin(), label.end());
    message.insert(message.end(), old.group.begin(), old.group.end());
    message.insert(message.end(), content.begin(), content.end());
    return sys::hmac_sha256(old.secret, message);
}

sys::Digest digest_of_list(const AgreementOptions& options) {
    ByteWriter out;
    for (const Rank rank : options.staying) out.u32(static_cast<std::uint32_t>(rank));
    out.text(options.terms);
    return digest(options.old, "pccl-shrink-list", out.take());
}

std::string_view view(const sys::Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Derives the identity one-way: members of the smaller group cannot derive the old group's secret.
bootstrap::GroupIdentity derive(const bootstrap::GroupIdentity& old, const sys::Digest& pact) {
    bootstrap::GroupIdentity identity;
    const sys::Digest group = digest(old, "pccl-shrink-group", view(pact));
    const sys::Digest secret = digest(old, "pccl-shrink-secret", view(pact));
    std::memcpy(identity.group.data(), group.data(), identity.group.size());
    std::memcpy(identity.secret.data(), secret.data(), identity.secret.size());
    return identity;
}

bool names(const std::vector<Rank>& ranks, Rank rank) {
    return std::ranges::find(ranks, rank) != ranks.end();
}

Status cannot_go_on(Rank rank, std::string_view why) {
    return Status::peer_lost(rank, concat("rank ", rank, " cannot go on: ", why));
}

}  // namespace

Agreement::Agreement(AgreementOptions options)
    : options_(std::move(options)), begun_(system_clock().now()) {
    own_.list = digest_of_list(options_);
    own_.staying = static_cast<int>(options_.staying.size());
    own_.left_out = options_.left_out;
    own_.left_out.resize(std::min(own_.left_out.size(), Shrinking::kMostNamed));
    for (const Rank rank : options_.staying)
        if (rank != options_.self) peers_.push_back({.rank = rank});
}

Agreement::~Agreement() {
    if (own_.stage != ShrinkStage::kDecided) options_.publish({});
}

void Agreement::publish(ShrinkStage stage) {
    own_.stage = stage;
    options_.publish(own_);
}

Result<bootstrap::GroupIdentity> Agreement::propose() {
    // The id stays fixed during this call of shrink, because others rely on it.
    if (own_.stage == ShrinkStage::kNone) PCCL_TRY(sys::fill_random(own_.call));
    publish(ShrinkStage::kProposed);
    PCCL_TRY(gather(ShrinkStage::kProposed).status());
    calls_ = {{options_.self, own_.call}};
    for (const Peer& peer : peers_) calls_[peer.rank] = peer.reported.call;
    std::string content(view(own_.list));
    for (const auto& [rank, call] : calls_)
        content.append(reinterpret_cast<const char*>(call.data()), call.size());
    own_.pact = digest(options_.old, "pccl-shrink-pact", content);
    return derive(options_.old, own_.pact);
}

Result<bool> Agreement::await_ready() {
    publish(ShrinkStage::kReady);
    return gather(ShrinkStage::kReady);
}

Result<bool> Agreement::confirm() {
    publish(ShrinkStage::kConfirmed);
    Result<bool> gathered = gather(ShrinkStage::kConfirmed);
    const bool have_all = gathered.is_ok() && *gathered;
    if (!have_all && !others_have_gone_on(gathered.status().peer())) return gathered;
    publish(ShrinkStage::kDecided);
    return true;
}

/// Sends requests until all ranks have reached the stage and have answered recently: a rank that
/// waited for a delayed rank thereby checks that the others are still present. Returns false if one
/// has given up.
Result<bool> Agreement::gather(ShrinkStage stage) {
    Duration pause = kShortestPause;
    while (Peer* const peer = next_to_query(stage)) {
        if (Status found = look_at(*peer); !found.is_ok()) return let_see(std::move(found));
        if (stage != ShrinkStage::kProposed && has_given_up(*peer)) return false;
        if (is_here(*peer, stage)) {
            pause = kShortestPause;
            continue;
        }
        if (options_.deadline.passed()) return has_not_come(*peer);
        if (options_.interrupted) PCCL_TRY(options_.interrupted());
        system_clock().sleep_for(std::min(pause, options_.deadline.remaining()));
        pause = std::min(2 * pause, kLongestPause);
    }
    return true;
}

/// Waits a moment before the error is returned, so that two ranks with different lists both detect
/// it.
Status Agreement::let_see(Status found) const {
    if (found.code() == StatusCode::kMismatch) system_clock().sleep_for(kLinger);
    return found;
}

/// Returns the rank with the oldest request; null when no request is needed.
Agreement::Peer* Agreement::next_to_query(ShrinkStage stage) {
    const TimePoint now = system_clock().now();
    Peer* next = nullptr;
    for (Peer& peer : peers_) {
        if (stage == ShrinkStage::kConfirmed && has_gone_on(peer.reported)) return nullptr;
        if (is_here(peer, stage) && now - peer.answered < fresh()) continue;
        if (next == nullptr || peer.queried < next->queried) next = &peer;
    }
    return next;
}

Duration Agreement::fresh() const {
    return kFresh + static_cast<int>(peers_.size()) * kFreshPerRank;
}

Status Agreement::look_at(Peer& peer) {
    peer.queried = system_clock().now();
    const Result<RankStatus> answer = options_.query(peer.rank);
    if (answer.is_ok()) {
        peer.reported = answer->shrinking;
        peer.answered = system_clock().now();
        peer.silence.clear();
        return judge(peer);
    }
    peer.silence = answer.status().message();
    const bool is_gone = answer.status().code() == StatusCode::kPeerLost;
    const TimePoint since = std::max(peer.answered, begun_);
    if (!is_gone && system_clock().now() - since < options_.answer_timeout) return Status::ok();
    return cannot_go_on(peer.rank, peer.silence);
}

/// Returns errors that waiting cannot resolve.
Status Agreement::judge(const Peer& peer) const {
    const Shrinking& reported = peer.reported;
    if (reported.stage == ShrinkStage::kDecided && !has_gone_on(reported))
        return gone_on(peer.rank, reported);
    if (names(reported.left_out, options_.self))
        return Status::mismatch(peer.rank, concat("rank ", peer.rank, " leaves out this rank"));
    // The rank with the shorter list may wait for the other one, which detects more missing ranks
    // later.
    if (reported.stage != ShrinkStage::kNone && reported.list != own_.list &&
        reported.staying <= own_.staying)
        return Status::mismatch(peer.rank, differs(peer));
    if (reported.stage != ShrinkStage::kDoubtful || !has_our_pact(reported)) return Status::ok();
    const bool is_other = reported.lost != options_.self && names(options_.staying, reported.lost);
    if (!is_other) return Status::ok();
    return Status::peer_lost(
        reported.lost,
        concat("rank ", reported.lost, " cannot go on, as rank ", peer.rank, " has found"));
}

std::string Agreement::differs(const Peer& peer) const {
    return concat("rank ", peer.rank, " leaves out ", listed(peer.reported.left_out),
                  "; this rank leaves out ", listed(options_.left_out));
}

bool Agreement::has_our_pact(const Shrinking& reported) const {
    return own_.stage >= ShrinkStage::kReady && reported.stage >= ShrinkStage::kReady &&
           reported.pact == own_.pact;
}

bool Agreement::is_here(const Peer& peer, ShrinkStage stage) const {
    const Shrinking& reported = peer.reported;
    if (stage == ShrinkStage::kProposed)
        return reported.stage >= stage && reported.list == own_.list;
    return reported.stage >= stage && reported.stage != ShrinkStage::kDoubtful &&
           has_our_pact(reported);
}

/// Returns whether the peer has ended the call of shrink that the pact includes or is about to
/// include: whether it calls again or not, the proposal of all ranks is then void.
bool Agreement::has_given_up(const Peer& peer) const {
    const bool is_doubtful =
        peer.reported.stage == ShrinkStage::kDoubtful && has_our_pact(peer.reported);
    return is_doubtful || peer.reported.call != calls_.at(peer.rank);
}

bool Agreement::has_gone_on(const Shrinking& reported) const {
    return reported.stage == ShrinkStage::kDecided && has_our_pact(reported) &&
           own_.stage >= ShrinkStage::kConfirmed;
}

/// Returns whether another rank has continued. A rank that has confirmed must not give up before it
/// has checked whether others rely on that: they may have continued. Sends requests until one has
/// continued, or none can any more.
bool Agreement::others_have_gone_on(Rank lost) {
    own_.lost = lost;
    publish(ShrinkStage::kDoubtful);
    const Deadline latest = Deadline::after(options_.doubt);
    // Age at which the others' answers from this rank expire.
    const Deadline stale = Deadline::after(fresh());
    for (bool can_go_on = true; can_go_on && !latest.passed();) {
        can_go_on = false;
        for (const Peer& peer : peers_) {
            const Result<RankStatus> answer = options_.query(peer.rank);
            if (!answer.is_ok()) continue;
            const Shrinking& reported = answer->shrinking;
            if (has_gone_on(reported)) return true;
            const bool is_behind =
                reported.stage == ShrinkStage::kProposed || reported.stage == ShrinkStage::kReady;
            can_go_on = can_go_on ||
                        (reported.stage == ShrinkStage::kConfirmed && has_our_pact(reported)) ||
                        (is_behind && reported.list == own_.list && !stale.passed());
        }
        if (can_go_on) system_clock().sleep_for(kLongestPause);
    }
    return false;
}

Status Agreement::has_not_come(const Peer& peer) const {
    const std::string why = !peer.silence.empty()                       ? peer.silence
                            : peer.reported.stage == ShrinkStage::kNone ? "it has not called it"
                            : peer.reported.list != own_.list           ? differs(peer)
                                                              : "it waits for another rank";
    return Status::timeout(
        concat("timed out: rank ", peer.rank, " does not shrink the group in the same way: ", why),
        peer.rank);
}

Status check_quorum(int size, std::span<const Rank> staying, std::optional<int> least) {
    const int left = static_cast<int>(staying.size());
    if (least && (*least < 1 || *least > size))
        return Status::invalid_argument(concat("least=", *least, " of a group of ", size));
    const bool has_first = left > 0 && staying.front() == 0;
    const bool is_enough = least ? left >= *least : 2 * left + (has_first ? 1 : 0) > size;
    if (is_enough) return Status::ok();
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < size; ++rank)
        if (!std::ranges::binary_search(staying, rank)) missing.push_back(rank);
    const std::string why = least ? concat("at least ", *least, " are required")
                            : 2 * left < size
                                ? "fewer than half of them: the others may go on"
                                : "half of them, without rank 0: the others may go on";
    return Status(StatusCode::kUnavailable,
                  concat(left, " of ", size, " ranks would be left, ", why, "; ", listed(missing),
                         missing.size() == 1 ? " is" : " are", " missing",
                         least ? "" : concat("; least=", left, " goes on all the same")),
                  missing.front());
}

}  // namespace pccl::comm
