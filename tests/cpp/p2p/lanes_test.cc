// SPDX-License-Identifier: Apache-2.0

// Large transfers over TCP, on lanes that helper threads progress. The CTest case p2p_lanes runs
// these tests, and others of sessions over TCP, with PCCL_TCP_THREADS=3.
#include "csrc/p2p/connection/lanes.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/lane_count.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/fakes/forked_child.h"

namespace pccl::p2p {
namespace {

using testing::HasSubstr;

constexpr int kThreads = 4;           // with the caller's
constexpr std::size_t kSockets = 16;  // of a lane between sessions of one process

TEST(LaneCountTest, FollowsTheSmallerShareOfCores) {
    using bootstrap::CoreClaim;
    const CoreClaim eight{.cores = 8, .core_set = 1};
    const CoreClaim others{.cores = 8, .core_set = 2};
    const CoreClaim two{.cores = 2, .core_set = 3};
    EXPECT_EQ(lanes_between(eight, eight, false, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, eight, true, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, others, true, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, two, false, {}), (LaneCount{.lanes = 2, .helpers = 1}));
    EXPECT_EQ(lanes_between(two, two, true, {}), LaneCount()) << "one core each";
    const transport::Crowd crowd{.processes = 8, .cores = 8};
    EXPECT_EQ(lanes_between(eight, eight, false, crowd), (LaneCount{.lanes = 4, .helpers = 0}));
}

TEST(LaneCountTest, FollowsTheSettings) {
    using bootstrap::CoreClaim;
    const CoreClaim none{.cores = 8, .core_set = 1, .tcp_threads = 0};
    const CoreClaim forced{.cores = 1, .core_set = 1, .tcp_threads = 2};
    const CoreClaim eight{.cores = 8, .core_set = 1};
    EXPECT_EQ(lanes_between(none, eight, false, {}), LaneCount());
    EXPECT_EQ(lanes_between(eight, none, false, {}), LaneCount());
    EXPECT_EQ(lanes_between(forced, forced, true, {}), (LaneCount{.lanes = 3, .helpers = 2}));
    EXPECT_EQ(lanes_between(eight, forced, true, {}), (LaneCount{.lanes = 3, .helpers = 2}));
}

TEST(LaneBudgetTest, GivesNoMoreThanThereIs) {
    LaneBudget budget(2);
    EXPECT_TRUE(budget.take());
    EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
    budget.put_back();
    EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
}

std::set<int> sockets_of_process() {
    std::set<int> sockets;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(entry.path(), gone);
        if (!gone && target.string().starts_with("socket:"))
            sockets.insert(std::stoi(entry.path().filename()));
    }
    return sockets;
}

class LanesTest : public testing::Test {
   protected:
    static constexpr std::size_t kBytes = 12 * kMiB + 5;

    void SetUp() override {
        if (process_config().tcp_threads != kThreads - 1)
            GTEST_SKIP() << "PCCL_TCP_THREADS is not 3, as it is in the case p2p_lanes";
        server_ = session("server", "tcp");
        client_ = session("client", "tcp");
        theirs_.emplace(*server_, kBytes, 1);
        mine_.emplace(*client_, kBytes, 2);
        remote_.emplace(seen_by(*client_, *server_, *theirs_->local));
    }
    [[nodiscard]] Status read() { return ended(client_->read(mine_->all(), all_of(*remote_))); }
    [[nodiscard]] Status write(std::string_view notification = {}) {
        return ended(client_->write(mine_->all(), all_of(*remote_), bytes_of(notification)));
    }
    /// Transfers until all lanes are there, and returns their sockets.
    std::set<int> open_lanes() {
        EXPECT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
        const std::set<int> before = sockets_of_process();
        std::set<int> more;
        for (const Deadline deadline = test_deadline(); more.size() < kThreads * kSockets;) {
            EXPECT_FALSE(deadline.passed()) << more.size() << " sockets of lanes";
            if (deadline.passed()) break;
            EXPECT_EQ(read().to_string(), "ok");
            more = sockets_of_process();
            std::erase_if(more, [&](int socket) { return before.contains(socket); });
        }
        EXPECT_EQ(read().to_string(), "ok");
        return more;
    }

