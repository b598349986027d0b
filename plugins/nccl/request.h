// SPDX-License-Identifier: Apache-2.0

// Requests in flight, as NCCL sees them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <pccl/status.h>
#include "csrc/abi/net_plugin/common.h"

namespace pccl::nccl {

class Communicator;

/// One message. Its address is the request that NCCL holds, until test has reported its end.
struct Request {
    Communicator* communicator = nullptr;
    std::uint32_t sequence = 0;
    bool is_used = false;
    bool is_finished = false;
    std::size_t bytes = 0;  // of the message; of a receive, once finished
};

/// Either end of a connection. One thread at a time.
class Communicator {
   public:
    virtual ~Communicator() = default;
    /// Makes as much progress on all requests as is possible now. Errors are permanent.
    virtual Status progress() = 0;

    /// Makes progress; returns the size of the message once it has ended, and then frees the
    /// request.
    static Result<std::optional<std::size_t>> test(Request& request) {
        const Status progress =
            request.is_finished ? Status::ok() : request.communicator->progress();
        // What ended before a fault has ended.
        if (!request.is_finished) PCCL_TRY(progress);
        if (!request.is_finished) return std::optional<std::size_t>();
        request.is_used = false;
        return std::optional(request.bytes);
    }
};

/// Messages of consecutive numbers, of which so many may be in flight.
template <typename Message>
class MessageRing {
   public:
    explicit MessageRing(Communicator& owner) {
        for (Message& message : messages_) message.communicator = &owner;
    }
    /// Returns the message of this number, whether or not it is in flight.
    [[nodiscard]] Message& operator[](std::uint32_t sequence) {
        return messages_[sequence % messages_.size()];
    }
    /// Returns the next message, with its number set; null while too many are in flight.
    Message* begin_next() {
        Message& message = (*this)[next_];
        if (message.is_used) return nullptr;
        message.is_used = true;
        message.is_finished = false;
        message.sequence = next_++;
        return &message;
    }
    /// Returns the number after the last message.
    [[nodiscard]] std::uint32_t end() const { return next_; }
    static constexpr std::uint32_t size() { return abi::net_plugin::kMaxRequests; }

   private:
    std::array<Message, abi::net_plugin::kMaxRequests> messages_{};
    std::uint32_t next_ = 0;
};

}  // namespace pccl::nccl
