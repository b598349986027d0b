// SPDX-License-Identifier: Apache-2.0

// DeviceGroup: the collectives of a group of ranks with one GPU each on one NVLink host.
//
//     PCCL_ASSIGN_OR_RETURN(const auto memory, DeviceMemory::allocate(gpu, bytes));
//     PCCL_ASSIGN_OR_RETURN(
//         const auto group,
//         DeviceGroup::create({.rank = rank, .size = size, .store = store, .device = gpu}));
//     const Block block{memory->data(), bytes / sizeof(float)};
//     PCCL_TRY(group->launch({.inputs = {&block, 1}, .outputs = {&block, 1}}, stream));
//
// Launches are asynchronous and run in stream order, one after the other: a launch on another
// stream waits for the last one, and so do replays of graphs. Their order must be the same on all
// ranks. Messages keep an order of their own between each pair of ranks: sends wait only for
// earlier sends, and receives for receives. Nothing is allocated and no handle is opened after the
// first use of an allocation, so launches can be captured into CUDA graphs once a similar one has
// run.
//
// A library that was built without CUDA, and a process without a GPU, return kUnavailable.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <pccl/collective.h>
#include <pccl/deadline.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/store.h>
#include <pccl/types.h>

namespace pccl {

namespace device {
class DeviceGroupImpl;
class DeviceMemoryImpl;
}  // namespace device

/// Buffer on one GPU, for programs that have no other library for it. Its copies use the default
/// stream and follow the launches in it. One thread alone may use it.
class PCCL_API DeviceMemory {
   public:
    /// Allocates `bytes` zero-filled bytes on a GPU, a CUDA ordinal of this process. Makes the
    /// device's context current on this thread. Errors: kInvalidArgument for a GPU that does not
    /// exist, kResourceExhausted, kUnavailable without CUDA.
    static Result<std::unique_ptr<DeviceMemory>> allocate(int device, std::size_t bytes);
    /// Frees the memory, which no launch may use any more.
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    /// Returns the address on the GPU, which the host must not dereference.
    [[nodiscard]] std::byte* data() const;
    /// Returns the length in bytes.
    [[nodiscard]] std::size_t bytes() const;
    /// Copies to the first bytes of the buffer, and waits. kInvalidArgument where it is shorter.
    Status write(std::span<const std::byte> from);
    /// Copies from the first bytes of the buffer, and waits. kInvalidArgument where it is shorter.
    Status read(std::span<std::byte> into);
    /// Waits until the default stream has finished its present work.
    Status wait();

   private:
    explicit DeviceMemory(std::unique_ptr<device::DeviceMemoryImpl> memory);

    const std::unique_ptr<device::DeviceMemoryImpl> memory_;
};

/// Options of a group of GPUs. `size` is equal on all ranks.
struct DeviceGroupOptions {
    Rank rank = 0;                   // of this process, below `size`
    int size = 1;                    // number of ranks, at most 8
    std::shared_ptr<Store> store{};  // for this group only; null when size is 1
    std::string name{};              // in flight records
    int device = 0;                  // CUDA ordinal of this rank's GPU in this process
    std::chrono::milliseconds timeout = kDefaultTimeout;  // of rendezvous, and of launches
    /// false: treats the GPUs as if they could not reach each other. true: uses kernels even where
    /// ranks that share a GPU are time-sliced. Empty: the library's choice.
    std::optional<bool> peer_access{};
    /// Kernels that meet in pinned host memory, where GPUs do not reach each other. false: none.
    /// true: also where ranks that share a GPU are time-sliced. Empty: the library's choice.
    std::optional<bool> host_kernels{};
    /// Schedules instead of kernels: "all_reduce=ring". Rank 0's value applies to all ranks.
    std::string algorithms{};
};

/// Message to or from another rank, in GPU memory.
struct DeviceMessage {
    Rank peer = 0;              // the other rank
    std::byte* data = nullptr;  // of any allocator
    std::size_t bytes = 0;      // 0: it is not sent
};

/// Group of GPUs. Thread-safe. In a child of fork() every call returns kUnavailable.
class PCCL_API DeviceGroup {
   public:
    /// Creates the group; all ranks call it at the same time. kUnsupported, on all ranks, where
    /// kernels meet nowhere: more than 8 ranks, several hosts, or neither peer access nor host
    /// memory that all GPUs map; it names the obstacle and the rank. kMismatch, on all ranks, where
    /// options differ. kUnavailable, on all ranks, where a rank has no GPU or its build no CUDA.
    /// kTimeout and kPeerLost name a rank.
    static Result<std::unique_ptr<DeviceGroup>> create(const DeviceGroupOptions& options);
    /// Waits shortly for the launches to finish, then ends kernels that still wait for peers. The
    /// memory of a kernel that does not finish, because it is behind others in its stream, is never
    /// freed.
    ~DeviceGroup();
    DeviceGroup(const DeviceGroup&) = delete;
    DeviceGroup& operator=(const DeviceGroup&) = delete;

    /// Returns the rank of this process.
    [[nodiscard]] Rank rank() const;
    /// Returns the number of ranks.
    [[nodiscard]] int size() const;
    /// Returns the compute capability of rank 0's GPU (90 for sm_90), which determines the choice
    /// of kernels on all ranks.
    [[nodiscard]] int architecture() const;
    /// Returns this group's share, in bytes, of the GPU memory that groups of this process share on
    /// the device.
    [[nodiscard]] std::size_t heap_bytes() const;

    /// Launches a collective in `stream`, a CUstream (or cudaStream_t; null: the default stream).
    /// Blocks are GPU memory of any allocator, valid until the stream has passed the launch. Empty
    /// `timeout`: the group's. Errors: kInvalidArgument, kUnsupported, and those of health().
    [[nodiscard]] Status launch(const Collective& collective, void* stream,
                                OptionalTimeout timeout = {});
    /// Launches all collectives in as few kernels as possible: those of one kind share a launch. No
    /// output may overlap another collective's tensors. Errors are those of launch().
    [[nodiscard]] Status launch_all(std::span<const Collective> collectives, void* stream,
                                    OptionalTimeout timeout = {});
    /// Sends and receives at once: in one launch if each side names each rank at most once,
    /// otherwise in several. Messages from one rank to another match in the order of their
    /// launches. Empty messages are not sent. Errors are those of launch().
    [[nodiscard]] Status exchange(std::span<const DeviceMessage> sends,
                                  std::span<const DeviceMessage> receives, void* stream);
    /// Requests that the peers map the allocation of `memory`, so that its first use does not wait.
    [[nodiscard]] Status announce(const void* memory);
    /// Sets the timeout of later launches without one of their own. It counts from the begin of a
    /// kernel's wait.
    void set_timeout(std::chrono::milliseconds timeout);
    /// Returns ok, or the reason why the group ended: a lost peer or one that has left, kernels
    /// that gave up waiting, or a launch that failed here. kTimeout, kPeerLost and kMismatch name a
    /// rank. The peers receive the reason.
    [[nodiscard]] Status health() const;
    /// Ends waiting kernels, here and at the peers, and makes every later launch fail with
    /// kAborted.
    void abort();
    /// Returns true when the GPU has finished all launches; false where it has not by `deadline`.
    [[nodiscard]] bool await_launches(Deadline deadline);
    /// Returns whether a launch in `stream` would go into a CUDA graph, or whether that is unknown.
    [[nodiscard]] bool is_captured(void* stream) const;

   private:
    explicit DeviceGroup(std::unique_ptr<device::DeviceGroupImpl> group);

    const std::unique_ptr<device::DeviceGroupImpl> group_;
};

}  // namespace pccl
