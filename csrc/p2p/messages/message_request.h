// SPDX-License-Identifier: Apache-2.0

// State of a posted message, at either side.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <pccl/transfer.h>
#include "csrc/base/fork.h"
#include "csrc/p2p/transfers/plan.h"
#include "csrc/p2p/transfers/registered_memory.h"

namespace pccl::p2p {

class Connection;

enum class MessageDirection : std::uint8_t { kSend, kReceive };

/// Arguments of a send or a receive.
struct MessageArgs {
    MessageDirection direction{};
    std::uint64_t tag = 0;
    std::shared_ptr<LocalMemory> memory;
    Extent extent;
    std::uint64_t chunk = Plan::kLongestPiece;  // of a send: bytes per piece
};

class MessageRequest {
   public:
    /// `args` are checked, and their memory is in use (RegisteredMemory::begin_use()). The request
    /// ends with `through` if that connection is lost.
    MessageRequest(MessageArgs args, std::shared_ptr<Connection> through)
        : args_(std::move(args)), through_(std::move(through)) {}

    // Thread-safe:

    /// Returns the mark of the process that posted it.
    [[nodiscard]] const ForkMark& made_in() const { return made_in_; }
    [[nodiscard]] const MessageArgs& args() const { return args_; }
    [[nodiscard]] const std::shared_ptr<Connection>& through() const { return through_; }
    [[nodiscard]] bool is_complete() const { return done_.load(std::memory_order_acquire); }
    /// Returns the outcome. Valid once complete.
    [[nodiscard]] const Status& status() const { return status_; }
    /// Returns the length of the message, which may be less than the receive's room. Valid once
    /// complete.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

    /// Records that the program has seen the completion.
    void consume() { consumed_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] MessageStage stage() const {
        if (!is_complete() || !status_.is_ok())
            return arrived_.load(std::memory_order_relaxed) ? MessageStage::kArrived
                                                            : MessageStage::kPosted;
        return consumed_.load(std::memory_order_relaxed) ? MessageStage::kConsumed
                                                         : MessageStage::kUnpacked;
    }

    // Under the matcher's lock:

    /// Records that all bytes of a receive have arrived.
    void arrive() { arrived_.store(true, std::memory_order_relaxed); }

    void give_up() { given_up_ = true; }
    [[nodiscard]] bool is_given_up() const { return given_up_; }
    /// Records that a transfer has taken over the use of the memory.
    void hand_on_use() { uses_memory_ = false; }
    void finish(const Status& status, std::uint64_t bytes) {
        if (uses_memory_) registered(*args_.memory).end_use();
        status_ = status;
        bytes_ = status.is_ok() ? bytes : 0;
        done_.store(true, std::memory_order_release);
    }

   private:
    const ForkMark made_in_;
    const MessageArgs args_;
    const std::shared_ptr<Connection> through_;
    bool given_up_ = false;
    bool uses_memory_ = true;
    Status status_;            // valid once done_
    std::uint64_t bytes_ = 0;  // valid once done_
    std::atomic<bool> done_{false};
    std::atomic<bool> arrived_{false};
    std::atomic<bool> consumed_{false};
};

}  // namespace pccl::p2p
