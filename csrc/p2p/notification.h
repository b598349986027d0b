// Words that peers send each other: behind a transfer, once all its data is there, or alone.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::p2p {

struct Notification {
    std::string from;  // the name of a session
    std::vector<std::byte> bytes;
};

/// Those that have come and were not asked for yet. Safe from every thread.
class Inbox {
   public:
    static constexpr std::size_t kMost = 8192;

    /// Else they stay with those who sent them.
    [[nodiscard]] bool has_room() const {
        const std::lock_guard lock(mutex_);
        return notifications_.size() < kMost;
    }
    void put(Notification notification) {
        const std::lock_guard lock(mutex_);
        notifications_.push_back(std::move(notification));
    }
    [[nodiscard]] std::vector<Notification> take_all() {
        const std::lock_guard lock(mutex_);
        std::vector<Notification> all(std::make_move_iterator(notifications_.begin()),
                                      std::make_move_iterator(notifications_.end()));
        notifications_.clear();
        return all;
    }

   private:
    mutable std::mutex mutex_;
    std::deque<Notification> notifications_;
};

}  // namespace pccl::p2p
