// SPDX-License-Identifier: Apache-2.0

// Interface to the CUDA driver, as far as the library uses it: mainly memory that other processes
// can map.
//
// It is an interface so that all code above it is tested without a GPU. The real implementation
// opens libcuda.so.1 at run time. The kernels are in csrc/kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys::cuda {

/// An address as kernels and copies of this process use it; 0 is none.
using DeviceAddress = std::uint64_t;
/// A CUstream; null is the legacy default stream.
using Stream = void*;

/// A CUevent: the work of a stream up to one moment.
using Event = void*;

/// Graph node that records an event. It moves while the graph is captured.
struct GraphMark {
    void* node = nullptr;        // null: none yet
    std::vector<void*> after{};  // nodes that it waits for
};

/// Physical memory of a GPU (CUmemGenericAllocationHandle); it is not mapped by itself.
struct MemoryHandle {
    std::uint64_t value = 0;
};
/// A CUipcMemHandle: names an allocation of cuMemAlloc() or cudaMalloc() to other processes.
using IpcHandle = std::array<std::byte, 64>;

/// A CUuuid: names a GPU, or a part of one, to all processes.
using GpuId = std::array<std::byte, 16>;

/// Allocation that an address belongs to. `id` is never used again in this process for another
/// allocation.
struct Allocation {
    DeviceAddress base = 0;
    std::size_t bytes = 0;
    std::uint64_t id = 0;
    int device = -1;  // owner of the memory
};

/// File by which drivers of other devices, such as those of RDMA, reach a range of a GPU's memory.
struct DmaBuf {
    UniqueFd file;
    std::uint64_t offset = 0;  // of the range in the file, in bytes
};

/// How data that other devices have written into memory of a GPU, such as RDMA devices, become
/// visible to all GPUs of this process.
enum class DeviceWrites : std::uint8_t {
    kOrdered,    // by themselves, before what the device writes to memory of the host after them
    kFlushed,    // by Driver::flush_device_writes()
    kUnordered,  // by a read of that memory by the device that wrote
};

/// Copy between any two mapped addresses.
struct Copy {
    DeviceAddress to = 0;
    DeviceAddress from = 0;
    std::size_t bytes = 0;
};

/// Memory file that the CPU and all devices of this process access.
struct HostMapping {
    std::byte* memory = nullptr;  // for the CPU
    DeviceAddress address = 0;    // for kernels and copies
    std::size_t bytes = 0;
};

/// Interface of the driver. Errors: kInvalidArgument, kResourceExhausted (memory), kUnsupported and
/// kUnavailable (no GPU, no peer access), kInternal for the rest; messages name the driver's
/// function and its error. Thread-safe. Members other than use(), enter() and gpu_id() require a
/// current context on the calling thread.
class Driver {
   public:
    virtual ~Driver() = default;

    /// Makes the primary context of `device` current on this thread.
    [[nodiscard]] virtual Status use(int device) = 0;
    /// Does the same until leave(), which restores the previous context (on_device.h).
    [[nodiscard]] virtual Status enter(int device) = 0;
    virtual Status leave() = 0;
    [[nodiscard]] virtual Result<GpuId> gpu_id(int device) = 0;
    /// Returns the bus ids of the GPUs that are visible to this process, by device: "0000:0d:00.0".
    [[nodiscard]] virtual Result<std::vector<std::string>> bus_ids() = 0;
    [[nodiscard]] virtual Result<int> multiprocessors(int device) = 0;
    /// Returns whether MPS runs kernels of several processes side by side on `device`. Without it
    /// they are time-sliced.
    [[nodiscard]] virtual Result<bool> has_mps(int device) = 0;
    /// Returns the compute capability without its dot: 90 for sm_90.
    [[nodiscard]] virtual Result<int> architecture(int device) = 0;
    /// Waits until `stream` has finished its present work.
    [[nodiscard]] virtual Status wait(Stream stream) = 0;

