// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/messages/catalog.h"

#include <pccl/memory.h>
#include "csrc/base/text/text.h"

namespace pccl::p2p {
namespace {

constexpr std::size_t kNamesInAMessage = 8;

}  // namespace

Status Catalog::publish(const std::string& name, const abi::MemoryDescriptor& memory) {
    PCCL_TRY(check_name(name));
    const std::lock_guard lock(mutex_);
    if (published_.size() >= kMost && !published_.contains(name))
        return Status::resource_exhausted(
            concat(kMost, " memories are published, which is as many as a session has"));
    published_[name] = memory;
    return Status::ok();
}

void Catalog::withdraw(const std::string& name) {
    const std::lock_guard lock(mutex_);
    published_.erase(name);
}

void Catalog::forget(const abi::MemoryDescriptor& memory) {
    const std::lock_guard lock(mutex_);
    std::erase_if(published_, [&memory](const auto& each) { return each.second.id == memory.id; });
}

Result<abi::MemoryDescriptor> Catalog::find(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = published_.find(name);
    if (found != published_.end()) return found->second;
    return Status::unavailable(concat("it has published no memory \"", name, "\"; there ",
                                      published_.empty() ? "is none" : "are: ", some_names()));
}

std::string Catalog::some_names() const {
    std::string names;
    std::size_t count = 0;
    for (const auto& [name, memory] : published_) {
        if (count == kNamesInAMessage) return concat(names, ", ...");
        names += concat(count++ == 0 ? "" : ", ", name);
    }
    return names;
}

}  // namespace pccl::p2p
