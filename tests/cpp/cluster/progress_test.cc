// SPDX-License-Identifier: Apache-2.0

// What a watcher is told of a transaction: which switch is how far.
#include "csrc/cluster/progress.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <tuple>

#include "csrc/base/text/text.h"
#include "csrc/cluster/transaction.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

const Circuits kCrossed = {{1, 2}, {2, 1}};
const Circuits kLooped = {{1, 1}, {2, 2}};

class ProgressTest : public ::testing::Test {
   protected:
    Report run(const FakeTraits& first, const FakeTraits& second = {}) {
        std::vector<SwitchMember> members;
        for (const FakeTraits& traits : {first, second}) {
            FakeSwitch& fake = fakes_.emplace_back(traits, kCrossed, clock_);
            drivers_.push_back(fake.driver());
            members.push_back({.name = concat("s", fakes_.size()),
                               .driver = drivers_.back().get(),
                               .from = kCrossed,
                               .to = kLooped,
                               .settle = std::chrono::milliseconds(25)});
        }
        options_.watch = [this](const Progress& progress) { reported_.push_back(progress); };
        return Transaction(members, options_).run();
    }

    /// What a switch was said to have done, once each, and in which part.
    [[nodiscard]] std::vector<std::string> done_by(std::size_t who) const {
        std::vector<std::string> done;
        for (const Progress& each : reported_) {
            const SwitchProgress& it = each.switches.at(who);
            if (!it.is_done) continue;
            std::string words = concat(each.part, ": ", it.doing);
            if (done.empty() || done.back() != words) done.push_back(std::move(words));
        }
        return done;
    }
    [[nodiscard]] std::vector<std::string> parts() const {
        std::vector<std::string> parts;
        for (const Progress& each : reported_)
            if (parts.empty() || parts.back() != each.part) parts.emplace_back(each.part);
        return parts;
    }
    [[nodiscard]] bool was_ever(const std::function<bool(const Progress&)>& so) const {
        return std::ranges::any_of(reported_, so);
    }

    SleepyClock clock_;
    std::deque<FakeSwitch> fakes_;
    std::vector<std::unique_ptr<SwitchDriver>> drivers_;
    SwitchOptions options_{.step_timeout = std::chrono::milliseconds(100), .clock = &clock_};
    std::vector<Progress> reported_;
};

TEST_F(ProgressTest, ReportsEachStepOfEachSwitch) {
    options_.step_timeout = std::chrono::seconds(20);
    options_.drain = [] { return Status::ok(); };
    EXPECT_EQ(run({}).ending, Ending::kSwitched);
    EXPECT_THAT(parts(), ElementsAre("prepare", "drain", "commit", "confirm", "release"));
    for (const std::size_t who : {0U, 1U})
        EXPECT_THAT(
            done_by(who),
            IsSupersetOf({"prepare: connect", "prepare: lock", "prepare: read", "prepare: prepare",
                          "drain: prepare", "commit: commit", "commit: read", "commit: light",
                          "confirm: confirm", "release: release"}));
    EXPECT_TRUE(was_ever([](const Progress& each) {
        return each.switches[0].doing == "settle" && !each.switches[0].is_done;
    }));
}

TEST_F(ProgressTest, ShowsWhoIsWaitedFor) {
    EXPECT_EQ(run({.hang = "edit-config"}).ending, Ending::kRefused);
    EXPECT_TRUE(was_ever([](const Progress& each) {
        const auto& [slow, quick] = std::tie(each.switches[0], each.switches[1]);
        return slow.doing == "prepare" && !slow.is_done && slow.fault.is_ok() &&
               quick.doing == "prepare" && quick.is_done;
    }));
    EXPECT_THAT(done_by(0), Not(Contains("prepare: prepare")));
    EXPECT_TRUE(was_ever([](const Progress& each) {
        return each.switches[0].fault.message() == "no answer to prepare within 0.1 s";
    }));
}

TEST_F(ProgressTest, ReportsTheRollBackAndItsWaits) {
    EXPECT_EQ(run({}, {.drop_late = "commit"}).ending, Ending::kRolledBack);
    EXPECT_THAT(parts(), ElementsAre("prepare", "commit", "roll back", "release"));
    EXPECT_TRUE(was_ever([](const Progress& each) {
        return each.part == "roll back" && each.switches[1].doing == "wait";
    }));
    EXPECT_THAT(done_by(0), Contains("roll back: cancel"));
}

TEST_F(ProgressTest, NamesWhatIsRead) {
    EXPECT_EQ(run({.lie = "commit"}).ending, Ending::kRolledBack);
    EXPECT_TRUE(was_ever([](const Progress& each) {
        return each.switches[0].fault.message() == "it shows 1->2, 2->1 where 1->1, 2->2 should be";
    }));
}

}  // namespace
}  // namespace pccl::cluster
