// SPDX-License-Identifier: Apache-2.0

// A CUDA driver in host memory: GPU memory is pages of memfds, ranks are threads of one process.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/sys/cuda/driver.h"

namespace pccl::fakes {

/// What the drivers of all ranks share: the GPUs of one host.
struct FakeGpus {
    int count = 8;
    std::mutex mutex;
    std::uint64_t last_id = 0;
    /// All ranks see memory at one address: for tools that tell memory by its address.
    bool has_one_address_space = false;
    struct Mapping {
        int users = 0;
        void* place = nullptr;
    };
    std::map<std::uint64_t, Mapping> mappings{};  // then, by the memory's inode
    /// Memory that others can open, by the number in its handle.
    std::map<std::uint64_t, sys::cuda::Allocation> allocations;
};

/// One rank's driver. Mappings of one memory have different addresses, as in different processes.
class FakeCudaDriver : public sys::cuda::Driver {
   public:
    explicit FakeCudaDriver(std::shared_ptr<FakeGpus> gpus) : gpus_(std::move(gpus)) {}
    ~FakeCudaDriver() override;

    /// As cudaMalloc(): memory that allocation_of() knows.
    sys::cuda::DeviceAddress allocate(std::size_t bytes);
    /// As if the memory at `base` had been freed, and its address given out again.
    void forget(sys::cuda::DeviceAddress base);
    /// As memory of expandable segments: export_allocation() refuses it.
    void make_unshareable(sys::cuda::DeviceAddress base) { unshareable_.insert(base); }
    /// From now on `function` fails with `status`.
    void fail(const std::string& function, Status status) {
        const std::lock_guard lock(failures_mutex_);
        failures_[function] = std::move(status);
    }
    /// From now on `hook` is called before a copy engine begins.
    void call_before_copies(std::function<void()> hook) { before_copy_ = std::move(hook); }
    [[nodiscard]] int open_mappings() const { return static_cast<int>(mappings_.size()); }
    /// Of memory files.
    [[nodiscard]] int open_files() const { return open_files_; }
    /// From now on can_reach() says that no GPU reaches another.
    void be_alone() { is_alone_ = true; }
    /// From now on can_reach() says that GPUs reach each other in pairs: 0 and 1, 2 and 3.
    void reach_in_pairs() { is_in_pairs_ = true; }
    /// From now on has_nvlink() says that no two GPUs have one.
    void have_no_nvlinks() { has_nvlinks_ = false; }
    [[nodiscard]] int opened_allocations() const { return opened_; }
    /// Whether reach() was called for the two.
    [[nodiscard]] bool reaches(int device, int other);
    /// What architecture() says from now on; 90, as of an H200, at first.
    void be_of(int architecture) { architecture_ = architecture; }
    /// What has_mps() says from now on; false at first.
    void run_side_by_side(bool has_mps) { has_mps_ = has_mps; }
    /// What device_writes() says from now on; kOrdered at first.
    void take_writes(sys::cuda::DeviceWrites how) { device_writes_ = how; }
    /// The calls of flush_device_writes().
    [[nodiscard]] int flushes() const { return flushes_; }
    /// What allocate_host() gave last.
    [[nodiscard]] void* host_memory() const { return host_memory_; }

