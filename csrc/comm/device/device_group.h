// DeviceGroup: the collectives of a group whose ranks have a GPU each on one NVLink host.
//
//     auto group = DeviceGroup::create({.rank = rank, .size = size, .store = store, .device =
//     gpu});
//     (*group)->launch({.kind = CollectiveKind::kAllReduce, ...}, stream);
//
// Launches are asynchronous, in the order of the stream, and one after the other: one on another
// stream waits for the last. Their order must be the same on all ranks. Nothing is allocated and no
// handle is opened after an allocation's first use, so launches can be captured into CUDA graphs
// once a like one has run.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "csrc/abi/device_team.h"
#include "csrc/comm/collective.h"
#include "csrc/comm/store.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/registration_cache.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::comm {

struct DeviceGroupOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<Store> store{};                  // of this group alone
    int device = 0;                                  // as CUDA numbers it in this process
    std::chrono::milliseconds timeout{30 * 60'000};  // of a launch, from when it begins to wait
    sys::cuda::Driver* driver = nullptr;             // null: the machine's
};

/// One collective; memory is the GPU's. `count` is of elements in a block, as kernels::Launch has
/// it.
struct DeviceCollective {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    const void* input = nullptr;  // broadcast: read at the root only
    void* output = nullptr;       // may be the input, for those where one block is both
    std::size_t count = 0;
    std::optional<kernels::Plan> plan{};  // the same on all ranks; default: the library's choice
};

class PCCL_API DeviceGroup {
   public:
    /// Called by all ranks at once. kUnsupported for more than 8 ranks, a build without CUDA, or
    /// GPUs that do not reach each other; kTimeout and kPeerLost name a rank.
    static Result<std::unique_ptr<DeviceGroup>> create(const DeviceGroupOptions& options);
    ~DeviceGroup();
    DeviceGroup(const DeviceGroup&) = delete;
    DeviceGroup& operator=(const DeviceGroup&) = delete;

    [[nodiscard]] Rank rank() const { return options_.rank; }
    [[nodiscard]] int size() const { return options_.size; }
    /// GPU memory that the group holds, on this rank's device.
    [[nodiscard]] std::size_t heap_bytes() const { return heap_->bytes(); }

    /// Errors: kInvalidArgument, kUnsupported, and what health() returns.
    [[nodiscard]] Status launch(const DeviceCollective& collective, kernels::Stream stream);
    /// ok, or why kernels gave up waiting: kTimeout and kPeerLost name the rank waited for.
    [[nodiscard]] Status health() const;
    /// Makes kernels that wait end, and every later launch fail with kAborted.
    void abort();

   private:
    explicit DeviceGroup(const DeviceGroupOptions& options, sys::cuda::Driver& driver);
    Status meet(Deadline deadline);
    Status connect(Deadline deadline);
    Status allocate_control();
    [[nodiscard]] Status check(const DeviceCollective& collective) const;
    Status follow_last(kernels::Stream stream);
    /// Without NVLink: a group of one rank.
    Status copy_alone(const DeviceCollective& collective, kernels::Stream stream);
    Result<abi::Postings> post(const DeviceCollective& collective, std::size_t bytes);

    const DeviceGroupOptions options_;
    sys::cuda::Driver& driver_;
    std::unique_ptr<transport::nvlink::PeerSockets> sockets_;
    std::unique_ptr<transport::nvlink::SymmetricHeap> heap_;
    abi::DeviceControl* control_ = nullptr;
    abi::DeviceTeam team_{};
    std::mutex mutex_;  // one launch at a time
    std::optional<kernels::Stream> last_stream_;
    std::unique_ptr<transport::nvlink::RegistrationCache> registrations_;
};

/// How the library launches `kind` of blocks of `bytes`.
[[nodiscard]] PCCL_API kernels::Plan plan_collective(CollectiveKind kind, std::size_t bytes,
                                                     int ranks);

}  // namespace pccl::comm
