// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/switching.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestProposal = 128;
constexpr std::size_t kLongestReason = 600;

void put(ByteWriter& out, const Switching::GroupProgress& progress) {
    out.u64(progress.group);
    out.u32(progress.ranks);
    out.u64(progress.collectives);
    out.u64(progress.sent);
    out.u64(progress.received);
}

Status take(ByteReader& in, Switching::GroupProgress& progress) {
    PCCL_TRY(in.u64(progress.group));
    PCCL_TRY(in.u32(progress.ranks));
    PCCL_TRY(in.u64(progress.collectives));
    PCCL_TRY(in.u64(progress.sent));
    return in.u64(progress.received);
}

void put(ByteWriter& out, const Switching::SwitchResult& switch_result) {
    out.u64(switch_result.number);
    if (switch_result.number == 0) return;
    out.u8(static_cast<std::uint8_t>(switch_result.outcome));
    out.status(switch_result.why, kLongestReason);
    out.u8(switch_result.had_all ? 1 : 0);
    const bool fits = switch_result.report.size() <= Switching::kLongestReport;
    out.text(fits ? switch_result.report : std::string());
}

Status take(ByteReader& in, Switching::SwitchResult& switch_result) {
    std::uint8_t outcome = 0;
    PCCL_TRY(in.u64(switch_result.number));
    if (switch_result.number == 0) return Status::ok();
    PCCL_TRY(in.u8(outcome));
    if (outcome > static_cast<std::uint8_t>(Switching::Outcome::kUnknown))
        return Status::invalid_argument(concat("outcome ", int{outcome}, " of a switch"));
    switch_result.outcome = static_cast<Switching::Outcome>(outcome);
    PCCL_TRY(in.status(switch_result.why, kLongestReason));
    std::uint8_t had_all = 0;
    PCCL_TRY(in.u8(had_all));
    switch_result.had_all = had_all != 0;
    return in.text(switch_result.report, Switching::kLongestReport);
}

}  // namespace

void Switching::write(ByteWriter& out) const {
    out.u64(number);
    put(out, switch_result);
    if (number == 0) return;
    out.u8(static_cast<std::uint8_t>(stage));
    out.text(std::string_view(proposal).substr(0, kLongestProposal));
    out.u64(phases);
    out.status(why, kLongestReason);
    const std::size_t count = std::min(groups.size(), kMostGroups);
    out.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) put(out, groups[i]);
}

Status Switching::read(ByteReader& in) {
    PCCL_TRY(in.u64(number));
    PCCL_TRY(take(in, switch_result));
    if (number == 0) return Status::ok();
    std::uint8_t sent_stage = 0;
    std::uint32_t count = 0;
    PCCL_TRY(in.u8(sent_stage));
    if (sent_stage > static_cast<std::uint8_t>(Stage::kDone))
        return Status::invalid_argument(concat("stage ", int{sent_stage}, " of a switch"));
    stage = static_cast<Stage>(sent_stage);
    PCCL_TRY(in.text(proposal, kLongestProposal));
    PCCL_TRY(in.u64(phases));
    PCCL_TRY(in.status(why, kLongestReason));
    PCCL_TRY(in.u32(count));
    if (count > kMostGroups)
        return Status::invalid_argument(concat("a rank in ", count, " groups of a network"));
    groups.resize(count);
    for (GroupProgress& progress : groups) PCCL_TRY(take(in, progress));
    return Status::ok();
}

void SwitchState::publish(Switching now) {
    const std::lock_guard lock(mutex_);
    published_ = std::move(now);
}

Switching SwitchState::published() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

void SwitchState::note_shown(Rank rank, const Switching::SwitchResult& switch_result) {
    const std::lock_guard lock(mutex_);
    Requester& asker = requesters_[rank];
    ++asker.questions;
    asker.shown = std::max(asker.shown, switch_result.number);
}

bool SwitchState::has_shown(Rank rank, std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = requesters_.find(rank);
    return found != requesters_.end() && found->second.shown >= number;
}

std::uint64_t SwitchState::questions_of(Rank rank) const {
    const std::lock_guard lock(mutex_);
    const auto found = requesters_.find(rank);
    return found == requesters_.end() ? 0 : found->second.questions;
}

}  // namespace pccl::comm
