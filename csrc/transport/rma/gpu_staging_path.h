// Memory of GPUs and streams of bytes: pinned memory in between, some parts of it on their way
// while others are sent or received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::transport {

/// Of one direction of a link. One thread at a time.
class PCCL_API GpuStagingPath {
   public:
    /// For parts of what goes to or comes from memory of `device`; null while all are in use.
    Result<std::unique_ptr<GpuStage>> stage(int device);
    /// Begins them on `device`.
    Result<std::shared_ptr<GpuEvent>> copy(int device, std::span<const sys::cuda::Copy> copies);

   private:
    GpuStreams streams_;
    std::shared_ptr<GpuStages> stages_;  // once they are needed
};

enum class GpuDirection : std::uint8_t { kToGpu, kFromGpu };

/// Begins copies in or out of memory of a GPU, at whose begin that is.
using GpuBegin = std::function<Result<std::shared_ptr<GpuEvent>>(std::byte* memory)>;
/// Has that done where the blocks of a transfer are. An error ends the transfer.
using GpuLend = std::function<Result<std::shared_ptr<GpuEvent>>(const GpuBegin& begin)>;

/// Of memory that its user keeps.
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

    /// Not begun.
    [[nodiscard]] std::uint64_t left() const { return left_; }
    Result<std::unique_ptr<GpuStage>> stage() { return staging_.stage(device_); }
    /// What goes next through a stage of so many bytes.
    [[nodiscard]] std::size_t next_part(std::size_t room) const;
    /// Begins the next copies, in one call, between `stage`, which is a part or its begin, and
    /// where its bytes belong.
    Result<std::shared_ptr<GpuEvent>> begin(GpuDirection direction, MutableBytes stage);

   private:
    GpuStagingPath& staging_;
    const int device_;
    RmaBlocks blocks_;
    RmaBlocks::BlockPosition place_{};
    std::uint64_t left_;
    GpuLend lend_;
};

/// From a GPU to a stream. Its end waits for what engines do.
class PCCL_API GpuSource {
   public:
    explicit GpuSource(GpuTransfer transfer) : transfer_(std::move(transfer)) {}
    ~GpuSource();
    GpuSource(const GpuSource&) = delete;
    GpuSource& operator=(const GpuSource&) = delete;

    /// The next bytes that have come; none: not yet, or none are left.
    Result<Bytes> peek();
    void consume(std::size_t count);
    /// Whether the last peek() found that engines have yet to do their part.
    [[nodiscard]] bool is_waiting() const { return is_waiting_; }

   private:
    struct StagedPart {
        std::unique_ptr<GpuStage> stage;
        Bytes bytes;  // not consumed
        std::shared_ptr<GpuEvent> come;
    };
    Status fetch();

    GpuTransfer transfer_;
    bool is_waiting_ = true;
    std::deque<StagedPart> parts_;
};

/// From a stream to a GPU. Its end waits for what engines do.
class PCCL_API GpuReceiver {
   public:
    explicit GpuReceiver(GpuTransfer transfer) : transfer_(std::move(transfer)) {}
    ~GpuReceiver();
    GpuReceiver(const GpuReceiver&) = delete;
    GpuReceiver& operator=(const GpuReceiver&) = delete;

    /// Where the next bytes go; none: not now, or none are left.
    Result<MutableBytes> room();
    /// So many have come there.
    Status fill(std::size_t count);
    /// Whether all bytes are in the GPU's memory.
    Result<bool> has_landed();

   private:
    struct StagedPart {
        std::unique_ptr<GpuStage> stage;
        std::shared_ptr<GpuEvent> gone;
    };
    /// Whether all that was begun has landed.
    Result<bool> give_back_landed();

    GpuTransfer transfer_;
    std::unique_ptr<GpuStage> stage_;
    std::size_t part_ = 0;    // bytes that go through stage_
    std::size_t filled_ = 0;  // of these
    std::deque<StagedPart> parts_;
};

}  // namespace pccl::transport
