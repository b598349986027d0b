// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "csrc/topo/job/job.h"
#include "tests/cpp/topo/job_hosts.h"

namespace pccl::topo {
namespace {

TEST(JobTest, HostsTravelAsBytes) {
    const HostTopology sent = host("node3", 24, "nccl/h200x8_vm.xml");
    const auto received = decode_host(encode(sent));
    ASSERT_TRUE(received.is_ok()) << received.status().to_string();
    EXPECT_EQ(received->name, "node3");
    EXPECT_EQ(received->ranks, sent.ranks);
    EXPECT_TRUE(received->topology.machine() == sent.topology.machine());
    EXPECT_EQ(received->topology.digest(), sent.topology.digest());
}

TEST(JobTest, AWayThatWasTimedTravelsWithItsHost) {
    HostTopology sent = host("node3", 24, "nccl/h200x8_vm.xml");
    EXPECT_FALSE(decode_host(encode(sent))->way.has_value());
    sent.way = way_to("node0");
    const auto received = decode_host(encode(sent))->way;
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(received->text(), "24 3 0.5 0 2026-11-27T08:00:00Z node0");
    EXPECT_NEAR(received->round, 24e-6, 1e-5 * 24e-6);
    EXPECT_NEAR(received->byte, 0.5e-9, 1e-5 * 0.5e-9);
    const JobTopology with = *JobTopology::make({sent});
    EXPECT_NE(with.digest(),
              JobTopology::make({host("node3", 24, "nccl/h200x8_vm.xml")})->digest());
}

TEST(JobTest, BytesThatAreNoHostAreRefused) {
    const std::string blob = encode(host("a", 0, "nccl/h100_1gpu_1nic.xml"));
    for (std::size_t length = 0; length < blob.size(); length += 7)
        EXPECT_FALSE(decode_host(std::string_view(blob).substr(0, length)).is_ok());
    EXPECT_FALSE(decode_host(blob + "x").is_ok());
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        std::string broken = blob;
        for (int i = 0; i < 3; ++i) broken[random() % broken.size()] = static_cast<char>(random());
        (void)decode_host(broken);
    }
}

}  // namespace
}  // namespace pccl::topo
