// SPDX-License-Identifier: Apache-2.0

// Purposes of the sockets of a TCP link.
#pragma once

#include <cstdint>

#include "csrc/transport/tcp/wire.h"

namespace pccl::transport::tcp {

inline SocketPurpose purpose(std::uint32_t index, std::uint32_t data_sockets = 2) {
    return {.link = {9}, .index = index, .data_sockets = data_sockets, .block_bytes = 1024};
}

}  // namespace pccl::transport::tcp
