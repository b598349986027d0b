// SPDX-License-Identifier: Apache-2.0

// What the selector lets a schedule send fits into the channels of its links, so that no rank waits
// for room that only a waiting rank could make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/costs/model/link_model.h"
#include "csrc/transport/shm/ring.h"
#include "tests/cpp/comm/link_groups.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

using schedule::SourcePtr;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Of a FIFO of the schedule, full of the longest messages of this rank.
std::size_t most_bytes(const Decision& decision, std::size_t element) {
    const auto longest = static_cast<std::size_t>(decision.program->longest_message);
    const auto slots = static_cast<std::size_t>(decision.program->shape.slots);
    return slots * longest * decision.cut.piece_length() * element + sizeof decision.header;
}

class LinkCapacityTest : public ::testing::TestWithParam<int> {
   protected:
    static int ranks() { return GetParam(); }

    /// What four ranks choose fits, or all four refuse it, before anything is sent.
    static void check(const LinkGroup& group, const SourcePtr& source, DataType type,
                      LinkReach reach) {
        const int on_a_host = reach == LinkReach::kBoth ? ranks() - ranks() / 2 : ranks();
        const std::size_t ring = transport::shm::ring_bytes(on_a_host, ranks());
        const std::size_t capacity = reach == LinkReach::kSharedMemory ? ring
                                     : reach == LinkReach::kSockets
                                         ? costs::kTcpCapacity
                                         : std::min(ring, costs::kTcpCapacity);
        const bool widens = runs_widened(source->kind, type, ReduceOp::kSum, ranks());
        const std::size_t element = size_of(widens ? DataType::kFloat32 : type);
        int refusals = 0;
        for (const Rank rank : {0, 1, ranks() / 2, ranks() - 1}) {
            const auto decision = link_decision_of(group, rank, source, type, 1 << 20);
            if (decision.is_ok()) {
                EXPECT_LE(most_bytes(*decision, element), capacity) << "rank " << rank;
                EXPECT_GE(decision->cut.piece_length(), 1U) << "rank " << rank;
                continue;
            }
            ++refusals;
            EXPECT_THAT(decision.status().message(),
                        AllOf(HasSubstr("its longest message is more than the"),
                              HasSubstr("; these can: "), Not(HasSubstr("\n"))));
        }
        EXPECT_TRUE(refusals == 0 || refusals == 4);
        EXPECT_TRUE(refusals == 0 || gathers_chunks(source));
    }
};

TEST_P(LinkCapacityTest, HoldsAllSlotsOfEverySchedule) {
    for (const LinkReach reach :
         {LinkReach::kSharedMemory, LinkReach::kSockets, LinkReach::kBoth}) {
        const LinkGroup group = group_of(ranks(), reach);
        for (const SourcePtr& source : sources()) {
            // Elsewhere a message is one chunk, however many ranks there are.
            if (ranks() > 1100 && !gathers_chunks(source)) continue;
            for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat32,
                                        DataType::kComplex128}) {
                SCOPED_TRACE(concat(schedule::testing::name_of(source), " of ", to_string(type)));
                check(group, source, type, reach);
            }
        }
    }
}

/// However many ranks a host has, what goes to another is worth its message.
TEST(LinkCapacity, MessagesToOtherHostsAreNotBoundByTheRingsOfManyRanks) {
    const auto source =
        schedule::built_in("recursive_doubling", CollectiveKind::kAllGather).value();
    const auto bytes_in_message = [&](int ranks) {
        const auto decision = link_decision_of(group_of(ranks, LinkReach::kBoth), 0, source,
                                               DataType::kUint8, 1 << 20);
        EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
        return most_bytes(*decision, 1);
    };
    for (const int ranks : {64, 128, 256}) EXPECT_GT(bytes_in_message(ranks), 16 * kKiB);
}

INSTANTIATE_TEST_SUITE_P(Ranks, LinkCapacityTest,
                         ::testing::Values(2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 63, 64, 65, 255, 256,
                                           257, 511, 512, 513, 1000, 1023, 1024, 1025, 4095, 4096,
                                           65'535, 65'536));

}  // namespace
}  // namespace pccl::comm
