// SPDX-License-Identifier: Apache-2.0

// Queue of messages of a link of over_links.h that wait for their stream, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"

namespace pccl::transport {

class PCCL_API RmaOutbox {
   public:
    /// Callback for each answered read, once its bytes have been copied or it has failed.
    using ReadServed = std::function<void(RmaOutcome)>;
    /// Callback that returns the outcome of a write into memory of a GPU; nullopt while the bytes
    /// are in flight.
    using Landing = std::function<Result<std::optional<RmaOutcome>>()>;

    [[nodiscard]] std::size_t size() const { return messages_.size(); }
    /// Returns the number of blocks in lists of these messages.
    [[nodiscard]] std::size_t listed() const { return listed_; }
    [[nodiscard]] bool is_flushed() const { return messages_.empty() && flushed_; }
    /// Adds a message without payload.
    void add(const RmaFrame& head) { push({.head = head}); }
    void add_copy(const RmaFrame& head, Bytes payload);
    /// Adds a request for `range`.
    void add_read(const RmaFrame& head, RmaRange range) {
        push({.head = head, .range = std::move(range)});
    }
    /// Adds a write to `range` of the blocks `from` of `memory`, which stays until the write is
    /// answered.
    void add_write(const RmaFrame& head, RmaRange range, Bytes memory, RmaBlocks from) {
        push({.head = head, .range = std::move(range), .memory = memory, .from = std::move(from)});
    }
    /// Adds a write like add_write(), from memory of a GPU.
    void add_gpu_write(const RmaFrame& head, RmaRange range, const Memory& memory, RmaBlocks from);
    /// Adds a kData with bytes that are registered here.
    void add_data(const RmaFrame& head, RmaRange range) {
        push({.head = head, .range = std::move(range)});
    }
    /// Adds a kDone that waits for its outcome.
    void add_landing(const RmaFrame& head, Landing landing);
    /// Returns whether the front message waits for copy engines of GPUs.
    [[nodiscard]] bool awaits_copies() const;
    /// Drops all messages, once copy engines of GPUs are done with them.
    void clear() {
        messages_.clear();
        listed_ = 0;
    }
    /// Sends the bytes that the stream takes; returns whether there were any.
    Result<bool> send(SendLink& stream, RmaRegistry& registry, const ReadServed& served);

   private:
    struct OutgoingFrame {
        RmaFrame head{};
        RmaRange range{};  // of a request and a kData
        Bytes memory{};    // contains the payload, in its blocks `from`
        RmaBlocks from{};
        std::vector<std::byte> own{};
        std::unique_ptr<GpuSource> source{};
        Landing landing{};

        /// Returns the list that follows the header.
        [[nodiscard]] Bytes list() const {
            return is_request(head) ? std::as_bytes(range.blocks.list()) : Bytes();
        }
    };
    void push(OutgoingFrame message);
    void pop();
    /// Returns whether the front message can leave.
    Result<bool> is_ready(RmaRegistry& registry, const ReadServed& served);
    /// Checks the registration of a kData at the front, and finds its memory.
    void open_front(RmaRegistry& registry);
    /// Sends from the current place of the front message. Returns 0 when the stream is full.
    Result<std::size_t> send_part(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_payload(SendLink& stream, RmaRegistry& registry, Flush flush);
    Result<std::size_t> send_blocks(SendLink& stream, Bytes memory, const RmaBlocks& blocks,
                                    Flush flush);
    Result<std::size_t> send_registered(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_fetched(SendLink& stream, GpuSource& source, Flush flush);
    Result<std::size_t> send_fetched_registered(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_zeros(SendLink& stream);
    /// Replaces a kData by the kDone that follows it.
    void answer(RmaOutcome outcome, const ReadServed& served);
    [[nodiscard]] std::uint64_t front_bytes() const;
    void begin_front();

    GpuStagingPath staging_;  // declared before the messages that use it
    std::deque<OutgoingFrame> messages_;
    std::size_t listed_ = 0;            // blocks in the lists of messages_
    std::uint64_t sent_ = 0;            // bytes of the front message, its header first
    RmaBlocks::BlockPosition place_{};  // in its payload
    RmaOutcome outcome_{};              // of a kData at the front, so far
    bool flushed_ = true;               // whether the stream holds nothing back
};

/// Returns the outcome that a peer receives for the use of a registration.
[[nodiscard]] RmaOutcome outcome_of(const Status& use);

}  // namespace pccl::transport
