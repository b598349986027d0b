// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/handshake_server.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/cpp/transport/handshakes.h"
#include "tests/fakes/deadlines.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using handshake::ClientHello;
using handshake::ClientProof;
using handshake::ServerProof;
using handshake::ServerVerdict;
using testing::HasSubstr;

TEST_F(HandshakeTest, TheClientLeavesAServerWithoutTheSecret) {
    Secret other = kSecret;
    other[31] = 1;
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        status =
            connect_authenticated({server_->address(), other}, {&one, 1}, test_deadline()).status();
    });
    serve_until_refused();
    client.join();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 5);
    EXPECT_THAT(status.message(), HasSubstr("does not prove the secret"));
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, AServersProofSentBackProvesNothing) {
    const UniqueFd client = raw_client();
    send(client, hello(1));
    const auto answer = receive<ServerProof>(client);
    send(client, ClientProof{{}, answer.proof});
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kRefused);
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, ARecordedServerDoesNotFoolAClient) {
    const UniqueFd spy = raw_client();
    send(spy, hello(1));
    const auto recorded = receive<ServerProof>(spy);
    const auto impostor = sys::listen_on(sys::Address::parse("127.0.0.1:0").value());
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        status = connect_authenticated({sys::local_address(impostor->get()).value(), kSecret},
                                       {&one, 1}, test_deadline())
                     .status();
    });
    std::optional<UniqueFd> victim;
    while (!victim) victim = std::move(sys::accept_next(impostor->get()).value());
    ClientHello ignored{};
    ASSERT_TRUE(sys::receive_all(victim->get(), std::as_writable_bytes(std::span(&ignored, 1)),
                                 test_deadline())
                    .is_ok());
    send(*victim, recorded);
    client.join();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
    std::array<std::byte, 1> more{};
    EXPECT_FALSE(sys::receive_all(victim->get(), more, test_deadline()).is_ok())
        << "the client must not go on to prove itself";
}

TEST_F(HandshakeTest, TheClientLeavesAServerOfAnotherUser) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user as well";
    const sys::Address address = unix_address("impostor");
    const Stranger stranger([&] {
        static const auto listener = sys::listen_on(address);
        static_cast<void>(listener);
    });
    const auto one = introduction(0);
    Status status;
    const Deadline deadline = test_deadline();
    do {  // until it listens
        status = connect_authenticated({address, kSecret}, {&one, 1}, test_deadline()).status();
    } while (status.code() == StatusCode::kPeerLost && !deadline.passed());
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("runs as user 65534, this one as 0"));
}

TEST_F(HandshakeTest, ConnectingGivesUpAtItsDeadline) {
    const auto one = introduction(0);
    const auto sockets = connect_authenticated({server_->address(), kSecret}, {&one, 1},
                                               Deadline::after(std::chrono::milliseconds(50)));
    EXPECT_EQ(sockets.status().code(), StatusCode::kTimeout);
    EXPECT_EQ(sockets.status().peer(), 5);
}

TEST_F(HandshakeTest, WorksOverUnixSocketsEvenWhenTheQueueIsFull) {
    const auto name =
        sys::Address::from_unix_name("pccl-handshake-test-" + std::to_string(::getpid()));
    server_ = std::move(HandshakeServer::listen(name.value(), {.transport_name = "shm"}).value());
    constexpr int kClients = 40;
    std::atomic<int> done{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) {
        clients.emplace_back([&, i] {
            const std::vector<Introduction> several(3, introduction(i));
            const auto sockets =
                connect_authenticated({server_->address(), kSecret}, several, test_deadline());
            EXPECT_TRUE(sockets.is_ok()) << sockets.status().to_string();
            ++done;
        });
    }
    serve_until([&] { return done == kClients; });
    for (std::thread& client : clients) client.join();
    EXPECT_EQ(welcomed_.size(), 3U * kClients);
    EXPECT_TRUE(receptionist_.refusals.empty());
}

}  // namespace
}  // namespace pccl::transport
