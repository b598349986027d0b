// SPDX-License-Identifier: Apache-2.0

// Socket whose events end the sleeps of this process.
#pragma once

#include <utility>

#include "csrc/base/unique_fd.h"
#include "csrc/transport/doorbell.h"

namespace pccl::transport {

/// Open socket that a Waiter watches.
class WatchedSocket {
   public:
    WatchedSocket(UniqueFd fd, Waiter& waiter) : fd_(std::move(fd)), waiter_(&waiter) {}
    WatchedSocket(WatchedSocket&&) noexcept = default;
    WatchedSocket& operator=(WatchedSocket&&) = delete;
    WatchedSocket(const WatchedSocket&) = delete;
    WatchedSocket& operator=(const WatchedSocket&) = delete;
    ~WatchedSocket() {
        if (fd_.is_open()) waiter_->unwatch(fd_.get());
    }
    /// Starts the watch; call it once, before the first use.
    Status watch() { return waiter_->watch(fd_.get()); }
    /// Ends the watch and returns the socket.
    [[nodiscard]] UniqueFd release() {
        waiter_->unwatch(fd_.get());
        return std::move(fd_);
    }
    [[nodiscard]] int fd() const { return fd_.get(); }

   private:
    UniqueFd fd_;
    Waiter* waiter_;
};

}  // namespace pccl::transport
