// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/handshake_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/handshake_messages.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/cpp/transport/handshakes.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/loopback/manual_clock.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using handshake::ClientHello;
using handshake::ClientProof;
using handshake::ServerProof;
using handshake::ServerVerdict;
using handshake::Transcript;
using testing::HasSubstr;

TEST_F(HandshakeTest, AClientThatLeavesIsForgotten) {
    for (const bool sends_hello : {false, true}) {
        UniqueFd client = raw_client();
        if (sends_hello) converse(client, hello(1));
        client.reset();
        serve_until_refused(sends_hello ? 2 : 1);
    }
    EXPECT_EQ(server_->pending(), 0U);
}

TEST_F(HandshakeTest, AHalfOpenHandshakeIsRefusedInTheEnd) {
    loopback::ManualClock clock;
    listen({.timeout = std::chrono::seconds(5), .clock = &clock});
    const UniqueFd silent = raw_client();
    const UniqueFd halfway = raw_client();
    converse(halfway, hello(1));
    serve_until([&] { return server_->pending() == 2; });
    clock.advance(std::chrono::milliseconds(4999));
    advance();
    EXPECT_EQ(server_->pending(), 2U);
    clock.advance(std::chrono::milliseconds(1));
    advance();
    EXPECT_EQ(server_->pending(), 0U);
    ASSERT_EQ(receptionist_.refusals.size(), 2U);
    EXPECT_EQ(receptionist_.refusals[0].code(), StatusCode::kTimeout);
}

TEST_F(HandshakeTest, ItsDescriptorWakesAtTheTimeout) {
    listen({.timeout = std::chrono::milliseconds(50)});
    const UniqueFd silent = raw_client();
    serve_until_refused();
    EXPECT_EQ(server_->pending(), 0U);
}

TEST_F(HandshakeTest, AFloodOfSilentClientsDelaysOthersButKeepsNobodyOut) {
    listen({.most_pending = 4,
            .timeout = std::chrono::hours(1),
            .timeout_when_crowded = std::chrono::milliseconds(20)});
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 20; ++i) silent.push_back(raw_client());
    std::atomic<bool> done{false};
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        status = connect_authenticated({server_->address(), kSecret}, {&one, 1}, test_deadline())
                     .status();
        done = true;
    });
    std::size_t most = 0;
    serve_until([&] {
        most = std::max(most, server_->pending());
        return done.load();
    });
    client.join();
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    EXPECT_LE(most, 4U);
    EXPECT_GE(receptionist_.refusals.size(), 16U);
}

TEST_F(HandshakeTest, SilentClientsMakeWayAtOnce) {
    loopback::ManualClock clock;
    for (const std::size_t most : {1U, 4U}) {
        listen(
            {.most_pending = most, .timeout_when_crowded = std::chrono::hours(1), .clock = &clock});
        std::vector<UniqueFd> silent;
        for (int i = 0; i < 300; ++i) silent.push_back(raw_client());
        EXPECT_TRUE(connects()) << most;
    }
}

TEST_F(HandshakeTest, AnActivePeerDoesNotMakeWayForTheSilent) {
    loopback::ManualClock clock;
    listen({.most_pending = 2,
            .timeout = std::chrono::hours(1),
            .timeout_when_crowded = std::chrono::milliseconds(20),
            .clock = &clock});
    const std::array<UniqueFd, 2> active{raw_client(), raw_client()};
    std::vector<Transcript> transcripts;
    for (const UniqueFd& each : active) transcripts.push_back(converse(each, hello(1)));
    clock.advance(std::chrono::minutes(1));  // their proofs are long under way
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 50; ++i) silent.push_back(raw_client());
    serve_until_refused(50);
    for (std::size_t i = 0; i < active.size(); ++i) {
        send(active[i], proof(transcripts[i], kSecret));
        EXPECT_EQ(receive<ServerVerdict>(active[i]), ServerVerdict::kAccepted);
    }
}

