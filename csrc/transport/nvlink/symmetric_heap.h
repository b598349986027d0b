// SPDX-License-Identifier: Apache-2.0

// Symmetric heap: memory of one size of each rank of a group, mapped by all its ranks.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "csrc/abi/device_team.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/heap_stock.h"
#include "csrc/transport/nvlink/peer_sockets.h"

namespace pccl::transport::nvlink {

/// Addresses by rank; 0 where there is none.
using PeerAddresses = std::array<sys::cuda::DeviceAddress, abi::kMostDevices>;

class PCCL_API SymmetricHeap {
   public:
    struct Options {
        sys::cuda::Driver& driver;
        int device = 0;  // this rank's
        std::size_t bytes = 0;
        MemoryKind kind = MemoryKind::kGpu;
        bool maps_later = false;  // map() maps it
    };
    /// Creates a heap; a collective call with one size and kind on all ranks. The memory is zero
    /// before any peer can access it. kTimeout and kPeerLost name the rank; kUnsupported where GPUs
    /// have no peer access.
    static Result<std::unique_ptr<SymmetricHeap>> create(const Options& options,
                                                         const PeerSockets& sockets,
                                                         Deadline deadline);

    /// Maps all ranks' heaps for this rank's GPU where that is not done yet; waits for no rank. An
    /// error names the owner.
    Status map();
    /// Maps the heap of `owner` likewise.
    Status map(Rank owner);
    /// Returns the address of each rank's heap, as mapped for this rank's GPU.
    [[nodiscard]] PeerAddresses bases() const;
    /// Returns the size of this rank's heap, a part of its process's heap allocations.
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    explicit SymmetricHeap(const Options& options)
        : stock_(HeapStock::of(options.driver, options.device, options.kind)) {}
    Status hand_out(const HeapRange& own, const PeerSockets& sockets, Deadline deadline) const;
    /// Memory of a peer that is not mapped yet.
    struct Offer {
        UniqueFd memory{};
        HeapExtent extent{};
    };
    Status take(const PeerSockets& sockets, Deadline deadline);
    static Result<Offer> receive_offer(int socket, Deadline deadline);
    Status map(HeapRange& range, Offer& offer);

    const std::shared_ptr<HeapStock> stock_;
    std::size_t bytes_ = 0;
    std::array<HeapRange, abi::kMostDevices> ranges_;  // by rank
    std::array<Offer, abi::kMostDevices> offers_;      // by rank
};

}  // namespace pccl::transport::nvlink
