// SPDX-License-Identifier: Apache-2.0

// Queue of received notifications.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/transfer.h>

namespace pccl::p2p {

/// Queue of received notifications that the program has not taken yet. Thread-safe.
class Inbox {
   public:
    /// Limit per peer, so that a peer that sends more stops only itself.
    static constexpr std::size_t kMost = 8192;

    /// Returns whether a notification of that peer is accepted now. Otherwise it stays with the
    /// sender.
    [[nodiscard]] bool has_room_for(const std::string& peer) const {
        const std::lock_guard lock(mutex_);
        const auto count = count_of_.find(peer);
        return count == count_of_.end() || count->second < kMost;
    }
    void put(Notification notification) {
        const std::lock_guard lock(mutex_);
        ++count_of_[notification.from];
        notifications_.push_back(std::move(notification));
    }
    [[nodiscard]] std::vector<Notification> take_all() {
        const std::lock_guard lock(mutex_);
        std::vector<Notification> all(std::make_move_iterator(notifications_.begin()),
                                      std::make_move_iterator(notifications_.end()));
        notifications_.clear();
        count_of_.clear();
        return all;
    }

   private:
    mutable std::mutex mutex_;
    std::deque<Notification> notifications_;
    std::map<std::string, std::size_t> count_of_;  // by peer
};

}  // namespace pccl::p2p
