// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/registry.h"

#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport {
namespace {

class RegistryEntry final : public Registration {
   public:
    RegistryEntry(const Memory& memory, const MemoryIdentity& identity,
                  std::shared_ptr<RmaRegistry> registry)
        : memory_(memory),
          identity_(identity),
          descriptor_(descriptor_of(memory, identity)),
          registry_(std::move(registry)) {}
    ~RegistryEntry() override {
        if (!made_in_.is_child()) registry_->end(identity_);
    }
    RegistryEntry(const RegistryEntry&) = delete;
    RegistryEntry& operator=(const RegistryEntry&) = delete;

    [[nodiscard]] const Memory& memory() const override { return memory_; }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const override { return descriptor_; }

   private:
    const Memory memory_;
    const MemoryIdentity identity_;
    const abi::MemoryDescriptor descriptor_;
    const std::shared_ptr<RmaRegistry> registry_;
    const ForkMark made_in_;
};

}  // namespace

Result<std::unique_ptr<Registration>> RmaRegistry::add(const Memory& memory,
                                                       const MemoryIdentity& identity) {
    PCCL_TRY(check_memory(memory, identity));
    const bool is_of_gpu = memory.kind == abi::MemoryKind::kGpu;
    if (is_of_gpu) PCCL_TRY(find_gpu_memory(memory).status());
    const std::lock_guard lock(mutex_);
    RegistryRecord entry{.nonce = identity.nonce,
                         .memory = {memory.data, memory.bytes},
                         .device = is_of_gpu ? memory.device : -1};
    if (!entries_.emplace(identity.id, std::move(entry)).second)
        return Status::invalid_argument(concat("registration ", identity.id, " is in use"));
    return std::unique_ptr<Registration>(
        std::make_unique<RegistryEntry>(memory, identity, shared_from_this()));
}

Result<RmaRegistry::RegistryRecord*> RmaRegistry::find(const RmaRange& range) {
    const auto found = entries_.find(range.registration.id);
    if (found == entries_.end() || found->second.nonce != range.registration.nonce ||
        found->second.is_ending)
        return Status::unavailable("the peer has ended the registration of this memory");
    const std::size_t size = found->second.memory.size();
    if (!range.blocks.is_within(size))
        return Status::invalid_argument(concat(range.blocks.count(), " blocks from ",
                                               range.blocks.first().offset,
                                               " on of a registration that has ", size, " bytes"));
    return &found->second;
}

Status RmaRegistry::use(const RmaRange& range, const std::function<void(MutableBytes)>& use) {
    RegistryRecord* entry = nullptr;
    {
        const std::lock_guard lock(mutex_);
        PCCL_ASSIGN_OR_RETURN(entry, find(range));
        ++entry->uses;
    }
    use(entry->memory);
    end_use(*entry);
    return Status::ok();
}

void RmaRegistry::end_use(RegistryRecord& entry) {
    const std::lock_guard lock(mutex_);
    // Under the lock: the end of the registration deletes the entry.
    if (--entry.uses == 0 && entry.is_ending) unused_.notify_all();
}

Result<int> RmaRegistry::find_device(const RmaRange& range) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(const RegistryRecord* const entry, find(range));
    return entry->device;
}

Result<std::shared_ptr<GpuEvent>> RmaRegistry::copy(const RmaRange& range,
                                                    const BeginCopies& begin) {
    const std::lock_guard lock(mutex_);
    PCCL_ASSIGN_OR_RETURN(RegistryRecord* const entry, find(range));
    PCCL_ASSIGN_OR_RETURN(auto event, begin(entry->memory.data()));
    // An event that has no other owner is over.
    std::erase_if(entry->copies, [](const auto& each) { return each.use_count() == 1; });
    entry->copies.push_back(event);
    return event;
}

MutableBytes RmaRegistry::end(const MemoryIdentity& identity) {
    RegistryRecord ended;
    {
        std::unique_lock lock(mutex_);
        const auto found = entries_.find(identity.id);
        if (found == entries_.end() || found->second.nonce != identity.nonce ||
            std::exchange(found->second.is_ending, true))
            return {};
        unused_.wait(lock, [&] { return found->second.uses == 0; });
        ended = std::move(found->second);
        entries_.erase(found);
    }
    for (const auto& copy : ended.copies) copy->await();
    return ended.device < 0 ? ended.memory : MutableBytes();
}

}  // namespace pccl::transport
