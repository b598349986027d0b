// SPDX-License-Identifier: Apache-2.0

// Every collective with preferences, for several numbers of GPUs and bytes.
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "csrc/device/launch/planned_launches.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/kernels/launch.h"

namespace pccl::device {

using enum CollectiveKind;

inline constexpr std::array kKinds{kAllReduce, kReduce,    kReduceScatter, kAllGather,
                                   kAllToAll,  kBroadcast, kGather,        kScatter};

inline constexpr std::array kGroups{2, 3, 8};

inline constexpr std::array<std::size_t, 7> kSizes{
    1, 4096, 20'000, kernels::kMostLLBytes, 1 << 20, 9 << 20, std::size_t{1} << 29};

/// Calls check(kind, bytes, launches) of all of them.
template <typename Check>
void for_each_launch(const Preferences& preferences, Check check) {
    for (const int gpus : kGroups)
        for (const CollectiveKind kind : kKinds)
            for (const std::size_t bytes : kSizes)
                for (const PlannedLaunch& launch :
                     planned_launches(kind, bytes, gpus, preferences)) {
                    SCOPED_TRACE(testing::Message()
                                 << launch.kernel << " of " << bytes << " bytes among " << gpus);
                    check(kind, launch);
                }
}

}  // namespace pccl::device
