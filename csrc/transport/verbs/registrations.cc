// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/registrations.h"

#include <algorithm>
#include <utility>

#include "csrc/base/fork.h"
#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {
namespace {

LocalPiece piece_of(const MemoryRegion& region, std::size_t bytes) {
    if (!region) return {.bytes = bytes};
    return {.key = region->lkey, .remote_key = region->rkey, .bytes = bytes};
}

/// Returns no region instead of the error of a device that has failed: it has no queue pairs,
/// either.
Result<MemoryRegion> unless_failed(Result<MemoryRegion> region, Adapter& adapter) {
    if (region.is_ok() || adapter.check().is_ok()) return region;
    return MemoryRegion();
}

}  // namespace

/// Registration with all devices.
class Registrations::DeviceRegistration final : public Registration {
   public:
    DeviceRegistration(const Memory& memory, std::shared_ptr<Registrations> owner,
                       std::vector<MemoryRegion> regions)
        : memory_(memory), owner_(std::move(owner)), regions_(std::move(regions)) {}
    ~DeviceRegistration() override {
        // Once the regions are gone, too, no device reads or writes the memory any more.
        if (!made_in_.is_child()) owner_->erase(memory_.data, this);
    }
    DeviceRegistration(const DeviceRegistration&) = delete;
    DeviceRegistration& operator=(const DeviceRegistration&) = delete;

    [[nodiscard]] const Memory& memory() const override { return memory_; }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const override { return descriptor_; }
    Status describe(const MemoryIdentity& identity) {
        descriptor_ = descriptor_of(memory_, identity);
        RemoteKey key{.address = reinterpret_cast<std::uint64_t>(memory_.data), .devices = {}};
        for (const MemoryRegion& region : regions_)
            key.devices.push_back(region ? region->rkey : 0);
        return add_remote_key(descriptor_, key);
    }

   private:
    const ForkMark made_in_;
    const Memory memory_;
    const std::shared_ptr<Registrations> owner_;
    const std::vector<MemoryRegion> regions_;
    abi::MemoryDescriptor descriptor_{};
};

Registrations::Registrations(std::vector<std::shared_ptr<Adapter>> adapters,
                             std::vector<GpuWay> gpu_ways)
    : adapters_(std::move(adapters)), gpu_registrar_(std::move(gpu_ways)) {}

Registrations::~Registrations() = default;

Result<std::byte*> Registrations::scratch() {
    const std::lock_guard lock(scratch_mutex_);
    if (!scratch_.memory().empty()) return scratch_.memory().data();
    constexpr std::size_t kBytes = 64;
    PCCL_ASSIGN_OR_RETURN(Mapping mapping, Mapping::anonymous(kBytes));
    RegisteredRange range{.bytes = kBytes, .pieces = {}};
    std::vector<MemoryRegion> regions;
    for (const std::shared_ptr<Adapter>& adapter : adapters_) {
        PCCL_ASSIGN_OR_RETURN(
            MemoryRegion region,
            unless_failed(adapter->add(mapping.memory(), Access::kLocal), *adapter));
        range.pieces.push_back(piece_of(region, kBytes));
        regions.push_back(std::move(region));
    }
    insert({.data = mapping.memory().data(), .bytes = kBytes}, std::move(range));
    scratch_ = std::move(mapping);
    scratch_regions_ = std::move(regions);
    return scratch_.memory().data();
}

Result<std::unique_ptr<Registration>> Registrations::add(const Memory& memory,
                                                         const MemoryIdentity& identity) {
    PCCL_TRY(check_memory(memory, identity));
    if (memory.kind == abi::MemoryKind::kGpu) PCCL_TRY(find_gpu_memory(memory).status());
    std::vector<MemoryRegion> regions;
    RegisteredRange range{.bytes = memory.bytes, .pieces = {}};
    for (std::size_t device = 0; device < adapters_.size(); ++device) {
        PCCL_ASSIGN_OR_RETURN(MemoryRegion region,
                              unless_failed(register_with(device, memory), *adapters_[device]));
        range.pieces.push_back(piece_of(region, memory.bytes));
        regions.push_back(std::move(region));
    }
    if (std::ranges::none_of(regions, [](const MemoryRegion& region) { return bool{region}; }))
        return adapters_.front()->check();
    auto registration =
        std::make_unique<DeviceRegistration>(memory, shared_from_this(), std::move(regions));
    range.owner = registration.get();
    insert(memory, std::move(range));
    PCCL_TRY(registration->describe(identity));
    return std::unique_ptr<Registration>(std::move(registration));
}

Result<MemoryRegion> Registrations::register_with(std::size_t device, const Memory& memory) {
    Adapter& adapter = *adapters_[device];
    return memory.kind == abi::MemoryKind::kGpu
               ? gpu_registrar_.add(adapter, memory)
               : adapter.add({memory.data, memory.bytes}, Access::kPeer);
}

void Registrations::insert(const Memory& memory, RegisteredRange range) {
    const std::lock_guard lock(mutex_);
    ranges_.emplace(memory.data, std::move(range));
}

void Registrations::erase(const std::byte* data, const DeviceRegistration* owner) {
    const std::lock_guard lock(mutex_);
    const auto [first, last] = ranges_.equal_range(data);
    const auto found =
        std::find_if(first, last, [&](const auto& each) { return each.second.owner == owner; });
    if (found != last) ranges_.erase(found);
}

Result<LocalPiece> Registrations::find(const std::byte* address, std::size_t device) const {
    const std::lock_guard lock(mutex_);
    // A registration that begins earlier may reach further than a later one.
    for (auto next = ranges_.upper_bound(address); next != ranges_.begin();) {
        --next;
        const auto offset = static_cast<std::size_t>(address - next->first);
        if (offset >= next->second.bytes) continue;
        LocalPiece piece = next->second.pieces[device];
        piece.bytes -= offset;
        return piece;
    }
    return Status::invalid_argument("local memory that is not registered with an RDMA device");
}

}  // namespace pccl::transport::verbs
