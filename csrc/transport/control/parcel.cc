#include "csrc/transport/control/parcel.h"

#include <utility>

#include "csrc/sys/socket/socket.h"

namespace pccl::transport {

Status send_parcel(int socket, std::byte tag, std::span<const int> descriptors, Deadline deadline) {
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(const bool sent, sys::send_descriptors(socket, tag, descriptors));
        if (sent) return Status::ok();
        if (deadline.passed()) return Status::timeout("timed out handing descriptors to the peer");
        const sys::Interest writable{.fd = socket, .output = true};
        sys::wait_for_any({&writable, 1}, deadline.slice());
    }
}

Result<std::optional<sys::Parcel>> next_parcel(int socket, std::byte tag) {
    auto parcel = sys::receive_descriptors(socket);
    if (!parcel.is_ok() || !*parcel || (*parcel)->tag == tag) return parcel;
    if ((*parcel)->tag == kShortage)
        return Status::peer_lost(kNoRank, "it has no descriptors left (ulimit -n there)");
    return Status::internal("a peer answered out of turn");
}

Result<std::vector<UniqueFd>> receive_parcel(int socket, std::byte tag, Deadline deadline) {
    for (;;) {
        auto parcel = next_parcel(socket, tag);
        if (!parcel.is_ok()) return parcel.status();
        if (*parcel) return std::move((*parcel)->descriptors);
        if (deadline.passed())
            return Status::timeout("timed out waiting for the peer's descriptors");
        const sys::Interest readable{.fd = socket, .input = true};
        sys::wait_for_any({&readable, 1}, deadline.slice());
    }
}

}  // namespace pccl::transport
