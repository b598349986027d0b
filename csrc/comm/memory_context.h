// The memory of a group: workspaces that its ranks allocate together.
//
//     auto mine = memory.allocate_workspace("halo", bytes);      // on every rank
//     memory.wait_workspace("halo", deadline);                   // until every rank has its own
//     auto theirs = memory.map_remote("halo", peer);             // on one host; else
//     auto where = memory.remote_memory("halo", peer);           // for a link of transport/rma.h
//
// Workspaces are zero at first, page-aligned, and cost memory only where they are touched.
// Synchronising access to them is the users' affair. Communicator::get_operator_space() allocates
// one on all ranks at once, without a store. Every member is safe from every thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "csrc/abi/memory.h"
#include "csrc/base/clock.h"
#include "csrc/bootstrap/rendezvous/store.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::comm {

inline constexpr std::size_t kLongestWorkspaceName = 128;

/// kInvalidArgument for what names no workspace of users.
[[nodiscard]] Status check_workspace_name(const std::string& name);

/// A rank's part of a workspace as this process sees it.
struct HeldMemory {
    std::span<std::byte> memory{};
    std::shared_ptr<const void> holder{};  // as long as a copy of it lives, the memory is mapped
};

struct MemoryContextOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<bootstrap::Store> store;  // of this group alone; may be null when size is 1
};

class PCCL_API MemoryContext {
   public:
    using Span = std::span<std::byte>;

    explicit MemoryContext(MemoryContextOptions options) : options_(std::move(options)) {}
    MemoryContext(const MemoryContext&) = delete;
    MemoryContext& operator=(const MemoryContext&) = delete;
    /// Unmaps everything; tells nobody.
    ~MemoryContext() = default;

    /// This rank's part of the workspace `name` (1 to 128 bytes; "pccl/..." is reserved), published
    /// to the others. The n-th allocation of a name here belongs with the n-th of every other rank.
    /// Errors: kInvalidArgument (no bytes, or the name is in use), kResourceExhausted, those of the
    /// store.
    Result<Span> allocate_workspace(const std::string& name, std::size_t bytes);
    /// The same, told to nobody: complete_workspace() then takes all parts, by rank.
    Result<abi::MemoryDescriptor> add_workspace(const std::string& name, std::size_t bytes);
    Status complete_workspace(const std::string& name, std::vector<abi::MemoryDescriptor> parts);

    /// Waits until all ranks have published the workspace, which this rank has allocated. Errors:
    /// kTimeout names the missing ranks; kMismatch a rank that chose another size.
    Status wait_workspace(const std::string& name, Deadline deadline);
    /// A peer's part, or one's own; kUnavailable before wait_workspace().
    [[nodiscard]] Result<abi::MemoryDescriptor> remote_memory(const std::string& name,
                                                              Rank rank) const;
    /// A peer's part in this process's address space, until release(); kUnsupported when it is on
    /// another host or not visible from here.
    Result<Span> map_remote(const std::string& name, Rank rank);
    /// The same, for as long as the caller wants: whatever is released, and whoever is gone.
    Result<HeldMemory> hold(const std::string& name, Rank rank);
    /// The workspaces that this rank has, and the bytes of a part.
    [[nodiscard]] std::map<std::string, std::size_t> sizes() const;
    /// Gives back this rank's part and its views of the others'. Peers' views stay valid; one-sided
    /// access to this part ends. The name may then be allocated again.
    Status release(const std::string& name);

   private:
    struct Workspace {
        std::shared_ptr<const transport::Mapping> mapping;
        std::unique_ptr<transport::Registration> registration;
        std::string key;  // in the store, without the rank; empty: it was told to nobody
        std::vector<abi::MemoryDescriptor> parts;  // by rank; filled by wait_workspace()
        std::map<Rank, std::shared_ptr<const transport::shm::MemoryView>> views;
    };

    /// Another rank's part, from the store.
    Result<abi::MemoryDescriptor> fetch(const std::string& key, Rank rank, Deadline deadline) const;

    // Under mutex_:
    Result<Workspace*> make(const std::string& name, std::size_t bytes);
    Result<std::unique_ptr<transport::Registration>> register_mapping(
        const transport::Mapping& mapping);
    Result<Workspace*> find(const std::string& name);
    Result<abi::MemoryDescriptor> part_of(const std::string& name, Rank rank) const;

    const MemoryContextOptions options_;
    mutable std::mutex mutex_;
    std::unique_ptr<transport::RmaTransport> one_sided_;  // from the first workspace on
    std::map<std::string, Workspace> workspaces_;
    std::map<std::string, int> allocations_;  // so far, by name
};

}  // namespace pccl::comm
