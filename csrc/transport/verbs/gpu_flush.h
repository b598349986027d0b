// SPDX-License-Identifier: Apache-2.0

// Order between data that RDMA devices place in memory of GPUs and completions, which devices place
// in memory of the host. These are posted writes of PCIe to two targets, and no rule orders them.
//
// - Writes into memory of a peer's GPU: a completion means that the peer's device has the data. The
//   initiator reads the last byte back behind them on the same queue pair (rma_requests.h) before
//   it completes them. PCIe does not let a read overtake the posted writes of its requester, so
//   that the answer means that the data is in the GPU's memory. This also covers writes without a
//   notification, and needs nothing of the peer's process.
// - Reads into memory of a GPU of this process: a read back from the peer would flush nothing here.
//   GpuFlusher flushes them after their completion, as the GPU's driver prescribes
//   (sys::cuda::DeviceWrites): not at all, by the driver, or by a read of the device that placed
//   the data. For this read the device has a queue pair that is connected to itself, as in NCCL.
// - Reads from memory of GPUs, on either side, place no data there, and need no flush.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/verbs/port.h"
#include "csrc/transport/verbs/queue_pair.h"
#include "csrc/transport/verbs/registrations.h"

namespace pccl::transport::verbs {

/// Reads of one device from memory of this process, over a queue pair that is connected to itself.
/// One thread at a time.
class SelfReader {
   public:
    static Result<std::unique_ptr<SelfReader>> create(std::shared_ptr<Port> port);

    [[nodiscard]] bool has_room() const { return posted_ - completed_ < kMost; }
    /// Posts the read of one byte; there must be room. Returns its number.
    Result<std::uint64_t> post(const std::byte* from, std::uint32_t remote_key, std::byte* into,
                               std::uint32_t local_key);
    /// Returns whether the read of that number is complete. After an error, the reader is useless.
    Result<bool> has_completed(std::uint64_t number);

   private:
    static constexpr std::uint64_t kMost = 16;

    explicit SelfReader(std::unique_ptr<QueuePair> pair) : pair_(std::move(pair)) {}

    const std::unique_ptr<QueuePair> pair_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
};

/// Flush of one copy of RDMA reads into memory of a GPU.
struct GpuFlush {
    int gpu = -1;                   // -1: the copy needs none
    const std::byte* at = nullptr;  // a byte of the copy's target
    std::uint64_t devices = 0;      // a bit for each that read, and whose data are not flushed
    std::map<std::size_t, std::uint64_t> reads{};  // under way: their numbers, by device
};

/// Flushes of one link. One thread at a time.
class GpuFlusher {
   public:
    explicit GpuFlusher(std::shared_ptr<Registrations> registrations,
                        std::vector<std::shared_ptr<Port>> ports)
        : registrations_(std::move(registrations)), ports_(std::move(ports)) {}

    /// Begins or continues a flush after the completion of its reads, and returns whether it is
    /// done.
    Result<bool> advance(GpuFlush& flush);
    /// Ends all reads: no device reads for this object any more.
    void end() { readers_.clear(); }

   private:
    Result<sys::cuda::DeviceWrites> writes_of(sys::cuda::Driver& driver, int gpu);
    Result<bool> advance_reads(GpuFlush& flush);
    Status begin_read(GpuFlush& flush, std::size_t device);
    Result<SelfReader*> reader_of(std::size_t device);

    const std::shared_ptr<Registrations> registrations_;
    const std::vector<std::shared_ptr<Port>> ports_;
    std::map<int, sys::cuda::DeviceWrites> writes_;               // by GPU
    std::map<std::size_t, std::unique_ptr<SelfReader>> readers_;  // by device
};

}  // namespace pccl::transport::verbs