    Status use(int device) override;
    Status enter(int device) override { return use(device); }
    Status leave() override { return Status::ok(); }
    Result<sys::cuda::GpuId> gpu_id(int device) override {
        return sys::cuda::GpuId{static_cast<std::byte>(device)};
    }
    /// "0000:00:00.0" and so on.
    Result<std::vector<std::string>> bus_ids() override;
    /// As an H200 has.
    Result<int> multiprocessors(int) override { return 132; }
    Result<int> architecture(int) override { return architecture_; }
    Result<bool> has_mps(int) override { return has_mps_; }
    Status wait(sys::cuda::Stream) override { return check("wait"); }
    Result<std::size_t> granularity(int device) override;
    Result<sys::cuda::MemoryHandle> create(int device, std::size_t bytes) override;
    Result<UniqueFd> export_memory(sys::cuda::MemoryHandle memory) override;
    Result<sys::cuda::MemoryHandle> import_memory(int fd) override;
    Status release(sys::cuda::MemoryHandle memory) override;
    Result<sys::cuda::DeviceAddress> map(sys::cuda::MemoryHandle memory, std::size_t bytes,
                                         int device) override;
    Status unmap(sys::cuda::DeviceAddress address, std::size_t bytes) override;
    Result<sys::cuda::Allocation> allocation_of(sys::cuda::DeviceAddress address) override;
    Result<int> device_of(sys::cuda::DeviceAddress address) override;
    Result<std::uint64_t> allocation_id_of(sys::cuda::DeviceAddress address) override;
    Result<sys::cuda::DeviceAddress> allocate(int device, std::size_t bytes) override;
    Status deallocate(sys::cuda::DeviceAddress base) override;
    Result<sys::cuda::IpcHandle> export_allocation(sys::cuda::DeviceAddress base) override;
    Result<sys::cuda::DeviceAddress> open_allocation(const sys::cuda::IpcHandle& handle) override;
    Status close_allocation(sys::cuda::DeviceAddress base) override;
    /// Memory of calloc() is in no file.
    Result<sys::cuda::DmaBuf> export_range(int device, sys::cuda::DeviceAddress address,
                                           std::size_t bytes) override;
    Result<sys::cuda::DeviceWrites> device_writes(int) override {
        PCCL_TRY(check("device_writes"));
        return device_writes_.load();
    }
    Status flush_device_writes() override {
        PCCL_TRY(check("flush_device_writes"));
        ++flushes_;
        return Status::ok();
    }
    Status reach(int device, int other) override;
    Result<void*> allocate_host(std::size_t bytes) override;
    Status free_host(void* memory) override;
    Result<sys::cuda::HostMapping> map_file(int file, std::size_t bytes) override;
    Status unmap_file(const sys::cuda::HostMapping& mapping) override;
    Result<bool> can_reach(int device, int other) override;
    Result<bool> has_nvlink(int device, int other) override;
    Status clear(sys::cuda::DeviceAddress address, std::size_t bytes) override;
    Status copy(sys::cuda::DeviceAddress to, sys::cuda::DeviceAddress from, std::size_t bytes,
                sys::cuda::Stream stream) override;
    Status copy_from_host(sys::cuda::DeviceAddress to, const void* from, std::size_t bytes,
                          sys::cuda::Stream stream) override {
        return copy(to, std::bit_cast<sys::cuda::DeviceAddress>(from), bytes, stream);
    }
    Status copy_all(std::span<const sys::cuda::Copy> copies, sys::cuda::Stream stream) override;
    Status order_after(sys::cuda::Stream then, sys::cuda::Stream first) override {
        orders_.push_back({.what = Order::What::kFollow, .stream = then, .first = first});
        return Status::ok();
    }
    Status fork(sys::cuda::Stream then, sys::cuda::Stream first) override {
        return order_after(then, first);
    }
    /// Events are numbers from 1 on.
    Result<sys::cuda::Event> record(sys::cuda::Stream) override {
        return std::bit_cast<sys::cuda::Event>(++recorded_);
    }
    Status await_event(sys::cuda::Stream then, sys::cuda::Event event) override {
        awaited_.emplace_back(then, std::bit_cast<std::uintptr_t>(event));
        return add(Order::What::kAwait, then, event);
    }
    Result<sys::cuda::Event> create_event() override { return record(nullptr); }
    Status record_into(sys::cuda::Event event, sys::cuda::Stream stream) override {
        return add(Order::What::kRecord, stream, event);
    }
    Status record_in_graph(sys::cuda::Event event, sys::cuda::Stream stream,
                           sys::cuda::GraphMark& mark) override {
        PCCL_ASSIGN_OR_RETURN(const std::uint64_t capture, capture_of(stream));
        void* const node = std::bit_cast<void*>(capture);
        if (mark.node != nullptr && mark.node != node)
            return Status::invalid_argument("the mark of another graph");
        mark.node = node;
        return add(Order::What::kRecordInGraph, stream, event);
    }
    Status await_in_graph(sys::cuda::Stream then, sys::cuda::Event event) override {
        return add(Order::What::kAwaitInGraph, then, event);
    }
    Result<bool> has_come(sys::cuda::Event event) override {
        PCCL_TRY(check("has_come"));
        if (query_gpu_) return query_gpu_();
        return !is_behind_ || std::bit_cast<std::uintptr_t>(event) <= come_;
    }
    Status destroy_event(sys::cuda::Event) override {
        ++destroyed_;
        return Status::ok();
    }
    /// From now on the GPU does nothing, but when it is told to catch_up().
    void fall_behind() { is_behind_ = true; }
    void catch_up() { come_ = recorded_; }
    /// From now on `has_come` knows how far the GPU is.
    void require_events(std::function<bool()> has_come) { query_gpu_ = std::move(has_come); }
    [[nodiscard]] std::uintptr_t recorded() const { return recorded_; }
    [[nodiscard]] std::uintptr_t destroyed() const { return destroyed_; }
    /// The calls of await_event(), oldest first.
    [[nodiscard]] const auto& awaited() const { return awaited_; }
    Result<std::uint64_t> capture_of(sys::cuda::Stream stream) override {
        PCCL_TRY(check("capture_of"));
        const auto found = captures_.find(stream);
        return found != captures_.end() ? found->second : is_capturing_ ? 1U : 0U;
    }
    Status ignore_captures() override { return check("ignore_captures"); }
    /// From now on all streams go into a graph, or none.
    void capture(bool is_on) { is_capturing_ = is_on; }
    /// From now on this one goes into the graph of that number; 0: into none.
    void capture(sys::cuda::Stream stream, std::uint64_t graph) { captures_[stream] = graph; }
    Result<sys::cuda::Stream> create_stream(int device) override;
    Status destroy_stream(sys::cuda::Stream stream) override;
    [[nodiscard]] int open_streams() const { return streams_; }
    /// A call that makes one thing come after another.
    struct Order {
        enum class What { kFollow, kRecord, kAwait, kRecordInGraph, kAwaitInGraph };
        What what{};
        sys::cuda::Stream stream{};
        sys::cuda::Stream first{};  // kFollow
        sys::cuda::Event event{};   // the others
        bool operator==(const Order&) const = default;
    };
    /// The calls, but of record(), since this was last asked; oldest first.
    std::vector<Order> take_orders() { return std::exchange(orders_, {}); }

