// SPDX-License-Identifier: Apache-2.0

// Directory of the ranks of a group: endpoints, routes to them, and queries to them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/bootstrap/endpoint.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/runtime/runtime.h"
#include "csrc/transport/transport.h"

namespace pccl::runtime {

class PeerDirectory {
   public:
    /// This rank in its group.
    struct Self {
        Rank rank = 0;
        int size = 1;
        std::string group_name{};  // for error messages
        transport::TransportFlags allowed{};
        /// Ranks of the members in the whole job, by rank; empty: unknown.
        std::vector<std::uint64_t> global_ranks{};
    };

    /// `runtime` must outlive the directory.
    PeerDirectory(const Runtime& runtime, const bootstrap::GroupIdentity& identity, Self self);

    [[nodiscard]] const bootstrap::GroupIdentity& identity() const { return identity_; }
    [[nodiscard]] Rank rank() const { return self_.rank; }
    [[nodiscard]] int size() const { return self_.size; }
    [[nodiscard]] const std::string& group_name() const { return self_.group_name; }
    [[nodiscard]] std::span<const std::uint64_t> global_ranks() const { return self_.global_ranks; }

    /// Registers the endpoints of all ranks, in rank order. Call it once, before any peer is
    /// reached.
    void register_endpoints(std::vector<bootstrap::Endpoint> endpoints);
    /// Returns false while the group is being made.
    [[nodiscard]] bool has_endpoints() const { return !endpoints_.empty(); }

    // Thread-safe once the peers are registered:

    [[nodiscard]] const bootstrap::Endpoint& endpoint(Rank peer) const {
        return endpoints_[static_cast<std::size_t>(peer)];
    }
    /// Returns the route to a rank, or kUnavailable, with the reasons, where no permitted transport
    /// reaches it.
    [[nodiscard]] Result<Runtime::TransportRoute> route_to(Rank peer) const {
        return route_to(peer, {});
    }
    /// Returns the route to a rank without the transports `failed`.
    [[nodiscard]] Result<Runtime::TransportRoute> route_to(Rank peer,
                                                           transport::TransportFlags failed) const {
        return runtime_.route_to(endpoint(peer), self_.allowed.without(forbidden() | failed));
    }
    /// Returns the transports that all ranks have agreed not to use.
    [[nodiscard]] transport::TransportFlags forbidden() const {
        return transport::TransportFlags::from_bits(forbidden_.load());
    }
    void forbid(transport::TransportFlags kinds) { forbidden_.fetch_or(kinds.bits()); }
    [[nodiscard]] transport::LinkRequest request_to(Rank peer, ChannelId channel) const;

    // Implements ControlPlane; kUnavailable contains the rank that cannot be reached.

    /// Returns the state of a rank that may not have joined yet.
    [[nodiscard]] Result<std::string> query(const bootstrap::Endpoint& peer,
                                            Deadline deadline) const;
    Status notify(Rank peer, const Status& reason, Deadline deadline) const;

   private:
    const Runtime& runtime_;
    const bootstrap::GroupIdentity identity_;
    const Self self_;
    std::vector<bootstrap::Endpoint> endpoints_;  // by rank
    int host_ranks_ = 1;                          // of this host
    std::atomic<std::uint32_t> forbidden_{0};     // bits of TransportFlags
};

}  // namespace pccl::runtime
