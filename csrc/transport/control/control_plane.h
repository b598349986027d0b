// How processes speak of their groups, beside the data: one control plane in each.
//
// It listens for all transports of the process, and lets nobody in who does not prove the secret of
// a group. What is a question or a notice it deals with itself; a connection that is to become a
// link or a region goes on to its host, proven.
//
//     peers' transports, query(), notify()  ->  ControlPlane  ->  ControlHost: answer(), noticed(),
//                                                                 arrived() -> Transport::accept()
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/control/handshake_host.h"
#include "csrc/transport/control/onlooker.h"

namespace pccl::transport {

/// Where a process can be spoken to: a plain value, which peers carry through the rendezvous.
struct ControlAddress {
    std::string host;                // sys::host_identity(): the same in all processes of a host
    std::vector<std::string> doors;  // that it listens at, the nearest first
    std::string kernel{};            // sys::kernel_identity()
    std::uint32_t user = 0;          // sys::user_identity()

    bool operator==(const ControlAddress&) const = default;
};

/// Whether two processes can share memory, as far as their addresses tell: kUnavailable for another
/// host, kernel, network namespace or user.
[[nodiscard]] PCCL_API Status may_share_memory(const ControlAddress& here,
                                               const ControlAddress& there);

/// A connection whose peer has proven itself.
struct Arrival {
    UniqueFd socket;  // none where the control plane is in memory
    Introduction introduction;
    /// Why this process has no descriptors left, while the connection holds the one that is kept
    /// for such a time; else ok.
    Status shortage = {};
};

/// What a control plane asks of its process. Called on the thread that runs advance().
class ControlHost : public HandshakeHost {
   public:
    /// What request.destination answers a rank of the group that asks how it fares. Must not wait
    /// for long.
    virtual std::string answer(const LinkRequest& request) = 0;
    /// What an onlooker is told, who is in no group with this process. Must not wait for long.
    virtual std::string status(const StatusQuestion& /*question*/) { return {}; }
    /// request.source tells why it has left its group, or what made it leave.
    virtual void noticed(const LinkRequest& request, const Status& reason) = 0;
    /// Of any other service. Must not wait.
    virtual void arrived(Arrival arrival) = 0;
};

// What control planes are made of:

/// Deals with a proven connection: it goes to the host unless it is a question, whose answer
/// is returned, or a notice.
[[nodiscard]] std::optional<std::string> take_up(Arrival& arrival, ControlHost& host);
[[nodiscard]] Introduction notice_for(const LinkRequest& request, const Status& reason);

/// query(), notify() and probe() are safe from every thread; advance() takes one at a time.
class ControlPlane {
   public:
    virtual ~ControlPlane() = default;

    [[nodiscard]] virtual const ControlAddress& address() const = 0;
    /// Asks request.destination, of the process at `peer`, how it fares: its ControlHost::answer().
    /// kPeerLost where nobody is there or the group is not known, kTimeout where it is silent;
    /// kUnavailable where nothing leads there from here.
    virtual Result<std::string> query(const ControlAddress& peer, const LinkRequest& request,
                                      const Secret& secret, Deadline deadline) = 0;
    /// Tells request.destination why this rank has left the group. Errors as of query().
    virtual Status notify(const ControlAddress& peer, const LinkRequest& request,
                          const Secret& secret, const Status& reason, Deadline deadline) = 0;
    /// Whether anybody listens at `peer`, which proves nothing but that: kPeerLost where nobody
    /// does, ok where it cannot be known.
    virtual Status probe(const ControlAddress& peer, Deadline deadline) = 0;
    /// Returns the one of `addresses`, at which the process at `peer` listens for other hosts, at
    /// which request.destination proves the group's secret. Errors as of query().
    virtual Result<std::string> find_address(const ControlAddress& peer,
                                             const std::vector<std::string>& addresses,
                                             const LinkRequest& request, const Secret& secret,
                                             Deadline deadline) = 0;

    /// Descriptors of which one is readable when advance() has something to do.
    [[nodiscard]] virtual std::vector<int> poll_fds() const = 0;
    /// Goes on with all that comes in, without blocking.
    virtual void advance(ControlHost& host) = 0;
};

}  // namespace pccl::transport
