// SPDX-License-Identifier: Apache-2.0

// A link, for tests that may wait for it.
#pragma once

#include <chrono>
#include <memory>

#include "csrc/transport/transport.h"

namespace pccl::fakes {

/// Connects until the link is open, at most until `deadline`: then what
/// PendingConnect::timeout_error() says.
inline Result<std::unique_ptr<transport::SendLink>> connect(transport::Transport& transport,
                                                            const transport::PeerAddress& peer,
                                                            const transport::LinkRequest& request,
                                                            const transport::Secret& secret,
                                                            Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto pending_connect, transport.connect(peer, request, secret));
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(auto link, pending_connect->advance());
        if (link != nullptr) return link;
        if (deadline.passed()) return pending_connect->timeout_error();
        system_clock().sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace pccl::fakes
