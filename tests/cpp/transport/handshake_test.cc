// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/transport/control/handshake_messages.h"
#include "csrc/transport/control/handshake_server.h"
#include "tests/cpp/transport/group_identity.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/loopback/manual_clock.h"
#include "tests/fakes/no_descriptors.h"

namespace pccl::transport {
namespace {

using fakes::test_deadline;
using handshake::ClientHello;
using handshake::ClientProof;
using handshake::ServerProof;
using handshake::Transcript;
using handshake::Verdict;
using testing::HasSubstr;

class HandshakeReceptionist final : public HandshakeHost {
   public:
    std::optional<Secret> secret_of(const GroupId& group) override {
        if (group != kGroup) return std::nullopt;
        return kSecret;
    }
    void refused(std::string_view, const Status& why) override { refusals.push_back(why); }

    std::vector<Status> refusals;
};

class HandshakeTest : public testing::Test {
   protected:
    struct Welcomed {
        UniqueFd socket;
        Introduction introduction;
    };

    void SetUp() override { listen({}); }
    void listen(HandshakeServerOptions options) {
        auto made = HandshakeServer::listen(sys::Address::parse("127.0.0.1:0").value(), options);
        ASSERT_TRUE(made.is_ok()) << made.status().to_string();
        server_ = std::move(made.value());
    }
    void advance() {
        server_->advance(receptionist_, [this](UniqueFd socket, const Introduction& introduction) {
            welcomed_.push_back({std::move(socket), introduction});
        });
    }
    /// Serves until `done`, waiting for news like a transport's owner does.
    void serve_until(const std::function<bool()>& done) {
        const Deadline deadline = test_deadline();
        while (!done() && !deadline.passed()) {
            pollfd polled{.fd = server_->poll_fd(), .events = POLLIN, .revents = 0};
            if (::poll(&polled, 1, 20) > 0) advance();
        }
        ASSERT_TRUE(done());
    }
    void serve_until_refused(std::size_t count = 1) {
        serve_until([&] { return receptionist_.refusals.size() >= count; });
    }

    /// Whether a client with the secret is let in.
    bool connects() {
        std::atomic<bool> done{false};
        Status status;
        std::thread client([&] {
            const Introduction one{.request = {.group = kGroup, .destination = 5}};
            status =
                connect_authenticated({server_->address(), kSecret}, {&one, 1}, test_deadline())
                    .status();
            done = true;
        });
        serve_until([&] { return done.load(); });
        client.join();
        return status.is_ok();
    }

    UniqueFd raw_client() {
        return std::move(sys::connect_to(server_->address(), test_deadline()).value());
    }
    static ClientHello hello(std::uint8_t nonce, const GroupId& group = kGroup) {
        ClientHello message{handshake::kMagic, handshake::kVersion, group, {}};
        message.nonce.fill(nonce);
        return message;
    }
    template <typename Message>
    static void send(const UniqueFd& fd, const Message& message) {
        ASSERT_TRUE(sys::send_all(fd.get(), handshake::bytes_of(message), test_deadline()).is_ok());
    }
    template <typename Message>
    Message receive(const UniqueFd& fd) {
        Message message{};
        const auto into = std::as_writable_bytes(std::span(&message, 1));
        std::size_t got = 0;
        serve_until([&] {
            const auto more = sys::receive_some(fd.get(), into.subspan(got));
            if (!more.is_ok()) return true;
            got += more.value();
            return got == into.size();
        });
        EXPECT_EQ(got, sizeof message) << "the server closed";
        return message;
    }
    static ClientProof proof(const Transcript& transcript, const Secret& secret) {
        return {transcript.request, handshake::prove(secret, handshake::kClientLabel, transcript)};
    }
    /// Says hello and reads the answer, so that only the client's proof is missing.
    Transcript converse(const UniqueFd& fd, const ClientHello& client_hello) {
        send(fd, client_hello);
        return {client_hello, receive<ServerProof>(fd).nonce, {1, 2, 0, 4, 0, 0, 0, 0, {}}};
    }

