// SPDX-License-Identifier: Apache-2.0

// The memory of a group: workspaces that its ranks allocate together.
//
//     auto mine = memory.allocate_workspace("halo", bytes);      // on every rank
//     memory.wait_workspace("halo", deadline);                   // until every rank has its own
//     auto theirs = memory.map_remote("halo", peer);             // on one host; else
//     auto where = memory.remote_memory("halo", peer);           // for a link of transport/rma.h
//
// Workspaces are zero-initialised and page-aligned; untouched pages use no memory. Users must
// synchronise access to them. Communicator::allocate_on_all_ranks() allocates one on all ranks at
// once, without a store. All members are thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/store.h>
#include "csrc/abi/memory.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::comm {

inline constexpr std::size_t kLongestWorkspaceName = 128;

/// Returns kInvalidArgument if `name` is no valid name for a user's workspace.
[[nodiscard]] Status check_workspace_name(const std::string& name);

/// A rank's part of a workspace, mapped into this process.
struct MappedMemory {
    std::span<std::byte> memory{};
    std::shared_ptr<const void> holder{};  // keeps the memory mapped while any copy exists
};

struct MemoryContextOptions {
    Rank rank = 0;
    int size = 1;
    std::shared_ptr<Store> store;  // for this group alone; may be null when size is 1
};

class PCCL_API MemoryContext {
   public:
    using Span = std::span<std::byte>;

    explicit MemoryContext(MemoryContextOptions options) : options_(std::move(options)) {}
    MemoryContext(const MemoryContext&) = delete;
    MemoryContext& operator=(const MemoryContext&) = delete;
    /// Unmaps all workspaces without notifying peers.
    ~MemoryContext() = default;

    /// Allocates this rank's part of the workspace `name` (1 to 128 bytes; "pccl/..." is reserved)
    /// and publishes it. The n-th allocation of a name on this rank matches the n-th on every other
    /// rank. Errors: kInvalidArgument (no bytes, or the name is in use), kResourceExhausted, those
    /// of the store.
    Result<Span> allocate_workspace(const std::string& name, std::size_t bytes);
    /// Allocates without publishing; complete_workspace() then sets the parts of all ranks, indexed
    /// by rank.
    Result<abi::MemoryDescriptor> add_workspace(const std::string& name, std::size_t bytes);
    Status complete_workspace(const std::string& name, std::vector<abi::MemoryDescriptor> parts);

    /// Waits until all ranks have published the workspace, which this rank must have allocated.
    /// Errors: kTimeout names the missing ranks; kMismatch a rank that chose another size.
    Status wait_workspace(const std::string& name, Deadline deadline);
    /// Returns the descriptor of a rank's part; kUnavailable before wait_workspace().
    [[nodiscard]] Result<abi::MemoryDescriptor> remote_memory(const std::string& name,
                                                              Rank rank) const;
    /// Maps a peer's part into this process until release(). kUnsupported if it is on another host
    /// or cannot be mapped from here.
    Result<Span> map_remote(const std::string& name, Rank rank);
    /// Maps a part until the caller drops the holder, even after release() or the peer's exit.
    Result<MappedMemory> hold(const std::string& name, Rank rank);
    /// Returns the workspaces of this rank, with the bytes of one part.
    [[nodiscard]] std::map<std::string, std::size_t> sizes() const;
    /// Releases this rank's part and its views of peers' parts. Peers' views stay valid; one-sided
    /// access to this part ends. The name may then be allocated again.
    Status release(const std::string& name);

   private:
    struct Workspace {
        std::shared_ptr<const transport::Mapping> mapping;
        std::unique_ptr<transport::Registration> registration;
        std::string key;  // in the store, without the rank; empty: not published
        std::vector<abi::MemoryDescriptor> parts;  // indexed by rank; set by wait_workspace()
        std::map<Rank, std::shared_ptr<const transport::shm::MemoryView>> views;
    };

    /// Reads the descriptor of another rank's part from the store.
    Result<abi::MemoryDescriptor> fetch(const std::string& key, Rank rank, Deadline deadline) const;

    // These require mutex_:
    Result<Workspace*> make(const std::string& name, std::size_t bytes);
    Result<std::unique_ptr<transport::Registration>> register_mapping(
        const transport::Mapping& mapping);
    Result<Workspace*> find(const std::string& name);
    Result<abi::MemoryDescriptor> part_of(const std::string& name, Rank rank) const;

    const MemoryContextOptions options_;
    mutable std::mutex mutex_;
    std::unique_ptr<transport::RmaTransport> one_sided_;  // created with the first workspace
    std::map<std::string, Workspace> workspaces_;
    std::map<std::string, int> allocations_;  // number of allocations so far, by name
};

}  // namespace pccl::comm
