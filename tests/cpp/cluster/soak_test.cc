// SPDX-License-Identifier: Apache-2.0

// Very many switches of phases while devices fail at random: what is said to be is what is, each
// time, and whoever is blamed deserves it.
#include <gmock/gmock.h>

#include <array>
#include <map>
#include <random>
#include <string>

#include "csrc/base/text/text.h"
#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {
namespace {

constexpr int kSwitches = 1000;
constexpr std::array kOperations = {"lock",   "discard-changes", "get-config", "edit-config",
                                    "commit", "confirm",         "unlock"};
constexpr std::string_view kSoakFile = R"({
    "switches": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
    "devices": [{"ports": {"a": 1, "b": 1, "c": 1}}, {"ports": {"a": 2, "b": 2, "c": 2}},
                {"ports": {"a": 3, "b": 3, "c": 3}}],
    "phases": {"one": {"links": [[0, 1], [0, 2], [0, 1]]},
               "two": {"links": [[1, 0], [1, 2], [1, 0]]},
               "three": {"links": [[2, 0], [2, 1], [2, 0], [0, 1], [1, 2]]}}})";

class SoakTest : public ::testing::TestWithParam<unsigned> {
   protected:
    void SetUp() override {
        description_ = parse_cluster_file(kSoakFile, "c.yaml").value();
        const MakeDriver make =
            [this](const SwitchDescription& each) -> Result<std::unique_ptr<SwitchDriver>> {
            // One of each class; the last cannot be taken back.
            FakeTraits traits{.has_chunks = each.name != "b",
                              .has_candidate = each.name != "c",
                              .has_confirmed_commit = each.name == "a"};
            return fakes_.try_emplace(each.name, traits, Circuits{}, clock_).first->second.driver();
        };
        cluster_ = ClusterContext::open(description_, make).value();
    }

    std::size_t below(std::size_t limit) { return random_() % limit; }

    /// A switch will fail in some way, so often.
    std::string break_one(int faults = 1) {
        const std::string name(1, static_cast<char>('a' + below(3)));
        FakeTraits& traits = fakes_.at(name).traits;
        const std::string operation = kOperations[below(kOperations.size())];
        const std::array ways = {&FakeTraits::reject, &FakeTraits::drop, &FakeTraits::drop_late,
                                 &FakeTraits::hang, &FakeTraits::lie};
        // No lies about reads, locks and confirming, which nobody could tell at once.
        const bool may_lie =
            operation != "get-config" && operation != "unlock" && operation != "confirm";
        const std::size_t way = below(may_lie ? 5 : 4);
        traits.*ways[way] = operation;
        traits.faults = faults;
        return name;
    }

    void mend_all() {
        for (auto& [name, fake] : fakes_) {
            FakeTraits& traits = fake.traits;
            for (std::string* each :
                 {&traits.reject, &traits.drop, &traits.drop_late, &traits.hang, &traits.lie})
                each->clear();
        }
    }

    [[nodiscard]] bool shows(const std::string& name, const std::string& phase) {
        const auto wanted = circuits_of(description_, *description_.phase(phase)).value();
        return fakes_.at(name).running() == wanted.at(name);
    }
    [[nodiscard]] bool all_show(const std::string& phase) {
        return shows("a", phase) && shows("b", phase) && shows("c", phase);
    }

    std::mt19937 random_{GetParam()};
    SleepyClock clock_;
    std::map<std::string, FakeSwitch> fakes_;
    Description description_;
    std::unique_ptr<ClusterContext> cluster_;
};

TEST_P(SoakTest, ReportedStatesAreTheRealOnes) {
    const SwitchOptions options{.step_timeout = std::chrono::milliseconds(5), .clock = &clock_};
    ASSERT_TRUE(cluster_->switch_phase("one", options).is_ok());
    std::map<Ending, int> endings;
    for (int i = 0; i < kSwitches; ++i) {
        const std::string before = cluster_->current();
        const std::string target = description_.phases[below(3)].name;
        const std::string broken = below(4) == 0 ? break_one() : "";
        const auto report = cluster_->switch_phase(target, options);
        mend_all();
        if (!report.is_ok()) {  // nothing to switch, and it could not be read
            ASSERT_TRUE(before == target && !broken.empty()) << report.status().to_string();
            ASSERT_TRUE(all_show(before));
            continue;
        }
        ++endings[report->ending];
        const bool has_switched = report->ending == Ending::kSwitched;
        ASSERT_NE(report->ending, Ending::kDegraded) << report->reason.to_string();
        ASSERT_TRUE(all_show(has_switched ? target : before)) << i;
        ASSERT_EQ(cluster_->current(), has_switched ? target : before);
        if (!has_switched) {
            ASSERT_THAT(report->reason.message(), ::testing::HasSubstr("switch " + broken + ": "));
        }
        for (auto& [name, fake] : fakes_) ASSERT_FALSE(fake.is_locked()) << name;
    }
    // Each way of ending was met.
    EXPECT_GT(endings[Ending::kSwitched], kSwitches / 2);
    EXPECT_GT(endings[Ending::kRefused], 0);
    EXPECT_GT(endings[Ending::kRolledBack], 0);
}

TEST_P(SoakTest, WhatIsDegradedIsNamedAndCanBeMended) {
    SwitchOptions options{.step_timeout = std::chrono::milliseconds(5), .clock = &clock_};
    ASSERT_TRUE(cluster_->switch_phase("one", options).is_ok());
    int degraded = 0;
    for (int i = 0; i < kSwitches; ++i) {
        const std::string before = cluster_->current();
        const std::string target = description_.phases[below(3)].name;
        for (std::size_t k = below(4); k > 0; --k) break_one(1 + static_cast<int>(below(8)));
        const auto report = cluster_->switch_phase(target, options);
        mend_all();
        const bool has_switched = report.is_ok() && report->ending == Ending::kSwitched;
        if (!report.is_ok() || report->ending != Ending::kDegraded) {
            ASSERT_TRUE(all_show(has_switched ? target : before))
                << i << ": " << before << " to " << target << ": "
                << (report.is_ok() ? report->reason : report.status()).to_string();
            continue;
        }
        ++degraded;
        ASSERT_FALSE(cluster_->switch_phase(target, options).is_ok());
        // Whoever is not named is in one phase with all others that are not.
        bool all_before = true;
        bool all_after = true;
        for (const MemberReport& each : report->members) {
            if (!each.status.is_ok()) continue;
            all_before = all_before && shows(each.name, before);
            all_after = all_after && shows(each.name, target);
        }
        ASSERT_TRUE(all_before || all_after) << report->reason.to_string();
        options.adopt = true;
        ASSERT_EQ(cluster_->switch_phase(target, options)->ending, Ending::kSwitched);
        options.adopt = false;
        ASSERT_TRUE(all_show(target));
    }
    EXPECT_GT(degraded, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SoakTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace pccl::cluster
