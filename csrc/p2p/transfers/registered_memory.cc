// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/transfers/registered_memory.h"

#include <utility>

#include "csrc/base/assert.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::p2p {
namespace {

bool is_in_a_file(const abi::MemoryDescriptor& memory) {
    const auto key = transport::shm::key_on_its_host(memory);
    return key.is_ok() && key->file >= 0;
}

}  // namespace

RegisteredMemory::RegisteredMemory(
    const transport::Memory& memory, std::shared_ptr<const void> owner,
    std::vector<std::unique_ptr<transport::Registration>> registrations)
    : LocalMemory(memory.data, memory.bytes, memory.device),
      memory_(memory),
      owner_(std::move(owner)),
      registrations_(std::move(registrations)) {
    PCCL_ASSERT(!registrations_.empty());
    // At most one kind of access needs a key; the others find the memory by its id and nonce.
    for (const auto& registration : registrations_)
        if (registration->descriptor().key_bytes >= descriptor_.key_bytes)
            descriptor_ = registration->descriptor();
}

std::string RegisteredMemory::serialised_descriptor() const {
    return transport::serialise(descriptor_);
}

Status RegisteredMemory::deregister() {
    std::int64_t none = 0;
    if (!uses_.compare_exchange_strong(none, kEnded)) {
        if (none == kEnded) return Status::ok();
        return Status::unavailable(
            concat("the memory is used by ", none, " operations: wait for these, or release them"));
    }
    registrations_.clear();
    return Status::ok();
}

Status RegisteredMemory::begin_use() {
    std::int64_t uses = uses_.load();
    while (uses != kEnded)
        if (uses_.compare_exchange_weak(uses, uses + 1)) return Status::ok();
    return Status::invalid_argument("the local memory is not registered any more");
}

const SessionId& RemoteMemory::owner() const { return memory_->owner; }

std::uint64_t RemoteMemory::bytes() const { return memory_->descriptor.bytes; }

bool RemoteMemory::is_gpu() const { return memory_->descriptor.kind == abi::MemoryKind::kGpu; }

RemoteMemory imported(SessionId owner, const abi::MemoryDescriptor& descriptor) {
    return RemoteMemory(std::make_shared<const ImportedMemory>(
        ImportedMemory{std::move(owner), descriptor, is_in_a_file(descriptor)}));
}

Result<RemoteMemory> import_descriptor(const SessionId& owner, std::string_view bytes) {
    PCCL_ASSIGN_OR_RETURN(const auto descriptor, transport::parse_memory_descriptor(bytes));
    if (mark_of(descriptor.id) == mark_of(owner.incarnation)) return imported(owner, descriptor);
    return Status::unavailable(concat(
        "the memory descriptor is not of session \"", owner.name,
        "\" as it was loaded here: it is another session's, or of an earlier incarnation of it"));
}

}  // namespace pccl::p2p
