// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

/// Buffer for kMostDescriptors in a control message, with the alignment that the kernel requires.
union ControlBuffer {
    cmsghdr header;
    std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> bytes;
};

std::vector<UniqueFd> take_descriptors(msghdr& message) {
    std::vector<UniqueFd> taken;
    for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
         control = CMSG_NXTHDR(&message, control)) {
        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(control) + i * sizeof fd, sizeof fd);
            taken.emplace_back(fd);
        }
    }
    return taken;
}

Status lost(std::string_view why) {
    return Status::peer_lost(kNoRank, concat("while passing descriptors: ", why));
}

}  // namespace

Result<bool> send_descriptors(int socket, std::byte tag, std::span<const int> descriptors) {
    if (descriptors.size() > kMostDescriptors)
        return Status::invalid_argument(
            concat("at most ", kMostDescriptors, " descriptors at once"));
    iovec piece{&tag, 1};
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
        message.msg_control = control.bytes.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    ssize_t sent = -1;
    do {
        sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    if (errno == EPIPE || errno == ECONNRESET) return lost("the peer closed its socket");
    return Status::from_errno(errno, "cannot pass descriptors");
}

Result<std::optional<FdMessage>> receive_descriptors(int socket) {
    FdMessage fd_message;
    iovec piece{&fd_message.tag, 1};
    ControlBuffer control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    ssize_t received = -1;
    do {
        received = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return std::optional<FdMessage>();
    if (received < 0) return lost(Status::from_errno(errno, "cannot receive").message());
    fd_message.descriptors = take_descriptors(message);
    if (received == 0) return lost("the peer closed its socket");
    const bool is_cut_short = (message.msg_flags & MSG_CTRUNC) != 0;
    if (is_cut_short && fd_message.descriptors.size() < kMostDescriptors)
        return Status::from_errno(EMFILE, "cannot take descriptors from a peer");
    if (is_cut_short) return lost("the peer sent too many");
    return std::optional(std::move(fd_message));
}

Result<Credentials> peer_credentials(int socket) {
    ucred raw{};
    socklen_t size = sizeof raw;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &raw, &size) != 0)
        return Status::from_errno(errno,
                                  "cannot read the credentials of the peer of a unix socket");
    return Credentials{.pid = raw.pid, .uid = raw.uid};
}

}  // namespace pccl::sys
