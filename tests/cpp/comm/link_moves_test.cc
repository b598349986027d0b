// SPDX-License-Identifier: Apache-2.0

// How many messages cross the wire, as the kernel counts the segments of data that its TCP sockets
// sent: the blocks that a step gathers leave in one.
#include <gtest/gtest.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/cpp/comm/ranks.h"
#include "tests/cpp/comm/with_aggregation.h"

namespace pccl::comm {
namespace {

using schedule::CollectiveKind;

constexpr int kWireRanks = 16;
constexpr int kCalls = 50;

/// Segments with data in them that all sockets of this process have sent, each once: on a busy
/// machine some are sent again.
long long segments_sent() {
    long long segments = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        tcp_info info{};
        socklen_t bytes = sizeof info;
        const int fd = std::stoi(entry.path().filename());
        if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
            segments += info.tcpi_data_segs_out - info.tcpi_total_retrans;
    }
    return segments;
}

void barrier(CommunicatorImpl& comm) { ASSERT_TRUE(comm.barrier().is_ok()); }

/// One element of each rank for each other.
Status run_kind(CommunicatorImpl& comm, CollectiveKind kind) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(comm.size()), comm.rank());
    std::int32_t own = comm.rank();
    const Block one{reinterpret_cast<std::byte*>(&own), 1};
    std::vector<Block> many;
    for (std::int32_t& each : all) many.push_back({reinterpret_cast<std::byte*>(&each), 1});
    const bool gathers = kind == CollectiveKind::kAllGather;
    return comm.run({.kind = kind,
                     .type = DataType::kInt32,
                     .op = ReduceOp::kSum,
                     .inputs = gathers ? std::span(&one, 1) : std::span<const Block>(many),
                     .outputs = gathers ? std::span<const Block>(many) : std::span(&one, 1)});
}

struct Counted {
    std::string algorithm;
    CollectiveKind kind;
    int aggregation;  // 0: what the group chooses
    int messages;     // of a rank
};

class MessagesOnWireTest : public ::testing::TestWithParam<Counted> {};

TEST_P(MessagesOnWireTest, EachOfItsMessagesIsOneSegment) {
    const auto& [algorithm, kind, aggregation, messages] = GetParam();
    RanksOptions options{.size = kWireRanks, .transports = transport::TransportKind::kTcp};
    options.algorithm = std::string(schedule::to_string(kind)) + "=" + algorithm;
    if (aggregation > 0) {
        options.catalogue = with_aggregation(algorithm, kind, aggregation);
        options.algorithm = std::string(schedule::to_string(kind)) + "=counted";
    }
    long long sent = 0;
    long long of_barriers = 0;
    run_ranks(options, [&, kind = kind](CommunicatorImpl& comm) {
        const auto count = [&](int calls) {
            barrier(comm);
            const long long before = segments_sent();
            barrier(comm);
            for (int call = 0; call < calls; ++call) ASSERT_TRUE(run_kind(comm, kind).is_ok());
            barrier(comm);
            if (comm.rank() == 0) (calls == 0 ? of_barriers : sent) = segments_sent() - before;
            barrier(comm);
        };
        ASSERT_TRUE(run_kind(comm, kind).is_ok());
        count(0);
        count(kCalls);
    });
    const long long expected = static_cast<long long>(kCalls) * kWireRanks * messages;
    // How barriers overlap differs by some segments; a message more in every call would be 800.
    EXPECT_LE(sent - of_barriers, expected + kCalls * kWireRanks / 4);
    // Two that follow each other to one rank may leave together.
    EXPECT_GE(sent - of_barriers, expected / 2);
}

INSTANTIATE_TEST_SUITE_P(Schedules, MessagesOnWireTest,
                         // log2(A) + 16 / A - 1 of PAT; log2(16) of Bruck and halving.
                         ::testing::Values(Counted{"pat", CollectiveKind::kAllGather, 0, 4},
                                           Counted{"pat", CollectiveKind::kAllGather, 1, 15},
                                           Counted{"pat", CollectiveKind::kAllGather, 4, 5},
                                           Counted{"pat", CollectiveKind::kReduceScatter, 0, 4},
                                           Counted{"pat", CollectiveKind::kReduceScatter, 1, 15},
                                           Counted{"pat", CollectiveKind::kReduceScatter, 4, 5},
                                           Counted{"bruck", CollectiveKind::kAllGather, 0, 4},
                                           Counted{"recursive_halving",
                                                   CollectiveKind::kReduceScatter, 0, 4}),
                         [](const auto& test) {
                             return test.param.algorithm + "_" +
                                    std::string(schedule::to_string(test.param.kind)) + "_" +
                                    std::to_string(test.param.aggregation);
                         });

}  // namespace
}  // namespace pccl::comm
