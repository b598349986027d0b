// SPDX-License-Identifier: Apache-2.0

// Transactions on several fake switches.
#pragma once

#include <deque>

#include "csrc/base/text/text.h"
#include "csrc/cluster/transaction.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {

inline const Circuits kOld = {{1, 2}, {2, 3}, {3, 1}, {7, 8}};

inline const Circuits kNew = {{1, 3}, {2, 1}, {3, 2}, {7, 8}};

class TransactionTest : public ::testing::Test {
   protected:
    /// Three switches; the one in the middle has these traits.
    void build(FakeTraits odd = {}, FakeTraits others = {}) {
        for (const FakeTraits& traits : {others, odd, others}) {
            FakeSwitch& fake = fakes_.emplace_back(traits, kOld, clock_);
            drivers_.push_back(fake.driver());
            members_.push_back({.name = concat("s", fakes_.size()),
                                .driver = drivers_.back().get(),
                                .from = kOld,
                                .to = kNew,
                                .settle = std::chrono::milliseconds(25)});
        }
    }
    void start_over() {
        members_.clear();
        drivers_.clear();  // whose sessions end at the fakes
        fakes_.clear();
    }
    Report run() { return Transaction(members_, options_).run(); }
    FakeSwitch& odd() { return fakes_[1]; }

    /// All have exactly these circuits, and nobody holds a lock.
    void expect_all(const Circuits& circuits) {
        for (FakeSwitch& each : fakes_) {
            EXPECT_EQ(each.running(), circuits) << to_string(each.running());
            EXPECT_FALSE(each.is_locked());
        }
    }
    /// The rest of a confirm timeout passes.
    void let_timers_run() { clock_.sleep_for(std::chrono::minutes(5)); }

    SleepyClock clock_;
    std::deque<FakeSwitch> fakes_;
    std::vector<std::unique_ptr<SwitchDriver>> drivers_;
    std::vector<SwitchMember> members_;
    SwitchOptions options_{.step_timeout = std::chrono::milliseconds(100), .clock = &clock_};
};

}  // namespace pccl::cluster
