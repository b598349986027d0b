#include "csrc/transport/rma/registry.h"

#include <utility>

#include "csrc/base/text.h"

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
    if (memory.kind != abi::MemoryKind::kHost)
        return Status::unsupported("streams move bytes of host memory alone, not of GPUs");
    const std::lock_guard lock(mutex_);
    const Entry entry{.nonce = identity.nonce, .memory = {memory.data, memory.bytes}};
    if (!entries_.emplace(identity.id, entry).second)
        return Status::invalid_argument(concat("registration ", identity.id, " is in use"));
    return std::unique_ptr<Registration>(
        std::make_unique<RegistryEntry>(memory, identity, shared_from_this()));
}

Status RmaRegistry::use(const RmaRange& range, const std::function<void(MutableBytes)>& use) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(range.registration.id);
    if (found == entries_.end() || found->second.nonce != range.registration.nonce)
        return Status::unavailable("the peer has ended the registration of this memory");
    const MutableBytes memory = found->second.memory;
    if (range.offset > memory.size() || range.bytes > memory.size() - range.offset)
        return Status::invalid_argument(concat(range.bytes, " bytes at ", range.offset,
                                               " of a registration that has ", memory.size()));
    use(memory.subspan(range.offset, range.bytes));
    return Status::ok();
}

MutableBytes RmaRegistry::end(const MemoryIdentity& identity) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(identity.id);
    if (found == entries_.end() || found->second.nonce != identity.nonce) return {};
    const MutableBytes memory = found->second.memory;
    entries_.erase(found);
    return memory;
}

}  // namespace pccl::transport
