// SPDX-License-Identifier: Apache-2.0

// Path between memory of GPUs and byte streams through pinned memory: some parts are copied while
// others are sent or received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include <pccl/status.h>
#include "csrc/transport/link.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::transport {

/// Staging of one direction of a link. One thread at a time.
class PCCL_API GpuStagingPath {
   public:
    /// Returns a stage for parts to or from memory of `device`; null while all are in use.
    Result<std::unique_ptr<GpuStage>> stage(int device);
    /// Begins copies on `device`.
    Result<std::shared_ptr<GpuEvent>> copy(int device, std::span<const sys::cuda::Copy> copies);

   private:
    GpuStreams streams_;
    std::shared_ptr<GpuStages> stages_;  // created on first use
};

enum class GpuDirection : std::uint8_t { kToGpu, kFromGpu };

/// Callback that begins copies in or out of memory of a GPU that starts at `memory`.
using GpuBegin = std::function<Result<std::shared_ptr<GpuEvent>>(std::byte* memory)>;
/// Callback that calls `begin` with the memory of a transfer's blocks. An error ends the transfer.
using GpuLend = std::function<Result<std::shared_ptr<GpuEvent>>(const GpuBegin& begin)>;

/// Lends memory that its user keeps.
[[nodiscard]] inline GpuLend lend_own(const Memory& memory) {
    return [data = memory.data](const GpuBegin& begin) { return begin(data); };
}

/// One transfer through a staging path: blocks of memory of a GPU, one after the other.
class GpuTransfer {
   public:
    GpuTransfer(GpuStagingPath& staging, int device, RmaBlocks blocks, GpuLend lend)
        : staging_(staging),
          device_(device),
          blocks_(std::move(blocks)),
          left_(blocks_.bytes()),
          lend_(std::move(lend)) {}

    /// Returns the bytes whose copy has not begun.
    [[nodiscard]] std::uint64_t left() const { return left_; }
    Result<std::unique_ptr<GpuStage>> stage() { return staging_.stage(device_); }
    /// Returns the bytes of the next part through a stage of `room` bytes.
    [[nodiscard]] std::size_t next_part(std::size_t room) const;
    /// Begins the next copies, in one call, between `stage`, which is a part or its start, and the
    /// blocks of the transfer.
    Result<std::shared_ptr<GpuEvent>> begin(GpuDirection direction, MutableBytes stage);

   private:
    GpuStagingPath& staging_;
    const int device_;
    RmaBlocks blocks_;
    RmaBlocks::BlockPosition place_{};
    std::uint64_t left_;
    GpuLend lend_;
};

/// Source of a stream in memory of a GPU. Its destructor waits for the copy engines.
class PCCL_API GpuSource {
   public:
    explicit GpuSource(GpuTransfer transfer) : transfer_(std::move(transfer)) {}
    ~GpuSource();
    GpuSource(const GpuSource&) = delete;
    GpuSource& operator=(const GpuSource&) = delete;

    /// Returns the next bytes that have arrived; empty: not yet, or none are left.
    Result<Bytes> peek();
    void consume(std::size_t count);
    /// Returns whether the last peek() found copy engines still at work.
    [[nodiscard]] bool is_waiting() const { return is_waiting_; }

   private:
    struct FetchedPart {
        std::unique_ptr<GpuStage> stage;
        Bytes bytes;  // not consumed
        std::shared_ptr<GpuEvent> come;
    };
    Status fetch();

    GpuTransfer transfer_;
    bool is_waiting_ = true;
    std::deque<FetchedPart> parts_;
};

/// Destination of a stream in memory of a GPU. Its destructor waits for the copy engines.
class PCCL_API GpuReceiver {
   public:
    explicit GpuReceiver(GpuTransfer transfer) : transfer_(std::move(transfer)) {}
    ~GpuReceiver();
    GpuReceiver(const GpuReceiver&) = delete;
    GpuReceiver& operator=(const GpuReceiver&) = delete;

    /// Returns the place for the next bytes; empty: not now, or none are left.
    Result<MutableBytes> room();
    /// Records that `count` bytes have been placed in room().
    Status fill(std::size_t count);
    /// Returns whether all bytes are in the GPU's memory.
    Result<bool> has_landed();

   private:
    struct LandingPart {
        std::unique_ptr<GpuStage> stage;
        std::shared_ptr<GpuEvent> gone;
    };
    /// Returns whether all copies that have begun have landed.
    Result<bool> give_back_landed();

    GpuTransfer transfer_;
    std::unique_ptr<GpuStage> stage_;
    std::size_t part_ = 0;    // bytes of the part in stage_
    std::size_t filled_ = 0;  // bytes of the part that have arrived
    std::deque<LandingPart> parts_;
};

}  // namespace pccl::transport
