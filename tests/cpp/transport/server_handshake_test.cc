// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/control/server_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/handshake_messages.h"
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
using handshake::Transcript;
using testing::HasSubstr;

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

TEST_F(HandshakeTest, TheServerRefusesAClientWithoutTheSecret) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1));
    send(client, proof(transcript, {9, 9, 9}));
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kRefused);
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
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kRefused);
    EXPECT_TRUE(welcomed_.empty());
}

TEST_F(HandshakeTest, ARecordedExchangeProvesNothing) {
    const UniqueFd first = raw_client();
    const Transcript transcript = converse(first, hello(1));
    const ClientProof recorded = proof(transcript, kSecret);
    send(first, recorded);
    EXPECT_EQ(receive<ServerVerdict>(first), ServerVerdict::kAccepted);
    ASSERT_EQ(welcomed_.size(), 1U);

    const UniqueFd second = raw_client();
    const Transcript again = converse(second, hello(1));
    EXPECT_NE(again.server_nonce, transcript.server_nonce);
    send(second, recorded);
    EXPECT_EQ(receive<ServerVerdict>(second), ServerVerdict::kRefused);
    EXPECT_EQ(welcomed_.size(), 1U);
}

TEST_F(HandshakeTest, AnUnknownGroupLooksLikeAWrongSecret) {
    const UniqueFd client = raw_client();
    const Transcript transcript = converse(client, hello(1, {1}));
    send(client, proof(transcript, kSecret));
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kRefused);
    serve_until_refused();
    const UniqueFd known = raw_client();
    send(known, proof(converse(known, hello(1)), {4}));
    EXPECT_EQ(receive<ServerVerdict>(known), ServerVerdict::kRefused);
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
    EXPECT_THAT(receptionist_.refusals[0].message(), HasSubstr("does not use PCCL's protocol"));
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

TEST_F(HandshakeTest, AnUnknownServiceIsRefused) {
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
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kAccepted);
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
    EXPECT_EQ(receive<ServerVerdict>(client), ServerVerdict::kAccepted);
    EXPECT_EQ(welcomed_.at(0).introduction.request.source, 4);
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
        EXPECT_THAT(status.message(), HasSubstr("does not use PCCL's protocol"));
    }
}

}  // namespace
}  // namespace pccl::transport
