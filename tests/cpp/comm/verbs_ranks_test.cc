// SPDX-License-Identifier: Apache-2.0

// Groups over RDMA links, on the fake libibverbs: queue pairs and memory grow with the peers that a
// rank uses, not with the group.
#include <gtest/gtest.h>

#include <barrier>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "csrc/costs/model/link_model.h"
#include "csrc/transport/verbs/link_pages.h"
#include "csrc/transport/verbs/verbs_transport.h"
#include "tests/cpp/comm/blocks.h"
#include "tests/cpp/comm/ranks.h"
#include "tests/fakes/verbs_control.h"

namespace pccl::comm {
namespace {

const bool kIsOnePort = [] {
    ::setenv("PCCL_IB_HCA", "=mlx5_0:1", 1);
    return fakes::use_fake_verbs();
}();

/// What all ranks of a group have.
struct GroupResources {
    fake_verbs_counters created{};  // once the communicators exist
    fake_verbs_counters reduced{};  // after all_reduce over a ring
    Duration start{};
    Duration reduction{};
};

GroupResources resources_of(int ranks) {
    GroupResources resources;
    std::barrier all(ranks);
    const TimePoint begun = system_clock().now();
    run_ranks({.size = ranks,
               .transports = transport::TransportKind::kVerbs,
               .algorithm = "all_reduce=ring"},
              [&](CommunicatorImpl& comm) {
                  all.arrive_and_wait();
                  const TimePoint created = system_clock().now();
                  if (comm.rank() == 0) {
                      resources.start = created - begun;
                      resources.created = fakes::fake_counters();
                  }
                  all.arrive_and_wait();
                  std::vector<float> values(1'000, static_cast<float>(comm.rank()));
                  const Block block = block_of(values);
                  const Status status = comm.run(
                      {.type = DataType::kFloat32, .inputs = {&block, 1}, .outputs = {&block, 1}});
                  EXPECT_TRUE(status.is_ok()) << status.to_string();
                  EXPECT_EQ(values,
                            std::vector<float>(1'000, static_cast<float>(ranks * (ranks - 1) / 2)));
                  all.arrive_and_wait();
                  if (comm.rank() == 0) {
                      resources.reduction = system_clock().now() - created;
                      resources.reduced = fakes::fake_counters();
                  }
                  all.arrive_and_wait();
              });
    return resources;
}

double milliseconds(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

TEST(VerbsRanksTest, LinksHoldWhatTheSelectorSends) {
    for (int ranks = 2; ranks <= 1024; ranks += ranks < 128 ? 1 : 64)
        EXPECT_GE(transport::verbs::capacity_of(transport::verbs::ring_bytes(ranks)),
                  costs::kTcpCapacity)
            << "in a group of " << ranks << " ranks";
}

TEST(VerbsRanksTest, ResourcesGrowWithTheTwoPeersOfARing) {
    const auto per_rank = [](std::uint64_t all, int ranks) {
        return static_cast<double>(all) / ranks;
    };
    std::vector<GroupResources> groups;
    for (const int ranks : {8, 64}) {
        const GroupResources group = resources_of(ranks);
        std::cout << ranks << " ranks: created in " << milliseconds(group.start)
                  << " ms, first all_reduce in " << milliseconds(group.reduction)
                  << " ms; each has " << per_rank(group.reduced.qps, ranks) << " queue pairs, "
                  << per_rank(group.reduced.cqs, ranks) << " completion queues, "
                  << per_rank(group.reduced.mrs, ranks) << " regions of "
                  << per_rank(group.reduced.pinned, ranks) / 1024 << " KiB\n";
        EXPECT_EQ(group.created.qps, 0U) << "no peer is used yet";
        EXPECT_EQ(group.created.mrs, 0U);
        EXPECT_EQ(per_rank(group.reduced.qps, ranks), 2) << "a link to one, and one from the other";
        EXPECT_LE(per_rank(group.reduced.cqs, ranks), 1);
        groups.push_back(group);
    }
    EXPECT_EQ(per_rank(groups[1].reduced.mrs, 64), per_rank(groups[0].reduced.mrs, 8));
    EXPECT_LE(per_rank(groups[1].reduced.pinned, 64), per_rank(groups[0].reduced.pinned, 8));
    EXPECT_EQ(fakes::fake_counters().qps, 0U) << "nothing is left";
    EXPECT_EQ(fakes::fake_counters().mrs, 0U);
}

}  // namespace
}  // namespace pccl::comm
