// SPDX-License-Identifier: Apache-2.0

// Control plane of real processes: a unix socket for this host, a TCP socket for others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/control/echoes.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/handshake_server.h"
#include "csrc/transport/control/sides.h"

namespace pccl::transport {

struct ControlOptions {
    /// Sides to listen at: a unix socket for peers of this host, and the network for any peer.
    bool within_host = true;
    bool between_hosts = true;
    /// Interface to listen at, in the syntax of PCCL_SOCKET_IFNAME (sys/socket/interfaces.h).
    std::string interface = {};
    /// Interface for queries and notices between ranks; empty: `interface`.
    std::string management = {};
    /// Options of connections from the network.
    sys::StreamOptions stream = {};
    /// Secret of the job, which onlookers prove; without one only onlookers of this host may query.
    std::optional<Secret> job = {};
};

class PCCL_API SocketControlPlane final : public ControlPlane {
   public:
    /// Creates a control plane, possibly with fewer sides than requested: within_host() and
    /// between_hosts() have the reason.
    static Result<std::unique_ptr<SocketControlPlane>> create(const ControlOptions& options);

    /// Returns the side, or why it does not listen: kUnavailable where no interface fits, or the
    /// side was not requested; kInvalidArgument for an interface that cannot be parsed.
    [[nodiscard]] const Result<HostSide>& within_host() const { return within_host_; }
    [[nodiscard]] const Result<NetworkSide>& between_hosts() const { return between_hosts_; }

    [[nodiscard]] const ControlAddress& address() const override { return address_; }
    Result<std::string> query(const ControlAddress& peer, const LinkRequest& request,
                              const Secret& secret, Deadline deadline) override;
    Status notify(const ControlAddress& peer, const LinkRequest& request, const Secret& secret,
                  const Status& reason, Deadline deadline) override;
    Status probe(const ControlAddress& peer, Deadline deadline) override;
    Result<std::string> find_address(const ControlAddress& peer,
                                     const std::vector<std::string>& addresses,
                                     const LinkRequest& request, const Secret& secret,
                                     Deadline deadline) override;
    [[nodiscard]] std::vector<int> poll_fds() const override;
    void advance(ControlHost& host) override;

   private:
    SocketControlPlane() = default;
    Result<HostSide> listen_within_host(const ControlOptions& options);
    Result<NetworkSide> listen_between_hosts(const ControlOptions& options);
    Result<NetworkSide> listen_at(const std::string& interface, const ControlOptions& options);
    Result<sys::Address> listen(const sys::Address& address, const HandshakeServerOptions& options);
    /// Returns the peer's unix socket, if this process may connect to it.
    [[nodiscard]] std::optional<sys::Address> near_door(const ControlAddress& peer) const;
    /// Request, its parties and its deadline.
    struct Errand {
        const ControlAddress& peer;
        const LinkRequest& request;
        const Secret& secret;
        Deadline deadline;
    };
    /// Calls `act` for the peer's unix socket; if there is none or it is unreachable, for an
    /// address of the network.
    template <typename Act>
    auto at_door(const Errand& errand,
                 const Act& act) const -> decltype(act(std::declval<ConnectArgs>()));

    ControlAddress address_;
    std::vector<std::unique_ptr<HandshakeServer>> servers_;
    EchoServer echoes_;
    Result<HostSide> within_host_ = Status::unavailable("it was not requested");
    Result<NetworkSide> management_ = Status::unavailable("it was not requested");
    Result<NetworkSide> between_hosts_ = Status::unavailable("it was not requested");
};

}  // namespace pccl::transport
