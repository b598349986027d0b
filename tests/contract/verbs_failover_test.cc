// SPDX-License-Identifier: Apache-2.0

// A port that fails in the middle: every byte arrives once, on the ports that are left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "csrc/base/clock.h"
#include "tests/contract/rma_contract.h"
#include "tests/contract/transport_contract.h"
#include "tests/fakes/connect.h"
#include "tests/fakes/deadlines.h"
#include "tests/fakes/verbs_control.h"
#include "tests/fakes/verbs_member.h"

namespace pccl::transport::contract {
namespace {

[[maybe_unused]] const bool kHasFake = fakes::use_fake_verbs();

void set_port(const char* device, bool up) {
    static auto* const function =
        fakes::fake_verbs_function<decltype(fake_verbs_set_port)>("fake_verbs_set_port");
    ASSERT_EQ(function(device, 1, up ? 1 : 0), 0);
}

/// Two processes with two ports each, both of which work before and after.
class VerbsFailoverTest : public testing::Test {
   protected:
    static constexpr GroupId kGroup{3, 1};
    static constexpr Secret kSecret{4, 1};

    void SetUp() override {
        link_ = {};  // before the waiters of its processes
        if (fakes::has_real_verbs()) GTEST_SKIP() << "faults are injected into the fake alone";
        const MemberMaker make = [this](Waiter& waiter) {
            return fakes::verbs_member(waiter, {.queue_pairs = queue_pairs_});
        };
        for (auto& process : processes_) {
            process = std::make_unique<Process>(make);
            process->join_group(kGroup, kSecret);
            process->start_accepting();
        }
        const LinkRequest request{.group = kGroup, .source = 0, .destination = 1, .group_size = 2};
        auto sender = fakes::connect(processes_[0]->transport(), processes_[1]->address(), request,
                                     kSecret, fakes::test_deadline());
        ASSERT_TRUE(sender.is_ok()) << sender.status().to_string();
        link_.sender = std::move(*sender);
        link_.receiver = processes_[1]->wait_for_link(0);
    }
    void TearDown() override {
        if (fakes::has_real_verbs()) return;
        for (const char* device : {"mlx5_0", "mlx5_1"}) set_port(device, true);
    }

