// SPDX-License-Identifier: Apache-2.0

// What a runtime does with connections that have proven themselves.
#include "csrc/runtime/runtime.h"

#include <gtest/gtest.h>

#include <memory>

#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/handshake.h"
#include "tests/fakes/deadlines.h"

namespace pccl::runtime {
namespace {

using fakes::test_deadline;
using transport::Introduction;
using transport::Service;
using transport::TransportKind;

constexpr transport::GroupId kGroup{1};
constexpr transport::Secret kSecret{2};

Introduction requesting(Service service, TransportKind kind) {
    return {.request = {.group = kGroup, .source = 1, .destination = 0, .group_size = 2},
            .service = service,
            .transport = static_cast<std::uint8_t>(kind)};
}

class ArrivalsTest : public testing::Test {
   protected:
    void SetUp() override { runtime_->register_rank({kGroup, 0}, kSecret, {}); }

    /// Whether the runtime lets it in, and then closes it.
    [[nodiscard]] bool is_shut_out(const Introduction& introduction) const {
        const std::string& door = runtime_->control().address().doors.front();
        const auto sockets = transport::connect_authenticated(
            {.address = sys::Address::parse(door).value(), .secret = kSecret, .stream = {}},
            {&introduction, 1}, test_deadline());
        EXPECT_TRUE(sockets.is_ok()) << sockets.status().to_string();
        if (!sockets.is_ok()) return false;
        std::byte none{};
        const Status end = sys::receive_all(sockets->front().get(), {&none, 1}, test_deadline());
        return end.code() == StatusCode::kPeerLost;
    }

    std::shared_ptr<Runtime> runtime_ = Runtime::create(TransportKind::kTcp).value();
};

TEST_F(ArrivalsTest, WhatNobodyHereServesIsShutOut) {
    EXPECT_TRUE(is_shut_out(requesting(Service::kRegion, TransportKind::kTcp)));
    EXPECT_TRUE(is_shut_out(requesting(Service::kLink, TransportKind::kVerbs)));
}

TEST(RouteTest, EndsWithoutACommonTransportAreToldWhatEachOffers) {
    const auto runtime = Runtime::create(TransportKind::kTcp).value();
    bootstrap::Endpoint peer;
    peer.rank = 1;
    peer.address.links = {{TransportKind::kShm, {"a"}}, {TransportKind::kVerbs, {"b"}}};
    const Status error = runtime->route_to(peer, TransportKind::kTcp).status();
    EXPECT_EQ(error.code(), StatusCode::kUnavailable);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_EQ(error.message(),
              "no transport to rank 1; this process offers tcp, the peer offers shm,verbs: name a "
              "common one in transports= or PCCL_TRANSPORTS on both sides");
    const Status excluded = runtime->route_to(peer, TransportKind::kShm).status();
    EXPECT_NE(excluded.message().find("this process offers none, the peer"), std::string::npos)
        << excluded.message();
}

TEST_F(ArrivalsTest, ItsEndpointsDoorAnswersQuestionsAfterwards) {
    EXPECT_TRUE(is_shut_out(requesting(Service::kRegion, TransportKind::kTcp)));
    const auto other = Runtime::create(TransportKind::kTcp).value();
    const auto answer = other->control().query(
        runtime_->control().address(), requesting(Service::kQuery, TransportKind::kTcp).request,
        kSecret, test_deadline());
    EXPECT_TRUE(answer.is_ok()) << answer.status().to_string();
}

}  // namespace
}  // namespace pccl::runtime
