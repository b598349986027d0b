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

namespace pccl::comm {
namespace {

using schedule::CollectiveKind;

constexpr int kRanks = 16;
constexpr int kRounds = 4;  // log2 of the ranks
constexpr int kCalls = 50;

/// Segments with data in them that all sockets of this process have sent.
long long segments_sent() {
    long long segments = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        tcp_info info{};
        socklen_t bytes = sizeof info;
        const int fd = std::stoi(entry.path().filename());
        if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0)
            segments += info.tcpi_data_segs_out;
    }
    return segments;
}

void barrier(Communicator& comm) { ASSERT_TRUE(comm.barrier().is_ok()); }

Status all_gather(Communicator& comm) {
    std::int32_t own = comm.rank();
    std::vector<std::int32_t> all(static_cast<std::size_t>(comm.size()));
    const Block input{reinterpret_cast<std::byte*>(&own), 1};
    std::vector<Block> outputs;
    for (std::int32_t& each : all) outputs.push_back({reinterpret_cast<std::byte*>(&each), 1});
    return comm.run({.kind = CollectiveKind::kAllGather,
                     .type = DataType::kInt32,
                     .inputs = {&input, 1},
                     .outputs = outputs});
}

class MessagesOnWireTest : public testing::TestWithParam<std::string> {};

TEST_P(MessagesOnWireTest, AnAllGatherSendsOneMessageARound) {
    long long sent = 0;
    const RanksOptions options{.size = kRanks,
                               .transports = transport::TransportKind::kTcp,
                               .algorithm = "all_gather=" + GetParam()};
    run_ranks(options, [&](Communicator& comm) {
        ASSERT_TRUE(all_gather(comm).is_ok());
        barrier(comm);
        if (comm.rank() == 0) sent = segments_sent();
        barrier(comm);
        for (int call = 0; call < kCalls; ++call) ASSERT_TRUE(all_gather(comm).is_ok());
        barrier(comm);
        if (comm.rank() == 0) sent = segments_sent() - sent;
        barrier(comm);
    });
    // Barriers take at most a message from each rank to each other.
    const long long of_barriers = 4LL * kRanks * kRanks;
    EXPECT_GE(sent, kCalls * kRanks);
    EXPECT_LE(sent, kCalls * kRanks * kRounds + of_barriers);
}

INSTANTIATE_TEST_SUITE_P(Schedules, MessagesOnWireTest, testing::Values("pat", "bruck"));

}  // namespace
}  // namespace pccl::comm