   protected:
    [[nodiscard]] Status check(const std::string& function) const;

   private:
    Status add(Order::What what, sys::cuda::Stream stream, sys::cuda::Event event) {
        PCCL_TRY(check("record"));
        orders_.push_back({.what = what, .stream = stream, .event = event});
        return Status::ok();
    }

    const std::shared_ptr<FakeGpus> gpus_;
    mutable std::mutex failures_mutex_;  // of threads that serve peers meanwhile, too
    std::map<std::string, Status> failures_;
    std::function<void()> before_copy_;
    std::mutex mutex_;  // guards what follows
    std::map<std::uint64_t, UniqueFd> memories_;
    std::map<sys::cuda::DeviceAddress, std::size_t> mappings_;
    std::map<sys::cuda::DeviceAddress, sys::cuda::Allocation> allocations_;
    std::set<sys::cuda::DeviceAddress> unshareable_;
    std::set<std::pair<int, int>> reached_;
    std::atomic<int> opened_ = 0;  // tests read it while a group's own thread opens
    void* host_memory_ = nullptr;
    std::atomic<int> open_files_ = 0;
    std::atomic<bool> is_alone_ = false;
    std::atomic<bool> has_nvlinks_ = true;
    std::atomic<bool> is_in_pairs_ = false;
    int architecture_ = 90;
    bool has_mps_ = false;
    std::atomic<sys::cuda::DeviceWrites> device_writes_ = sys::cuda::DeviceWrites::kOrdered;
    std::atomic<int> flushes_ = 0;
    int streams_ = 0;
    std::atomic<bool> is_capturing_ = false;
    std::map<sys::cuda::Stream, std::uint64_t> captures_;
    std::vector<Order> orders_;
    std::uintptr_t recorded_ = 0;
    std::uintptr_t come_ = 0;
    bool is_behind_ = false;
    std::function<bool()> query_gpu_;
    std::uintptr_t destroyed_ = 0;
    std::vector<std::pair<sys::cuda::Stream, std::uintptr_t>> awaited_;
};

}  // namespace pccl::fakes
