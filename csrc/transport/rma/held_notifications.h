// SPDX-License-Identifier: Apache-2.0

// Notifications that wait for parts of transfers on other streams.
//
// Parts are numbered in the order of their posts, and end in any order. A notification leaves once
// all parts and all requests of the main stream before it are over; it is dropped if any of these
// has failed and the program did not know that when it sent the notification (RmaLink::notify()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace pccl::transport {

class RmaHeldNotifications {
   public:
    static constexpr std::size_t kMost = 64;

    struct HeldNotification {
        std::vector<std::byte> bytes;
        std::uint64_t behind = 0;               // parts before it
        std::uint64_t failures_known = 0;       // failed parts that were reported to the program
        std::uint64_t main_failures_known = 0;  // the same of requests of the main stream
        bool is_dropped = false;                // valid once all before it is over
    };

    [[nodiscard]] bool is_empty() const { return held_.empty(); }
    [[nodiscard]] bool has_room() const { return held_.size() < kMost; }
    /// Appends a notification. `over` and `failed` are those of the last parts_over().
    void add(HeldNotification notification, std::uint64_t over, std::uint64_t failed) {
        held_.push_back(std::move(notification));
        judge(over, failed);
    }
    /// Records that the first `over` parts are over, and that `failed` of these have failed. Call
    /// it for each part, in the order of their numbers.
    void parts_over(std::uint64_t over, std::uint64_t failed) { judge(over, failed); }
    /// Records that the requests of the main stream before the next notification are over, and that
    /// `failed` of these have failed. Call it once for each, in their order.
    void main_over(std::uint64_t failed) {
        HeldNotification& next = held_[judged_by_main_++];
        next.is_dropped |= next.main_failures_known != failed;
    }
    /// Passes the notifications that are due to `send`, in their order, as long as it returns true.
    template <typename Send>
    void release(const Send& send) {
        for (; judged_ > 0 && judged_by_main_ > 0; --judged_, --judged_by_main_) {
            if (!held_.front().is_dropped && !send(held_.front())) return;
            held_.pop_front();
        }
    }
    void clear() {
        held_.clear();
        judged_ = 0;
        judged_by_main_ = 0;
    }

   private:
    void judge(std::uint64_t over, std::uint64_t failed) {
        for (; judged_ < held_.size() && held_[judged_].behind <= over; ++judged_)
            held_[judged_].is_dropped |= held_[judged_].failures_known != failed;
    }

    std::deque<HeldNotification> held_;
    std::size_t judged_ = 0;          // of held_: the parts before them are over
    std::size_t judged_by_main_ = 0;  // of held_: the main stream's requests before them are over
};

}  // namespace pccl::transport