TEST_F(HandshakeTest, ClientsThatStopHalfwayMakeWaySoon) {
    listen({.most_pending = 4,
            .timeout = std::chrono::hours(1),
            .timeout_when_crowded = std::chrono::milliseconds(1)});
    std::vector<UniqueFd> halfway;
    for (int i = 0; i < 100; ++i) {
        halfway.push_back(raw_client());
        send(halfway.back(), hello(1));
    }
    EXPECT_TRUE(connects());
}

TEST_F(HandshakeTest, AClientThatIsPutOffBeginsAgain) {
    const auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value());
    const ConnectArgs args{.address = sys::local_address(listener->get()).value(),
                           .secret = kSecret};
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        status = connect_authenticated(args, {&one, 1}, test_deadline()).status();
    });
    const auto next = [&] {
        auto accepted = sys::accept_next(listener->get());
        while (!accepted->has_value()) accepted = sys::accept_next(listener->get());
        return std::move(**accepted);
    };
    const auto take = [&](const UniqueFd& from, auto message) {
        const auto into = std::as_writable_bytes(std::span(&message, 1));
        EXPECT_TRUE(sys::receive_all(from.get(), into, test_deadline()).is_ok());
        return message;
    };
    const auto prove_to = [&](const UniqueFd& to) {
        const Transcript transcript{take(to, ClientHello{}), {}, {}};
        send(to, ServerProof{handshake::kMagic,
                             {},
                             handshake::prove(kSecret, handshake::kServerLabel, transcript)});
    };
    {
        const UniqueFd silent = next();  // before its hello is read
        send(silent, handshake::kBusy);
    }
    {
        const UniqueFd halfway = next();
        prove_to(halfway);
        send(halfway, ServerVerdict::kPutOff);
    }
    const UniqueFd third = next();
    prove_to(third);
    take(third, ClientProof{});
    send(third, ServerVerdict::kAccepted);
    client.join();
    EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_F(HandshakeTest, AClientThatIsAlwaysPutOffReportsIt) {
    const auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value());
    const ConnectArgs args{.address = sys::local_address(listener->get()).value(),
                           .secret = kSecret};
    std::atomic<bool> done{false};
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        const Deadline deadline = Deadline::after(std::chrono::milliseconds(100));
        status = connect_authenticated(args, {&one, 1}, deadline).status();
        done = true;
    });
    while (!done) {
        const auto accepted = sys::accept_next(listener->get());
        if (accepted->has_value()) send(**accepted, handshake::kBusy);
    }
    client.join();
    EXPECT_EQ(status.code(), StatusCode::kTimeout) << status.to_string();
    EXPECT_THAT(status.message(), HasSubstr("others crowd it"));
}

TEST_F(HandshakeTest, AProcessOfFewDescriptorsServesFewAtOnce) {
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit few{.rlim_cur = 128, .rlim_max = usual.rlim_max};
    {
        ::setrlimit(RLIMIT_NOFILE, &few);
        const ScopeExit lifted([&] { ::setrlimit(RLIMIT_NOFILE, &usual); });
        listen({});
    }
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 20; ++i) silent.push_back(raw_client());
    for (int i = 0; i < 20; ++i) advance();
    EXPECT_EQ(server_->pending(), 16U);
}

TEST_F(HandshakeTest, AnotherUserOfThisHostHoldsNoSlot) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user as well";
    server_ = std::move(HandshakeServer::listen(unix_address("users"),
                                                {.transport_name = "shm",
                                                 .most_pending = 4,
                                                 .timeout = std::chrono::hours(1),
                                                 .timeout_when_crowded = std::chrono::hours(1)})
                            .value());
    constexpr std::size_t kConnections = 100;
    const Stranger stranger([this] {
        static std::vector<UniqueFd> held;
        for (std::size_t i = 0; i < kConnections; ++i)
            held.push_back(std::move(sys::connect_to(server_->address(), test_deadline()).value()));
    });
    serve_until_refused(kConnections);
    EXPECT_EQ(server_->pending(), 0U);
    for (const Status& refusal : receptionist_.refusals) {
        EXPECT_THAT(refusal.message(), HasSubstr("another user"));
        EXPECT_EQ(refusal.process().host, "this host, user 65534");
    }
    std::atomic<bool> done{false};
    Status status;
    std::thread client([&] {
        const auto one = introduction(0);
        status = connect_authenticated({server_->address(), kSecret}, {&one, 1}, test_deadline())
                     .status();
        done = true;
    });
    serve_until([&] { return done.load(); });
    client.join();
    EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_F(HandshakeTest, AFullServerDoesNotSpin) {
    listen({.most_pending = 1,
            .timeout = std::chrono::hours(1),
            .timeout_when_crowded = std::chrono::hours(1)});
    const UniqueFd first = raw_client();
    serve_until([&] { return server_->pending() == 1; });
    const UniqueFd second = raw_client();
    advance();
    pollfd polled{.fd = server_->poll_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 50), 0) << "nothing can be done, so nobody should be woken";
}

