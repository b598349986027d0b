// SPDX-License-Identifier: Apache-2.0

// Registered memory of a session, and descriptors of its peers' memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/memory.h>
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// Every LocalMemory is one.
class PCCL_API RegisteredMemory final : public LocalMemory, public transport::Registration {
   public:
    /// `owner` keeps the memory alive. There is one registration for each kind of access by peers;
    /// one descriptor represents all of them.
    RegisteredMemory(const transport::Memory& memory, std::shared_ptr<const void> owner,
                     std::vector<std::unique_ptr<transport::Registration>> registrations);

    [[nodiscard]] const transport::Memory& memory() const override { return memory_; }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const override { return descriptor_; }
    [[nodiscard]] std::string serialised_descriptor() const override;

    /// Ends the registration, as Session::deregister_memory().
    Status deregister();

    /// Counts an operation on the memory. Returns kInvalidArgument once it is deregistered.
    Status begin_use();
    void end_use() { uses_.fetch_sub(1); }

   private:
    const transport::Memory memory_;
    const std::shared_ptr<const void> owner_;
    std::vector<std::unique_ptr<transport::Registration>> registrations_;
    abi::MemoryDescriptor descriptor_{};
    /// Number of operations in progress, or kEnded.
    static constexpr std::int64_t kEnded = -1;
    std::atomic<std::int64_t> uses_{0};
};

[[nodiscard]] inline RegisteredMemory& registered(LocalMemory& memory) {
    return static_cast<RegisteredMemory&>(memory);
}
[[nodiscard]] inline const RegisteredMemory& registered(const LocalMemory& memory) {
    return static_cast<const RegisteredMemory&>(memory);
}

/// Content of a RemoteMemory.
struct ImportedMemory {
    SessionId owner;
    abi::MemoryDescriptor descriptor;
    /// Whether processes of this host copy from and to the memory without a system call. It is
    /// cached, since parsing the key takes a noticeable part of a small transfer's time.
    bool is_mapped;
};

[[nodiscard]] PCCL_API RemoteMemory imported(SessionId owner,
                                             const abi::MemoryDescriptor& descriptor);

/// Returns the upper half of the ids of a session's registrations, so that a descriptor identifies
/// its session.
[[nodiscard]] constexpr std::uint64_t mark_of(std::uint64_t incarnation) {
    return incarnation & 0xFFFF'FFFF'0000'0000ULL;
}

/// Parses untrusted bytes. Returns kInvalidArgument when they are no descriptor
/// (memory_descriptor.h), kUnavailable when it belongs to another incarnation of `owner`.
[[nodiscard]] PCCL_API Result<RemoteMemory> import_descriptor(const SessionId& owner,
                                                              std::string_view bytes);

}  // namespace pccl::p2p