    std::unique_ptr<Session> server_;
    std::unique_ptr<Session> client_;
    std::optional<Stamped> theirs_;
    std::optional<Stamped> mine_;
    std::optional<RemoteMemory> remote_;
};

TEST_F(LanesTest, LargeTransfersOpenThemOnce) {
    open_lanes();
    const std::set<int> sockets = sockets_of_process();
    for (int round = 0; round < 10; ++round) {
        std::ranges::fill(mine_->bytes(), std::byte{0});
        ASSERT_EQ(read().to_string(), "ok");
        ASSERT_EQ(mine_->bytes(), theirs_->bytes());
        std::ranges::fill(mine_->bytes(), static_cast<std::byte>(round));
        ASSERT_EQ(write().to_string(), "ok");
        ASSERT_EQ(theirs_->bytes(), mine_->bytes());
    }
    EXPECT_EQ(sockets_of_process(), sockets);
}

TEST_F(LanesTest, SmallTransfersOpenNone) {
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    const std::set<int> before = sockets_of_process();
    for (int round = 0; round < 50; ++round)
        ASSERT_EQ(
            ended(client_->read({mine_->local, {0, kMiB}}, {*remote_, {0, kMiB}})).to_string(),
            "ok");
    EXPECT_EQ(sockets_of_process(), before);
}

TEST_F(LanesTest, BothSidesOpenThemAtTheSameTime) {
    const RemoteMemory of_client = seen_by(*server_, *client_, *mine_->local);
    Stamped read_there(*client_, kBytes, 3);
    Stamped read_here(*server_, kBytes, 4);
    for (int round = 0; round < 6; ++round) {
        Work one = client_->read(read_there.all(), all_of(*remote_)).value();
        Work other = server_->read(read_here.all(), all_of(of_client)).value();
        ASSERT_EQ(one.wait(test_deadline()).to_string(), "ok");
        ASSERT_EQ(other.wait(test_deadline()).to_string(), "ok");
        ASSERT_EQ(read_there.bytes(), theirs_->bytes());
        ASSERT_EQ(read_here.bytes(), mine_->bytes());
        std::ranges::fill(read_there.bytes(), std::byte{0});
        std::ranges::fill(read_here.bytes(), std::byte{0});
    }
}

TEST_F(LanesTest, BlocksLandWhereTheyBelong) {
    open_lanes();
    constexpr std::uint64_t kBlock = 10'007;
    constexpr std::uint64_t kCount = 600;
    std::vector<Extent> here;
    std::vector<Extent> there;
    for (std::uint64_t i = 0; i < kCount; ++i) {
        here.push_back({i * kBlock, kBlock});
        there.push_back({(kCount - 1 - i) * 2 * kBlock, kBlock});
    }
    const auto listed = Plan::make({mine_->local, here}, {*remote_, there}).value();
    const auto strided =
        Plan::make(
            {mine_->local,
             StridedExtents{.base = 1, .bytes = kBlock, .stride = 2 * kBlock, .count = kCount}},
            {*remote_, StridedExtents{.bytes = kBlock, .stride = kBlock, .count = kCount}})
            .value();
    for (const auto& plan : {listed, strided}) {
        for (const RmaOp op : {RmaOp::kRead, RmaOp::kWrite}) {
            std::vector<std::byte> ours = mine_->bytes();
            std::vector<std::byte> others = theirs_->bytes();
            for (std::uint64_t i = 0; i < kCount; ++i) {
                const Extent local = plan->local_blocks()[i];
                const Extent remote = plan->remote_blocks()[i];
                if (op == RmaOp::kRead)
                    std::memcpy(&ours[local.offset], &others[remote.offset], kBlock);
                else
                    std::memcpy(&others[remote.offset], &ours[local.offset], kBlock);
            }
            ASSERT_EQ(ended(client_->post(op, plan)).to_string(), "ok");
            ASSERT_EQ(mine_->bytes(), ours);
            ASSERT_EQ(theirs_->bytes(), others);
        }
    }
}

TEST_F(LanesTest, ANotificationComesAfterAllBytes) {
    open_lanes();
    for (int round = 0; round < 10; ++round) {
        std::ranges::fill(mine_->bytes(), static_cast<std::byte>(round));
        Work work =
            client_->write(mine_->all(), all_of(*remote_), bytes_of(concat("large ", round)))
                .value();
        ASSERT_EQ(ended(client_->write({mine_->local, {0, 8}}, {*remote_, {0, 8}},
                                       bytes_of(concat("small ", round))))
                      .to_string(),
                  "ok");
        std::vector<std::string> notified;
        while (notified.size() < 2) {
            const auto some = server_->await_notifications(test_deadline());
            ASSERT_FALSE(some.empty());
            const auto last = static_cast<std::byte>(round);
            EXPECT_EQ(std::ranges::count(theirs_->bytes(), last),
                      static_cast<std::ptrdiff_t>(kBytes));
            for (const auto& each : some) notified.push_back(text_of(each));
        }
        EXPECT_THAT(notified,
                    testing::ElementsAre(concat("large ", round), concat("small ", round)));
        ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
    }
}

TEST_F(LanesTest, ATransferThatFailsSendsNoNotificationAndDelaysNoOther) {
    open_lanes();
    Stamped ended_there(*server_, kBytes, 7);
    const RemoteMemory gone = seen_by(*client_, *server_, *ended_there.local);
    ASSERT_TRUE(server_->deregister_memory(ended_there.local).is_ok());
    for (int round = 0; round < 10; ++round) {
        Work fails = client_->write(mine_->all(), all_of(gone), bytes_of("never")).value();
        ASSERT_EQ(write("behind it").to_string(), "ok");
        EXPECT_EQ(fails.wait(test_deadline()).code(), StatusCode::kUnavailable);
        const auto notified = server_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U);
        EXPECT_EQ(text_of(notified.front()), "behind it");
    }
}

