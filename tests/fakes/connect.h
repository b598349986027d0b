// A link, for tests that may wait for it.
#pragma once

#include <chrono>
#include <memory>

#include "csrc/transport/transport.h"

namespace pccl::fakes {

/// Dials until the link is open, at most until `deadline`: then what Dial::late() says.
inline Result<std::unique_ptr<transport::SendLink>> connect(transport::Transport& transport,
                                                            const transport::PeerAddress& peer,
                                                            const transport::LinkRequest& request,
                                                            const transport::Secret& secret,
                                                            Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto dial, transport.connect(peer, request, secret));
    for (;;) {
        PCCL_ASSIGN_OR_RETURN(auto link, dial->advance());
        if (link != nullptr) return link;
        if (deadline.passed()) return dial->late();
        system_clock().sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace pccl::fakes
