// Unix sockets between all ranks of a group on one host, each proven (handshake.h): the way on
// which GPU memory is handed over, and by which a rank notices that another is gone.
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

#include "csrc/base/clock.h"
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

    /// For the peers' connect().
    [[nodiscard]] std::string address() const { return server_->address().to_string(); }
    /// `addresses` by rank; its own is not used. Connects to all lower ranks, then waits for the
    /// higher ones: ranks that do so at once do not wait in a circle. kTimeout and kPeerLost name
    /// the rank. While it waits, it asks now and then for an objection, which it returns.
    using Objection = std::function<Status()>;
    Status connect(std::span<const std::string> addresses, Deadline deadline,
                   const Objection& objection = {});

    [[nodiscard]] Rank rank() const { return options_.rank; }
    [[nodiscard]] int size() const { return options_.size; }
    /// -1 for this rank itself.
    [[nodiscard]] int of(Rank peer) const { return sockets_[index(peer)].get(); }

   private:
    explicit PeerSockets(const PeerSocketsOptions& options);
    static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
    Status connect_to(Rank peer, const std::string& address, Deadline deadline);
    Status await_higher(Deadline deadline, const Objection& objection);
    /// The first higher rank without a socket, or size().
    [[nodiscard]] Rank first_missing() const;
    void welcome(UniqueFd socket, const LinkRequest& request);

    const PeerSocketsOptions options_;
    std::unique_ptr<HandshakeServer> server_;
    std::vector<UniqueFd> sockets_;  // by rank
};

}  // namespace pccl::transport::nvlink
