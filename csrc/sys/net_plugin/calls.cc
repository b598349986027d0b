// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/net_plugin/calls.h"

#include "csrc/base/text/text.h"

namespace pccl::sys::net_plugin {

std::shared_ptr<CallSlot> CallWatch::add(std::string subject) {
    auto slot = std::make_shared<CallSlot>(std::move(subject));
    const std::lock_guard lock(mutex_);
    std::erase_if(slots_, [](const std::weak_ptr<CallSlot>& each) { return each.expired(); });
    slots_.push_back(slot);
    return slot;
}

std::vector<std::string> CallWatch::overdue(TimePoint now, Duration limit) {
    std::vector<std::string> lines;
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<CallSlot>& each : slots_) {
        const auto slot = each.lock();
        if (slot == nullptr) continue;
        const char* const call = slot->call_.load(std::memory_order_acquire);
        const std::uint64_t count = slot->count_.load(std::memory_order_relaxed);
        const bool is_same =
            call != nullptr && count == slot->seen_count_ && slot->since_ != TimePoint{};
        if (!is_same) {
            slot->seen_count_ = count;
            slot->since_ = call != nullptr ? now : TimePoint{};
            slot->is_stuck_.store(false, std::memory_order_relaxed);
        } else if (now - slot->since_ >= limit && !slot->is_stuck_.exchange(true)) {
            lines.push_back(concat(call, " for ", slot->subject()));
        }
    }
    return lines;
}

}  // namespace pccl::sys::net_plugin
