// What a session has published: memory, under names by which its peers ask for it.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "csrc/abi/memory.h"
#include "csrc/base/status.h"

namespace pccl::p2p {

/// Safe from every thread.
class PCCL_API Catalog {
   public:
    static constexpr std::size_t kMost = 4096;

    /// In the place of what the name stood for. kInvalidArgument for a name that check_name() does
    /// not pass, kResourceExhausted beyond kMost.
    Status publish(const std::string& name, const abi::MemoryDescriptor& memory);
    /// Nothing where there is none.
    void withdraw(const std::string& name);
    /// Takes out all names of a registration.
    void forget(const abi::MemoryDescriptor& memory);
    /// kUnavailable, with some of the names that there are.
    [[nodiscard]] Result<abi::MemoryDescriptor> find(const std::string& name) const;

   private:
    [[nodiscard]] std::string some_names() const;

    mutable std::mutex mutex_;
    std::map<std::string, abi::MemoryDescriptor> published_;
};

}  // namespace pccl::p2p
