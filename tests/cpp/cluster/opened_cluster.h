// SPDX-License-Identifier: Apache-2.0

// A cluster of four devices, whose context is opened on fake switches.
#pragma once

#include "csrc/cluster/cluster_context.h"
#include "csrc/cluster/file/cluster_file.h"
#include "tests/cpp/cluster/fake_switch.h"

namespace pccl::cluster {

inline constexpr std::string_view kFourDevices = R"({
    "switches": [{"name": "a"}, {"name": "b"}],
    "devices": [{"ports": {"a": 1, "b": 1}}, {"ports": {"a": 2, "b": 2}},
                {"ports": {"a": 3, "b": 3}}, {"ports": {"a": 4, "b": 4}}],
    "phases": {"ring": {"links": "ring"},
               "pairs": {"links": [[0, 1], [2, 3]], "duplex": true},
               "star": {"links": [[0, 1], [0, 2]]}}})";

inline const Circuits kRingOfFour = {{1, 2}, {2, 3}, {3, 4}, {4, 1}};

inline const Circuits kPairs = {{1, 2}, {2, 1}, {3, 4}, {4, 3}};

inline Description description(std::string_view file = kFourDevices) {
    return parse_cluster_file(file, "c.yaml").value();
}

class ClusterTest : public ::testing::Test {
   protected:
    std::unique_ptr<ClusterContext> open(Description of = description()) {
        const MakeDriver make =
            [this](const SwitchDescription& each) -> Result<std::unique_ptr<SwitchDriver>> {
            auto& fake =
                fakes_.try_emplace(each.name, FakeTraits{}, Circuits{}, clock_).first->second;
            return fake.driver();
        };
        return ClusterContext::open(std::move(of), make).value();
    }
    SwitchOptions soon() { return {.step_timeout = std::chrono::seconds(20)}; }
    FakeSwitch& a() { return fakes_.at("a"); }

    SleepyClock clock_;
    std::map<std::string, FakeSwitch> fakes_;
};

}  // namespace pccl::cluster
