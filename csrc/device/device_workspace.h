// SPDX-License-Identifier: Apache-2.0

// DeviceWorkspace: memory of one size on the GPU of each rank of a host, for kernels of users. All
// ranks access it at plain addresses.
//
//     auto made = DeviceWorkspace::create({.rank = rank, .size = size, .store = store,
//                                          .device = gpu, .bytes = bytes});     // on every rank
//     kernel<<<...>>>((*made)->address(rank), (*made)->address(peer));
//
// The memory is zero at first. Users synchronise access to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include <pccl/store.h>
#include "csrc/device/device_rendezvous.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::device {

struct DeviceWorkspaceOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<Store> store{};                  // for this workspace only; unused by one rank
    int device = 0;                                  // CUDA device number in this process
    std::size_t bytes = 0;                           // of each rank; the same on all
    std::chrono::milliseconds timeout{30 * 60'000};  // of rendezvous
    sys::cuda::Driver* driver = nullptr;             // null: the machine's driver
};

class PCCL_API DeviceWorkspace {
   public:
    /// Creates the workspace; all ranks call it at the same time. The cancellation, which may be
    /// null, ends the wait for others. Errors, the same on all ranks: kInvalidArgument (no bytes,
    /// or ranks differ in their number), kUnsupported (several hosts, or GPUs that do not reach
    /// each other), kResourceExhausted, kTimeout and kPeerLost with the rank.
    static Result<std::unique_ptr<DeviceWorkspace>> create(const DeviceWorkspaceOptions& options,
                                                           const Cancellation* cancellation = {});

    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] int device() const { return device_; }
    /// Returns the address of `rank`'s part for this rank's GPU. It stays mapped for the life of
    /// this object, here and on the peer; finish all use before.
    [[nodiscard]] Result<sys::cuda::DeviceAddress> address(Rank rank) const;

   private:
    DeviceWorkspace(const DeviceWorkspaceOptions& options, sys::cuda::Driver& driver)
        : driver_(driver), size_(options.size), device_(options.device), bytes_(options.bytes) {}
    Status meet(const DeviceRendezvous& rendezvous);

    sys::cuda::Driver& driver_;
    const int size_;
    const int device_;
    const std::size_t bytes_;
    /// Used while the ranks meet. A rank that cannot have its part publishes the reason before it
    /// closes them, since the close reaches the peers first.
    std::unique_ptr<transport::nvlink::PeerSockets> sockets_;
    std::unique_ptr<transport::nvlink::SymmetricHeap> heap_;
};

/// Returns the number of GPUs that are visible to this process.
[[nodiscard]] PCCL_API Result<int> count_gpus();

/// Runs DeviceWorkspace::create() while this thread calls `interrupted` ten times a second; returns
/// its status where that is not ok. Children of fork() leave the memory as it is.
[[nodiscard]] PCCL_API Result<std::shared_ptr<DeviceWorkspace>> create_interruptibly(
    const DeviceWorkspaceOptions& options, const std::function<Status()>& interrupted);

}  // namespace pccl::device
