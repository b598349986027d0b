// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

#include "csrc/base/fork.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/kernels/copies.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/sys/cuda/libcuda.h"

namespace pccl::sys::cuda {
namespace {

#define PCCL_CUDA(function, ...) PCCL_TRY(lib_.check(lib_.function(__VA_ARGS__), #function))

// Least average bytes of a copy for copy engines. One takes more than a microsecond to begin a
// copy, in which NVLink moves as much.
constexpr std::size_t kLeastForCopyEngines = 512UL << 10;  // average of the copies

// Bytes below which drivers put a copy into the commands of the stream; copy engines make larger
// ones.
constexpr std::size_t kInlinedCopies = 32UL << 10;
// CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which cuda.h has since 12.4.
constexpr auto kMpsEnabled = static_cast<CUdevice_attribute>(133);

bool are_small(std::span<const Copy> copies) {
    std::size_t bytes = 0;
    for (const Copy& each : copies) bytes += each.bytes;
    return copies.size() > 1 && bytes / copies.size() < kLeastForCopyEngines;
}

std::vector<kernels::Piece> pieces_of(std::span<const Copy> copies) {
    std::vector<kernels::Piece> pieces(copies.size());
    std::ranges::transform(copies, pieces.begin(), [](const Copy& each) {
        return kernels::Piece{.from = std::bit_cast<const std::byte*>(each.from),
                              .to = std::bit_cast<std::byte*>(each.to),
                              .bytes = each.bytes};
    });
    return pieces;
}

CUmemAllocationProp shareable(int device) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    return properties;
}

/// Guard that allows calls of this thread which a stream capture elsewhere in the process would
/// otherwise forbid: none of them belongs into a graph.
class RelaxedCapture {
   public:
    explicit RelaxedCapture(const Libcuda& lib) : lib_(lib) {
        lib_.cuThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() { lib_.cuThreadExchangeStreamCaptureMode(&mode_); }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    const Libcuda& lib_;
    CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class LibcudaDriver final : public Driver {
   public:
    Status open() {
        PCCL_TRY(lib_.load());
        PCCL_CUDA(cuInit, 0);
        return Status::ok();
    }

    Status use(int device) override {
        CUcontext context = nullptr;
        PCCL_TRY(context_of(device, context));
        PCCL_CUDA(cuCtxSetCurrent, context);
        return Status::ok();
    }

    Status enter(int device) override {
        CUcontext context = nullptr;
        PCCL_TRY(context_of(device, context));
        PCCL_CUDA(cuCtxPushCurrent, context);
        return Status::ok();
    }

    Status leave() override {
        CUcontext left = nullptr;
        PCCL_CUDA(cuCtxPopCurrent, &left);
        return Status::ok();
    }

    Result<GpuId> gpu_id(int device) override {
        CUdevice handle = 0;
        PCCL_CUDA(cuDeviceGet, &handle, device);
        CUuuid id{};
        PCCL_CUDA(cuDeviceGetUuid, &id, handle);
        static_assert(sizeof(id) == sizeof(GpuId));
        return std::bit_cast<GpuId>(id);
    }

    Result<std::vector<std::string>> bus_ids() override {
        int count = 0;
        PCCL_CUDA(cuDeviceGetCount, &count);
        std::vector<std::string> ids;
        for (int device = 0; device < count; ++device) {
            CUdevice handle = 0;
            std::array<char, 32> id{};
            PCCL_CUDA(cuDeviceGet, &handle, device);
            PCCL_CUDA(cuDeviceGetPCIBusId, id.data(), static_cast<int>(id.size()), handle);
            std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
            ids.emplace_back(id.data());
        }
        return ids;
    }

    Result<int> multiprocessors(int device) override {
        return attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    }

    Result<bool> has_mps(int device) override {
        CUdevice handle = 0;
        PCCL_CUDA(cuDeviceGet, &handle, device);
        int has_mps = 0;
        // Drivers before CUDA 12.4 do not have the attribute; MPS cannot be detected there.
        if (lib_.cuDeviceGetAttribute(&has_mps, kMpsEnabled, handle) != CUDA_SUCCESS) return false;
        return has_mps != 0;
    }

    Result<int> architecture(int device) override {
        CUdevice handle = 0;
        PCCL_CUDA(cuDeviceGet, &handle, device);
        int major = 0;
        int minor = 0;
        PCCL_CUDA(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                  handle);
        PCCL_CUDA(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                  handle);
        return 10 * major + minor;
    }

    Status wait(Stream stream) override {
        PCCL_CUDA(cuStreamSynchronize, static_cast<CUstream>(stream));
        return Status::ok();
    }

    Result<std::size_t> granularity(int device) override {
        const CUmemAllocationProp properties = shareable(device);
        std::size_t bytes = 0;
        PCCL_CUDA(cuMemGetAllocationGranularity, &bytes, &properties,
                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
        return bytes;
    }

    Result<MemoryHandle> create(int device, std::size_t bytes) override {
        const RelaxedCapture relaxed(lib_);
        const CUmemAllocationProp properties = shareable(device);
        CUmemGenericAllocationHandle handle = 0;
        PCCL_CUDA(cuMemCreate, &handle, bytes, &properties, 0);
        return MemoryHandle{handle};
    }

    Result<UniqueFd> export_memory(MemoryHandle memory) override {
        int fd = -1;
        PCCL_CUDA(cuMemExportToShareableHandle, &fd, memory.value,
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
        return UniqueFd(fd);
    }

    Result<MemoryHandle> import_memory(int fd) override {
        CUmemGenericAllocationHandle handle = 0;
        // The driver takes the descriptor's number in place of a pointer.
        void* const source = std::bit_cast<void*>(static_cast<std::intptr_t>(fd));
        PCCL_CUDA(cuMemImportFromShareableHandle, &handle, source,
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        return MemoryHandle{handle};
    }

    Status release(MemoryHandle memory) override {
        PCCL_CUDA(cuMemRelease, memory.value);
        return Status::ok();
    }

    Result<DeviceAddress> map(MemoryHandle memory, std::size_t bytes, int device) override {
        const RelaxedCapture relaxed(lib_);
        CUdeviceptr address = 0;
        PCCL_CUDA(cuMemAddressReserve, &address, bytes, 0, 0, 0);
        ScopeExit undo_reserve([&] { lib_.cuMemAddressFree(address, bytes); });
        PCCL_CUDA(cuMemMap, address, bytes, 0, memory.value, 0);
        ScopeExit undo_map([&] { lib_.cuMemUnmap(address, bytes); });
        const CUmemAccessDesc access{.location = shareable(device).location,
                                     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        PCCL_CUDA(cuMemSetAccess, address, bytes, &access, 1);
        undo_map.dismiss();
        undo_reserve.dismiss();
        return DeviceAddress{address};
    }

    Status unmap(DeviceAddress address, std::size_t bytes) override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuMemUnmap, address, bytes);
        PCCL_CUDA(cuMemAddressFree, address, bytes);
        return Status::ok();
    }

    Result<Allocation> allocation_of(DeviceAddress address) override {
        PCCL_ASSIGN_OR_RETURN(const std::uint64_t id, allocation_id_of(address));
        PCCL_ASSIGN_OR_RETURN(const int device, device_of(address));
        CUdeviceptr base = 0;
        std::size_t bytes = 0;
        PCCL_CUDA(cuMemGetAddressRange, &base, &bytes, address);
        return Allocation{.base = base, .bytes = bytes, .id = id, .device = device};
    }

    Result<int> device_of(DeviceAddress address) override {
        int device = -1;
        PCCL_CUDA(cuPointerGetAttribute, &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
        return device;
    }

    Result<std::uint64_t> allocation_id_of(DeviceAddress address) override {
        unsigned long long id = 0;
        PCCL_CUDA(cuPointerGetAttribute, &id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address);
        return std::uint64_t{id};
    }

    Result<DeviceAddress> allocate(int device, std::size_t bytes) override {
        PCCL_TRY(use(device));
        const RelaxedCapture relaxed(lib_);
        CUdeviceptr base = 0;
        PCCL_CUDA(cuMemAlloc, &base, bytes);
        return DeviceAddress{base};
    }

    Status deallocate(DeviceAddress base) override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuMemFree, base);
        return Status::ok();
    }

    Result<IpcHandle> export_allocation(DeviceAddress base) override {
        const RelaxedCapture relaxed(lib_);
        int is_capable = 0;
        PCCL_CUDA(cuPointerGetAttribute, &is_capable,
                  CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, base);
        if (is_capable == 0) return Status::unsupported("GPU memory that CUDA IPC does not share");
        CUipcMemHandle raw{};
        PCCL_CUDA(cuIpcGetMemHandle, &raw, base);
        static_assert(sizeof(raw) == sizeof(IpcHandle));
        return std::bit_cast<IpcHandle>(raw);
    }

    Result<DeviceAddress> open_allocation(const IpcHandle& handle) override {
        const RelaxedCapture relaxed(lib_);
        CUdeviceptr base = 0;
        PCCL_CUDA(cuIpcOpenMemHandle, &base, std::bit_cast<CUipcMemHandle>(handle),
                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
        return DeviceAddress{base};
    }

    Status close_allocation(DeviceAddress base) override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuIpcCloseMemHandle, base);
        return Status::ok();
    }

    Result<DmaBuf> export_range(int device, DeviceAddress address, std::size_t bytes) override {
        PCCL_ASSIGN_OR_RETURN(const int is_supported,
                              attribute(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED));
        if (is_supported == 0)
            return Status::unsupported("the driver of the GPU exports no memory as dma-buf");
        // The driver exports whole pages of the host.
        const auto page = static_cast<DeviceAddress>(::sysconf(_SC_PAGESIZE));
        const DeviceAddress first = address / page * page;
        const DeviceAddress end = (address + bytes + page - 1) / page * page;
        const RelaxedCapture relaxed(lib_);
        int file = -1;
        PCCL_CUDA(cuMemGetHandleForAddressRange, &file, first, end - first,
                  CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
        return DmaBuf{.file = UniqueFd(file), .offset = address - first};
    }

    Result<DeviceWrites> device_writes(int device) override {
        PCCL_ASSIGN_OR_RETURN(
            const int ordering,
            attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING));
        if (ordering >= CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES)
            return DeviceWrites::kOrdered;
        PCCL_ASSIGN_OR_RETURN(
            const int options,
            attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
        const bool is_flushed = (options & CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0;
        return is_flushed ? DeviceWrites::kFlushed : DeviceWrites::kUnordered;
    }

    Status flush_device_writes() override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuFlushGPUDirectRDMAWrites, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                  CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES);
        return Status::ok();
    }

    Status reach(int device, int other) override {
        if (device == other) return Status::ok();
        CUcontext there = nullptr;
        PCCL_TRY(context_of(other, there));
        PCCL_TRY(enter(device));
        const ScopeExit left([this] { static_cast<void>(leave()); });
        const RelaxedCapture relaxed(lib_);
        const CUresult enabled = lib_.cuCtxEnablePeerAccess(there, 0);
        if (enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) return Status::ok();
        return lib_.check(enabled, "cuCtxEnablePeerAccess");
    }

    Result<bool> can_reach(int device, int other) override {
        if (device == other) return true;
        CUdevice here = 0;
        CUdevice there = 0;
        PCCL_CUDA(cuDeviceGet, &here, device);
        PCCL_CUDA(cuDeviceGet, &there, other);
        int can_reach = 0;
        PCCL_CUDA(cuDeviceCanAccessPeer, &can_reach, here, there);
        return can_reach != 0;
    }

    Result<bool> has_nvlink(int device, int other) override {
        if (device == other) return true;
        CUdevice here = 0;
        CUdevice there = 0;
        PCCL_CUDA(cuDeviceGet, &here, device);
        PCCL_CUDA(cuDeviceGet, &there, other);
        int has_atomics = 0;
        PCCL_CUDA(cuDeviceGetP2PAttribute, &has_atomics,
                  CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, here, there);
        return has_atomics != 0;
    }

    Result<void*> allocate_host(std::size_t bytes) override {
        const RelaxedCapture relaxed(lib_);
        void* memory = nullptr;
        PCCL_CUDA(cuMemHostAlloc, &memory, bytes,
                  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
        std::memset(memory, 0, bytes);
        return memory;
    }

    Status free_host(void* memory) override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuMemFreeHost, memory);
        return Status::ok();
    }

    Result<HostMapping> map_file(int file, std::size_t bytes) override {
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory == MAP_FAILED) return Status::from_errno(errno, "cannot map a memory file");
        ScopeExit undo_map([&] { ::munmap(memory, bytes); });
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuMemHostRegister, memory, bytes,
                  CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
        ScopeExit undo_registration([&] { lib_.cuMemHostUnregister(memory); });
        CUdeviceptr address = 0;
        PCCL_CUDA(cuMemHostGetDevicePointer, &address, memory, 0);
        undo_registration.dismiss();
        undo_map.dismiss();
        return HostMapping{static_cast<std::byte*>(memory), address, bytes};
    }

