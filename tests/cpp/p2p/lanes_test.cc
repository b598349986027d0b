// SPDX-License-Identifier: Apache-2.0

// Large transfers over TCP, on lanes that helper threads progress. The CTest case p2p_lanes runs
// these tests, and others of sessions over TCP, with PCCL_TCP_THREADS=3.
#include "csrc/p2p/connection/lanes.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/p2p/connection/lane_count.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/fakes/forked_child.h"

namespace pccl::p2p {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int kThreads = 4;  // with the caller's

TEST(LaneCountTest, FollowsTheSmallerShareOfCores) {
    using bootstrap::CoreClaim;
    const CoreClaim eight{.cores = 8, .core_set = 1};
    const CoreClaim others{.cores = 8, .core_set = 2};
    const CoreClaim two{.cores = 2, .core_set = 3};
    EXPECT_EQ(lanes_between(eight, eight, false, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, eight, true, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, others, true, {}), (LaneCount{.lanes = 4, .helpers = 3}));
    EXPECT_EQ(lanes_between(eight, two, false, {}), (LaneCount{.lanes = 2, .helpers = 1}));
    EXPECT_EQ(
        lanes_between(two, two, true, {}),
        (LaneCount{.reason = "this process has one thread: the two processes share 2 cores"}));
    const CoreClaim one{.cores = 1, .core_set = 4};
    EXPECT_EQ(lanes_between(eight, one, false, {}),
              (LaneCount{.reason = "the peer's process has one thread: it has 1 core"}));
    const transport::Crowd crowd{.processes = 8, .cores = 8};
    EXPECT_EQ(lanes_between(eight, eight, false, crowd), (LaneCount{.lanes = 4, .helpers = 0}));
}

TEST(LaneCountTest, FollowsTheSettings) {
    using bootstrap::CoreClaim;
    const CoreClaim none{.cores = 8, .core_set = 1, .tcp_threads = 0};
    const CoreClaim forced{.cores = 1, .core_set = 1, .tcp_threads = 2};
    const CoreClaim eight{.cores = 8, .core_set = 1};
    EXPECT_EQ(lanes_between(none, eight, false, {}),
              (LaneCount{.reason = "PCCL_TCP_THREADS is 0 in this process"}));
    EXPECT_EQ(lanes_between(eight, none, false, {}),
              (LaneCount{.reason = "PCCL_TCP_THREADS is 0 in the peer's process"}));
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
        theirs_ = &memory_of(*server_, 1);
        mine_ = &memory_of(*client_, 2);
        remote_.emplace(seen_by(*client_, *server_, *theirs_->local));
    }
    /// Ends the sessions, which may have transfers under way, before their memory.
    void TearDown() override {
        client_.reset();
        server_.reset();
    }
    /// Returns memory of its own, which exists until the sessions have ended.
    Stamped& memory_of(Session& owner, unsigned seed) {
        return memories_.emplace_back(owner, kBytes, seed);
    }
    /// Returns zeros, which are made faster, and exist as long.
    std::shared_ptr<LocalMemory> zeros_of(Session& owner) {
        return owner.register_memory(zeros_.emplace_back(kBytes)).value();
    }
    [[nodiscard]] Status read() { return ended(client_->read(mine_->all(), all_of(*remote_))); }
    [[nodiscard]] Status write(std::string_view notification = {}) {
        return ended(client_->write(mine_->all(), all_of(*remote_), bytes_of(notification)));
    }
    /// Transfers until the client uses all lanes.
    void open_lanes() {
        WorkStats stats;
        for (const Deadline deadline = test_deadline(); stats.lanes < kThreads;) {
            ASSERT_FALSE(deadline.passed()) << stats.lanes << " lanes: " << stats.lane_reason;
            const Work work = client_->read(mine_->all(), all_of(*remote_)).value();
            ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
            stats = work.stats();
        }
        EXPECT_EQ(stats.lane_reason, "");
    }

    std::deque<Stamped> memories_;
    std::deque<std::vector<std::byte>> zeros_;
    std::unique_ptr<Session> server_;
    std::unique_ptr<Session> client_;
    Stamped* theirs_ = nullptr;
    Stamped* mine_ = nullptr;
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
    for (int round = 0; round < 50; ++round) {
        const Work work = client_->read({mine_->local, {0, kMiB}}, {*remote_, {0, kMiB}}).value();
        ASSERT_EQ(work.wait(test_deadline()).to_string(), "ok");
        ASSERT_EQ(work.stats().lanes, 0U);
        ASSERT_EQ(work.stats().lane_reason, "no transfer has had 4 MiB or more");
    }
}

