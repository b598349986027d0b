// SPDX-License-Identifier: Apache-2.0

// Isolated rails: the ports of one subnet reach each other, and no others. Both ends use different
// ports, so that their order connects the wrong ones.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/cpp/transport/verbs_links.h"

namespace pccl::transport::verbs {
namespace {

/// Interface of a port of the fake; `rail` is that of its device.
sys::Interface interface_of(int rail) {
    const std::string ip = "10.77." + std::to_string(rail) + ".1";
    return {.name = "eth", .address = sys::Address::from_ip(ip, 0).value(), .prefix_bits = 24};
}

VerbsOptions on_rails(const char* hca, int queue_pairs = 1) {
    return {.hca = hca, .queue_pairs = queue_pairs, .networks = {interface_of(0), interface_of(1)}};
}

class VerbsRailsTest : public testing::TestWithParam<int> {
   protected:
    void SetUp() override { isolate(24); }
    void TearDown() override { isolate(0); }
    static void isolate(int bits) { ASSERT_EQ(PCCL_FAKE_VERBS(isolate_subnets)(bits), 0); }
};

TEST_P(VerbsRailsTest, StreamsTakeThePortsThatReachEachOther) {
    VerbsHost two(0, on_rails("=mlx5_0:1,mlx5_1:1", GetParam()));
    VerbsHost one(1, on_rails("=mlx5_1:1", GetParam()));
    for (const bool forth : {true, false}) {
        const VerbsStream stream = forth ? make_stream(two, one) : make_stream(one, two);
        const std::vector<std::byte> bytes = numbered(200 * kKiB);
        ASSERT_EQ(stream.out->send(kCollectiveChannel, bytes, Flush::kNow).value(), bytes.size());
        std::vector<std::byte> received(bytes.size());
        std::size_t count = 0;
        until([&] {
            count += stream.in->receive(kCollectiveChannel, MutableBytes(received).subspan(count))
                         .value();
            return count == bytes.size();
        });
        EXPECT_TRUE(received == bytes) << forth;
    }
}

TEST_P(VerbsRailsTest, OneSidedAccessTakesThemToo) {
    for (const bool has_initiator_both : {true, false}) {
        const char* const both = "=mlx5_0:1,mlx5_1:1";
        const char* const second = "=mlx5_1:1";
        VerbsRmaPair pair(on_rails(has_initiator_both ? both : second, GetParam()),
                          on_rails(has_initiator_both ? second : both, GetParam()));
        const VerbsMemoryOf local(*pair.here, 64);
        const VerbsMemoryOf remote(*pair.there, 64);
        for (const RmaOp op : {RmaOp::kWrite, RmaOp::kRead}) {
            const Status done = pair.complete(op, {.local = local.registration.get(),
                                                   .remote = &remote.registration->descriptor(),
                                                   .bytes = 64});
            EXPECT_TRUE(done.is_ok()) << done.to_string();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(QueuePairs, VerbsRailsTest, testing::Values(1, 2));

}  // namespace
}  // namespace pccl::transport::verbs
