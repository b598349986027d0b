// The control plane of real processes: a unix socket for this host, a TCP socket for others.
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
    /// Whether peers of this host may come by a unix socket, and any by the network.
    bool within_host = true;
    bool between_hosts = true;
    /// Which interface to listen at, in the syntax of PCCL_SOCKET_IFNAME (sys/socket/interfaces.h).
    std::string interface = {};
    /// At which interface ranks are asked, and told; empty: at the same.
    std::string management = {};
    /// Of connections that come from the network.
    sys::StreamOptions stream = {};
    /// The job's secret, which onlookers prove; without one only those of this host may look.
    std::optional<Secret> job = {};
};

class PCCL_API SocketControlPlane final : public ControlPlane {
   public:
    /// It may have fewer sides than were asked for: within_host() and between_hosts() say why.
    static Result<std::unique_ptr<SocketControlPlane>> create(const ControlOptions& options);

    /// Else why nobody is listened to there: kUnavailable where no interface fits, or it was not
    /// asked for; kInvalidArgument for an interface that cannot be read.
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
    /// Its unix socket, where this process may come by it.
    [[nodiscard]] std::optional<sys::Address> near_door(const ControlAddress& peer) const;
    /// Who asks whom, and by when.
    struct Errand {
        const ControlAddress& peer;
        const LinkRequest& request;
        const Secret& secret;
        Deadline deadline;
    };
    /// Does `act` at the near door, else, and where that leads nowhere, at a door of the network.
    template <typename Act>
    auto at_door(const Errand& errand,
                 const Act& act) const -> decltype(act(std::declval<ConnectArgs>()));

    ControlAddress address_;
    std::vector<std::unique_ptr<HandshakeServer>> servers_;
    EchoServer echoes_;
    Result<HostSide> within_host_ = Status::unavailable("it was not asked for");
    Result<NetworkSide> management_ = Status::unavailable("it was not asked for");
    Result<NetworkSide> between_hosts_ = Status::unavailable("it was not asked for");
};

}  // namespace pccl::transport
