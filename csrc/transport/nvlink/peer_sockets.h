// SPDX-License-Identifier: Apache-2.0

// Unix sockets between all ranks of a group on one host, each authenticated (handshake.h): they
// carry handles of GPU memory, and a rank detects by them that another is gone.
//
//     auto sockets = PeerSockets::listen(...);      each rank
//     publish sockets->address(), collect those of all
//     sockets->connect(addresses, deadline);        each rank
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake_server.h"

namespace pccl::transport::nvlink {

struct PeerSocketsOptions {
    GroupId group{};
    Secret secret{};
    Rank rank = 0;
    int size = 1;
};

class PCCL_API PeerSockets {
   public:
    static Result<std::unique_ptr<PeerSockets>> listen(const PeerSocketsOptions& options);

    /// Returns the address for the peers' connect().
    [[nodiscard]] std::string address() const { return server_->address().to_string(); }
    /// Connects to all lower ranks, then waits for the higher ones, so that ranks which connect at
    /// the same time cannot deadlock. `addresses` is indexed by rank; the own entry is not used.
    /// kTimeout and kPeerLost name the rank. While connect() waits, it calls `objection` now and
    /// then, and returns its error.
    using Objection = std::function<Status()>;
    Status connect(std::span<const std::string> addresses, Deadline deadline,
                   const Objection& objection = {});

    [[nodiscard]] Rank rank() const { return options_.rank; }
    [[nodiscard]] int size() const { return options_.size; }
    /// Returns the socket to `peer`; -1 for this rank itself.
    [[nodiscard]] int of(Rank peer) const { return sockets_[index(peer)].get(); }

   private:
    explicit PeerSockets(const PeerSocketsOptions& options);
    static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
    Status connect_to(Rank peer, const std::string& address, Deadline deadline);
    Status await_higher(Deadline deadline, const Objection& objection);
    /// Returns the first higher rank without a socket, or size().
    [[nodiscard]] Rank first_missing() const;
    void welcome(UniqueFd socket, const LinkRequest& request);

    const PeerSocketsOptions options_;
    std::unique_ptr<HandshakeServer> server_;
    std::vector<UniqueFd> sockets_;  // by rank
};

}  // namespace pccl::transport::nvlink
