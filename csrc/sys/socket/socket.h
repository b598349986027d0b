// SPDX-License-Identifier: Apache-2.0

// Stream sockets for the library: non-blocking, closed on exec, without SIGPIPE, with EINTR
// handled.
//
// Calls that move data return 0 when they would block. They return kPeerLost (without a rank, which
// only the caller has) when the connection is gone for any reason, and kTimeout when it was given
// up because the other host had been silent, or no network led there. Only calls with a Deadline
// wait.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// Options of TCP sockets, all of which get TCP_NODELAY; unix sockets use buffer_bytes only.
struct StreamOptions {
    /// Requested bytes in each direction; 0 keeps the system's own tuning. The system may grant
    /// less.
    std::size_t buffer_bytes = 0;
    /// Argument of give_up_after(); 0: never.
    std::chrono::milliseconds give_up{30'000};
};

/// Breaks the connection once the peer's host has been silent for `silence`, idle or not. A peer
/// that does not read counts as silent, too: use it for sockets that are always read.
PCCL_API void give_up_after(int fd, std::chrono::milliseconds silence);

/// Breaks an idle connection once the peer's host has been silent for `silence`. Data that the peer
/// does not read keeps a connection.
PCCL_API void probe_when_idle(int fd, std::chrono::milliseconds silence);

/// Makes a new socket connect from the IP address `source`, with any port.
[[nodiscard]] PCCL_API Status connect_from(int fd, const Address& source);

/// Makes a new socket connect through an interface of this host, whatever the routes are.
/// kUnavailable where the system permits that to others only.
[[nodiscard]] PCCL_API Status connect_through(int fd, const std::string& interface);

/// Listens at `address` (port 0: any free one); `buffer_bytes` applies to the accepted sockets,
/// too.
[[nodiscard]] PCCL_API Result<UniqueFd> listen_on(const Address& address,
                                                  const StreamOptions& options = {});
/// Returns the next waiting connection, if there is one. kResourceExhausted when no descriptor is
/// left.
[[nodiscard]] PCCL_API Result<std::optional<UniqueFd>> accept_next(
    int listener, const StreamOptions& options = {});
/// Returns a socket that can connect to `address`; continue with connect_step().
[[nodiscard]] PCCL_API Result<UniqueFd> make_socket(const Address& address,
                                                    const StreamOptions& options = {});
/// Starts or continues connecting; true once connected. kUnavailable when no process listens there.
[[nodiscard]] PCCL_API Result<bool> connect_step(int fd, const Address& address);
[[nodiscard]] PCCL_API Result<UniqueFd> connect_to(const Address& address, Deadline deadline,
                                                   const StreamOptions& options = {});
/// Returns all addresses of a host name or literal, in the resolver's order. May block on the
/// network.
[[nodiscard]] PCCL_API Result<std::vector<Address>> resolve(const std::string& host,
                                                            std::uint16_t port);

[[nodiscard]] PCCL_API Result<Address> local_address(int fd);
[[nodiscard]] PCCL_API Result<Address> peer_address(int fd);
/// Returns the payload bytes that the send buffer takes while the peer does not read: the system's
/// size includes its own overhead.
[[nodiscard]] PCCL_API std::size_t granted_send_buffer(int fd);

/// Returns the sent bytes that have not left yet; 0 where the system does not report them.
[[nodiscard]] PCCL_API std::size_t unsent_bytes(int fd);
/// Returns the sent bytes that the peer's host has not acknowledged, also of a broken connection.
[[nodiscard]] PCCL_API std::size_t unacknowledged_bytes(int fd);
/// Makes a socket that was found full ready for output only when fewer than `bytes` have not left;
/// it may then take as many again.
PCCL_API void notify_once_unsent_below(int fd, std::size_t bytes);

/// When received data is acknowledged. kDelayed: together with later data, or after 40 ms; the
/// kernel then returns to kAtOnce.
enum class Acknowledge : bool { kDelayed, kAtOnce };
PCCL_API void acknowledge(int fd, Acknowledge when);

/// Sends the part of up to IOV_MAX pieces that fits now.
[[nodiscard]] PCCL_API Result<std::size_t> send_some(int fd, std::span<const iovec> pieces);
[[nodiscard]] PCCL_API Result<std::size_t> send_some(int fd, std::span<const std::byte> bytes);
[[nodiscard]] PCCL_API Result<std::size_t> receive_some(int fd, std::span<std::byte> into);
/// Fills the pieces in their order.
[[nodiscard]] PCCL_API Result<std::size_t> receive_some(int fd, std::span<const iovec> pieces);
[[nodiscard]] PCCL_API Status send_all(int fd, std::span<const std::byte> bytes, Deadline deadline);
[[nodiscard]] PCCL_API Status receive_all(int fd, std::span<std::byte> into, Deadline deadline);
/// Returns whether the peer has closed its end; takes nothing from the stream.
[[nodiscard]] PCCL_API bool peer_has_closed(int fd);
/// Ends both directions. The descriptor stays open, so that other threads may still hold it.
PCCL_API void shut_down(int fd);
/// Ends the direction to the peer, after all data.
PCCL_API void end_sending(int fd);
/// Does as shut_down(), and drops data of which the peer takes nothing for `silence`. The kernel
/// would keep it for minutes where the peer's host is cut off, and for ever where the peer has
/// stopped.
PCCL_API void abandon(int fd, std::chrono::milliseconds silence);

struct Interest {
    int fd = -1;  // -1 is skipped
    bool input = false;
    bool output = false;
};
/// Waits at most `longest`, and at most an hour, until one is ready or broken; false when the time
/// has passed.
PCCL_API bool wait_for_any(std::span<const Interest> interests, Duration longest);

}  // namespace pccl::sys
