// SPDX-License-Identifier: Apache-2.0

// Sockets of one communicator, each over a path of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/address.h"
#include "plugins/nccl/wire.h"

namespace pccl::nccl {

/// Process at the other end.
struct Peer {
    Rank rank = kNoRank;
    std::string host{};  // its name; empty: not known yet

    /// Returns "rank 3 on host-b".
    [[nodiscard]] std::string name() const;
};

/// Both ends of a path.
struct PathEnds {
    std::string near_interface{};
    sys::Address near{};
    std::string far_interface{};  // empty: not known yet
    sys::Address far{};

    /// Returns "eth0 10.0.0.1 to eth1 10.0.0.2".
    [[nodiscard]] std::string name() const;
};

struct Path {
    UniqueFd socket{};  // not open: the path is lost
    PathEnds ends{};
    Status fault{};               // why it is lost
    std::size_t setup_bytes = 0;  // of its set-up, which are still to be read, and mean nothing

    [[nodiscard]] bool is_alive() const { return socket.is_open(); }
    void lose(const Status& why) {
        socket.reset();
        fault = why;
    }
};

/// Logs a path that a new communicator does without.
void log_left_out(const Path& path, const Peer& peer);
/// Returns "eth0 10.0.0.1 to eth1 10.0.0.2: <fault>, ...".
[[nodiscard]] std::string faults_of(const std::vector<Path>& paths);

/// Paths of a communicator, the same at both ends: one that was lost before counts, too. The
/// communicator is lost with the last one.
class Paths {
   public:
    Paths(Peer peer, std::vector<Path> paths) : peer_(std::move(peer)), paths_(std::move(paths)) {}

    [[nodiscard]] std::size_t count() const { return paths_.size(); }
    [[nodiscard]] const Path& operator[](std::size_t path) const { return paths_[path]; }
    [[nodiscard]] int socket(std::size_t path) const { return paths_[path].socket.get(); }
    [[nodiscard]] bool is_alive(std::size_t path) const { return paths_[path].is_alive(); }
    [[nodiscard]] std::size_t alive() const;
    [[nodiscard]] const Peer& peer() const { return peer_; }

    /// Closes a path that has failed, and logs it. Returns kPeerLost, which names the peer and the
    /// fault of each path, where it was the last one.
    Status lose(std::size_t path, const Status& why);

   private:
    Peer peer_;
    std::vector<Path> paths_;
};

}  // namespace pccl::nccl
