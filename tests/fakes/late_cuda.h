// SPDX-License-Identifier: Apache-2.0

// GPUs in host memory, for processes: their memory is in files that others open by CUDA IPC, and
// copies end some time after they have begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "csrc/transport/mapping.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::fakes {

/// Safe from every thread.
class LateCudaDriver final : public FakeCudaDriver {
   public:
    LateCudaDriver() : FakeCudaDriver(std::make_shared<FakeGpus>()) {}

    /// From now on a mapping's memory is that of a GPU, which CUDA IPC shares if it is in a file.
    void adopt(const transport::Mapping& memory, int device);
    /// How often one must ask for an event until it has come: only then its copies are made.
    void be_late(int looks);
    /// All events that are late.
    void come_at_once();
    /// From now on copies end with it, and copy nothing.
    void fail_copies(Status status);
    /// Memory of others that is open here.
    [[nodiscard]] std::size_t opened() const;
    /// Whether a copy that has begun, and not ended, reads or writes there.
    [[nodiscard]] bool is_busy(std::span<const std::byte> memory) const;
    /// Copies in one call, at most so far.
    [[nodiscard]] std::size_t most_at_once() const;
    /// That began copies, so far.
    [[nodiscard]] std::size_t calls() const;

    Result<sys::cuda::Allocation> allocation_of(sys::cuda::DeviceAddress address) override;
    Result<sys::cuda::IpcHandle> export_allocation(sys::cuda::DeviceAddress base) override;
    Result<sys::cuda::DeviceAddress> open_allocation(const sys::cuda::IpcHandle& handle) override;
    Status close_allocation(sys::cuda::DeviceAddress base) override;
    /// The file of a mapping is its dma-buf.
    Result<sys::cuda::DmaBuf> export_range(int device, sys::cuda::DeviceAddress address,
                                           std::size_t bytes) override;
    Result<sys::cuda::Stream> create_stream(int device) override;
    Status destroy_stream(sys::cuda::Stream stream) override;
    Status copy_all(std::span<const sys::cuda::Copy> copies, sys::cuda::Stream stream) override;
    Result<sys::cuda::Event> record(sys::cuda::Stream stream) override;
    Status await_event(sys::cuda::Stream then, sys::cuda::Event event) override;
    Result<bool> has_come(sys::cuda::Event event) override;
    Status destroy_event(sys::cuda::Event event) override;

   private:
    struct Adopted {
        sys::cuda::Allocation allocation;
        int file = -1;
    };
    struct Part;
    using PartPtr = std::shared_ptr<Part>;
    /// What a stream has got between two events.
    struct Part {
        std::vector<PartPtr> after{};  // of this stream and of others
        std::vector<sys::cuda::Copy> copies{};
        int looks = 0;  // until it is done
        bool is_done = false;
        Status status{};
    };
    /// And what it comes after.
    static void hasten(Part& part);
    static bool has_come(Part& part);
    static void finish(Part& part);

    mutable std::mutex mutex_;  // guards what follows
    std::map<sys::cuda::DeviceAddress, Adopted> adopted_;
    std::map<sys::cuda::DeviceAddress, transport::Mapping> opened_;
    std::map<sys::cuda::Stream, Part> begun_;
    std::map<std::uint64_t, PartPtr> parts_;  // by their events
    std::uint64_t last_ = 0;                  // of streams, events and allocations
    int looks_ = 0;
    Status failure_;
    std::size_t most_at_once_ = 0;
    std::size_t calls_ = 0;
};

}  // namespace pccl::fakes
