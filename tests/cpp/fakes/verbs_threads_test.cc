// SPDX-License-Identifier: Apache-2.0

// The fake libibverbs with several threads, as TSan looks at it.

#include <atomic>
#include <thread>

#include "tests/cpp/fakes/verbs_end.h"

namespace pccl::fakes {
namespace {

TEST(VerbsFakeThreads, PolledMemoryIsWrittenInOrder) {
    constexpr uint64_t kRounds = 2000;
    VerbsPair pair;
    auto* source = reinterpret_cast<uint64_t*>(pair.first.buffer());
    auto* target = reinterpret_cast<uint64_t*>(pair.second.buffer());
    std::thread writer([&] {
        for (uint64_t round = 1; round <= kRounds; ++round) {
            for (int i = 0; i < 4; ++i) source[i] = round;
            ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 32);
            request.send_flags |= IBV_SEND_INLINE;
            ASSERT_EQ(pair.first.post(request), 0);
            ASSERT_EQ(pair.first.status(), IBV_WC_SUCCESS);
        }
    });
    for (uint64_t seen = 0; seen < kRounds;) {
        seen = std::atomic_ref(target[3]).load(std::memory_order_acquire);
        EXPECT_GE(std::atomic_ref(target[0]).load(std::memory_order_acquire), seen)
            << "the last word is last";
        std::this_thread::yield();
    }
    writer.join();
}

TEST(VerbsFakeThreads, SeveralPostAndOnePolls) {
    constexpr int kEach = 500;
    VerbsOptions deep;
    deep.cqe = 4 * kEach;
    deep.max_send_wr = 4 * kEach;
    VerbsPair pair(deep);
    std::vector<std::thread> posters;
    for (int thread = 0; thread < 3; ++thread) {
        posters.emplace_back([&pair, thread] {
            ibv_sge from{reinterpret_cast<uint64_t>(pair.first.buffer()) +
                             1024U * static_cast<unsigned>(thread),
                         1024, pair.first.mr()->lkey};
            ibv_send_wr request{};
            request.sg_list = &from;
            request.num_sge = 1;
            request.opcode = IBV_WR_RDMA_WRITE;
            request.send_flags = IBV_SEND_SIGNALED;
            request.wr.rdma.remote_addr =
                pair.to_second.buffer + 1024U * static_cast<unsigned>(thread);
            request.wr.rdma.rkey = pair.to_second.rkey;
            for (int i = 0; i < kEach; ++i) ASSERT_EQ(pair.first.post(request), 0);
        });
    }
    for (int i = 0; i < 3 * kEach; ++i) ASSERT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    for (std::thread& poster : posters) poster.join();
    EXPECT_FALSE(pair.first.poll());
}

TEST(VerbsFakeThreads, AThreadWaitsForEvents) {
    VerbsPair pair;
    std::thread waiting([&] { EXPECT_EQ(pair.first.event().event_type, IBV_EVENT_PORT_ERR); });
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 0), 0);
    waiting.join();
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 1), 0);
}

}  // namespace
}  // namespace pccl::fakes
