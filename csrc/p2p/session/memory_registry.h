// SPDX-License-Identifier: Apache-2.0

// Registry of the memory that a session shares with its peers, and of the peers' GPU memory that it
// can copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pccl/memory.h>
#include "csrc/p2p/messages/catalog.h"
#include "csrc/p2p/session/session_lock.h"
#include "csrc/p2p/transfers/registered_memory.h"
#include "csrc/transport/rma/over_links.h"

namespace pccl::p2p {

/// Memory of one session. Thread-safe, by the session's lock.
class MemoryRegistry {
   public:
    using Memories = std::set<std::shared_ptr<RegisteredMemory>>;

    /// All arguments must outlive the registry. `catalog` contains the published memory.
    MemoryRegistry(SessionLock& lock, const SessionId& session, Catalog& catalog)
        : lock_(lock), session_(session), catalog_(catalog) {}

    using Directs = std::map<transport::TransportKind, std::shared_ptr<transport::RmaTransport>>;
    /// Lets processes of this host copy by themselves (kShm), or peers' RDMA devices reach the
    /// memory (kVerbs). Call it before the first add().
    void allow_direct(transport::TransportKind kind,
                      std::shared_ptr<transport::RmaTransport> direct) {
        direct_[kind] = std::move(direct);
    }
    /// Returns the transports by which memory is reached directly.
    [[nodiscard]] const Directs& direct() const { return direct_; }
    [[nodiscard]] const std::shared_ptr<transport::RmaOverLinks>& by_messages() const {
        return by_messages_;
    }
    /// Registers the word that peers try to read. Call it once.
    Result<abi::MemoryDescriptor> add_probe();

    Result<std::shared_ptr<RegisteredMemory>> add(const transport::Memory& memory,
                                                  std::shared_ptr<const void> owner);
    /// Implements Session::allocate().
    Result<std::shared_ptr<RegisteredMemory>> allocate(std::size_t bytes);
    /// Implements Session::deregister_memory().
    Status remove(const std::shared_ptr<LocalMemory>& memory);
    /// Implements Session::publish().
    Status publish(const std::string& name, const std::shared_ptr<LocalMemory>& memory);
    /// Under the session's lock: removes and returns all memory.
    [[nodiscard]] Memories take_all() { return std::exchange(memories_, {}); }
    /// Returns kInvalidArgument unless the memory is registered with this session.
    [[nodiscard]] Status check_own(const LocalMemory* memory) const;
    /// Returns ok where processes of this host can copy the memory without help from its owner;
    /// otherwise the reason.
    [[nodiscard]] Status check_reach(const abi::MemoryDescriptor& memory);
    /// Returns ok where RDMA devices reach both memories, or are not used between them; otherwise
    /// the reason.
    [[nodiscard]] Status check_rdma(const abi::MemoryDescriptor& here,
                                    const abi::MemoryDescriptor& there) const;
    /// Returns the number of peers' requests that were refused.
    [[nodiscard]] std::uint64_t refusals() const { return by_messages_->refusals(); }

   private:
    Result<transport::MemoryIdentity> make_identity();
    Status remember(const std::shared_ptr<RegisteredMemory>& memory);
    /// Returns the bytes of memory from allocate() that have no pages yet.
    [[nodiscard]] std::uint64_t untouched_bytes() const;
    /// Returns kResourceExhausted where the system has less memory left than `bytes` more need.
    [[nodiscard]] Status check_room(std::size_t bytes) const;

    SessionLock& lock_;
    const SessionId& session_;
    Catalog& catalog_;
    /// Adds the registration with RDMA devices; without it, peers reach the memory by messages.
    Status add_rdma(const transport::Memory& memory, const transport::MemoryIdentity& identity,
                    std::vector<std::unique_ptr<transport::Registration>>& registrations) const;

    Directs direct_;
    const std::shared_ptr<transport::RmaOverLinks> by_messages_ =
        std::make_shared<transport::RmaOverLinks>();
    std::atomic<std::uint32_t> registrations_{0};  // so far
    alignas(8) std::uint64_t probed_ = 0;          // the word that peers try to read
    std::shared_ptr<RegisteredMemory> probe_;
    // Under the session's lock:
    /// Results of check_reach() for GPU memory of peers, by id and nonce.
    std::map<std::pair<std::uint64_t, std::uint64_t>, Status> reachability_;
    Memories memories_;
};

}  // namespace pccl::p2p