    // The following members handle memory that is passed between processes as a descriptor.

    /// Returns the unit of sizes for create(), in bytes.
    [[nodiscard]] virtual Result<std::size_t> granularity(int device) = 0;
    [[nodiscard]] virtual Result<MemoryHandle> create(int device, std::size_t bytes) = 0;
    [[nodiscard]] virtual Result<UniqueFd> export_memory(MemoryHandle memory) = 0;
    [[nodiscard]] virtual Result<MemoryHandle> import_memory(int fd) = 0;
    /// Releases the handle. Mappings keep the memory; it is freed with the last one.
    virtual Status release(MemoryHandle memory) = 0;
    /// Maps all `bytes` of `memory` for `device` to read and write.
    [[nodiscard]] virtual Result<DeviceAddress> map(MemoryHandle memory, std::size_t bytes,
                                                    int device) = 0;
    virtual Status unmap(DeviceAddress address, std::size_t bytes) = 0;

    // The following members handle memory of other allocators, such as torch's.

    /// Returns the allocation of an address on the device whose context is current.
    [[nodiscard]] virtual Result<Allocation> allocation_of(DeviceAddress address) = 0;
    /// Returns the device of an address on any device.
    [[nodiscard]] virtual Result<int> device_of(DeviceAddress address) = 0;
    /// Returns Allocation::id for `address`; cheaper than allocation_of().
    [[nodiscard]] virtual Result<std::uint64_t> allocation_id_of(DeviceAddress address) = 0;
    /// Exports an allocation. kUnsupported where the memory cannot be shared this way (memory
    /// mapped piece by piece).
    [[nodiscard]] virtual Result<IpcHandle> export_allocation(DeviceAddress base) = 0;
    /// Opens an allocation of another process and returns its base address here.
    [[nodiscard]] virtual Result<DeviceAddress> open_allocation(const IpcHandle& handle) = 0;
    virtual Status close_allocation(DeviceAddress base) = 0;
    /// Exports a range, within one allocation, to drivers of other devices. kUnsupported where the
    /// GPU or the allocation does not allow it.
    [[nodiscard]] virtual Result<DmaBuf> export_range(int device, DeviceAddress address,
                                                      std::size_t bytes) = 0;
    [[nodiscard]] virtual Result<DeviceWrites> device_writes(int device) = 0;
    /// Makes data that other devices have written into memory of the GPU whose context is current
    /// visible to all GPUs. For DeviceWrites::kFlushed.
    virtual Status flush_device_writes() = 0;
    /// Lets kernels of `device` read and write memory of `other` that this process has.
    /// kUnsupported where the hardware has no path.
    [[nodiscard]] virtual Status reach(int device, int other) = 0;

    /// Returns whether the hardware and the driver provide such a path.
    [[nodiscard]] virtual Result<bool> can_reach(int device, int other) = 0;

    /// Returns whether the path of two GPUs that reach each other is NVLink, or as fast. The driver
    /// does not name the link; over PCIe alone, GPUs have no atomic operations on each other.
    [[nodiscard]] virtual Result<bool> has_nvlink(int device, int other) = 0;

    /// Allocates memory that export_allocation() accepts.
    [[nodiscard]] virtual Result<DeviceAddress> allocate(int device, std::size_t bytes) = 0;
    virtual Status deallocate(DeviceAddress base) = 0;

    /// Allocates zero-filled host memory that all devices access at the same address.
    [[nodiscard]] virtual Result<void*> allocate_host(std::size_t bytes) = 0;
    virtual Status free_host(void* memory) = 0;

    /// Maps all `bytes` of a memory file (sys/memory_file.h), pins its pages and lets all devices
    /// access them. kUnsupported where the driver refuses such memory; kResourceExhausted where not
    /// so much memory may be pinned.
    [[nodiscard]] virtual Result<HostMapping> map_file(int file, std::size_t bytes) = 0;
    virtual Status unmap_file(const HostMapping& mapping) = 0;

