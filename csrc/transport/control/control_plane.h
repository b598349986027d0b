// SPDX-License-Identifier: Apache-2.0

// Messages between processes about their groups, beside the data: one control plane in each
// process.
//
// It listens for all transports of the process, and accepts only peers that prove the secret of a
// group. It handles questions and notices itself, and passes an authenticated connection for a link
// or a region to its host.
//
//     peers' transports, query(), notify()  ->  ControlPlane  ->  ControlHost: answer(), noticed(),
//                                                                 arrived() -> Transport::accept()
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake_host.h"
#include "csrc/transport/control/inquiry.h"

namespace pccl::transport {

/// Control address of a process: a plain value, which peers carry through the rendezvous.
struct ControlAddress {
    std::string host;                // sys::host_identity(): the same in all processes of a host
    std::vector<std::string> doors;  // listening addresses, the nearest first
    std::string kernel{};            // sys::kernel_identity()
    std::uint32_t user = 0;          // sys::user_identity()

    bool operator==(const ControlAddress&) const = default;
};

/// Returns whether two processes can share memory, as far as their addresses show: kUnavailable for
/// another host, kernel, network namespace or user.
[[nodiscard]] PCCL_API Status may_share_memory(const ControlAddress& here,
                                               const ControlAddress& there);

/// Connection of an authenticated peer.
struct Arrival {
    UniqueFd socket;  // closed where the control plane is in memory
    Introduction introduction;
    /// Reason why this process has no descriptors left, while the connection uses the reserved one;
    /// ok otherwise.
    Status shortage = {};
};

/// Interface to the process of a control plane. Called on the thread that runs advance().
class ControlHost : public HandshakeHost {
   public:
    /// Returns the answer of request.destination to a status query by a rank of the group. Must
    /// return quickly.
    virtual std::string answer(const LinkRequest& request) = 0;
    /// Returns the answer to an onlooker, which shares no group with this process. Must return
    /// quickly.
    virtual std::string status(const StatusQuestion& /*question*/) { return {}; }
    /// Reports why request.source has left its group.
    virtual void noticed(const LinkRequest& request, const Status& reason) = 0;
    /// Takes a connection for any other service. Must not block.
    virtual void arrived(Arrival arrival) = 0;
};

// Parts of control planes:

/// Handles an authenticated connection: returns the answer to a question, delivers a notice, and
/// passes any other connection to the host.
[[nodiscard]] std::optional<std::string> take_up(Arrival& arrival, ControlHost& host);
[[nodiscard]] Introduction notice_for(const LinkRequest& request, const Status& reason);

/// Control plane of a process. query(), notify() and probe() are thread-safe; advance() takes one
/// thread at a time.
class ControlPlane {
   public:
    virtual ~ControlPlane() = default;

    [[nodiscard]] virtual const ControlAddress& address() const = 0;
    /// Queries the state of request.destination in the process at `peer`: returns its
    /// ControlHost::answer(). kPeerLost where no process is there or it is not in the group,
    /// kTimeout where it is silent; kUnavailable where no route leads there from here.
    virtual Result<std::string> query(const ControlAddress& peer, const LinkRequest& request,
                                      const Secret& secret, Deadline deadline) = 0;
    /// Sends request.destination the reason why this rank has left the group. Errors as of query().
    virtual Status notify(const ControlAddress& peer, const LinkRequest& request,
                          const Secret& secret, const Status& reason, Deadline deadline) = 0;
    /// Checks whether any process listens at `peer`, and proves nothing else: kPeerLost where none
    /// does, ok where the check cannot decide.
    virtual Status probe(const ControlAddress& peer, Deadline deadline) = 0;
    /// Returns the one of `addresses` at which request.destination proves the group's secret. The
    /// process at `peer` listens there for other hosts. Errors as of query().
    virtual Result<std::string> find_address(const ControlAddress& peer,
                                             const std::vector<std::string>& addresses,
                                             const LinkRequest& request, const Secret& secret,
                                             Deadline deadline) = 0;

    /// Returns descriptors, of which one is readable when advance() has something to do.
    [[nodiscard]] virtual std::vector<int> poll_fds() const = 0;
    /// Makes progress on all incoming connections, without blocking.
    virtual void advance(ControlHost& host) = 0;
};

}  // namespace pccl::transport
