// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "csrc/base/ids.h"

namespace pccl::bootstrap {
namespace {

using ::testing::HasSubstr;
using transport::TransportKind;

Endpoint sample() {
    Endpoint endpoint;
    endpoint.rank = 3;
    endpoint.host = "node7";
    endpoint.pid = 812;
    endpoint.transports = transport::TransportFlags(TransportKind::kShm) | TransportKind::kTcp;
    endpoint.address.control = {.host = "boot.42",
                                .doors = {std::string("\0abstract", 9), "10.0.0.7:4711"},
                                .kernel = "boot.43",
                                .user = 1000};
    endpoint.address.links = {{TransportKind::kShm, {std::string("\0abstract", 9)}},
                              {TransportKind::kTcp, {"10.0.0.7:4711", "10.0.1.7:4711"}}};
    endpoint.numa = 1;
    endpoint.cores = 12;
    endpoint.core_set = 0xC0FFEE;
    endpoint.tcp_threads = 3;
    endpoint.capsules = 7;
    return endpoint;
}

TEST(EndpointTest, SurvivesTheTrip) {
    const Endpoint before = sample();
    const auto after = Endpoint::deserialise(before.serialise());
    ASSERT_TRUE(after.is_ok()) << after.status().to_string();
    EXPECT_EQ(*after, before);
}

TEST(EndpointTest, EqualityLooksAtEveryField) {
    Endpoint other = sample();
    other.address.links[TransportKind::kTcp].back() = "10.0.1.8:4711";
    EXPECT_NE(other, sample());
    other = sample();
    other.address.control.host = "boot.43";
    EXPECT_NE(other, sample());
    other = sample();
    other.address.control.user = 1001;
    EXPECT_NE(other, sample());
    other = sample();
    other.numa = 2;
    EXPECT_NE(other, sample());
    other = sample();
    other.tcp_threads = -1;
    EXPECT_NE(other, sample());
    EXPECT_EQ(Endpoint::deserialise(other.serialise()).value(), other) << "it is not set";
}

TEST(EndpointTest, PutsTheAddressesOfAnInterfaceFirst) {
    Endpoint endpoint = sample();
    endpoint.address.control.doors = {"unix:@pccl-1", "10.0.0.7:1", "10.0.1.7:2"};
    const std::vector sources{sys::Address::from_ip("10.0.1.7", 0).value()};
    endpoint.address.prefer(sources);
    EXPECT_THAT(endpoint.address.control.doors,
                testing::ElementsAre("unix:@pccl-1", "10.0.1.7:2", "10.0.0.7:1"));
    EXPECT_THAT(endpoint.address.links[TransportKind::kTcp],
                testing::ElementsAre("10.0.1.7:4711", "10.0.0.7:4711"));
    endpoint.drop(TransportKind::kTcp);
    EXPECT_EQ(endpoint.to_string(), "rank 3 on node7 (pid 812, shm)");
    EXPECT_FALSE(endpoint.address.links.contains(TransportKind::kTcp));
}

TEST(EndpointTest, PrintsWhoItIs) {
    EXPECT_EQ(sample().to_string(), "rank 3 on node7 (pid 812, shm,tcp)");
}

TEST(EndpointTest, EveryTruncationIsRefusedWithItsPlace) {
    const std::string blob = sample().serialise();
    for (std::size_t length = 0; length < blob.size(); ++length) {
        const auto result = Endpoint::deserialise(std::string_view(blob).substr(0, length));
        ASSERT_EQ(result.status().code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(result.status().message(), HasSubstr("byte"));
    }
    EXPECT_FALSE(Endpoint::deserialise(blob + "x").is_ok());
}

TEST(EndpointTest, ValuesOutOfRangeAreRefused) {
    std::string rank = sample().serialise();
    rank[5] = '\xFF';
    EXPECT_THAT(Endpoint::deserialise(rank).status().message(), HasSubstr("rank"));
    std::string magic = sample().serialise();
    magic[0] = 'x';
    EXPECT_FALSE(Endpoint::deserialise(magic).is_ok());
}

TEST(EndpointTest, ItsAddressesAreBounded) {
    using transport::PeerAddress;
    const std::string longest(PeerAddress::kLongestAddress, 'a');
    Endpoint full = sample();
    full.address.control.host = std::string(PeerAddress::kLongestHost, 'h');
    full.address.control.doors.assign(PeerAddress::kMostAddresses, longest);
    full.address.links = {{TransportKind::kTcp, {PeerAddress::kMostAddresses, longest}}};
    const std::string blob = full.serialise();
    EXPECT_LT(blob.size(), 8 * kKiB);
    EXPECT_EQ(Endpoint::deserialise(blob).value(), full);
    full.address.links[TransportKind::kShm] = {"one more"};
    const Status status = Endpoint::deserialise(full.serialise()).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("addresses before byte"));
}

TEST(EndpointTest, ATransportWithoutAddressesIsRefused) {
    Endpoint empty = sample();
    empty.address.links[TransportKind::kTcp].clear();
    EXPECT_THAT(Endpoint::deserialise(empty.serialise()).status().message(),
                HasSubstr("no address of a transport"));
}

TEST(EndpointTest, DamagedBytesGiveAStatusOrAValueThatPrintsTheSameBytes) {
    const std::string blob = sample().serialise();
    std::mt19937 random(7);
    for (int round = 0; round < 20'000; ++round) {
        std::string damaged =
            blob.substr(0, round % 3 == 0 ? random() % (blob.size() + 1) : blob.size());
        for (std::size_t hits = random() % 4; hits > 0 && !damaged.empty(); --hits)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        const auto result = Endpoint::deserialise(damaged);
        if (!result.is_ok()) {
            ASSERT_EQ(result.status().code(), StatusCode::kInvalidArgument);
        } else {
            ASSERT_EQ(Endpoint::deserialise(result->serialise()).value(), *result);
        }
    }
}

}  // namespace
}  // namespace pccl::bootstrap
