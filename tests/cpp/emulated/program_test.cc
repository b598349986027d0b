// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "csrc/device/programs/device_program.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/emulated_ranks.h"

namespace pccl::comm {
namespace {

using kernels::LaunchPlan;
using kernels::Protocol;

constexpr std::array<Size, 3> kLongerSizes{{{1}, {1501}, {5003, true}}};

TEST_P(EmulatedTest, Schedules) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const schedule::SourcePtr& source : schedule::built_in()->of(kind))
            for (const Size& size : kLongerSizes)
                for (const Protocol protocol : schedule_protocols(cases.size())) {
                    cases.push_back(varied(cases.size(), kind, size));
                    cases.back().algorithm = source->name;
                    cases.back().plan = most_for_schedules(protocol);
                }
    run_cases(GetParam(), cases);
}

/// One worker a lane: many windows, and more messages than a FIFO holds.
TEST_P(EmulatedTest, SchedulesOfLongMessages) {
    std::vector<Case> cases;
    for (const CollectiveKind kind : kKinds)
        for (const schedule::SourcePtr& source : schedule::built_in()->of(kind)) {
            const int blocks = least_blocks(*source);
            if (blocks * GetParam() > 32) continue;
            for (const Protocol protocol : schedule_protocols(cases.size())) {
                const std::size_t slot =
                    device::DeviceGrid{}.window_bytes(kernels::form_of(protocol));
                Case& each = cases.emplace_back(varied(cases.size(), kind, {}));
                each.count = 8 * slot / size_of(each.type);
                each.algorithm = source->name;
                each.plan = LaunchPlan{protocol, blocks, 192};
            }
        }
    run_cases(GetParam(), cases);
}

}  // namespace
}  // namespace pccl::comm
