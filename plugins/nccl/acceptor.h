// SPDX-License-Identifier: Apache-2.0

// Listening sockets of the process, which all listening communicators share.
//
// One socket for each interface serves them all: the handshake of a connection names the
// communicator, whose secret it proves.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake_host.h"
#include "csrc/transport/control/handshake_server.h"
#include "plugins/nccl/handle.h"
#include "plugins/nccl/network_device.h"
#include "plugins/nccl/paths.h"
#include "plugins/nccl/recv_comm.h"

namespace pccl::nccl {

/// Description of a process for its peers.
struct Self {
    Rank rank = kNoRank;
    std::string host{};
};

/// Sockets of one communicator that have arrived. One that breaks is left out.
class Arrivals {
   public:
    /// A path that has not begun for `grace` after another one is broken.
    Arrivals(const SocketRole& role, Rank source, Duration grace = std::chrono::seconds(3))
        : role_(role), peer_{.rank = source, .host = role.host.get()}, grace_(grace) {}

    [[nodiscard]] bool is_of(const SocketRole& role) const {
        return role.communicator == role_.communicator;
    }
    /// Takes the path of this number, unless there is one.
    void add(Path path, std::size_t number);
    /// Reads which sockets belong to the communicator; returns true once all of them are here, or
    /// have had their time. kPeerLost, with the fault of each path, where none is left.
    Result<bool> advance();
    /// Sends `identity` over each path. Returns the paths, once advance() has returned true.
    Result<Paths> finish(const Identity& identity);

   private:
    struct Arrival {
        Path path{};
        Begin begin{};
        std::size_t received = 0;  // bytes of `begin`

        [[nodiscard]] bool has_begun() const { return received == sizeof(Begin); }
        [[nodiscard]] bool is_lost() const { return !path.fault.is_ok(); }
    };
    Status read_begin(std::size_t number);
    /// Returns whether a path belongs to the communicator, as far as that is known.
    [[nodiscard]] bool counts(std::size_t number) const;
    /// Returns whether a path may still begin.
    [[nodiscard]] bool awaits(std::size_t number) const;
    void lose_late();
    [[nodiscard]] bool has_lost_all() const;
    /// Takes the paths that count.
    [[nodiscard]] std::vector<Path> take_paths();
    [[nodiscard]] Status no_path(const std::vector<Path>& lost) const;

    const SocketRole role_;
    const Peer peer_;
    const Duration grace_;
    std::array<Arrival, kMostPaths> arrivals_{};
    std::uint32_t paths_ = 0;  // bits, as in Begin; 0: not known
    Deadline deadline_ = Deadline::after(std::chrono::seconds(60));
};

class Acceptor final : public transport::HandshakeHost {
   public:
    static Result<std::shared_ptr<Acceptor>> create(const NetworkDevice& device, Self self);

    /// Makes a handle at which senders are accepted until ignore().
    Result<Handle> listen();
    void ignore(const transport::GroupId& id);
    /// Returns the next connection to this handle; null while there is none. Thread-safe, does not
    /// block.
    Result<std::unique_ptr<RecvComm>> accept(const transport::GroupId& id);

    std::optional<transport::Secret> secret_of(const transport::GroupId& group) override;
    void refused(std::string_view transport_name, const Status& why) override;

   private:
    struct Listening {
        transport::Secret secret{};
        std::list<Arrivals> arrivals{};
    };

    Acceptor(NetworkDevice device, Self self)
        : device_(std::move(device)), self_(std::move(self)) {}
    void take(UniqueFd socket, const transport::Introduction& introduction);
    [[nodiscard]] Path path_of(UniqueFd socket, const SocketRole& role) const;
    [[nodiscard]] Identity identity() const;

    const NetworkDevice device_;
    const Self self_;
    std::vector<std::string> interfaces_;  // those that have a server, in its order
    std::mutex mutex_;                     // guards the next members
    std::vector<std::unique_ptr<transport::HandshakeServer>> servers_;
    std::map<transport::GroupId, Listening> listening_;
    int refusals_ = 0;
};

}  // namespace pccl::nccl
