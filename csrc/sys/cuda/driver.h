// The CUDA driver as the library uses it: memory that other processes can map, and little else.
//
// One interface, so that everything above it is tested without a GPU. The real one opens
// libcuda.so.1 at run time. Kernels are those of csrc/kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys::cuda {

/// An address as kernels and copies of this process see it; 0 is none.
using DeviceAddress = std::uint64_t;
/// CUstream; null is the legacy default stream.
using Stream = void*;

/// CUevent: what a stream had got at one moment.
using Event = void*;

/// The node of a graph that records an event. It moves while the graph is captured.
struct GraphMark {
    void* node = nullptr;        // null: none yet
    std::vector<void*> after{};  // what it waits for
};

/// Physical memory of a GPU (CUmemGenericAllocationHandle), mapped nowhere by itself.
struct MemoryHandle {
    std::uint64_t value = 0;
};
/// CUipcMemHandle: names an allocation of cuMemAlloc() or cudaMalloc() to other processes.
using IpcHandle = std::array<std::byte, 64>;

/// CUuuid: names a GPU, or a part of one, to all processes.
using GpuId = std::array<std::byte, 16>;

/// What an address belongs to. `id` is never used again in this process for another allocation.
struct Allocation {
    DeviceAddress base = 0;
    std::size_t bytes = 0;
    std::uint64_t id = 0;
    int device = -1;  // whose memory it is
};

/// Between any two mapped addresses.
struct Copy {
    DeviceAddress to = 0;
    DeviceAddress from = 0;
    std::size_t bytes = 0;
};

/// Errors: kInvalidArgument, kResourceExhausted (memory), kUnsupported and kUnavailable (no GPU, no
/// peer access), kInternal for the rest; messages name the driver's function and its error.
/// Safe from every thread; members other than use(), enter() and gpu_id() need a context current on
/// the calling thread.
class Driver {
   public:
    virtual ~Driver() = default;

    /// Makes the primary context of `device` current on this thread.
    [[nodiscard]] virtual Status use(int device) = 0;
    /// The same until leave(), after which what was current before is again (on_device.h).
    [[nodiscard]] virtual Status enter(int device) = 0;
    virtual Status leave() = 0;
    [[nodiscard]] virtual Result<GpuId> gpu_id(int device) = 0;
    /// Bus ids of the GPUs that this process sees, by device: "0000:0d:00.0".
    [[nodiscard]] virtual Result<std::vector<std::string>> bus_ids() = 0;
    [[nodiscard]] virtual Result<int> multiprocessors(int device) = 0;
    /// Whether MPS runs kernels of several processes side by side on `device`. Without it they take
    /// turns.
    [[nodiscard]] virtual Result<bool> has_mps(int device) = 0;
    /// Compute capability without its dot: 90 for sm_90.
    [[nodiscard]] virtual Result<int> architecture(int device) = 0;
    /// Returns when `stream` has done what it has got.
    [[nodiscard]] virtual Status wait(Stream stream) = 0;

    // Memory that travels as a descriptor.

    /// Sizes of create() are multiples of this.
    [[nodiscard]] virtual Result<std::size_t> granularity(int device) = 0;
    [[nodiscard]] virtual Result<MemoryHandle> create(int device, std::size_t bytes) = 0;
    [[nodiscard]] virtual Result<UniqueFd> export_memory(MemoryHandle memory) = 0;
    [[nodiscard]] virtual Result<MemoryHandle> import_memory(int fd) = 0;
    /// Mappings keep the memory; it is freed with the last one.
    virtual Status release(MemoryHandle memory) = 0;
    /// Maps all `bytes` of `memory` for `device` to read and write.
    [[nodiscard]] virtual Result<DeviceAddress> map(MemoryHandle memory, std::size_t bytes,
                                                    int device) = 0;
    virtual Status unmap(DeviceAddress address, std::size_t bytes) = 0;

    // Memory of others' making, such as torch's allocator.

    /// On the device whose context is current.
    [[nodiscard]] virtual Result<Allocation> allocation_of(DeviceAddress address) = 0;
    /// On any.
    [[nodiscard]] virtual Result<int> device_of(DeviceAddress address) = 0;
    /// Allocation::id of what `address` belongs to; cheaper than all of it.
    [[nodiscard]] virtual Result<std::uint64_t> allocation_id_of(DeviceAddress address) = 0;
    /// kUnsupported where the memory cannot be shared in this way (memory mapped piece by piece).
    [[nodiscard]] virtual Result<IpcHandle> export_allocation(DeviceAddress base) = 0;
    /// Of another process; its base address here.
    [[nodiscard]] virtual Result<DeviceAddress> open_allocation(const IpcHandle& handle) = 0;
    virtual Status close_allocation(DeviceAddress base) = 0;
    /// From now on kernels of `device` may read and write memory of `other` that this process has.
    /// kUnsupported where no way leads there.
    [[nodiscard]] virtual Status reach(int device, int other) = 0;

