// SPDX-License-Identifier: Apache-2.0

// Memory of this process that is registered with its RDMA devices.
//
// A device's registration belongs to one Registration and ends with it: it is never shared or kept
// for later, so memory that was freed and mapped anew is never reached through an old one, and a
// peer's access ends at that moment. (A cache of registrations by pages, as NCCL has it, would need
// to see each unmapping, and would let peers reach the neighbours of a memory in its first and last
// page.) No new one has a key that peers have had before (adapter.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/mapping.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/verbs/adapter.h"
#include "csrc/transport/verbs/gpu_registrar.h"
#include "csrc/transport/verbs/memory_key.h"

namespace pccl::transport::verbs {

/// Local memory as one device reaches it.
struct LocalPiece {
    std::uint32_t key = 0;
    std::uint32_t remote_key = 0;  // by which the device, as a peer of itself, reaches it
    std::size_t bytes = 0;         // from the address on
};

/// Registrations by address. Thread-safe.
class Registrations : public std::enable_shared_from_this<Registrations> {
   public:
    /// `gpu_ways` are those to memory of GPUs.
    Registrations(std::vector<std::shared_ptr<Adapter>> adapters, std::vector<GpuWay> gpu_ways);
    ~Registrations();

    /// Returns a byte of no meaning, which is registered for reads that only test access. Errors as
    /// of add().
    Result<std::byte*> scratch();

    /// Registers a memory of the host or of a GPU. Errors as of RmaTransport::add().
    Result<std::unique_ptr<Registration>> add(const Memory& memory, const MemoryIdentity& identity);
    /// Finds the registration that contains `address`, for a device by its index. kInvalidArgument
    /// where there is none.
    [[nodiscard]] Result<LocalPiece> find(const std::byte* address, std::size_t device) const;
    [[nodiscard]] std::span<const std::shared_ptr<Adapter>> adapters() const { return adapters_; }

   private:
    class DeviceRegistration;
    struct RegisteredRange {
        const DeviceRegistration* owner = nullptr;
        std::size_t bytes = 0;
        std::vector<LocalPiece> pieces;  // the whole range, by device
    };
    /// Registers with one device.
    Result<MemoryRegion> register_with(std::size_t device, const Memory& memory);
    void insert(const Memory& memory, RegisteredRange range);
    void erase(const std::byte* data, const DeviceRegistration* owner);

    const std::vector<std::shared_ptr<Adapter>> adapters_;
    GpuRegistrar gpu_registrar_;
    std::mutex scratch_mutex_;
    Mapping scratch_;  // set by the first scratch(), guarded by scratch_mutex_; and its regions
    std::vector<MemoryRegion> scratch_regions_;
    mutable std::mutex mutex_;
    std::multimap<const std::byte*, RegisteredRange> ranges_;  // guarded by mutex_
};

}  // namespace pccl::transport::verbs