    Status unmap_file(const HostMapping& mapping) override {
        const RelaxedCapture relaxed(lib_);
        PCCL_CUDA(cuMemHostUnregister, mapping.memory);
        ::munmap(mapping.memory, mapping.bytes);
        return Status::ok();
    }

    Status clear(DeviceAddress address, std::size_t bytes) override {
        const RelaxedCapture relaxed(lib_);
        // The call uses a stream of its own: other work on this device may wait for this very call.
        CUstream stream = nullptr;
        PCCL_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        const ScopeExit destroy([&] { lib_.cuStreamDestroy(stream); });
        PCCL_CUDA(cuMemsetD8Async, address, 0, bytes, stream);
        PCCL_CUDA(cuStreamSynchronize, stream);
        return Status::ok();
    }

    Status copy(DeviceAddress to, DeviceAddress from, std::size_t bytes, Stream stream) override {
        PCCL_CUDA(cuMemcpyAsync, to, from, bytes, static_cast<CUstream>(stream));
        return Status::ok();
    }

    Status copy_from_host(DeviceAddress to, const void* from, std::size_t bytes,
                          Stream stream) override {
        const auto* const source = static_cast<const std::byte*>(from);
        if (bytes < 2 || bytes >= kInlinedCopies)
            return copy(to, std::bit_cast<DeviceAddress>(from), bytes, stream);
        PCCL_TRY(copy_two_rows(to, source, bytes / 2, stream));
        if (bytes % 2 == 0) return Status::ok();
        return copy_two_rows(to + bytes - 2, source + bytes - 2, 1, stream);
    }

