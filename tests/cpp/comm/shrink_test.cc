// SPDX-License-Identifier: Apache-2.0

// Smaller groups out of larger ones, and what is known of the ranks of a group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/cpp/comm/ranks.h"
#include "tests/cpp/comm/shrinks.h"

namespace pccl::comm {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using transport::TransportKind;

TEST_P(ShrinkTest, ThoseWhoStayGoOnInTheSameOrder) {
    run_ranks({.size = 4, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 4.0F);
        const Rank excluded = 1;
        if (comm.rank() == excluded) return;
        const auto shrunk = comm.shrink({&excluded, 1}, {});
        ASSERT_TRUE(shrunk.is_ok()) << shrunk.status().to_string();
        EXPECT_EQ((*shrunk)->size(), 3);
        EXPECT_EQ((*shrunk)->rank(), comm.rank() == 0 ? 0 : comm.rank() - 1);
        EXPECT_EQ((*shrunk)->name(), "world:shrunk");
        EXPECT_EQ(reduced_over(**shrunk), 3.0F);
        EXPECT_TRUE((*shrunk)->barrier().is_ok());
    });
}

TEST_P(ShrinkTest, WorksOnAGroupThatIsBroken) {
    run_ranks({.size = 3, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        comm.abort(Status::aborted("a test"));
        const Rank excluded = 2;
        if (comm.rank() == excluded) return;
        const auto shrunk = comm.shrink({&excluded, 1}, {.name = "rest"});
        ASSERT_TRUE(shrunk.is_ok()) << shrunk.status().to_string();
        EXPECT_EQ((*shrunk)->name(), "rest");
        EXPECT_EQ(reduced_over(**shrunk), 2.0F);
        EXPECT_TRUE((*shrunk)->barrier().is_ok());
    });
}

TEST_P(ShrinkTest, NamesARankThatDoesNotShrinkAlike) {
    run_ranks({.size = 3, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 3.0F);
        if (comm.rank() != 0) return;
        const Rank excluded = 2;
        const auto shrunk = comm.shrink({&excluded, 1}, {.timeout = std::chrono::seconds(3)});
        EXPECT_EQ(shrunk.status().code(), StatusCode::kTimeout);
        EXPECT_EQ(shrunk.status().peer(), 1);
        EXPECT_THAT(shrunk.status().message(), HasSubstr("rank 1 does not shrink the group"));
    });
}

TEST_P(ShrinkTest, RefusesToLeaveOutWhoIsNotThereOrItself) {
    run_ranks({.size = 2, .transports = GetParam()}, [](CommunicatorImpl& comm) {
        for (const Rank wrong : {-1, 2, comm.rank()})
            EXPECT_EQ(comm.shrink({&wrong, 1}, {}).status().code(), StatusCode::kInvalidArgument);
        EXPECT_EQ(reduced_over(comm), 2.0F);
    });
}

INSTANTIATE_TEST_SUITE_P(, ShrinkTest, ::testing::Values(TransportKind::kShm, TransportKind::kTcp),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

/// Ranks on hosts of their own, which come to a shrink when the test lets them.
class ShrinkAcrossHostsTest : public ::testing::Test {
   protected:
    using Shrunk = Result<std::shared_ptr<CommunicatorImpl>>;
    const RanksOptions four_{
        .size = 4, .transports = TransportKind::kTcp, .on_hosts_of_their_own = true};
};

TEST_F(ShrinkAcrossHostsTest, NobodyGoesOnWithOneThatDiedBeforeAllWereThere) {
    std::atomic<bool> has_died{false};
    run_ranks(four_, [&](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 4.0F);
        const std::vector<Rank> excluded{3};
        if (comm.rank() == 3) return;
        if (comm.rank() == 1) {  // answers rank 0, gives up, and is gone
            const auto gave_up = comm.shrink(excluded, {.timeout = std::chrono::seconds(3)});
            EXPECT_FALSE(gave_up.is_ok());
            static_cast<void>(comm.shutdown());
            has_died = true;
            return has_died.notify_all();
        }
        if (comm.rank() == 2) has_died.wait(false);
        const auto shrunk = comm.shrink(excluded, {.timeout = std::chrono::seconds(30)});
        ASSERT_FALSE(shrunk.is_ok()) << "rank " << comm.rank() << " goes on with rank 1";
        // The other may have called again before this one has found out by itself.
        EXPECT_THAT(shrunk.status().message(),
                    AnyOf(HasSubstr("rank 1 cannot go on"), HasSubstr("leaves out ranks 1, 3")));
        // Without it they agree.
        const std::vector<Rank> both{1, 3};
        const auto again = comm.shrink(both, {.timeout = std::chrono::seconds(20)});
        ASSERT_TRUE(again.is_ok()) << again.status().to_string();
        EXPECT_EQ(reduced_over(**again), 2.0F);
        EXPECT_TRUE((*again)->barrier().is_ok());
    });
}

TEST_F(ShrinkAcrossHostsTest, OneHalfOfAGroupThatFallsApartGoesOn) {
    std::atomic<int> gone_on{0};
    run_ranks(four_, [&](CommunicatorImpl& comm) {
        EXPECT_EQ(reduced_over(comm), 4.0F);
        const bool is_first_half = comm.rank() < 2;
        const std::vector<Rank> others = is_first_half ? std::vector{2, 3} : std::vector{0, 1};
        const auto shrunk = comm.shrink(others, {.timeout = std::chrono::seconds(20)});
        EXPECT_EQ(shrunk.is_ok(), is_first_half) << shrunk.status().to_string();
        if (!shrunk.is_ok()) return;
        ++gone_on;
        EXPECT_EQ(reduced_over(**shrunk), 2.0F);
        EXPECT_TRUE((*shrunk)->barrier().is_ok());
    });
    EXPECT_EQ(gone_on, 2);
}

}  // namespace
}  // namespace pccl::comm
