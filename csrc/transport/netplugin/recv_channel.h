// SPDX-License-Identifier: Apache-2.0

// Receiving end of one channel: messages arrive in registered slots, and are read in place.
//
// advance() excludes itself; the functions of the reader may run meanwhile, on another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/netplugin/comm.h"

namespace pccl::transport::netplugin {

class RecvChannel {
   public:
    static constexpr std::size_t kSlots = 4;

    /// `comm` has memory for kSlots messages of `longest` bytes attached (bytes_for()).
    RecvChannel(Comm comm, std::size_t longest);
    [[nodiscard]] static std::size_t bytes_for(std::size_t longest);

    /// Takes messages that have arrived, and posts receives; returns whether any has arrived.
    Result<bool> advance();

    // The reader calls these:

    /// Returns the next bytes: of one message, or, at a second call without consume() between, of
    /// several messages up to kJoined bytes.
    Bytes peek();
    /// Returns whether a slot is free now that was not.
    bool consume(std::size_t count);
    /// Returns whether peek() has returned bytes and consume() has not been called since.
    [[nodiscard]] bool is_shown() const { return is_shown_; }
    /// Returns whether the sender's last byte has been consumed.
    [[nodiscard]] bool has_ended() const {
        return has_ended_.load(std::memory_order_acquire) && is_empty();
    }
    [[nodiscard]] bool is_empty() const {
        return joined_.size() == joined_begin_ &&
               taken_ == arrived_.load(std::memory_order_acquire);
    }

   private:
    /// Bytes that a reader finds in one piece, if it needs them: more than any header, or
    /// notification, that is read in place.
    static constexpr std::size_t kJoined = std::size_t{64} << 10;

    [[nodiscard]] std::byte* slot(std::uint64_t message) const;
    /// Returns the rest of the oldest message.
    [[nodiscard]] Bytes front() const;
    void consume_front(std::size_t count);
    void join();
    Status take(std::uint64_t message, int bytes);

    Comm comm_;
    const std::size_t longest_;
    std::array<void*, kSlots> requests_{};
    std::array<std::uint32_t, kSlots> lengths_{};  // of messages that have arrived
    std::uint64_t posted_ = 0;                     // receives, ever
    std::uint64_t tested_ = 0;                     // receives that are done
    std::atomic<std::uint64_t> arrived_{0};        // messages with bytes, as the reader sees them
    std::atomic<std::uint64_t> freed_{0};          // slots, by the reader
    std::atomic<bool> has_ended_{false};
    // Only the reader uses these:
    std::uint64_t taken_ = 0;  // messages
    std::size_t offset_ = 0;   // in the oldest message
    std::vector<std::byte> joined_;
    std::size_t joined_begin_ = 0;
    bool is_shown_ = false;
};

}  // namespace pccl::transport::netplugin