TEST_F(LanesTest, BothSidesOpenThemAtTheSameTime) {
    const RemoteMemory of_client = seen_by(*server_, *client_, *mine_->local);
    Stamped& read_there = memory_of(*client_, 3);
    Stamped& read_here = memory_of(*server_, 4);
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
    constexpr std::size_t kSmall = 8;
    constexpr Extent kRest{kSmall, kBytes - kSmall};
    for (int round = 0; round < 10; ++round) {
        const auto value = static_cast<std::byte>(round);
        std::ranges::fill(mine_->bytes(), value);
        const auto large = client_->write({mine_->local, kRest}, {*remote_, kRest},
                                          bytes_of(concat("large ", round)));
        ASSERT_EQ(ended(client_->write({mine_->local, {0, kSmall}}, {*remote_, {0, kSmall}},
                                       bytes_of(concat("small ", round))))
                      .to_string(),
                  "ok");
        std::vector<std::string> notified;
        while (notified.size() < 2) {
            const auto some = server_->await_notifications(test_deadline());
            ASSERT_FALSE(some.empty());
            EXPECT_EQ(std::ranges::count(std::span(theirs_->bytes()).subspan(kSmall), value),
                      static_cast<std::ptrdiff_t>(kRest.bytes));
            for (const auto& each : some) notified.push_back(text_of(each));
        }
        EXPECT_THAT(notified,
                    testing::ElementsAre(concat("large ", round), concat("small ", round)));
        EXPECT_EQ(std::ranges::count(theirs_->bytes(), value), static_cast<std::ptrdiff_t>(kBytes));
        ASSERT_EQ(ended(large).to_string(), "ok");
    }
}

TEST_F(LanesTest, ATransferThatFailsSendsNoNotificationAndDelaysNoOther) {
    open_lanes();
    const Stamped& ended_there = memory_of(*server_, 7);
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
    std::vector<RemoteMemory> targets;
    for (int i = 0; i < 20; ++i)
        targets.push_back(seen_by(*client_, *server_, *zeros_of(*server_)));
    for (int round = 0; round < 5; ++round) {
        std::vector<Work> works;
        for (const RemoteMemory& target : targets)
            works.push_back(
                client_->write(mine_->all(), all_of(target), bytes_of("never")).value());
        Work& last = works.back();
        last.release();
        // It may have been over before.
        EXPECT_THAT(last.wait(test_deadline()).code(),
                    AnyOf(StatusCode::kAborted, StatusCode::kOk));
        for (std::size_t i = 0; i + 1 < works.size(); ++i) works[i].release();
        for (const Work& work : works) static_cast<void>(work.wait(test_deadline()));
        ASSERT_EQ(read().to_string(), "ok");
        ASSERT_EQ(mine_->bytes(), theirs_->bytes());
    }
}

TEST_F(LanesTest, MemoryThatIsDeregisteredMeanwhileIsReachedNoMore) {
    open_lanes();
    std::ranges::fill(mine_->bytes(), std::byte{0x77});
    for (int round = 0; round < 10; ++round) {
        Stamped& target = memory_of(*server_, 9);
        const RemoteMemory remote = seen_by(*client_, *server_, *target.local);
        constexpr std::size_t kQuarter = kBytes / 4;
        std::vector<Work> works;
        for (std::size_t i = 0; i < 4; ++i) {
            const Extent part{i * kQuarter, kQuarter};
            works.push_back(client_->write({mine_->local, part}, {remote, part}).value());
        }
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
    ASSERT_EQ(client_->connect("server", test_deadline()).to_string(), "ok");
    const std::set<int> before = sockets_of_process();
    open_lanes();
    std::set<int> lanes = sockets_of_process();
    std::erase_if(lanes, [&](int socket) { return before.contains(socket); });
    ASSERT_FALSE(lanes.empty());
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
        works.push_back(client_->read({zeros_of(*client_), {0, kBytes}}, all_of(*remote_)).value());
    server_->close();
    // The peer answers the requests that have come before it leaves.
    for (const Work& work : works) {
        const Status status = work.wait(test_deadline());
        if (status.is_ok()) continue;
        EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
        EXPECT_THAT(status.message(), HasSubstr("was closed by its program"));
    }
    EXPECT_EQ(read().code(), StatusCode::kPeerLost) << "no session listens there";
}

TEST_F(LanesTest, ANotificationIsNotLostWhenItsSenderLeavesAtOnce) {
    for (int round = 0; round < 10; ++round) {
        const auto guest = session("guest", "tcp");
        const Stamped& its = memory_of(*guest, 3);
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