    Status copy_all(std::span<const Copy> copies, Stream stream) override {
        if (are_small(copies)) return kernels::launch_copies(pieces_of(copies), stream);
#if CUDA_VERSION >= 12080
        const bool is_batched = lib_.copy_batch != nullptr || lib_.copy_batch_of_12 != nullptr;
        if (copies.size() > 1 && is_batched) return copy_batch(copies, stream);
#endif
        for (const Copy& each : copies) PCCL_TRY(copy(each.to, each.from, each.bytes, stream));
        return Status::ok();
    }

    Status order_after(Stream then, Stream first) override {
        PCCL_ASSIGN_OR_RETURN(const std::uint64_t before, capture_of(first));
        PCCL_ASSIGN_OR_RETURN(const std::uint64_t after, capture_of(then));
        if (before != after) return Status::ok();
        return fork(then, first);
    }

    Status fork(Stream then, Stream first) override {
        CUevent event = nullptr;
        PCCL_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        // The driver keeps the recording for its waiters.
        const ScopeExit destroy([&] { lib_.cuEventDestroy(event); });
        PCCL_CUDA(cuEventRecord, event, static_cast<CUstream>(first));
        PCCL_CUDA(cuStreamWaitEvent, static_cast<CUstream>(then), event, 0);
        return Status::ok();
    }

