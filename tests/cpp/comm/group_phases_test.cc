// SPDX-License-Identifier: Apache-2.0

// Groups whose network is switched, by transactions of which some fail.
#include "csrc/comm/group/group_phases.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "csrc/comm/phase/phase_network.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

constexpr int kPhaseRanks = 3;

std::vector<std::shared_ptr<PhaseNetwork>> networks() {
    std::vector<std::shared_ptr<PhaseNetwork>> made;
    for (int rank = 0; rank < kPhaseRanks; ++rank)
        made.push_back(std::make_shared<PhaseNetwork>(
            PhaseNetwork::Settings{.ranks = kPhaseRanks,
                                   .phases = {{.name = "ring", .links = {{0, 1}, {1, 2}, {2, 0}}},
                                              {.name = "back", .links = {{0, 2}, {2, 1}, {1, 0}}}},
                                   .has_hosts = false}));
    return made;
}

std::int64_t sum(CommunicatorImpl& comm) {
    std::array<std::int64_t, 100> x{};
    x.fill(comm.rank() + 1);
    const std::array<Block, 1> block{{{reinterpret_cast<std::byte*>(x.data()), x.size()}}};
    const Status done = comm.run({.kind = CollectiveKind::kAllReduce,
                                  .type = DataType::kInt64,
                                  .inputs = block,
                                  .outputs = block});
    EXPECT_TRUE(done.is_ok()) << done.to_string();
    return x.back();
}

/// Switches that do as `ends` states. Only rank 0 prepares and commits.
class FakeController : public NetworkController {
   public:
    explicit FakeController(cluster::Ending ends = cluster::Ending::kSwitched) : ends_(ends) {}

    NetworkReport prepare(const std::string&, const ControllerOptions&) override {
        return report(ends_ == cluster::Ending::kRefused ? ends_ : cluster::Ending::kPrepared);
    }
    NetworkReport commit() override {
        on_commit();
        return report(ends_);
    }
    NetworkReport discard(const Status& why) override {
        NetworkReport discarded =
            report(why.is_ok() ? cluster::Ending::kPrepared : cluster::Ending::kRefused);
        discarded.reason = why;
        return discarded;
    }
    Result<std::string> read_back(const ControllerOptions&) override {
        return Status::unavailable("nobody asked for it");
    }

    std::function<void()> on_commit = [] {};

   private:
    static NetworkReport report(cluster::Ending outcome) {
        return {.outcome = outcome,
                .reason = Status::ok(),
                .switches = {{.name = "one",
                              .steps = {{"lock", std::chrono::milliseconds(2)}},
                              .found = {{1, 2}}}}};
    }
    const cluster::Ending ends_;
};

class PhaseTest : public ::testing::TestWithParam<TransportKind> {
   protected:
    /// Calls `body` as each rank, which the ring joins.
    void run_on_ring(const std::function<void(PhaseNetwork&, CommunicatorImpl&)>& body) {
        const auto all = networks();
        run_ranks({.size = kPhaseRanks, .transports = GetParam(), .networks = all},
                  [&](CommunicatorImpl& comm) {
                      PhaseNetwork& own = *all[static_cast<std::size_t>(comm.rank())];
                      const auto switched =
                          own.switch_phase({.phase = "ring", .controller = &controller_});
                      ASSERT_TRUE(switched.is_ok()) << switched.status().to_string();
                      EXPECT_EQ(switched->outcome, cluster::Ending::kSwitched);
                      ASSERT_EQ(switched->switches.size(), 1U);
                      EXPECT_EQ(switched->switches[0].steps[0].step, "lock");
                      EXPECT_EQ(switched->switches[0].found.empty(), comm.rank() != 0);
                      EXPECT_EQ(sum(comm), 6);
                      body(own, comm);
                      EXPECT_EQ(sum(comm), 6);
                  });
    }

    FakeController controller_;
};

TEST_P(PhaseTest, AllGoOnInTheNextOne) {
    run_on_ring([this](PhaseNetwork& own, CommunicatorImpl& comm) {
        for (int turn = 0; turn < 10; ++turn) {
            const std::string phase = turn % 2 == 0 ? "back" : "ring";
            ASSERT_TRUE(own.switch_phase({.phase = phase, .controller = &controller_}).is_ok());
            EXPECT_EQ(own.phase(), phase);
            EXPECT_EQ(own.generation(), static_cast<std::uint32_t>(turn + 2));
            EXPECT_EQ(sum(comm), 6);
        }
    });
}

TEST_P(PhaseTest, AllStayWhereTheTransactionFails) {
    run_on_ring([](PhaseNetwork& own, CommunicatorImpl& comm) {
        for (const auto outcome : {cluster::Ending::kRefused, cluster::Ending::kRolledBack}) {
            FakeController failing(outcome);
            const auto done = own.switch_phase({.phase = "back", .controller = &failing});
            ASSERT_TRUE(done.is_ok()) << done.status().to_string();
            EXPECT_EQ(done->outcome, outcome);
            EXPECT_EQ(own.phase(), "ring");
            EXPECT_EQ(own.generation(), 1U);
            EXPECT_EQ(sum(comm), 6);
        }
    });
}

