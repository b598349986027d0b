// Memory of a session that peers may reach, and what it knows of theirs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/p2p/session_id.h"
#include "csrc/transport/rma.h"

namespace pccl::p2p {

/// One of a session, which ends it (Session::deregister_memory()).
class PCCL_API LocalMemory final : public transport::Registration {
   public:
    /// `owner` keeps the memory. One registration for each way by which peers come; a descriptor
    /// stands for all.
    LocalMemory(const transport::Memory& memory, std::shared_ptr<const void> owner,
                std::vector<std::unique_ptr<transport::Registration>> registrations);

    [[nodiscard]] const transport::Memory& memory() const override { return memory_; }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const override { return descriptor_; }
    /// For peers' import_memory(): below 256 bytes, the same each time.
    [[nodiscard]] std::string serialised_descriptor() const;

    // Of its session:

    /// As Session::deregister_memory().
    Status deregister();

    /// kInvalidArgument once it is deregistered.
    Status begin_use();
    void end_use() { uses_.fetch_sub(1); }

   private:
    const transport::Memory memory_;
    const std::shared_ptr<const void> owner_;
    std::vector<std::unique_ptr<transport::Registration>> registrations_;
    abi::MemoryDescriptor descriptor_{};
    /// Operations, or kEnded.
    static constexpr std::int64_t kEnded = -1;
    std::atomic<std::int64_t> uses_{0};
};

/// A plain value; says nothing of whether the registration is still there.
struct RemoteMemory {
    RemoteMemory(SessionId whose, const abi::MemoryDescriptor& described);

    SessionId owner;
    abi::MemoryDescriptor descriptor;
    /// Whether processes of the same host copy from and to it with no system call. Kept: to read
    /// the key takes a while of a small transfer's time.
    bool is_mapped;
};

/// The upper half of the ids of registrations of a session: a descriptor tells whose it is.
[[nodiscard]] constexpr std::uint64_t mark_of(std::uint64_t incarnation) {
    return incarnation & 0xFFFF'FFFF'0000'0000ULL;
}

/// From bytes of any origin. kInvalidArgument when they are no descriptor (memory_descriptor.h);
/// kUnavailable when it is not of this incarnation of `owner`.
[[nodiscard]] PCCL_API Result<RemoteMemory> import_descriptor(const SessionId& owner,
                                                              std::string_view bytes);

}  // namespace pccl::p2p
