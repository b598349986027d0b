// SPDX-License-Identifier: Apache-2.0

// Networks and replays of schedules for tests.
#pragma once

#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/simulator/replay.h"

namespace pccl::schedule {

inline constexpr double kAlpha = 0x1p-18;  // seconds

inline constexpr double kDelta = 0x1p-20;

inline constexpr double kBandwidth = 0x1p33;  // bytes a second

inline constexpr double kBytes = 0x1p24;

inline constexpr LinkSpeed kSpeed{kAlpha, kDelta, kBandwidth};

inline ReplayInput piece_of(const SourcePtr& source, const Shape& shape) {
    return {.source = source, .shape = shape, .block_bytes = kBytes};
}

inline Replay played(const char* name, CollectiveKind kind, const SimulatedNetwork& network,
                     double block_bytes = kBytes, int aggregation = 0) {
    const SourcePtr source = built_in(name, kind).value();
    Shape shape = least_shape(*source, network.ranks);
    shape.aggregation = aggregation;
    auto found = replay({.source = source, .shape = shape, .block_bytes = block_bytes}, network);
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    return std::move(found).value();
}

inline double seconds_of_step(double bytes) { return kAlpha + kDelta + bytes / kBandwidth; }

}  // namespace pccl::schedule
