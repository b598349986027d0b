// Who the ranks of a group are, by which transport this one reaches them, and what it asks them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
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
        std::string group_name{};  // for messages
        transport::TransportFlags allowed{};
        /// The members' numbers in the whole job, by rank; empty: unknown.
        std::vector<std::uint64_t> global_ranks{};
    };

    /// `runtime` outlives it.
    PeerDirectory(const Runtime& runtime, const bootstrap::GroupIdentity& identity, Self self);

    [[nodiscard]] const bootstrap::GroupIdentity& identity() const { return identity_; }
    [[nodiscard]] Rank rank() const { return self_.rank; }
    [[nodiscard]] int size() const { return self_.size; }
    [[nodiscard]] const std::string& group_name() const { return self_.group_name; }
    [[nodiscard]] std::span<const std::uint64_t> global_ranks() const { return self_.global_ranks; }

    /// To be called once, before any peer is reached: all ranks, in their order.
    void register_endpoints(std::vector<bootstrap::Endpoint> endpoints);
    /// False while the group is being made.
    [[nodiscard]] bool knows_peers() const { return !endpoints_.empty(); }

    // Once the peers are registered, from any thread:

    [[nodiscard]] const bootstrap::Endpoint& endpoint(Rank peer) const {
        return endpoints_[static_cast<std::size_t>(peer)];
    }
    /// kUnavailable, with the reasons, where no transport that is allowed reaches the rank.
    [[nodiscard]] Result<Runtime::TransportRoute> route_to(Rank peer) const {
        return route_to(peer, {});
    }
    /// The same, by none of `failed`.
    [[nodiscard]] Result<Runtime::TransportRoute> route_to(Rank peer,
                                                           transport::TransportFlags failed) const {
        return runtime_.route_to(endpoint(peer), self_.allowed.without(forbidden() | failed));
    }
    /// Transports that all ranks have agreed not to use.
    [[nodiscard]] transport::TransportFlags forbidden() const {
        return transport::TransportFlags::from_bits(forbidden_.load());
    }
    void forbid(transport::TransportFlags kinds) { forbidden_.fetch_or(kinds.bits()); }
    [[nodiscard]] transport::LinkRequest request_to(Rank peer, ChannelId channel) const;

    // As ControlPlane has them; kUnavailable names the rank that no way leads to.

    /// How a rank fares that may not have joined yet.
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
