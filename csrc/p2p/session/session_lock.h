// SPDX-License-Identifier: Apache-2.0

// Lock of the tables of a session: its peers, its memory and its callers.
#pragma once

#include <mutex>

#include <pccl/status.h>

namespace pccl::p2p {

/// Lock that the parts of a session share. It is locked after Listener::handshake_lock().
struct SessionLock {
    std::mutex mutex;
    bool is_closed = false;  // guarded by `mutex`

    /// Returns the error of a call on a closed session.
    [[nodiscard]] static Status closed_error() { return Status::aborted("this session is closed"); }
};

}  // namespace pccl::p2p