    /// Clears memory to zero; complete on return.
    virtual Status clear(DeviceAddress address, std::size_t bytes) = 0;
    /// Copies in stream order by a copy engine, between any two mapped addresses.
    virtual Status copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream stream) = 0;
    /// Copies from pinned memory in stream order, by a copy engine even for few bytes. copy() puts
    /// up to 32 KiB into the commands of the stream. A GPU shared by several processes executes
    /// these only in this process's time slice: 265 us instead of 9 on an H200.
    virtual Status copy_from_host(DeviceAddress to, const void* from, std::size_t bytes,
                                  Stream stream) = 0;
    /// Makes many copies, in any order, in `stream`, which must not be a default one: small ones by
    /// a kernel, others by copy engines, in one call where this machine's driver supports that.
    virtual Status copy_all(std::span<const Copy> copies, Stream stream) = 0;
    /// Makes later work in `then` wait for present work in `first`. Does nothing where only one of
    /// them is being captured, or they are captured into different graphs.
    virtual Status order_after(Stream then, Stream first) = 0;
    /// Does the same; in addition, when `first` is being captured, `then` is captured from now on,
    /// too.
    virtual Status fork(Stream then, Stream first) = 0;
    /// Records the present work of `stream`, which is not being captured. The caller passes the
    /// event to destroy_event().
    [[nodiscard]] virtual Result<Event> record(Stream stream) = 0;
    /// Creates an event. Before its first recording, waits for it end at once. Graphs that use it
    /// must not be replayed after it is destroyed.
    [[nodiscard]] virtual Result<Event> create_event() = 0;
    /// Records the present work of `stream`, which is not being captured, into `event`.
    virtual Status record_into(Event event, Stream stream) = 0;
    /// Makes each replay of the graph that `stream` is being captured into record `event` after the
    /// present work of `stream`. This replaces the recording of the last call with `mark`, which
    /// belongs to that graph.
    virtual Status record_in_graph(Event event, Stream stream, GraphMark& mark) = 0;
    /// Makes later work in `then` wait for `event`.
    virtual Status await_event(Stream then, Event event) = 0;
    /// Does the same in the graph that `then` is being captured into: a replay waits for the last
    /// recording before it.
    virtual Status await_in_graph(Stream then, Event event) = 0;
    /// Returns whether the GPU has reached the event.
    [[nodiscard]] virtual Result<bool> has_come(Event event) = 0;
    /// Destroys the event. Streams that already wait for it continue to wait.
    virtual Status destroy_event(Event event) = 0;
    /// Returns an identifier, unique in this process, of the graph that new work in `stream` goes
    /// into; 0: none.
    [[nodiscard]] virtual Result<std::uint64_t> capture_of(Stream stream) = 0;
    /// Allows this thread calls that captures elsewhere in the process would forbid.
    virtual Status ignore_captures() = 0;
    /// Creates a stream of `device` that does not implicitly wait for other streams.
    [[nodiscard]] virtual Result<Stream> create_stream(int device) = 0;
    virtual Status destroy_stream(Stream stream) = 0;
};

/// Returns the driver of this machine, which is opened once. kUnavailable in a build without CUDA,
/// and where libcuda.so.1 or a GPU is missing.
[[nodiscard]] PCCL_API Result<Driver*> process_driver();
/// Does the same, ignoring let_stand_in().
[[nodiscard]] Result<Driver*> machine_driver();
/// Replaces the result of process_driver() for tests; null restores this machine's driver.
PCCL_API void let_stand_in(Driver* driver);
/// Returns `given`, or this machine's driver where that is null, and makes `device` current on this
/// thread.
[[nodiscard]] PCCL_API Result<Driver*> driver_on(int device, Driver* given = nullptr);

}  // namespace pccl::sys::cuda