/// The server's end of a connection, once more, as a child of fork() has it.
UniqueFd copy_of_other_end(const UniqueFd& client) {
    const std::string mine = sys::local_address(client.get())->to_string();
    for (int fd = 0; fd < 1024; ++fd) {
        const auto peer = sys::peer_address(fd);
        if (peer.is_ok() && peer->to_string() == mine) return UniqueFd(::dup(fd));
    }
    return {};
}

TEST_F(HandshakeTest, WhoeverWasLeftIsNotServedThroughACopyOfItsDescriptor) {
    loopback::ManualClock clock;
    listen({.most_pending = 1, .timeout = std::chrono::hours(1), .clock = &clock});
    const UniqueFd first = raw_client();
    serve_until([&] { return server_->pending() == 1; });
    const UniqueFd copy = copy_of_other_end(first);
    ASSERT_TRUE(copy.is_open());
    const UniqueFd second = raw_client();
    advance();  // the first makes way
    ASSERT_EQ(receptionist_.refusals.size(), 1U);
    send(first, hello(1));
    const UniqueFd copy_of_second = copy_of_other_end(second);
    clock.advance(std::chrono::hours(1));
    advance();  // the second has taken too long
    ASSERT_EQ(server_->pending(), 0U);
    send(second, hello(1));
    pollfd polled{.fd = server_->poll_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&polled, 1, 50), 0) << "neither has a handshake any more";
}

TEST_F(HandshakeTest, WithoutDescriptorsItServesOnePeerAtATime) {
    const UniqueFd first = raw_client();
    const UniqueFd second = raw_client();
    const fakes::NoDescriptors none;
    for (const UniqueFd* client : {&first, &second}) {
        send(*client, proof(converse(*client, hello(1)), kSecret));
        serve_until([&] { return welcomed_.size() == 1; });
        EXPECT_EQ(server_->shortage().code(), StatusCode::kResourceExhausted);
        EXPECT_THAT(server_->shortage().message(), HasSubstr("ulimit -n"));
        welcomed_.clear();
    }
    advance();
    EXPECT_TRUE(server_->shortage().is_ok());
}

TEST_F(HandshakeTest, WithoutDescriptorsItIsNotKeptByThoseWhoHaveHungUp) {
    constexpr int kGone = 10;
    for (int i = 0; i < kGone; ++i) static_cast<void>(raw_client());
    const UniqueFd client = raw_client();
    const fakes::NoDescriptors none;
    advance();
    const auto gone = std::ranges::count_if(receptionist_.refusals, [](const Status& why) {
        return why.message().ends_with("the connection was closed");
    });
    EXPECT_EQ(gone, kGone);
    send(client, proof(converse(client, hello(1)), kSecret));
    serve_until([&] { return welcomed_.size() == 1; });
}

TEST_F(HandshakeTest, WithDescriptorsLeftNothingIsShort) {
    const UniqueFd client = raw_client();
    send(client, proof(converse(client, hello(1)), kSecret));
    serve_until([&] { return welcomed_.size() == 1; });
    EXPECT_TRUE(server_->shortage().is_ok());
}

}  // namespace
}  // namespace pccl::transport
