// SPDX-License-Identifier: Apache-2.0

// Collectives of a number of ranks on the emulated GPU, one or several in a launch.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <vector>

#include "csrc/device/programs/device_program.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/emulated/cases.h"

namespace pccl::comm {

using enum CollectiveKind;

using kernels::LaunchPlan;
using kernels::Protocol;
using sys::cuda::DeviceAddress;

inline constexpr std::array kKinds{kAllReduce, kReduceScatter, kReduce,
                                   kAllGather, kAllToAll,      kBroadcast};

inline constexpr std::array kTypes{DataType::kInt32, DataType::kUint8, DataType::kBfloat16,
                                   DataType::kFloat16, DataType::kFloat32};

inline constexpr std::array kOfSchedules{Protocol::kLL, Protocol::kLL128, Protocol::kDirect};

struct Size {
    std::size_t count = 0;
    bool in_place = false;
};

class EmulatedTest : public ::testing::TestWithParam<int> {
   protected:
    /// One of many cases: types, roots and alignments take turns.
    static Case varied(std::size_t index, CollectiveKind kind, const Size& size) {
        return {.kind = kind,
                .type = kTypes[index % kTypes.size()],
                .count = size.count,
                .root = static_cast<Rank>(index) % GetParam(),
                .offset = index % 4,
                .offset_by_rank = index % 3 / 2,
                .in_place = size.in_place};
    }
    /// All, or where every thread of a GPU costs half a millisecond (ThreadSanitizer), in turn.
    static std::vector<Protocol> schedule_protocols([[maybe_unused]] std::size_t index) {
#if defined(__SANITIZE_THREAD__)
        return {kOfSchedules[index % kOfSchedules.size()]};
#else
        return {kOfSchedules.begin(), kOfSchedules.end()};
#endif
    }
    static LaunchPlan most_for_schedules(Protocol protocol) {
        return {protocol, 40 / GetParam(), 192};
    }
    static int least_blocks(const schedule::ScheduleSource& source) {
        const auto made = schedule::generate(source, schedule::least_shape(source, GetParam()));
        return device::device_grid(*made)->lanes;
    }
};

/// On every rank, all of them by one call. Rank 0's longest are in memory that others cannot map.
inline void run_together(int ranks, const std::vector<Case>& cases) {
    // A launch of 8 ranks is a thousand blocks of threads that take turns on few cores: 5 s of two.
    constexpr std::chrono::seconds kTimeout{60};
    fakes::run_device_ranks({.size = ranks, .timeout = kTimeout}, [&](fakes::DeviceRank& member) {
        const RunTogether run(cases, member);
        const auto collectives = run.collectives();
        const Block& longest_input = std::ranges::max_element(collectives, {}, [](auto& each) {
                                         return longest(each);
                                     })->inputs.front();
        if (member.group.rank() == 0)
            member.driver.make_unshareable(std::bit_cast<DeviceAddress>(longest_input.data));
        const Status status = run.launch();
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        run.expect_results();
    });
}

}  // namespace pccl::comm
