// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/unix_socket.h"

#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"
#include "csrc/sys/socket/descriptors.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {

Result<sys::Address> fresh_unix_address() {
    std::array<std::uint8_t, 16> random{};
    PCCL_TRY(sys::fill_random(random));
    constexpr std::string_view kHex = "0123456789abcdef";
    std::string name = "pccl-";
    for (const std::uint8_t byte : random) {
        name += kHex[byte >> 4];
        name += kHex[byte & 15];
    }
    return sys::Address::from_unix_name(name);
}

Status require_same_user(int socket) {
    PCCL_ASSIGN_OR_RETURN(const sys::Credentials peer, sys::peer_credentials(socket));
    if (peer.uid == ::geteuid()) return Status::ok();
    return Status::unavailable(
        concat("process ", peer.pid, " runs as user ", peer.uid, ", this one as ", ::geteuid()));
}

Status send_fds(int socket, std::byte tag, std::span<const int> descriptors, Deadline deadline) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const bool sent, sys::send_descriptors(socket, tag, descriptors));
        if (sent) return Status::ok();
        if (deadline.passed()) return Status::timeout("timed out handing descriptors to the peer");
        const sys::Interest writable{.fd = socket, .output = true};
        sys::wait_for_any({&writable, 1}, deadline.slice());
    }
}

Result<std::optional<sys::FdMessage>> next_fds(int socket, std::byte tag) {
    auto fd_message = sys::receive_descriptors(socket);
    if (!fd_message.is_ok() || !*fd_message || (*fd_message)->tag == tag) return fd_message;
    if ((*fd_message)->tag == kShortage)
        return Status::peer_lost(kNoRank, "it has no descriptors left (ulimit -n there)");
    return Status::internal("a peer answered out of turn");
}

Result<std::vector<UniqueFd>> receive_fds(int socket, std::byte tag, Deadline deadline) {
    for (;;) {
        auto fd_message = next_fds(socket, tag);
        if (!fd_message.is_ok()) return fd_message.status();
        if (*fd_message) return std::move((*fd_message)->descriptors);
        if (deadline.passed())
            return Status::timeout("timed out waiting for the peer's descriptors");
        const sys::Interest readable{.fd = socket, .input = true};
        sys::wait_for_any({&readable, 1}, deadline.slice());
    }
}

}  // namespace pccl::transport
