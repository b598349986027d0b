// Copies between two processes of one host where one of the two memories is of a GPU.
//
//     here   there
//     GPU    GPU     engines copy from one to the other
//     host   GPU     engines copy between the GPU and pinned memory, this thread between that
//     GPU    host    and the host's memory: before them, or once they are done
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/rma/gpu_stream.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/peer_memory.h"

namespace pccl::transport::shm {

/// Of one link.
class GpuCopies {
   public:
    /// What became of a copy, of which that is known: looks whether the owner is there.
    using Look = std::function<RmaCopied(const PeerMemory&, const Status&)>;

    GpuCopies(std::shared_ptr<GpuMemories> gpus, Look look)
        : gpus_(std::move(gpus)), look_(std::move(look)) {}

    [[nodiscard]] static std::size_t most_in_flight(bool is_staged);
    /// As RmaPeer::begin().
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
    /// Writes to the peer's GPU; `keeps` lives until they are over.
    CopyResult write(const PeerMemoryPtr& memory, const Copies& copies, int device,
                     std::shared_ptr<GpuStage> keeps);
    CopyResult start_copies(const Copies& copies, int device, std::function<RmaCopied()> then,
                            const GpuCallerStream* order = nullptr);

    const std::shared_ptr<GpuMemories> gpus_;
    const Look look_;
    GpuStreams streams_;
    // Of copies that keep the order of a caller's: nothing of a peer's waits behind those.
    GpuStreams ordered_streams_;
};

}  // namespace pccl::transport::shm
