// SPDX-License-Identifier: Apache-2.0

// Copies between two processes of one host where one of the two memories is of a GPU.
//
//     here   there
//     GPU    GPU     copy engines move the bytes from one to the other
//     host   GPU     copy engines move them between the GPU and pinned memory; this thread copies
//     GPU    host    between that and the host's memory, before them or once they are done
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/rma/gpu_stream.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/peer_memory.h"

namespace pccl::transport::shm {

/// Copies of one link.
class GpuCopies {
   public:
    /// Callback that returns the result of a copy with the given status, after a check whether the
    /// owner is there.
    using Look = std::function<RmaCopied(const PeerMemory&, const Status&)>;

    GpuCopies(std::shared_ptr<GpuMemories> gpus, Look look)
        : gpus_(std::move(gpus)), look_(std::move(look)) {}

    [[nodiscard]] static std::size_t most_in_flight(bool is_staged);
    /// Begins a copy as RmaPeer::begin() does.
    std::unique_ptr<RmaInFlightCopy> begin(const std::shared_ptr<PeerMemory>& memory, RmaOp op,
                                           const RmaPiecesHere& here);

   private:
    using PeerMemoryPtr = std::shared_ptr<const PeerMemory>;
    using CopyResult = Result<std::unique_ptr<RmaInFlightCopy>>;
    using Copies = std::vector<sys::cuda::Copy>;

    CopyResult begin_direct(const PeerMemoryPtr& memory, RmaOp op, const RmaPiecesHere& here);
    CopyResult begin_staged(const PeerMemoryPtr& memory, RmaOp op, const RmaPiecesHere& here);
    CopyResult to_host(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                       const std::shared_ptr<GpuStage>& stage);
    CopyResult from_host(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                         std::shared_ptr<GpuStage> stage);
    CopyResult to_gpu(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                      std::shared_ptr<GpuStage> stage);
    CopyResult from_gpu(const PeerMemoryPtr& memory, const RmaPiecesHere& here,
                        std::shared_ptr<GpuStage> stage);
    /// Writes to the peer's GPU; `keeps` lives until the copies end.
    CopyResult write(const PeerMemoryPtr& memory, const Copies& copies, int device,
                     std::shared_ptr<GpuStage> keeps);
    CopyResult start_copies(const Copies& copies, int device, std::function<RmaCopied()> then,
                            const GpuCallerStream* order = nullptr);

    const std::shared_ptr<GpuMemories> gpus_;
    const Look look_;
    GpuStreams streams_;
    // Streams of copies that keep the order of a caller's stream: no copy of a peer waits behind
    // them.
    GpuStreams ordered_streams_;
};

}  // namespace pccl::transport::shm
