// SPDX-License-Identifier: Apache-2.0

// Both ends of a communicator over several loopback connections, in one process.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/socket.h"
#include "plugins/nccl/recv_comm.h"
#include "plugins/nccl/send_comm.h"
#include "tests/cpp/transport/stripes.h"
#include "tests/fakes/deadlines.h"

namespace pccl::nccl {

using fakes::test_deadline;
using transport::tcp::stamped;

/// Breaks a connection at once, as a lost path does once it is found: what was not acknowledged is
/// lost.
inline void break_connection(int socket) {
    sockaddr nobody{};
    nobody.sa_family = AF_UNSPEC;
    ASSERT_EQ(::connect(socket, &nobody, sizeof nobody), 0);
}

struct CommEnds {
    explicit CommEnds(std::size_t paths) {
        std::vector<Path> near;
        std::vector<Path> far;
        for (std::size_t i = 0; i < paths; ++i) {
            auto pair = transport::tcp::tcp_pair();
            near_sockets.push_back(pair.near.get());
            far_sockets.push_back(pair.far.get());
            const std::string number = std::to_string(i);
            near.push_back(
                {.socket = std::move(pair.near),
                 .ends = {.near_interface = "a" + number, .far_interface = "b" + number}});
            far.push_back(
                {.socket = std::move(pair.far),
                 .ends = {.near_interface = "b" + number, .far_interface = "a" + number}});
        }
        send = std::make_unique<SendComm>(Paths({.rank = 3, .host = "host-b"}, std::move(near)),
                                          std::chrono::milliseconds(10'000));
        recv = std::make_unique<RecvComm>(Paths({.rank = 2, .host = "host-a"}, std::move(far)));
    }

    /// Makes progress at both ends until both requests have ended; returns the received bytes.
    std::size_t finish(Request* sent, Request* received) {
        std::size_t bytes = 0;
        for (const Deadline end = test_deadline(); sent != nullptr || received != nullptr;) {
            if (end.passed()) {
                ADD_FAILURE() << "a request does not end";
                return 0;
            }
            if (sent != nullptr && is_done(*sent)) sent = nullptr;
            if (received != nullptr && is_done(*received, &bytes)) received = nullptr;
        }
        return bytes;
    }
    static bool is_done(Request& request, std::size_t* bytes = nullptr) {
        const auto ended = Communicator::test(request);
        EXPECT_TRUE(ended.is_ok()) << ended.status().to_string();
        if (ended.is_ok() && !*ended) return false;
        if (ended.is_ok() && bytes != nullptr) *bytes = **ended;
        return true;
    }
    /// Makes progress until the request fails.
    static Status fault_of(Request& request) {
        for (const Deadline end = test_deadline(); !end.passed();)
            if (const auto ended = Communicator::test(request); !ended.is_ok())
                return ended.status();
        return Status::ok();
    }

    std::vector<int> near_sockets;
    std::vector<int> far_sockets;
    std::unique_ptr<SendComm> send;
    std::unique_ptr<RecvComm> recv;
};

}  // namespace pccl::nccl
