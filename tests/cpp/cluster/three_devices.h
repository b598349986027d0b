// SPDX-License-Identifier: Apache-2.0

// A cluster of three devices and four switches, and a context that commands them.
#pragma once

#include <algorithm>

#include <pccl/phases.h>
#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {

inline constexpr std::string_view kThreeDevices = R"({
    "switches": [{"name": "ocs"}, {"name": "spare"},
                 {"name": "vlans", "kind": "electrical"},
                 {"name": "ports", "dialect": "ietf-interfaces"}],
    "devices": [{"ports": {"ocs": [1, 11], "spare": 1, "vlans": 5, "ports": 7}},
                {"ports": {"ocs": [2, 12], "spare": 2}},
                {"ports": {"ocs": [3, 13], "spare": 3}}],
    "phases": {"ring": {"links": "ring"}, "star": {"links": [[0, 1], [0, 2]]}}})";

inline const Circuits kRingOfThree = {{1, 2}, {2, 3}, {3, 1}};

inline const Circuits kStar = {{1, 2}, {11, 3}};

class CommandsTest : public ::testing::Test {
   protected:
    CommandsTest() { open(); }

    void open() {
        const MakeDriver make =
            [this](const SwitchDescription& each) -> Result<std::unique_ptr<SwitchDriver>> {
            return fakes_
                .try_emplace(each.name, FakeTraits{.dialect = each.dialect}, Circuits{}, clock_)
                .first->second.driver();
        };
        context_.reset();
        context_ =
            ClusterContext::open(parse_cluster_file(kThreeDevices, "c.yaml").value(), make).value();
    }
    FakeSwitch& ocs() { return fakes_.at("ocs"); }
    FakeSwitch& spare() { return fakes_.at("spare"); }
    OpticalSwitch& optical() { return **context_->optical_switch("ocs"); }
    Switch& called(const std::string& name) { return **context_->switch_called(name); }
    std::string shown() { return context_->inspect(std::chrono::seconds(20)).phase; }
    void go_to(const std::string& phase) {
        const auto report = context_->switch_phase(phase, options_);
        ASSERT_TRUE(report.is_ok()) << report.status().to_string();
        ASSERT_EQ(report->ending, Ending::kSwitched) << report->reason.to_string();
    }
    void expect_free() {
        for (auto& [name, fake] : fakes_) EXPECT_FALSE(fake.is_locked()) << name;
    }

    SleepyClock clock_;
    std::map<std::string, FakeSwitch> fakes_;
    std::unique_ptr<ClusterContext> context_;
    SwitchOptions options_{.step_timeout = std::chrono::seconds(20), .clock = &clock_};
};

}  // namespace pccl::cluster
