// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/memory_registry.h"

#include <algorithm>
#include <vector>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/memory_left.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/memory_descriptor.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::p2p {
namespace {

using transport::TransportKind;

constexpr std::size_t kMostReachabilities = 4096;

}  // namespace

Result<abi::MemoryDescriptor> MemoryRegistry::add_probe() {
    PCCL_ASSIGN_OR_RETURN(
        probe_, add({.data = reinterpret_cast<std::byte*>(&probed_), .bytes = sizeof probed_}, {}));
    return probe_->descriptor();
}

Result<transport::MemoryIdentity> MemoryRegistry::make_identity() {
    PCCL_ASSIGN_OR_RETURN(auto identity, transport::fresh_identity());
    identity.id = mark_of(session_.incarnation) | registrations_.fetch_add(1);
    return identity;
}

Result<std::shared_ptr<RegisteredMemory>> MemoryRegistry::add(const transport::Memory& memory,
                                                              std::shared_ptr<const void> owner) {
    PCCL_ASSIGN_OR_RETURN(const auto identity, make_identity());
    std::vector<std::unique_ptr<transport::Registration>> registrations;
    PCCL_ASSIGN_OR_RETURN(auto by_messages, by_messages_->add(memory, identity));
    registrations.push_back(std::move(by_messages));
    if (const auto shm = direct_.find(TransportKind::kShm); shm != direct_.end()) {
        PCCL_ASSIGN_OR_RETURN(auto registration, shm->second->add(memory, identity));
        registrations.push_back(std::move(registration));
    }
    PCCL_TRY(add_rdma(memory, identity, registrations));
    auto added =
        std::make_shared<RegisteredMemory>(memory, std::move(owner), std::move(registrations));
    PCCL_TRY(remember(added));
    return added;
}

Status MemoryRegistry::add_rdma(
    const transport::Memory& memory, const transport::MemoryIdentity& identity,
    std::vector<std::unique_ptr<transport::Registration>>& registrations) const {
    const auto rdma = direct_.find(TransportKind::kVerbs);
    if (rdma == direct_.end()) return Status::ok();
    auto registration = rdma->second->add(memory, identity);
    if (registration.is_ok()) {
        registrations.push_back(std::move(*registration));
        return Status::ok();
    }
    const Status& why = registration.status();
    const bool is_optional =
        why.code() == StatusCode::kUnsupported || why.code() == StatusCode::kResourceExhausted;
    if (!is_optional) return why;
    log(why.code() == StatusCode::kUnsupported ? LogLevel::kInfo : LogLevel::kWarning, "session \"",
        session_.name, "\": peers reach ", memory.bytes, " bytes by messages: ", why.message());
    return Status::ok();
}

Status MemoryRegistry::check_rdma(const abi::MemoryDescriptor& here,
                                  const abi::MemoryDescriptor& there) const {
    if (!direct_.contains(TransportKind::kVerbs)) return Status::ok();
    const bool is_near =
        direct_.contains(TransportKind::kShm) && transport::shm::key_on_this_host(there).is_ok();
    if (is_near) return Status::ok();
    if (!transport::key_of(there, TransportKind::kVerbs))
        return Status::unsupported("no RDMA device of the peer has registered its memory");
    if (!transport::key_of(here, TransportKind::kVerbs))
        return Status::unsupported("no RDMA device of this process has registered its memory");
    return Status::ok();
}

Status MemoryRegistry::remember(const std::shared_ptr<RegisteredMemory>& memory) {
    const std::lock_guard lock(lock_.mutex);
    if (lock_.is_closed) return SessionLock::closed_error();
    memories_.insert(memory);
    return Status::ok();
}

std::uint64_t MemoryRegistry::untouched_bytes() const {
    std::uint64_t untouched = 0;
    const std::lock_guard lock(lock_.mutex);
    for (const auto& each : memories_) {
        const transport::Memory& memory = each->memory();
        if (memory.file < 0) continue;
        untouched += memory.bytes - std::min(memory.bytes, transport::bytes_taken(memory.file));
    }
    return untouched;
}

Status MemoryRegistry::check_room(std::size_t bytes) const {
    const auto left = sys::memory_left();
    if (!left.is_ok()) return Status::ok();  // the kernel's own check decides
    if (bytes <= left->bytes && untouched_bytes() <= left->bytes - bytes) return Status::ok();
    return Status::resource_exhausted(
        concat("cannot allocate ", bytes, " bytes: ", left->bytes, " can be had (", left->bound,
               "), of which this session has been given ", untouched_bytes(), " already"));
}

Result<std::shared_ptr<RegisteredMemory>> MemoryRegistry::allocate(std::size_t bytes) {
    PCCL_TRY(check_room(bytes));
    PCCL_ASSIGN_OR_RETURN(auto mapping, transport::Mapping::shareable("p2p", bytes));
    auto owner = std::make_shared<transport::Mapping>(std::move(mapping));
    const auto memory = owner->memory();
    const int file = owner->file();
    return add({.data = memory.data(), .bytes = bytes, .file = file}, std::move(owner));
}

Status MemoryRegistry::check_own(const LocalMemory* memory) const {
    if (memory != nullptr &&
        mark_of(registered(*memory).descriptor().id) == mark_of(session_.incarnation))
        return Status::ok();
    return Status::invalid_argument(concat("the memory is registered with another session than \"",
                                           session_.name, "\": register it with this one"));
}

Status MemoryRegistry::remove(const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    const auto ended = std::static_pointer_cast<RegisteredMemory>(memory);
    PCCL_TRY(ended->deregister());
    const std::lock_guard lock(lock_.mutex);
    memories_.erase(ended);
    catalog_.forget(ended->descriptor());
    return Status::ok();
}

Status MemoryRegistry::publish(const std::string& name,
                               const std::shared_ptr<LocalMemory>& memory) {
    PCCL_TRY(check_own(memory.get()));
    const std::lock_guard lock(lock_.mutex);  // excludes the session's end meanwhile
    if (lock_.is_closed) return SessionLock::closed_error();
    const auto published = std::static_pointer_cast<RegisteredMemory>(memory);
    if (!memories_.contains(published))
        return Status::invalid_argument("the memory is not registered with this session any more");
    return catalog_.publish(name, published->descriptor());
}

Status MemoryRegistry::check_reach(const abi::MemoryDescriptor& memory) {
    const auto shm = direct_.find(TransportKind::kShm);
    if (memory.kind == abi::MemoryKind::kHost || shm == direct_.end()) return Status::ok();
    if (!transport::shm::key_on_this_host(memory).is_ok()) return Status::ok();  // reads a file
    const std::pair name{memory.id, memory.nonce};
    {
        const std::lock_guard lock(lock_.mutex);
        const auto known = reachability_.find(name);
        if (known != reachability_.end()) return known->second;
    }
    Status found = shm->second->reaches(memory);
    // The copying side reports memory that has ended.
    if (found.code() == StatusCode::kUnavailable) return Status::ok();
    const std::lock_guard lock(lock_.mutex);
    if (reachability_.size() >= kMostReachabilities) reachability_.clear();
    reachability_.emplace(name, found);
    return found;
}

}  // namespace pccl::p2p
