// SPDX-License-Identifier: Apache-2.0

// Paths of a link between two hosts, and their log.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/interfaces.h"

namespace pccl::transport::tcp {

/// Path by which a sender reaches its peer.
struct PathRoute {
    sys::Interface interface{};  // of this host: connections come from its address
    sys::Address far{};
    /// Connections are bound to the interface itself: another one has the kernel's route there.
    bool needs_binding = false;

    /// Returns "eth0 10.0.0.1 to 10.0.0.2".
    [[nodiscard]] std::string name() const;
};

/// Returns the paths from these interfaces to the addresses of a peer; at most kMostPaths. Pairs
/// whose packets would leave by another interface are left out, and logged.
[[nodiscard]] std::vector<PathRoute> routes_over(std::span<const sys::Interface> interfaces,
                                                 std::span<const sys::Address> addresses,
                                                 Rank peer);

/// Log of the paths of all links of a process: each change is one line, however many links use the
/// path. Thread-safe.
class PathLog {
   public:
    void joined(const PathRoute& route, Rank peer);
    void failed(const PathRoute& route, Rank peer, const Status& why);
    /// `others`: the paths that are left.
    void lost(const PathRoute& route, Rank peer, std::span<const PathRoute* const> others);
    void found(const PathRoute& route, Rank peer);

   private:
    enum class PathState { kJoined, kFailed, kLost };
    bool changes(const PathRoute& route, Rank peer, PathState state);

    std::mutex mutex_;
    std::map<std::string, PathState> states_;  // guarded by mutex_
};

}  // namespace pccl::transport::tcp
