// SPDX-License-Identifier: Apache-2.0

// Two connected sockets, and addresses for them.
#pragma once

#include <gtest/gtest.h>

#include "csrc/sys/socket/socket.h"
#include "tests/fakes/deadlines.h"

namespace pccl::sys {

using fakes::test_deadline;

struct Connection {
    UniqueFd client;
    UniqueFd server;
};

inline Connection connected(const Address& at, const StreamOptions& options = {}) {
    UniqueFd listener = std::move(listen_on(at, options).value());
    UniqueFd client = std::move(
        connect_to(local_address(listener.get()).value(), test_deadline(), options).value());
    const Interest readable{.fd = listener.get(), .input = true};
    EXPECT_TRUE(wait_for_any({&readable, 1}, std::chrono::seconds(30)));
    UniqueFd server = std::move(accept_next(listener.get(), options).value().value());
    return {std::move(client), std::move(server)};
}

}  // namespace pccl::sys
