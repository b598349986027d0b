// SPDX-License-Identifier: Apache-2.0

// Receiving end of one channel: messages arrive in registered slots, and are read in place. Those
// of several devices are put in order by their numbers.
//
// advance() excludes itself; the functions of the reader may run meanwhile, on another thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/netplugin/comm.h"

namespace pccl::transport::netplugin {

class RecvChannel {
   public:
    static constexpr std::size_t kSlots = 4;

    /// `comms`, one for each lane, have memory for kSlots messages of `longest` bytes attached
    /// (bytes_for()).
    RecvChannel(std::vector<Comm> comms, std::size_t longest);
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
        return ended_.load(std::memory_order_acquire) == lanes_.size() && is_empty();
    }
    [[nodiscard]] bool is_empty() const {
        return joined_.size() == joined_begin_ && lane_of(next_) == nullptr;
    }

   private:
    /// Bytes that a reader finds in one piece, if it needs them: more than any header, or
    /// notification, that is read in place.
    static constexpr std::size_t kJoined = std::size_t{64} << 10;

    /// Receives over one device, and their messages. Numbers count the messages of the lane.
    struct Lane {
        explicit Lane(Comm made) : comm(std::move(made)) {}
        Comm comm;
        std::array<void*, kSlots> requests{};
        std::array<std::uint32_t, kSlots> lengths{};    // of messages that have arrived
        std::array<std::uint64_t, kSlots> sequences{};  // likewise: their numbers in the channel
        std::uint64_t posted = 0;                       // receives, ever
        std::uint64_t tested = 0;                       // receives that are done
        std::uint64_t least = 0;                        // number that the next message may have
        bool has_ended = false;
        std::atomic<std::uint64_t> arrived{0};  // messages with bytes, as the reader sees them
        std::atomic<std::uint64_t> freed{0};    // slots, by the reader
        std::uint64_t taken = 0;                // messages; only the reader uses it
    };
    [[nodiscard]] std::byte* slot(const Lane& lane, std::uint64_t message) const;
    /// Returns the lane that has the message of this number; null: it has not arrived.
    [[nodiscard]] const Lane* lane_of(std::uint64_t sequence) const;
    Result<bool> advance(Lane& lane);
    Status take(Lane& lane, std::uint64_t message, int bytes);
    /// Returns the rest of the oldest message.
    [[nodiscard]] Bytes front() const;
    void consume_front(std::size_t count);
    void join();

    std::deque<Lane> lanes_;
    const std::size_t longest_;
    std::atomic<std::size_t> ended_{0};  // lanes
    // Only the reader uses these:
    std::uint64_t next_ = 0;  // number of the oldest message
    std::size_t offset_ = 0;  // in it
    std::vector<std::byte> joined_;
    std::size_t joined_begin_ = 0;
    bool is_shown_ = false;
};

}  // namespace pccl::transport::netplugin
