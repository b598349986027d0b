// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/fd_passing.h"

#include <utility>

#include "csrc/sys/socket/socket.h"

namespace pccl::transport {

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
