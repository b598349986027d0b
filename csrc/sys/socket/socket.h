// Stream sockets as the library needs them: non-blocking, closed on exec, never a SIGPIPE, EINTR
// handled.
//
// Calls that move data return 0 when they would have to wait, kPeerLost (without a rank, which only
// the caller knows) when the connection is gone, whichever way it went, and kTimeout when it was
// given up as nothing came from the other host any more. Those that take a Deadline wait.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// For TCP sockets, which all get TCP_NODELAY; unix sockets heed buffer_bytes only.
struct StreamOptions {
    /// Wished for in each direction; 0 leaves the system's own tuning. The system may grant less.
    std::size_t buffer_bytes = 0;
    /// As for give_up_after(); 0: never.
    std::chrono::milliseconds give_up{30'000};
};

/// The connection breaks once the peer's host has given no sign of life for so long, idle or not.
/// A peer that does not read what was sent counts as silent too: for sockets that are always read.
PCCL_API void give_up_after(int fd, std::chrono::milliseconds silence);

/// Listens at `address` (port 0: any free one); `buffer_bytes` holds for the accepted sockets too.
[[nodiscard]] PCCL_API Result<UniqueFd> listen_on(const Address& address,
                                                  const StreamOptions& options = {});
/// The next waiting connection, if there is one. kResourceExhausted when descriptors ran out.
[[nodiscard]] PCCL_API Result<std::optional<UniqueFd>> accept_next(
    int listener, const StreamOptions& options = {});
/// A socket that can connect to `address`; goes with connect_step().
[[nodiscard]] PCCL_API Result<UniqueFd> make_socket(const Address& address,
                                                    const StreamOptions& options = {});
/// Starts or carries on connecting; true once connected. kUnavailable when nobody listens there.
[[nodiscard]] PCCL_API Result<bool> connect_step(int fd, const Address& address);
[[nodiscard]] PCCL_API Result<UniqueFd> connect_to(const Address& address, Deadline deadline,
                                                   const StreamOptions& options = {});
/// All addresses of a host name or literal, in the resolver's order. May block on the network.
[[nodiscard]] PCCL_API Result<std::vector<Address>> resolve(const std::string& host,
                                                            std::uint16_t port);

[[nodiscard]] PCCL_API Result<Address> local_address(int fd);
[[nodiscard]] PCCL_API Result<Address> peer_address(int fd);
/// Payload that the send buffer takes without the peer reading: the system counts its own overhead
/// too.
[[nodiscard]] PCCL_API std::size_t granted_send_buffer(int fd);

/// Of what was sent, the bytes that have not left yet; 0 where the system does not say.
[[nodiscard]] PCCL_API std::size_t unsent_bytes(int fd);
/// Makes a socket that has been found full ready for output when fewer bytes than these have not
/// left, and not before; it may take as much again.
PCCL_API void notify_once_unsent_below(int fd, std::size_t bytes);

/// kDelayed: what was received is acknowledged with more of it, or after 40 ms, from when on the
/// kernel goes back to kAtOnce.
enum class Acknowledge : bool { kDelayed, kAtOnce };
PCCL_API void acknowledge(int fd, Acknowledge when);

/// Sends from up to IOV_MAX pieces what fits now.
[[nodiscard]] PCCL_API Result<std::size_t> send_some(int fd, std::span<const iovec> pieces);
[[nodiscard]] PCCL_API Result<std::size_t> send_some(int fd, std::span<const std::byte> bytes);
[[nodiscard]] PCCL_API Result<std::size_t> receive_some(int fd, std::span<std::byte> into);
/// Fills the pieces in their order.
[[nodiscard]] PCCL_API Result<std::size_t> receive_some(int fd, std::span<const iovec> pieces);
[[nodiscard]] PCCL_API Status send_all(int fd, std::span<const std::byte> bytes, Deadline deadline);
[[nodiscard]] PCCL_API Status receive_all(int fd, std::span<std::byte> into, Deadline deadline);
/// Whether the peer has closed its end; takes nothing from the stream.
[[nodiscard]] PCCL_API bool peer_has_closed(int fd);
/// Ends both directions; the descriptor stays open, so that other threads may still hold it.
PCCL_API void shut_down(int fd);
/// The same. What the peer takes nothing of for `silence` is forgotten: the kernel would keep it
/// for minutes where the peer's host is cut off, and for ever where the peer has stopped.
PCCL_API void abandon(int fd, std::chrono::milliseconds silence);

struct Interest {
    int fd = -1;  // -1 is skipped
    bool input = false;
    bool output = false;
};
/// Waits until one is ready or broken, at most `longest`; false when the time passed.
PCCL_API bool wait_for_any(std::span<const Interest> interests, Duration longest);

}  // namespace pccl::sys
