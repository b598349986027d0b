// SPDX-License-Identifier: Apache-2.0

// Sending end of one channel: bytes are copied into a registered ring and leave as messages.
//
// advance() excludes itself; other functions may run meanwhile, on another thread, and never wait
// for the plug-in: a link takes its capacity whatever the plug-in does.
//
// A message is a header and bytes that adjoin in the ring. While few messages are in flight, each
// leaves at once; otherwise bytes collect in the open message, so that short pieces do not use up
// the plug-in's requests. Each message goes over the device with the fewest bytes in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/netplugin/comm.h"

namespace pccl::transport::netplugin {

class SendChannel {
   public:
    /// `comms`, one for each lane, share the memory that is attached to them; messages have at most
    /// `longest` bytes.
    SendChannel(std::vector<Comm> comms, std::size_t longest, int max_requests);

    /// Returns the bytes that put() takes while nothing completes.
    [[nodiscard]] std::size_t capacity() const;
    /// Copies a prefix of the pieces; returns its length.
    std::size_t put(std::span<const Bytes> pieces);
    /// Lets all bytes so far leave, without waiting for more of them.
    void request_flush();
    /// Ends the stream behind all bytes.
    void finish();
    /// Takes completions, and posts what may leave; returns whether anything completed.
    Result<bool> advance();
    /// Returns whether everything has been posted, apart from what no flush was requested for.
    [[nodiscard]] bool is_flushed() const;
    /// Returns whether nothing is in flight or waits to be posted.
    [[nodiscard]] bool is_idle() const;

   private:
    /// Message in the ring; positions count the bytes of the ring from the beginning.
    struct Message {
        std::uint64_t begin = 0;  // of the header
        std::size_t bytes = 0;    // without the header
        void* request = nullptr;
        std::optional<std::size_t> lane{};  // of an end: only there
        bool is_done = false;
    };
    struct Lane {
        Comm comm;
        std::size_t posted = 0;  // messages in flight; these two are guarded by mutex_
        std::size_t bytes = 0;   // of them
    };
    // The following functions run under mutex_.

    /// Returns the contiguous room at tail_, after a wrap where the end of the ring is too near.
    std::size_t make_room();
    bool open_message();
    void close_message();
    void queue_ends();
    [[nodiscard]] bool may_close() const;
    [[nodiscard]] bool is_flushed_now() const { return queue_.empty() && !(flushes_ && open_); }

    // These call the plug-in without it.

    Status take_completions(bool& has_completed);
    Status post_queued();
    /// Returns the request of the oldest message in flight on a lane.
    [[nodiscard]] std::optional<void*> oldest_request(std::size_t lane) const;
    void mark_done(std::size_t lane);
    /// Returns the message to post next, if any may be.
    [[nodiscard]] std::optional<Message> next_to_post();
    /// Posts a message to a lane; returns whether the plug-in took it.
    Result<bool> post(const Message& message, std::size_t lane);
    /// Returns the lanes that may take a message, the least loaded first.
    [[nodiscard]] std::vector<std::size_t> lanes_for(const Message& message) const;
    [[nodiscard]] std::size_t in_flight() const;

    [[nodiscard]] std::span<std::byte> ring() const { return lanes_.front().comm.memory(); }
    [[nodiscard]] std::size_t ring_bytes() const { return ring().size(); }
    [[nodiscard]] std::byte* at(std::uint64_t position) const {
        return ring().data() + position % ring_bytes();
    }

    std::vector<Lane> lanes_;
    const std::size_t longest_;
    const std::size_t most_posted_;
    mutable std::mutex mutex_;  // guards the next members
    std::uint64_t head_ = 0;    // the bytes before it are free
    std::uint64_t tail_ = 0;
    std::uint64_t sequence_ = 0;
    std::optional<Message> open_;  // takes more bytes
    std::deque<Message> queue_;    // closed, to be posted
    std::deque<Message> posted_;   // the oldest is in flight
    bool flushes_ = false;
    std::size_t ends_left_ = 0;  // of lanes, to be queued
};

}  // namespace pccl::transport::netplugin