    HandshakeReceptionist receptionist_;
    std::vector<Welcomed> welcomed_;
    std::unique_ptr<HandshakeServer> server_;
};

Introduction introduction(Rank source) {
    Introduction made{.request = {.group = kGroup,
                                  .source = source,
                                  .destination = 5,
                                  .channel = 3,
                                  .group_size = 9,
                                  .generation = 7},
                      .service = Service::kNotice,
                      .transport = 2};
    for (std::size_t i = 0; i < made.purpose.size(); ++i)
        made.purpose[i] = static_cast<std::uint8_t>(i + 100);
    return made;
}

TEST_F(HandshakeTest, CarriesTheIntroductionsOfAllSocketsInOrder) {
    const std::vector<Introduction> sent{introduction(0), introduction(1), introduction(2)};
    Result<std::vector<UniqueFd>> sockets = std::vector<UniqueFd>{};
    std::atomic<bool> connected{false};
    std::thread client([&] {
        sockets = connect_authenticated({server_->address(), kSecret}, sent, test_deadline());
        connected = true;
    });
    serve_until([&] { return connected.load(); });
    client.join();
    ASSERT_TRUE(sockets.is_ok()) << sockets.status().to_string();
    ASSERT_EQ(sockets->size(), 3U);
    ASSERT_EQ(welcomed_.size(), 3U);
    EXPECT_EQ(server_->pending(), 0U);
    for (const Welcomed& guest : welcomed_) {
        const LinkRequest& request = guest.introduction.request;
        EXPECT_EQ(request.group, kGroup);
        EXPECT_EQ(request.destination, 5);
        EXPECT_EQ(request.channel, 3);
        EXPECT_EQ(request.group_size, 9);
        EXPECT_EQ(request.generation, 7U);
        EXPECT_EQ(guest.introduction.service, Service::kNotice);
        EXPECT_EQ(guest.introduction.transport, 2);
        EXPECT_EQ(guest.introduction.purpose, sent[0].purpose);
        // The stream after the handshake starts clean.
        const std::byte mark{static_cast<unsigned char>(request.source + 40)};
        send((*sockets)[static_cast<std::size_t>(request.source)], mark);
        std::byte received{};
        ASSERT_TRUE(sys::receive_all(guest.socket.get(), {&received, 1}, test_deadline()).is_ok());
        EXPECT_EQ(received, mark);
    }
}

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

TEST_F(HandshakeTest, TheServerRefusesAClientWithoutTheSecret) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1));
    send(client, proof(transcript, {9, 9, 9}));
    EXPECT_EQ(receive<Verdict>(client), Verdict::kRefused);
    serve_until_refused();
    EXPECT_TRUE(welcomed_.empty());
    EXPECT_TRUE(sys::peer_has_closed(client.get()));
}

TEST_F(HandshakeTest, AProofIsGoodForItsOwnRequestOnly) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1));
    ClientProof tampered = proof(transcript, kSecret);
    tampered.request.source += 1;
    send(client, tampered);
    EXPECT_EQ(receive<Verdict>(client), Verdict::kRefused);
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, AServersProofSentBackProvesNothing) {
    const UniqueFd client = raw_client();
    send(client, hello(1));
    const auto answer = receive<ServerProof>(client);
    send(client, ClientProof{{}, answer.proof});
    EXPECT_EQ(receive<Verdict>(client), Verdict::kRefused);
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, ARecordedExchangeProvesNothing) {
    const UniqueFd first = raw_client();
    const Transcript transcript = converse(first, hello(1));
    const ClientProof recorded = proof(transcript, kSecret);
    send(first, recorded);
    EXPECT_EQ(receive<Verdict>(first), Verdict::kAccepted);
    ASSERT_EQ(welcomed_.size(), 1U);

    const UniqueFd second = raw_client();
    const Transcript again = converse(second, hello(1));
    EXPECT_NE(again.server_nonce, transcript.server_nonce);
    send(second, recorded);
    EXPECT_EQ(receive<Verdict>(second), Verdict::kRefused);
    EXPECT_EQ(welcomed_.size(), 1U);
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

TEST_F(HandshakeTest, AnUnknownGroupLooksLikeAWrongSecret) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1, {1}));
    send(client, proof(transcript, kSecret));
    EXPECT_EQ(receive<Verdict>(client), Verdict::kRefused);
    serve_until_refused();
    const UniqueFd known = raw_client();
    send(known, proof(converse(known, hello(1)), {4}));
    EXPECT_EQ(receive<Verdict>(known), Verdict::kRefused);
    serve_until_refused(2);
    // Only this process's own log tells them apart.
    EXPECT_THAT(receptionist_.refusals[0].message(),
                HasSubstr("a group that this process is not in"));
    EXPECT_THAT(receptionist_.refusals[1].message(), HasSubstr("does not prove the secret"));
}

TEST_F(HandshakeTest, GarbageIsRefusedAtTheFirstMessage) {
    const std::string request =
        "GET / HTTP/1.1\r\nHost: somewhere\r\nAccept: */*\r\n\r\n" + std::string(100, ' ');
    const UniqueFd client = raw_client();
    ASSERT_TRUE(
        sys::send_all(client.get(), std::as_bytes(std::span(request)), test_deadline()).is_ok());
    serve_until_refused();
    EXPECT_THAT(receptionist_.refusals[0].message(), HasSubstr("does not speak PCCL's protocol"));
    EXPECT_THAT(receptionist_.refusals[0].message(), HasSubstr("127.0.0.1:"));
}

TEST_F(HandshakeTest, AnotherVersionIsNamed) {
    ClientHello other = hello(1);
    other.version = 99;
    const UniqueFd client = raw_client();
    send(client, other);
    serve_until_refused();
    EXPECT_THAT(receptionist_.refusals[0].message(), HasSubstr("version 99"));
}

