// SPDX-License-Identifier: Apache-2.0

// Memory that a session has published, by the names under which its peers look it up.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include <pccl/status.h>
#include "csrc/abi/memory.h"

namespace pccl::p2p {

/// Map from published names to memory descriptors. Thread-safe.
class PCCL_API Catalog {
   public:
    static constexpr std::size_t kMost = 4096;

    /// Publishes `memory` under `name` and replaces an earlier entry. Returns kInvalidArgument for
    /// a name that check_name() rejects, kResourceExhausted beyond kMost names.
    Status publish(const std::string& name, const abi::MemoryDescriptor& memory);
    /// Removes a name. Does nothing where the name is not published.
    void withdraw(const std::string& name);
    /// Removes all names of a registration.
    void forget(const abi::MemoryDescriptor& memory);
    /// Returns the memory of a name, or kUnavailable with some of the published names.
    [[nodiscard]] Result<abi::MemoryDescriptor> find(const std::string& name) const;

   private:
    [[nodiscard]] std::string some_names() const;

    mutable std::mutex mutex_;
    std::map<std::string, abi::MemoryDescriptor> published_;
};

}  // namespace pccl::p2p
