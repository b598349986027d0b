// SPDX-License-Identifier: Apache-2.0

// A schedule with so many blocks in a message, whatever costs least.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>

#include "csrc/schedule/generators/generators.h"

namespace pccl::comm {

/// The built-in ones, and `algorithm` with `aggregation` under the name "counted".
inline std::shared_ptr<const schedule::Catalogue> with_aggregation(std::string_view algorithm,
                                                                   schedule::CollectiveKind kind,
                                                                   int aggregation) {
    auto catalogue = std::make_shared<schedule::Catalogue>(*schedule::built_in());
    const schedule::SourcePtr known = *schedule::built_in(algorithm, kind);
    auto made = std::make_shared<schedule::ScheduleSource>(*known);
    const auto fixed = [aggregation](schedule::Shape shape) {
        shape.aggregation = aggregation;
        return shape;
    };
    made->name = "counted";
    made->digest = known->digest + 1 + static_cast<std::uint64_t>(aggregation);
    made->aggregates = false;
    made->longest_message = [known, fixed](const schedule::Shape& shape) {
        return known->longest_message(fixed(shape));
    };
    made->cost = [known, fixed](const schedule::Shape& shape, double bytes) {
        return known->cost(fixed(shape), bytes);
    };
    made->program = [known, fixed](const schedule::Shape& shape, Rank rank) {
        return known->program(fixed(shape), rank);
    };
    EXPECT_TRUE(catalogue->add(std::move(made)).is_ok());
    return catalogue;
}

}  // namespace pccl::comm
