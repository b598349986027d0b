// SPDX-License-Identifier: Apache-2.0

// One store of each kind, and paths and addresses for them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <vector>

#include <pccl/store.h>
#include "csrc/bootstrap/rendezvous/tcp_protocol.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake.h"
#include "tests/fakes/deadlines.h"

namespace pccl::bootstrap {

using fakes::test_deadline;

inline Deadline shortly() { return Deadline::after(std::chrono::milliseconds(30)); }

inline std::string fresh_path() {
    static int count = 0;
    const auto folder = std::filesystem::path(testing::TempDir());
    return folder / ("pccl-store-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
}

/// One store of each kind, as several ranks see it.
struct StoreKind {
    const char* name;
    std::function<std::vector<std::shared_ptr<Store>>(int ranks)> open;
};

class StoreTest : public testing::TestWithParam<StoreKind> {
   protected:
    std::vector<std::shared_ptr<Store>> stores_ = GetParam().open(3);
};

/// As a stranger may, where the job has no secret.
inline UniqueFd enter(const sys::Address& address) {
    const transport::Introduction introduction{.request = {.group = kStoreGroup}};
    auto sockets = transport::connect_authenticated({address, kNoStoreSecret}, {&introduction, 1},
                                                    test_deadline());
    EXPECT_TRUE(sockets.is_ok()) << sockets.status().to_string();
    return sockets.is_ok() ? std::move(sockets->front()) : UniqueFd();
}

/// It may be dropped while this still sends.
inline void send(const UniqueFd& socket, const std::string& bytes) {
    static_cast<void>(
        sys::send_all(socket.get(), std::as_bytes(std::span(bytes)), test_deadline()));
}

/// Gives the bytes that came before.
inline std::size_t expect_closed(const UniqueFd& socket) {
    const Deadline deadline = test_deadline();
    std::size_t bytes = 0;
    std::array<std::byte, 4096> piece{};
    while (!deadline.passed()) {
        const sys::Interest interest{.fd = socket.get(), .input = true};
        sys::wait_for_any({&interest, 1}, deadline.slice());
        const auto count = sys::receive_some(socket.get(), piece);
        if (!count.is_ok()) return bytes;
        bytes += *count;
    }
    ADD_FAILURE() << "the store has not closed the connection";
    return bytes;
}

}  // namespace pccl::bootstrap
