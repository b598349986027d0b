#include "csrc/comm/diagnosis/switching.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestWish = 128;
constexpr std::size_t kLongestReason = 600;

void put(ByteWriter& out, const Switching::Progress& progress) {
    out.u64(progress.group);
    out.u32(progress.ranks);
    out.u64(progress.collectives);
    out.u64(progress.sent);
    out.u64(progress.received);
}

Status take(ByteReader& in, Switching::Progress& progress) {
    PCCL_TRY(in.u64(progress.group));
    PCCL_TRY(in.u32(progress.ranks));
    PCCL_TRY(in.u64(progress.collectives));
    PCCL_TRY(in.u64(progress.sent));
    return in.u64(progress.received);
}

void put(ByteWriter& out, const Switching::Verdict& verdict) {
    out.u64(verdict.number);
    if (verdict.number == 0) return;
    out.u8(static_cast<std::uint8_t>(verdict.outcome));
    out.status(verdict.why, kLongestReason);
    out.u8(verdict.had_all ? 1 : 0);
    const bool fits = verdict.report.size() <= Switching::kLongestReport;
    out.text(fits ? verdict.report : std::string());
}

Status take(ByteReader& in, Switching::Verdict& verdict) {
    std::uint8_t outcome = 0;
    PCCL_TRY(in.u64(verdict.number));
    if (verdict.number == 0) return Status::ok();
    PCCL_TRY(in.u8(outcome));
    if (outcome > static_cast<std::uint8_t>(Switching::Outcome::kUnknown))
        return Status::invalid_argument(concat("outcome ", int{outcome}, " of a switch"));
    verdict.outcome = static_cast<Switching::Outcome>(outcome);
    PCCL_TRY(in.status(verdict.why, kLongestReason));
    std::uint8_t had_all = 0;
    PCCL_TRY(in.u8(had_all));
    verdict.had_all = had_all != 0;
    return in.text(verdict.report, Switching::kLongestReport);
}

}  // namespace

void Switching::write(ByteWriter& out) const {
    out.u64(number);
    put(out, verdict);
    if (number == 0) return;
    out.u8(static_cast<std::uint8_t>(stage));
    out.text(std::string_view(wish).substr(0, kLongestWish));
    out.u64(phases);
    out.status(why, kLongestReason);
    const std::size_t count = std::min(groups.size(), kMostGroups);
    out.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) put(out, groups[i]);
}

Status Switching::read(ByteReader& in) {
    PCCL_TRY(in.u64(number));
    PCCL_TRY(take(in, verdict));
    if (number == 0) return Status::ok();
    std::uint8_t told_stage = 0;
    std::uint32_t count = 0;
    PCCL_TRY(in.u8(told_stage));
    if (told_stage > static_cast<std::uint8_t>(Stage::kDone))
        return Status::invalid_argument(concat("stage ", int{told_stage}, " of a switch"));
    stage = static_cast<Stage>(told_stage);
    PCCL_TRY(in.text(wish, kLongestWish));
    PCCL_TRY(in.u64(phases));
    PCCL_TRY(in.status(why, kLongestReason));
    PCCL_TRY(in.u32(count));
    if (count > kMostGroups)
        return Status::invalid_argument(concat("a rank in ", count, " groups of a network"));
    groups.resize(count);
    for (Progress& progress : groups) PCCL_TRY(take(in, progress));
    return Status::ok();
}

void SwitchState::tell(Switching now) {
    const std::lock_guard lock(mutex_);
    told_ = std::move(now);
}

Switching SwitchState::told() const {
    const std::lock_guard lock(mutex_);
    return told_;
}

void SwitchState::note_shown(Rank rank, const Switching::Verdict& verdict) {
    const std::lock_guard lock(mutex_);
    Asker& asker = askers_[rank];
    ++asker.questions;
    asker.shown = std::max(asker.shown, verdict.number);
}

bool SwitchState::has_shown(Rank rank, std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto found = askers_.find(rank);
    return found != askers_.end() && found->second.shown >= number;
}

std::uint64_t SwitchState::questions_of(Rank rank) const {
    const std::lock_guard lock(mutex_);
    const auto found = askers_.find(rank);
    return found == askers_.end() ? 0 : found->second.questions;
}

}  // namespace pccl::comm