TEST_P(PhaseTest, CallsOfOtherThreadsWait) {
    run_on_ring([](PhaseNetwork& own, CommunicatorImpl& comm) {
        std::atomic<bool> is_switching{false};
        FakeController slow;
        slow.on_commit = [&] {
            is_switching.store(true);
            system_clock().sleep_for(std::chrono::milliseconds(200));
            EXPECT_EQ(own.generation(), 1U);
        };
        std::thread other([&] {
            while (comm.rank() == 0 && !is_switching.load()) std::this_thread::yield();
            if (comm.rank() != 0) system_clock().sleep_for(std::chrono::milliseconds(100));
            EXPECT_EQ(sum(comm), 6);
            EXPECT_EQ(own.generation(), 2U);
        });
        EXPECT_TRUE(own.switch_phase({.phase = "back", .controller = &slow}).is_ok());
        other.join();
    });
}

TEST_P(PhaseTest, ALateRankReceivesTheDisagreementAfterRankZeroHasLeft) {
    const auto all = networks();
    std::atomic<bool> has_left{false};
    const auto outcome_of = [&](CommunicatorImpl& comm) {
        if (comm.rank() == 1) return comm.barrier();
        while (comm.rank() == 2 && !has_left.load()) std::this_thread::yield();
        PhaseNetwork& own = *all[static_cast<std::size_t>(comm.rank())];
        return own.switch_phase({.phase = "ring", .controller = &controller_}).status();
    };
    run_ranks({.size = kPhaseRanks, .transports = GetParam(), .networks = all},
              [&](CommunicatorImpl& comm) {
                  EXPECT_EQ(sum(comm), 6);
                  const Status outcome = outcome_of(comm);
                  if (comm.rank() == 0) {
                      EXPECT_TRUE(comm.shutdown().is_ok());
                      has_left.store(true);
                  }
                  EXPECT_EQ(outcome.code(), StatusCode::kMismatch) << outcome.to_string();
              });
}

TEST_P(PhaseTest, ACollectiveInsteadOfASwitchFailsWithTheFirstReason) {
    const auto all = networks();
    std::atomic<bool> has_received_reason{false};
    run_ranks(
        {.size = kPhaseRanks, .transports = GetParam(), .networks = all},
        [&](CommunicatorImpl& comm) {
            EXPECT_EQ(sum(comm), 6);
            PhaseNetwork& own = *all[static_cast<std::size_t>(comm.rank())];
            const Status outcome =
                comm.rank() == 1
                    ? comm.barrier()
                    : own.switch_phase({.phase = "ring", .controller = &controller_}).status();
            EXPECT_EQ(outcome.code(), StatusCode::kMismatch) << outcome.to_string();
            if (comm.rank() == 1) has_received_reason.store(true);
            while (comm.rank() == 0 && !has_received_reason.load()) std::this_thread::yield();
            const Status left = comm.shutdown();
            EXPECT_TRUE(left.is_ok()) << left.to_string();
        });
}

TEST_P(PhaseTest, ADisagreementThatAllHaveReceivedEndsNoGroup) {
    const auto all = networks();
    run_ranks({.size = kPhaseRanks, .transports = GetParam(), .networks = all},
              [&](CommunicatorImpl& comm) {
                  EXPECT_EQ(sum(comm), 6);
                  PhaseNetwork& own = *all[static_cast<std::size_t>(comm.rank())];
                  const std::string proposal = comm.rank() == 1 ? "back" : "ring";
                  const auto done =
                      own.switch_phase({.phase = proposal, .controller = &controller_});
                  EXPECT_EQ(done.status().code(), StatusCode::kMismatch);
                  const Status left = comm.shutdown();
                  EXPECT_TRUE(left.is_ok()) << left.to_string();
              });
}

TEST_P(PhaseTest, ADryRunStaysInItsPhase) {
    run_on_ring([this](PhaseNetwork& own, CommunicatorImpl& comm) {
        const auto done =
            own.switch_phase({.phase = "back", .dry_run = true, .controller = &controller_});
        ASSERT_TRUE(done.is_ok()) << done.status().to_string();
        EXPECT_EQ(done->outcome, cluster::Ending::kPrepared);
        EXPECT_EQ(own.phase(), "ring");
        EXPECT_EQ(sum(comm), 6);
    });
}

INSTANTIATE_TEST_SUITE_P(Transports, PhaseTest,
                         ::testing::Values(TransportKind::kShm, TransportKind::kTcp));

}  // namespace
}  // namespace pccl::comm
