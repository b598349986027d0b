// Messages of a link of over_links.h that wait for their stream, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/frames.h"
#include "csrc/transport/rma/gpu_staging_path.h"

namespace pccl::transport {

class PCCL_API RmaOutbox {
   public:
    /// Called for each read that is answered: its bytes have been copied, or why not.
    using ReadServed = std::function<void(RmaOutcome)>;
    /// What becomes of a write into memory of a GPU; nullopt: it is on its way there.
    using Landing = std::function<Result<std::optional<RmaOutcome>>()>;

    [[nodiscard]] std::size_t size() const { return messages_.size(); }
    /// Blocks in lists of these.
    [[nodiscard]] std::size_t listed() const { return listed_; }
    [[nodiscard]] bool is_flushed() const { return messages_.empty() && flushed_; }
    /// No payload.
    void add(const RmaFrame& head) { push({.head = head}); }
    void add_copy(const RmaFrame& head, Bytes payload);
    /// Asks for `range`.
    void add_read(const RmaFrame& head, RmaRange range) {
        push({.head = head, .range = std::move(range)});
    }
    /// For `range`: the blocks `from` of `memory`, which stays until it is answered.
    void add_write(const RmaFrame& head, RmaRange range, Bytes memory, RmaBlocks from) {
        push({.head = head, .range = std::move(range), .memory = memory, .from = std::move(from)});
    }
    /// The same of memory of a GPU.
    void add_gpu_write(const RmaFrame& head, RmaRange range, const Memory& memory, RmaBlocks from);
    /// A kData, with what is registered here.
    void add_data(const RmaFrame& head, RmaRange range) {
        push({.head = head, .range = std::move(range)});
    }
    /// A kDone, which waits until that is known.
    void add_landing(const RmaFrame& head, Landing landing);
    /// Whether the front message waits for engines of GPUs.
    [[nodiscard]] bool awaits_copies() const;
    /// Drops all, once engines of GPUs are done with it.
    void clear() {
        messages_.clear();
        listed_ = 0;
    }
    /// Sends what the stream takes; whether that was anything.
    Result<bool> send(SendLink& stream, RmaRegistry& registry, const ReadServed& served);

   private:
    struct OutgoingFrame {
        RmaFrame head{};
        RmaRange range{};  // of a request and a kData
        Bytes memory{};    // whose blocks `from` are the payload
        RmaBlocks from{};
        std::vector<std::byte> own{};
        std::unique_ptr<GpuSource> source{};
        Landing landing{};

        /// What follows its head.
        [[nodiscard]] Bytes list() const {
            return is_request(head) ? std::as_bytes(range.blocks.list()) : Bytes();
        }
    };
    void push(OutgoingFrame message);
    void pop();
    /// Of the front message: whether it can leave.
    Result<bool> is_ready(RmaRegistry& registry, const ReadServed& served);
    /// Looks where the bytes of a kData at the front are.
    void open_front(RmaRegistry& registry);
    /// Of the front message, from where it is. 0 when the stream is full.
    Result<std::size_t> send_part(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_payload(SendLink& stream, RmaRegistry& registry, Flush flush);
    Result<std::size_t> send_blocks(SendLink& stream, Bytes memory, const RmaBlocks& blocks,
                                    Flush flush);
    Result<std::size_t> send_registered(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_fetched(SendLink& stream, GpuSource& source, Flush flush);
    Result<std::size_t> send_fetched_registered(SendLink& stream, RmaRegistry& registry);
    Result<std::size_t> send_zeros(SendLink& stream);
    /// A kData becomes the kDone that follows it.
    void answer(RmaOutcome outcome, const ReadServed& served);
    [[nodiscard]] std::uint64_t front_bytes() const;
    void begin_front();

    GpuStagingPath staging_;  // before what goes through it
    std::deque<OutgoingFrame> messages_;
    std::size_t listed_ = 0;            // blocks in their lists
    std::uint64_t sent_ = 0;            // bytes of the front message, its head first
    RmaBlocks::BlockPosition place_{};  // in its payload
    RmaOutcome outcome_{};              // of a kData at the front, so far
    bool flushed_ = true;               // whether the stream holds nothing back
};

/// What a peer is told of a failed use of a registration.
[[nodiscard]] RmaOutcome outcome_of(const Status& use);

}  // namespace pccl::transport