    /// Memory that export_allocation() takes.
    [[nodiscard]] virtual Result<DeviceAddress> allocate(int device, std::size_t bytes) = 0;
    virtual Status deallocate(DeviceAddress base) = 0;

    /// Host memory that all devices reach at the same address; zero-filled.
    [[nodiscard]] virtual Result<void*> allocate_host(std::size_t bytes) = 0;
    virtual Status free_host(void* memory) = 0;

    /// Zero-fills; done on return.
    virtual Status clear(DeviceAddress address, std::size_t bytes) = 0;
    /// In stream order, by a copy engine, between any two mapped addresses.
    virtual Status copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream stream) = 0;
    /// In stream order, from pinned memory, by a copy engine also where the bytes are few. copy()
    /// has up to 32 KiB in the commands of the stream, which a GPU that several processes share
    /// executes when it is this one's turn: on an H200 265 us instead of 9.
    virtual Status copy_from_host(DeviceAddress to, const void* from, std::size_t bytes,
                                  Stream stream) = 0;
    /// Many, in any order among each other, in `stream`, which is not a default one: small ones by
    /// a kernel, others by copy engines, in one call where this machine's driver has that.
    virtual Status copy_all(std::span<const Copy> copies, Stream stream) = 0;
    /// Whatever `then` gets from now on waits for what `first` has got. Nothing, where one of them
    /// is being captured and the other is not, or into another graph.
    virtual Status follow(Stream then, Stream first) = 0;
    /// The same, and when `first` is being captured, `then` is from now on, too.
    virtual Status fork(Stream then, Stream first) = 0;
    /// What `stream`, which is not being captured, has got by now; to be given to destroy_event().
    [[nodiscard]] virtual Result<Event> record(Stream stream) = 0;
    /// An event that nobody waits for until it is recorded. Graphs that know it must not be
    /// replayed once it is destroyed.
    [[nodiscard]] virtual Result<Event> create_event() = 0;
    /// From now on `event` is what `stream`, which is not being captured, has got by now.
    virtual Status record_into(Event event, Stream stream) = 0;
    /// Each replay of the graph that `stream` is being captured into records `event` when it has
    /// done what `stream` has got by now; no longer what it had when `mark`, which is that graph's,
    /// was last given.
    virtual Status record_in_graph(Event event, Stream stream, GraphMark& mark) = 0;
    /// Whatever `then` gets from now on waits for `event`.
    virtual Status await_event(Stream then, Event event) = 0;
    /// The same in the graph that `then` is being captured into: a replay waits for what was
    /// recorded last before it.
    virtual Status await_in_graph(Stream then, Event event) = 0;
    /// Whether the GPU has come that far.
    [[nodiscard]] virtual Result<bool> has_come(Event event) = 0;
    /// Streams that wait for it go on to.
    virtual Status destroy_event(Event event) = 0;
    /// Names the graph that what `stream` gets now goes into, as nothing else in this process;
    /// 0: none.
    [[nodiscard]] virtual Result<std::uint64_t> capture_of(Stream stream) = 0;
    /// From now on this thread may call what captures elsewhere in the process would forbid, such
    /// as asking whether an event has come.
    virtual Status ignore_captures() = 0;
    /// Of `device`; waits for no other stream by itself.
    [[nodiscard]] virtual Result<Stream> create_stream(int device) = 0;
    virtual Status destroy_stream(Stream stream) = 0;
};

/// The driver of this machine, opened once. kUnavailable in a build without CUDA, and where
/// libcuda.so.1 or a GPU is missing.
[[nodiscard]] PCCL_API Result<Driver*> process_driver();
/// The same where no other stands in for it.
[[nodiscard]] Result<Driver*> machine_driver();
/// For tests: from now on process_driver() is `driver`; null: that of this machine again.
PCCL_API void let_stand_in(Driver* driver);
/// `given`, or else that of this machine, with `device` current on this thread.
[[nodiscard]] PCCL_API Result<Driver*> driver_on(int device, Driver* given = nullptr);

}  // namespace pccl::sys::cuda
