// SPDX-License-Identifier: Apache-2.0

// Options of the sockets that carry messages.
#pragma once

#include "csrc/base/config.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::nccl {

/// The kernel tunes the buffers, as for NCCL's own sockets. A limit of silence would break the
/// connection to a peer that does not read for a while (transport/tcp/path_health.h has another
/// one).
inline constexpr sys::StreamOptions kDataStream{.buffer_bytes = 0, .give_up = {}};

/// Breaks an idle connection once the peer's host has been silent for the job's limit.
inline void probe_data_socket(int socket) {
    sys::probe_when_idle(socket, process_config().peer_timeout);
}

}  // namespace pccl::nccl
