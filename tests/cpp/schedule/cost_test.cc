// SPDX-License-Identifier: Apache-2.0

// The closed forms against counts from the programs themselves.
#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/actions.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

constexpr double kChunkBytes = 48;

/// All but the rounds, step by step.
Cost count(const Schedule& schedule) {
    Cost most;
    for (const Program& program : schedule.programs) {
        long long sent = 0;
        long long received = 0;
        long long chunks_sent = 0;
        long long chunks_received = 0;
        long long chunks_reduced = 0;
        for (const Lane& lane : program.lanes) {
            for (const Step& step : lane) {
                const int chunks = count_of(step);
                sent += step.to.is_used() ? 1 : 0;
                received += step.from.is_used() ? 1 : 0;
                chunks_sent += step.to.is_used() ? chunks : 0;
                chunks_received += step.from.is_used() ? chunks : 0;
                chunks_reduced += testing::is_reduction(step.action) ? chunks : 0;
            }
        }
        const auto bytes = [](long long chunks) {
            return static_cast<double>(chunks) * kChunkBytes;
        };
        most.messages = std::max({most.messages, sent, received});
        most.bytes_sent = std::max({most.bytes_sent, bytes(chunks_sent), bytes(chunks_received)});
        most.bytes_reduced = std::max(most.bytes_reduced, bytes(chunks_reduced));
    }
    return most;
}

class CostTest : public ::testing::TestWithParam<SourcePtr> {};

TEST_P(CostTest, EqualsWhatTheProgramsDo) {
    for (int ranks = 1; ranks <= 40; ++ranks) {
        for (Rank root = 0; root < testing::roots(GetParam(), ranks); ++root) {
            for (int multiple = 1; multiple <= 3; ++multiple) {
                const Shape shape = testing::shape_of(GetParam(), ranks, root, multiple);
                const Schedule schedule = generate(*GetParam(), shape).value();
                const auto verdict = verify(schedule, Placement::kOutOfPlace);
                ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
                const Cost counted = count(schedule);
                const Cost stated = GetParam()->cost(shape, shape.chunks * kChunkBytes);
                SCOPED_TRACE(::testing::Message() << ranks << " ranks, root " << root << ", "
                                                  << shape.chunks << " chunks");
                EXPECT_EQ(stated.rounds, verdict.value().rounds);
                EXPECT_EQ(stated.messages, counted.messages);
                EXPECT_NEAR(stated.bytes_sent, counted.bytes_sent, 1e-6);
                EXPECT_NEAR(stated.bytes_reduced, counted.bytes_reduced, 1e-6);
                if (HasFailure()) return;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, CostTest, ::testing::ValuesIn(testing::all_sources()),
                         [](const auto& source) { return testing::name_of(source.param); });

}  // namespace
}  // namespace pccl::schedule
