// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/netplugin/send_link.h"

#include <algorithm>
#include <utility>

namespace pccl::transport::netplugin {

Result<std::size_t> SendCore::send(ChannelId id, std::span<const Bytes> pieces, Flush flush) {
    if (status().is_set()) return status().get();
    SendChannel& stream = channel(id);
    const bool is_empty = std::ranges::all_of(pieces, [](Bytes piece) { return piece.empty(); });
    std::size_t taken = stream.put(pieces);
    if (taken == 0 && !is_empty) {  // completions make room
        PCCL_TRY(advance_one(stream).status());
        taken = stream.put(pieces);
    }
    if (flush == Flush::kNow) stream.request_flush();
    PCCL_TRY(advance_one(stream).status());
    if (taken == 0 && !is_empty) PCCL_TRY(look_idle());
    return taken;
}

Result<bool> SendCore::flush(ChannelId id) {
    if (status().is_set()) return status().get();
    SendChannel& stream = channel(id);
    stream.request_flush();
    PCCL_TRY(advance_one(stream).status());
    return stream.is_flushed();
}

Result<bool> SendCore::advance_one(SendChannel& stream) {
    const Lock lock = try_use();
    if (!lock.owns_lock()) {
        PCCL_TRY(check_call());
        return false;
    }
    PCCL_TRY(check_fault());
    if (has_fault()) return false;
    const auto advanced = stream.advance();
    if (advanced.is_ok()) return *advanced;
    PCCL_TRY(fail(advanced.status()));
    return false;
}

Status SendCore::look_for_fault() {
    if (status().is_set()) return status().get();
    const Lock lock = try_use();
    PCCL_TRY(lock.owns_lock() ? check_fault() : check_call());
    return look();
}

Status SendCore::look_idle() {
    const Status left = look_now_and_then();
    return left.is_ok() ? left : status().set(left);
}

void SendCore::finish(Deadline deadline) {
    const Lock lock = use_at_end();
    if (!lock.owns_lock() || status().is_set() || has_fault()) return set_over();
    for (const auto& stream : channels_) stream->finish();
    deadline_ = deadline;
    is_finishing_ = true;
}

Result<Activity> SendCore::advance() {
    Activity activity = Activity::kIdle;
    for (const auto& stream : channels_) {
        PCCL_ASSIGN_OR_RETURN(const bool has_completed, stream->advance());
        if (has_completed)
            activity = Activity::kMoved;
        else if (!stream->is_idle())
            activity = std::max(activity, Activity::kWaiting);
    }
    if (!is_finishing_) return activity;
    const bool is_idle =
        std::ranges::all_of(channels_, [](const auto& each) { return each->is_idle(); });
    if (is_idle || deadline_.passed() || !look().is_ok()) set_over();
    return activity;
}

NetSendLink::NetSendLink(std::shared_ptr<SendCore> core, std::shared_ptr<Progress> progress,
                         Duration linger)
    : core_(std::move(core)), progress_(std::move(progress)), linger_(linger) {
    progress_->add(core_);
}

NetSendLink::~NetSendLink() { core_->finish(Deadline::after(linger_)); }

}  // namespace pccl::transport::netplugin