    Result<Event> record(Stream stream) override {
        CUevent event = nullptr;
        PCCL_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        const CUresult recorded = lib_.cuEventRecord(event, static_cast<CUstream>(stream));
        if (recorded == CUDA_SUCCESS) return static_cast<Event>(event);
        lib_.cuEventDestroy(event);
        return lib_.check(recorded, "cuEventRecord");
    }

    Result<Event> create_event() override {
        CUevent event = nullptr;
        PCCL_CUDA(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
        return static_cast<Event>(event);
    }

    Status record_into(Event event, Stream stream) override {
        PCCL_CUDA(cuEventRecord, static_cast<CUevent>(event), static_cast<CUstream>(stream));
        return Status::ok();
    }

    Status record_in_graph(Event event, Stream stream, GraphMark& mark) override {
        PCCL_ASSIGN_OR_RETURN(const Capture capture, captured(stream));
        std::vector<CUgraphNode> after(capture.last.begin(), capture.last.end());
        if (detach(mark, capture.graph)) {
            const std::vector<CUgraphNode> node(after.size(), static_cast<CUgraphNode>(mark.node));
            PCCL_TRY(lib_.check(
                lib_.add_dependencies(capture.graph, after.data(), node.data(), after.size()),
                "cuGraphAddDependencies"));
        } else {
            if (mark.node != nullptr) after.push_back(static_cast<CUgraphNode>(mark.node));
            CUgraphNode node = nullptr;
            PCCL_CUDA(cuGraphAddEventRecordNode, &node, capture.graph, after.data(), after.size(),
                      static_cast<CUevent>(event));
            mark.node = node;
        }
        mark.after.assign(capture.last.begin(), capture.last.end());
        return Status::ok();
    }

    Status await_event(Stream then, Event event) override {
        PCCL_CUDA(cuStreamWaitEvent, static_cast<CUstream>(then), static_cast<CUevent>(event), 0);
        return Status::ok();
    }

    Status await_in_graph(Stream then, Event event) override {
        PCCL_CUDA(cuStreamWaitEvent, static_cast<CUstream>(then), static_cast<CUevent>(event),
                  CU_EVENT_WAIT_EXTERNAL);
        return Status::ok();
    }

    Result<bool> has_come(Event event) override {
        const RelaxedCapture relaxed(lib_);
        const CUresult result = lib_.cuEventQuery(static_cast<CUevent>(event));
        if (result == CUDA_ERROR_NOT_READY) return false;
        PCCL_TRY(lib_.check(result, "cuEventQuery"));
        return true;
    }

    Status destroy_event(Event event) override {
        PCCL_CUDA(cuEventDestroy, static_cast<CUevent>(event));
        return Status::ok();
    }

    Result<std::uint64_t> capture_of(Stream stream) override {
        CUstreamCaptureStatus status{};
        cuuint64_t id = 0;
        PCCL_TRY(lib_.check(lib_.capture_info(static_cast<CUstream>(stream), &status, &id, nullptr,
                                              nullptr, nullptr),
                            "cuStreamGetCaptureInfo"));
        if (status == CU_STREAM_CAPTURE_STATUS_NONE) return std::uint64_t{0};
        return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? std::uint64_t{id} : kInvalidCapture;
    }

    Status ignore_captures() override {
        CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        PCCL_CUDA(cuThreadExchangeStreamCaptureMode, &mode);
        return Status::ok();
    }

    Result<Stream> create_stream(int device) override {
        PCCL_TRY(use(device));
        PCCL_TRY(kernels::load_copies());
        const RelaxedCapture relaxed(lib_);
        CUstream stream = nullptr;
        PCCL_CUDA(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
        return static_cast<Stream>(stream);
    }

    Status destroy_stream(Stream stream) override {
        PCCL_CUDA(cuStreamDestroy, static_cast<CUstream>(stream));
        return Status::ok();
    }

   private:
    Result<int> attribute(int device, CUdevice_attribute which) {
        CUdevice handle = 0;
        PCCL_CUDA(cuDeviceGet, &handle, device);
        int value = 0;
        PCCL_CUDA(cuDeviceGetAttribute, &value, which, handle);
        return value;
    }

    /// Copies 2 * `bytes`. Drivers use a copy engine for two rows of any size.
    Status copy_two_rows(DeviceAddress to, const std::byte* from, std::size_t bytes,
                         Stream stream) {
        // NOLINTNEXTLINE(bugprone-invalid-enum-default-initialization): both kinds are set below.
        CUDA_MEMCPY2D rows{};
        rows.srcMemoryType = CU_MEMORYTYPE_HOST;
        rows.srcHost = from;
        rows.srcPitch = bytes;
        rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        rows.dstDevice = to;
        rows.dstPitch = bytes;
        rows.WidthInBytes = bytes;
        rows.Height = 2;
        PCCL_CUDA(cuMemcpy2DAsync, &rows, static_cast<CUstream>(stream));
        return Status::ok();
    }

    /// Identifier for a stream whose capture has failed, and which accepts nothing more.
    static constexpr std::uint64_t kInvalidCapture = ~std::uint64_t{0};

    /// A graph under capture, and its last nodes in a stream.
    struct Capture {
        CUgraph graph = nullptr;
        std::span<const CUgraphNode> last{};  // valid until the stream gets more work
    };
    Result<Capture> captured(Stream stream) {
        CUstreamCaptureStatus status{};
        CUgraph graph = nullptr;
        const CUgraphNode* last = nullptr;
        std::size_t count = 0;
        PCCL_TRY(lib_.check(lib_.capture_info(static_cast<CUstream>(stream), &status, nullptr,
                                              &graph, &last, &count),
                            "cuStreamGetCaptureInfo"));
        if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
            return Status::internal("the capture of a stream has failed or ended meanwhile");
        return Capture{.graph = graph, .last = {last, count}};
    }

    /// Removes the dependencies of the node of `mark`. Edges of a graph under capture may be
    /// removed. False where there is no node, or where the graph allocates memory, which forbids
    /// it.
    bool detach(const GraphMark& mark, CUgraph graph) {
        if (mark.node == nullptr) return false;
        std::vector<CUgraphNode> after(mark.after.size());
        std::ranges::transform(mark.after, after.begin(),
                               [](void* each) { return static_cast<CUgraphNode>(each); });
        const std::vector<CUgraphNode> node(after.size(), static_cast<CUgraphNode>(mark.node));
        return lib_.remove_dependencies(graph, after.data(), node.data(), after.size()) ==
               CUDA_SUCCESS;
    }

#if CUDA_VERSION >= 12080
    Status copy_batch(std::span<const Copy> copies, Stream stream) {
        std::vector<CUdeviceptr> to(copies.size());
        std::vector<CUdeviceptr> from(copies.size());
        std::vector<std::size_t> bytes(copies.size());
        std::ranges::transform(copies, to.begin(), &Copy::to);
        std::ranges::transform(copies, from.begin(), &Copy::from);
        std::ranges::transform(copies, bytes.begin(), &Copy::bytes);
        CUmemcpyAttributes as_single_ones{};
        as_single_ones.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        std::size_t first = 0;
        if (lib_.copy_batch != nullptr) {
            PCCL_CUDA(copy_batch, to.data(), from.data(), bytes.data(), copies.size(),
                      &as_single_ones, &first, 1, static_cast<CUstream>(stream));
            return Status::ok();
        }
        std::size_t failed = 0;
        PCCL_CUDA(copy_batch_of_12, to.data(), from.data(), bytes.data(), copies.size(),
                  &as_single_ones, &first, 1, &failed, static_cast<CUstream>(stream));
        return Status::ok();
    }
#endif

    Status context_of(int device, CUcontext& context) {
        if (made_in_.is_child())
            return Status::unavailable(
                "CUDA does not work in a child of fork(); start processes with spawn");
        CUdevice handle = 0;
        PCCL_CUDA(cuDeviceGet, &handle, device);
        return retain(handle, context);
    }

    /// Retains the context once for each device and process; it stays until the process ends.
    Status retain(CUdevice device, CUcontext& context) {
        const std::lock_guard lock(mutex_);
        CUcontext& kept = contexts_[device];
        if (kept == nullptr) PCCL_CUDA(cuDevicePrimaryCtxRetain, &kept, device);
        context = kept;
        return Status::ok();
    }

    const ForkMark made_in_;
    Libcuda lib_;
    std::mutex mutex_;
    std::map<CUdevice, CUcontext> contexts_;  // guarded by mutex_
};

#undef PCCL_CUDA

}  // namespace

Result<Driver*> machine_driver() {
    static LibcudaDriver* const driver = new LibcudaDriver;  // outlives every user
    static const Status opened = driver->open();
    PCCL_TRY(opened);
    return static_cast<Driver*>(driver);
}

}  // namespace pccl::sys::cuda
