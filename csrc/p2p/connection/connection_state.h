// SPDX-License-Identifier: Apache-2.0

// State of a connection, from its setup to its loss.
#pragma once

#include <atomic>
#include <utility>

#include <pccl/status.h>

namespace pccl::p2p {

/// Any thread reads it; the members that change it are called under the connection's lock, except
/// mark_left() and half_close().
class ConnectionState {
   public:
    [[nodiscard]] bool is_whole() const { return whole_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_lost() const { return lost_.load(std::memory_order_acquire); }
    [[nodiscard]] bool is_half_closed() const {
        return half_closed_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_usable() const {
        return !is_lost() && !left_.load(std::memory_order_acquire) && !is_half_closed();
    }
    [[nodiscard]] Status why_lost() const { return is_lost() ? why_lost_ : Status::ok(); }
    [[nodiscard]] bool timed_out() const { return is_lost() && timed_out_; }

    void mark_whole() { whole_.store(true, std::memory_order_release); }
    void mark_left() { left_.store(true, std::memory_order_release); }
    /// Returns whether the connection was half closed before.
    bool half_close() { return half_closed_.exchange(true); }
    /// Sets the reason of a loss. Call it before mark_lost().
    void set_loss(Status why, bool timed_out) {
        why_lost_ = std::move(why);
        timed_out_ = timed_out;
    }
    void mark_lost() { lost_.store(true, std::memory_order_release); }

   private:
    Status why_lost_;         // written before lost_
    bool timed_out_ = false;  // written before lost_
    std::atomic<bool> whole_{false};
    std::atomic<bool> lost_{false};
    std::atomic<bool> left_{false};  // the peer has ended it; its end of stream has not arrived
    std::atomic<bool> half_closed_{false};  // data that the peer sent before may still arrive
};

}  // namespace pccl::p2p
