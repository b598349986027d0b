// A symmetric heap: memory of one size on each GPU of a group, mapped by all its ranks.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "csrc/abi/device_team.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/peer_sockets.h"

namespace pccl::transport::nvlink {

/// By rank; 0 where there is none.
using PeerAddresses = std::array<sys::cuda::DeviceAddress, abi::kMostDevices>;

class PCCL_API SymmetricHeap {
   public:
    struct Options {
        sys::cuda::Driver& driver;
        int device = 0;         // this rank's
        std::size_t bytes = 0;  // rounded up to what the driver maps
    };
    /// Called by all ranks at once, with one size. The memory is zero before any peer can see it.
    /// kTimeout and kPeerLost name the rank; kUnsupported where GPUs do not reach one another.
    static Result<std::unique_ptr<SymmetricHeap>> create(const Options& options,
                                                         const PeerSockets& sockets,
                                                         Deadline deadline);
    ~SymmetricHeap();
    SymmetricHeap(const SymmetricHeap&) = delete;
    SymmetricHeap& operator=(const SymmetricHeap&) = delete;

    /// Of each rank's heap, as mapped for this rank's GPU.
    [[nodiscard]] const PeerAddresses& bases() const { return bases_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }

   private:
    explicit SymmetricHeap(const Options& options) : driver_(options.driver), options_(options) {}
    Status allocate(Rank self);
    Status hand_out(const PeerSockets& sockets, Deadline deadline);
    Status take(const PeerSockets& sockets, Deadline deadline);

    sys::cuda::Driver& driver_;
    const Options options_;
    std::size_t bytes_ = 0;
    UniqueFd own_;  // until handed out
    PeerAddresses bases_{};
};

}  // namespace pccl::transport::nvlink