TEST_F(HandshakeTest, AServiceThatThisVersionDoesNotKnowIsRefused) {
    const UniqueFd client = raw_client();
    Transcript transcript = converse(client, hello(1));
    transcript.request.service = 200;
    send(client, proof(transcript, kSecret));
    serve_until_refused();
    EXPECT_THAT(receptionist_.refusals[0].message(), HasSubstr("service 200"));
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, AFloodOfBytesIsNotReadPastTheProof) {
    const UniqueFd client = raw_client();
    converse(client, hello(1));
    const std::vector<std::byte> flood(1 << 20, std::byte{0x41});
    ASSERT_TRUE(sys::send_some(client.get(), flood).is_ok());
    serve_until_refused();
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, WhatFollowsTheProofStaysInTheStream) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1));
    send(client, proof(transcript, kSecret));
    const std::array<std::byte, 3> early{std::byte{1}, std::byte{2}, std::byte{3}};
    send(client, early);
    EXPECT_EQ(receive<Verdict>(client), Verdict::kAccepted);
    std::array<std::byte, 3> received{};
    ASSERT_TRUE(sys::receive_all(welcomed_.at(0).socket.get(), received, test_deadline()).is_ok());
    EXPECT_EQ(received, early);
}

TEST_F(HandshakeTest, ASlowClientIsServedByteByByte) {
    const UniqueFd client = raw_client();
    const auto trickle = [&](std::span<const std::byte> bytes) {
        for (const std::byte& byte : bytes) {
            ASSERT_TRUE(sys::send_all(client.get(), {&byte, 1}, test_deadline()).is_ok());
            advance();
        }
    };
    const ClientHello client_hello = hello(1);
    trickle(handshake::bytes_of(client_hello));
    const Transcript transcript{
        client_hello, receive<ServerProof>(client).nonce, {4, 2, 0, 4, 0, 0, 0, 0, {}}};
    const ClientProof last = proof(transcript, kSecret);
    trickle(handshake::bytes_of(last));
    EXPECT_EQ(receive<Verdict>(client), Verdict::kAccepted);
    EXPECT_EQ(welcomed_.at(0).introduction.request.source, 4);
}

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

TEST_F(HandshakeTest, WhoHasSpokenDoesNotMakeWayForTheSilent) {
    loopback::ManualClock clock;
    listen({.most_pending = 2,
            .timeout = std::chrono::hours(1),
            .timeout_when_crowded = std::chrono::milliseconds(20),
            .clock = &clock});
    const std::array<UniqueFd, 2> speaking{raw_client(), raw_client()};
    std::vector<Transcript> transcripts;
    for (const UniqueFd& each : speaking) transcripts.push_back(converse(each, hello(1)));
    clock.advance(std::chrono::minutes(1));  // their proofs are long under way
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 50; ++i) silent.push_back(raw_client());
    serve_until_refused(50);
    for (std::size_t i = 0; i < speaking.size(); ++i) {
        send(speaking[i], proof(transcripts[i], kSecret));
        EXPECT_EQ(receive<Verdict>(speaking[i]), Verdict::kAccepted);
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
        send(halfway, Verdict::kPutOff);
    }
    const UniqueFd third = next();
    prove_to(third);
    take(third, ClientProof{});
    send(third, Verdict::kAccepted);
    client.join();
    EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_F(HandshakeTest, AClientThatIsAlwaysPutOffTellsSo) {
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

TEST_F(HandshakeTest, AnotherProgramIsKnownByItsFirstBytes) {
    const auto listener = sys::listen_on(sys::Address::parse("127.0.0.1:0").value());
    const auto address = sys::local_address(listener->get()).value();
    for (const StatusCode code : {StatusCode::kPeerLost, StatusCode::kInvalidArgument}) {
        Status status;
        std::thread client([&] {
            const auto one = introduction(0);
            const ConnectArgs args{.address = address, .secret = kSecret, .of_strangers = code};
            status = connect_authenticated(args, {&one, 1}, test_deadline()).status();
        });
        std::optional<UniqueFd> victim;
        while (!victim) victim = std::move(sys::accept_next(listener->get()).value());
        const std::string banner = "SSH-2.0-";
        ASSERT_TRUE(sys::send_all(victim->get(), std::as_bytes(std::span(banner)), test_deadline())
                        .is_ok());
        client.join();  // although the other says no more
        EXPECT_EQ(status.code(), code);
        EXPECT_THAT(status.message(), HasSubstr("does not speak PCCL's protocol"));
    }
}

/// A process of another user; killed in the end.
class Stranger {
   public:
    explicit Stranger(const std::function<void()>& body) : pid_(::fork()) {
        if (pid_ != 0) return;
        if (::setuid(65534) == 0) body();
        while (true) ::pause();
    }
    ~Stranger() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Stranger(const Stranger&) = delete;
    Stranger& operator=(const Stranger&) = delete;

   private:
    pid_t pid_;
};

sys::Address unix_address(const std::string& name) {
    return sys::Address::from_unix_name(concat("pccl-", name, "-", ::getpid())).value();
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
