// SPDX-License-Identifier: Apache-2.0

// Requests of RDMA reads and writes to a peer's memory.
//
// Writes into memory of a GPU are complete only with a read behind them on the same queue pair,
// which flushes them (gpu_flush.h): each doorbell has one for each copy that it contains. If that
// read fails, the writes are posted again, too.
//
// Writes into memory of the host are announced to the peer by an immediate behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/rma/immediates.h"
#include "csrc/transport/verbs/gpu_flush.h"
#include "csrc/transport/verbs/memory_key.h"

namespace pccl::transport::verbs {

/// Receive requests for immediates of each queue pair.
inline constexpr int kImmediatesOfPair = 32;

/// Returns the immediate data that the device sends.
[[nodiscard]] std::uint32_t value_of(const RmaImmediate& immediate);

/// Registration of the peer.
class VerbsMemory final : public RmaPeerMemory {
   public:
    /// `flush_into`: for memory of a GPU, where reads that flush it put their byte; null for memory
    /// of a host.
    VerbsMemory(RemoteKey key, std::byte* flush_into)
        : key_(std::move(key)), flush_into_(flush_into) {}

    [[nodiscard]] bool is_open() const override { return is_open_; }
    [[nodiscard]] bool is_of_gpu() const override { return flush_into_ != nullptr; }
    [[nodiscard]] bool is_moved_by_device() const override { return true; }
    [[nodiscard]] std::byte* flush_into() const { return flush_into_; }
    [[nodiscard]] const RemoteKey& key() const { return key_; }
    void end() { is_open_ = false; }

   private:
    const RemoteKey key_;
    std::byte* const flush_into_;
    bool is_open_ = true;
};

/// State of the requests of one copy.
struct VerbsCopy {
    std::size_t left = 0;              // requests that are not complete
    Status status;                     // of the first that failed
    GpuFlush flush{};                  // after reads into memory of a GPU
    bool precedes_immediates = false;  // all requests are writes into memory of the host
};

/// Read or write of one piece, or an immediate.
struct VerbsRequest {
    RmaOp op = RmaOp::kRead;
    std::byte* here = nullptr;
    std::uint64_t there = 0;  // address in the peer's process
    std::uint32_t bytes = 0;
    std::shared_ptr<VerbsMemory> memory;
    std::shared_ptr<VerbsCopy> copy;
    bool is_of_host = true;  // the CPU can read `here`
    bool is_flush = false;   // read behind writes
    /// Number of an immediate, which has no memory and no copy; 0: it is none.
    std::uint32_t immediate = 0;
    std::uint32_t immediate_data = 0;

    [[nodiscard]] bool is_immediate() const { return immediate > 0; }
    /// Returns whether the request is complete only with a flush behind it.
    [[nodiscard]] bool needs_flush() const {
        return op == RmaOp::kWrite && !is_immediate() && memory->is_of_gpu();
    }
};

/// Returns how many of the first `acknowledged` requests of a queue pair are complete.
[[nodiscard]] std::size_t complete_among(const std::deque<VerbsRequest>& posted,
                                         std::size_t acknowledged);

/// Requests that no queue pair has, in their order. They contain no flush.
class WaitingRequests {
   public:
    /// Least room for take().
    static constexpr int kLeastRoom = 2;  // a write and its flush

    [[nodiscard]] bool is_empty() const { return requests_.empty(); }
    [[nodiscard]] std::size_t size() const { return requests_.size(); }
    void add(std::span<VerbsRequest> requests);
    /// Moves the next requests into `chain`, which is empty, with the flushes that they need;
    /// `room` at most.
    void take(std::size_t room, std::vector<VerbsRequest>& chain);
    /// Puts a request that was taken before all others, unless it is a flush or an immediate.
    void put_back(VerbsRequest request);
    void clear() { requests_.clear(); }

   private:
    std::deque<VerbsRequest> requests_;
};

}  // namespace pccl::transport::verbs
