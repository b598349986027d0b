// Memory of GPUs and streams of bytes: pinned memory in between, some parts of it on their way
// while others are sent or received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "csrc/base/status.h"
#include "csrc/transport/link.h"
#include "csrc/transport/rma/gpu_memory.h"
#include "csrc/transport/rma/gpu_stages.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::transport {

/// Of one direction of a link. One thread at a time.
class PCCL_API GpuPassage {
   public:
    /// For parts of what goes to or comes from memory of `device`; null while all are in use.
    Result<std::unique_ptr<GpuStage>> stage(int device);
    /// Begins it on `device`.
    Result<std::shared_ptr<GpuMoment>> copy(int device, const sys::cuda::Copy& copy);

   private:
    GpuStreams streams_;
    std::shared_ptr<GpuStages> stages_;  // once they are needed
};

/// Begins a copy between pinned memory and what lies `offset` bytes behind the begin of a transfer.
/// An error ends the transfer.
using GpuStep =
    std::function<Result<std::shared_ptr<GpuMoment>>(std::uint64_t offset, MutableBytes stage)>;

/// One transfer through a passage.
struct GpuTransfer {
    GpuPassage& passage;
    int device = -1;
    std::uint64_t bytes = 0;
    GpuStep step;
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
    struct Part {
        std::unique_ptr<GpuStage> stage;
        Bytes bytes;  // not consumed
        std::shared_ptr<GpuMoment> come;
    };
    Status fetch();

    GpuTransfer transfer_;
    std::uint64_t fetched_ = 0;  // asked for
    bool is_waiting_ = true;
    std::deque<Part> parts_;
};

/// From a stream to a GPU. Its end waits for what engines do.
class PCCL_API GpuSink {
   public:
    explicit GpuSink(GpuTransfer transfer) : transfer_(std::move(transfer)) {}
    ~GpuSink();
    GpuSink(const GpuSink&) = delete;
    GpuSink& operator=(const GpuSink&) = delete;

    /// Where the next bytes go; none: not now, or none are left.
    Result<MutableBytes> room();
    /// So many have come there.
    Status fill(std::size_t count);
    /// Whether all bytes are in the GPU's memory.
    Result<bool> has_landed();

   private:
    struct Part {
        std::unique_ptr<GpuStage> stage;
        std::shared_ptr<GpuMoment> gone;
    };

    GpuTransfer transfer_;
    std::uint64_t filled_ = 0;
    std::uint64_t begun_ = 0;  // of these, given to engines
    std::unique_ptr<GpuStage> stage_;
    std::deque<Part> parts_;
};

}  // namespace pccl::transport
