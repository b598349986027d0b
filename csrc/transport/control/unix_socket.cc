// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/unix_socket.h"

#include <unistd.h>

#include <array>
#include <string>

#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/hmac.h"
#include "csrc/sys/socket/descriptors.h"

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

}  // namespace pccl::transport