TEST_F(LanesTest, ACancelledTransferEndsAndTheNextOneWorks) {
    open_lanes();
    for (int round = 0; round < 5; ++round) {
        std::vector<Work> works;
        for (int i = 0; i < 30; ++i)
            works.push_back(
                client_->write(mine_->all(), all_of(*remote_), bytes_of("never")).value());
        Work& last = works.back();
        last.release();
        EXPECT_EQ(last.wait(test_deadline()).code(), StatusCode::kAborted);
        for (std::size_t i = 0; i + 1 < works.size(); ++i) works[i].release();
        for (const Work& work : works) static_cast<void>(work.wait(test_deadline()));
        ASSERT_EQ(read().to_string(), "ok");
        ASSERT_EQ(mine_->bytes(), theirs_->bytes());
    }
}

TEST_F(LanesTest, MemoryThatIsDeregisteredMeanwhileIsReachedNoMore) {
    open_lanes();
    for (int round = 0; round < 10; ++round) {
        Stamped target(*server_, kBytes, 9);
        const RemoteMemory remote = seen_by(*client_, *server_, *target.local);
        std::ranges::fill(mine_->bytes(), std::byte{0x77});
        std::vector<Work> works;
        for (int i = 0; i < 4; ++i)
            works.push_back(client_->write(mine_->all(), all_of(remote)).value());
        std::this_thread::sleep_for(std::chrono::milliseconds(round));
        ASSERT_TRUE(server_->deregister_memory(target.local).is_ok());
        std::ranges::fill(target.bytes(), std::byte{0x11});
        for (const Work& work : works) {
            const Status status = work.wait(test_deadline());
            if (!status.is_ok()) {
                EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status.to_string();
            }
        }
        EXPECT_EQ(std::ranges::count(target.bytes(), std::byte{0x11}),
                  static_cast<std::ptrdiff_t>(kBytes));
    }
}

TEST_F(LanesTest, TheEndOfALaneEndsTheConnectionAndNamesThePeer) {
    const std::set<int> lanes = open_lanes();
    ASSERT_EQ(lanes.size(), kThreads * kSockets);
    for (const int socket : lanes) ::shutdown(socket, SHUT_RDWR);
    const Status lost = read();
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
    EXPECT_THAT(lost.message(), HasSubstr("session \"server\""));
    ASSERT_EQ(read().to_string(), "ok") << "over a new connection";
    EXPECT_EQ(mine_->bytes(), theirs_->bytes());
}

TEST_F(LanesTest, APeerThatClosesMeanwhileIsLostWithItsReason) {
    open_lanes();
    std::vector<Work> works;
    for (int i = 0; i < 8; ++i)
        works.push_back(client_->read(mine_->all(), all_of(*remote_)).value());
    server_->close();
    const Status lost = works.back().wait(test_deadline());
    EXPECT_EQ(lost.code(), StatusCode::kPeerLost) << lost.to_string();
    EXPECT_THAT(lost.message(), HasSubstr("was closed by its program"));
}

TEST_F(LanesTest, ANotificationIsNotLostWhenItsSenderLeavesAtOnce) {
    for (int round = 0; round < 10; ++round) {
        const auto guest = session("guest", "tcp");
        const Stamped its(*guest, kBytes, 3);
        const RemoteMemory remote = seen_by(*guest, *server_, *theirs_->local);
        for (const std::string_view text : {"", "", "the last one"})
            ASSERT_EQ(ended(guest->write(its.all(), all_of(remote), bytes_of(text))).to_string(),
                      "ok");
        if (round % 2 == 0)
            ASSERT_TRUE(guest->disconnect("server").is_ok());
        else
            guest->close();
        const auto notified = server_->await_notifications(test_deadline());
        ASSERT_EQ(notified.size(), 1U);
        EXPECT_EQ(text_of(notified.front()), "the last one");
    }
}

TEST_F(LanesTest, AChildOfForkReachesNothing) {
    open_lanes();
    for (int round = 0; round < 5; ++round) {
        const Work work = client_->read(mine_->all(), all_of(*remote_)).value();
        fakes::ForkedChild child([&] {
            return work.wait(test_deadline()).code() == StatusCode::kUnavailable &&
                           read().code() == StatusCode::kUnavailable
                       ? 0
                       : 1;
        });
        EXPECT_EQ(child.join(), 0);
        EXPECT_EQ(work.wait(test_deadline()).to_string(), "ok");
        EXPECT_EQ(mine_->bytes(), theirs_->bytes());
    }
}

}  // namespace
}  // namespace pccl::p2p
