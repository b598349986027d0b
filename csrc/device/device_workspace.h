// DeviceWorkspace: memory of one size on the GPU of each rank of a host, which all of them reach at
// plain addresses: for kernels of users' own.
//
//     auto made = DeviceWorkspace::create({.rank = rank, .size = size, .store = store,
//                                          .device = gpu, .bytes = bytes});     // on every rank
//     kernel<<<...>>>((*made)->address(rank), (*made)->address(peer));
//
// Zero at first. Synchronising access to it is the users' affair.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/device/device_rendezvous.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::device {

struct DeviceWorkspaceOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<bootstrap::Store> store{};       // of this workspace alone; unused by one rank
    int device = 0;                                  // as CUDA numbers it in this process
    std::size_t bytes = 0;                           // of each rank; the same on all
    std::chrono::milliseconds timeout{30 * 60'000};  // of rendezvous
    sys::cuda::Driver* driver = nullptr;             // null: the machine's
};

class PCCL_API DeviceWorkspace {
   public:
    /// Called by all ranks at once. The cancellation, which may be null, ends the wait for others.
    /// Errors, the same on all ranks: kInvalidArgument (no bytes, or another number of them on
    /// another rank), kUnsupported (another host, or GPUs that do not reach each other),
    /// kResourceExhausted, kTimeout and kPeerLost with the rank.
    static Result<std::unique_ptr<DeviceWorkspace>> create(const DeviceWorkspaceOptions& options,
                                                           const Cancellation* cancellation = {});

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] int device() const { return device_; }
    /// The part of `rank` as this rank's GPU sees it. It stays mapped as long as this object lives,
    /// here and on the peer: end what uses it first.
    [[nodiscard]] Result<sys::cuda::DeviceAddress> address(Rank rank) const;

   private:
    DeviceWorkspace(const DeviceWorkspaceOptions& options, sys::cuda::Driver& driver)
        : driver_(driver), size_(options.size), device_(options.device), bytes_(options.bytes) {}
    Status meet(const DeviceRendezvous& rendezvous);

    sys::cuda::Driver& driver_;
    const int size_;
    const int device_;
    const std::size_t bytes_;
    /// While the ranks meet. Who cannot have its part says why before it hangs up, as its end is
    /// what others hear first.
    std::unique_ptr<transport::nvlink::PeerSockets> sockets_;
    std::unique_ptr<transport::nvlink::SymmetricHeap> heap_;
};

/// GPUs that this process sees.
[[nodiscard]] PCCL_API Result<int> count_gpus();

/// DeviceWorkspace::create(), while this thread asks `interrupted` ten times a second; what that
/// says, unless ok, is what this returns. Children of fork() leave the memory as it is.
[[nodiscard]] PCCL_API Result<std::shared_ptr<DeviceWorkspace>> create_interruptibly(
    const DeviceWorkspaceOptions& options, const std::function<Status()>& interrupted);

}  // namespace pccl::device