    int queue_pairs_ = 1;  // on each port
    std::array<std::unique_ptr<Process>, 2> processes_;
    LinkPair link_;
};

/// Two queue pairs on each port.
class VerbsFailoverOfPairsTest : public VerbsFailoverTest {
   protected:
    VerbsFailoverOfPairsTest() { queue_pairs_ = 2; }
};

TEST_F(VerbsFailoverTest, BytesArriveOnceWhicheverPortFailsAndWhenever) {
    constexpr std::size_t kBytes = 8 * kMiB;
    const auto bytes = pattern(kBytes);
    for (int round = 0; round < 6; ++round) {
        SetUp();
        const char* const device = round % 2 == 0 ? "mlx5_1" : "mlx5_0";
        std::thread sender([&] {
            send_all(*link_.sender, processes_[0]->waiter(), kCollectiveChannel, bytes);
            send_all(*link_.sender, processes_[0]->waiter(), kMessageChannel, pattern(99, 1));
        });
        std::thread fault([&] {
            system_clock().sleep_for(std::chrono::microseconds(700 * round));
            set_port(device, false);
        });
        EXPECT_TRUE(receive_exactly(*link_.receiver, processes_[1]->waiter(), kCollectiveChannel,
                                    kBytes) == bytes)
            << round;
        EXPECT_TRUE(receive_exactly(*link_.receiver, processes_[1]->waiter(), kMessageChannel,
                                    99) == pattern(99, 1));
        sender.join();
        fault.join();
        TearDown();
    }
}

TEST_F(VerbsFailoverOfPairsTest, ARequestThatIsLostWithItsQueuePairIsRepeated) {
    std::vector<std::byte> expected;
    const auto send = [&](std::size_t bytes) {
        const auto piece = pattern(bytes);
        send_all(*link_.sender, processes_[0]->waiter(), kCollectiveChannel, piece);
        expected.insert(expected.end(), piece.begin(), piece.end());
    };
    {
        fake_verbs_rule rule{};
        rule.effect = FAKE_VERBS_STALL;
        const fakes::FakeVerbsRule stall(rule);
        // Each queue pair gets one. The first port's second one has the least load, so that it
        // carries the request for the port's first one.
        for (const std::size_t bytes : {64 * kKiB, 64 * kKiB, 1 * kKiB, 64 * kKiB}) send(bytes);
        set_port("mlx5_0", false);
        ASSERT_TRUE(link_.sender->look().is_ok());
    }
    EXPECT_TRUE(receive_exactly(*link_.receiver, processes_[1]->waiter(), kCollectiveChannel,
                                expected.size()) == expected);
}

/// Returns a rule for the first `count` requests of queue pairs of a device; 0: all.
fake_verbs_rule rule_for(const char* device, fake_verbs_effect effect, std::uint64_t count = 0) {
    fake_verbs_rule rule{};
    rule.effect = effect;
    rule.count = count;
    std::strncpy(rule.device, device, sizeof rule.device - 1);
    return rule;
}

TEST_F(VerbsFailoverTest, AnEndOfALostQueuePairThatArrivesLateHidesNoLaterOne) {
    std::vector<std::byte> expected;
    const auto send = [&] {
        const auto piece = pattern(100, 0, expected.size());
        send_all(*link_.sender, processes_[0]->waiter(), kCollectiveChannel, piece);
        expected.insert(expected.end(), piece.begin(), piece.end());
    };
    // More messages than the receive requests of both ports, and those for the ends behind them.
    for (int i = 0; i < 300; ++i) send();
    fakes::FakeVerbsRule late(rule_for("mlx5_0", FAKE_VERBS_OUTLIVE));
    send();
    set_port("mlx5_0", false);
    ASSERT_TRUE(link_.sender->look().is_ok());
    send();
    set_port("mlx5_0", true);
    late.end();
    EXPECT_TRUE(receive_exactly(*link_.receiver, processes_[1]->waiter(), kCollectiveChannel,
                                expected.size()) == expected);
}

TEST_F(VerbsFailoverOfPairsTest, ARequestOfALostQueuePairThatArrivesLateHidesNoLaterOne) {
    std::vector<std::byte> expected;
    const fakes::FakeVerbsRule lost(rule_for("mlx5_0", FAKE_VERBS_STALL, 1));
    fakes::FakeVerbsRule late(rule_for("mlx5_0", FAKE_VERBS_OUTLIVE));
    fakes::FakeVerbsRule busy(rule_for("mlx5_1", FAKE_VERBS_STALL));
    // Each queue pair gets one. The first port's second one has the least load, so that it carries
    // the first request for the port's first one, whose piece is lost.
    for (const std::size_t bytes : {64 * kKiB, 64 * kKiB, 1 * kKiB, 64 * kKiB}) {
        const auto piece = pattern(bytes, 0, expected.size());
        send_all(*link_.sender, processes_[0]->waiter(), kCollectiveChannel, piece);
        expected.insert(expected.end(), piece.begin(), piece.end());
    }
    set_port("mlx5_0", false);
    ASSERT_TRUE(link_.sender->look().is_ok());
    busy.end();
    ASSERT_TRUE(link_.sender->look().is_ok());
    set_port("mlx5_0", true);
    late.end();
    EXPECT_TRUE(receive_exactly(*link_.receiver, processes_[1]->waiter(), kCollectiveChannel,
                                expected.size()) == expected);
}

TEST_F(VerbsFailoverTest, TheLinkEndsWithTheReasonOnceNoPortIsLeft) {
    const auto few = pattern(100);
    send_all(*link_.sender, processes_[0]->waiter(), kCollectiveChannel, few);
    EXPECT_EQ(receive_exactly(*link_.receiver, processes_[1]->waiter(), kCollectiveChannel, 100),
              few);
    set_port("mlx5_0", false);
    set_port("mlx5_1", false);
    const Status error = wait_for_error(*link_.sender, processes_[0]->waiter(), kCollectiveChannel);
    EXPECT_EQ(error.code(), StatusCode::kPeerLost);
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(error.message(), testing::HasSubstr("mlx5_"));
}

}  // namespace
}  // namespace pccl::transport::contract
