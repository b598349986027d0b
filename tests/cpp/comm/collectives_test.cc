// SPDX-License-Identifier: Apache-2.0

// Every collective against plain loops: all ranks' inputs are a function of (rank, index), so that
// each rank can compute alone what it must receive.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <tuple>
#include <vector>

#include "tests/cpp/comm/parts.h"
#include "tests/cpp/comm/ranks.h"

namespace pccl::comm {
namespace {

std::int32_t element_of(Rank rank, std::size_t index) {
    return static_cast<std::int32_t>((static_cast<std::size_t>(rank) + 1) * 1000003 +
                                     index * 7919) %
           100'000;
}

Values input_of(Rank rank, std::size_t count) {
    Values values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = element_of(rank, i);
    return values;
}

Values sum_of_all(int size, std::size_t count) {
    Values sum(count, 0);
    for (Rank rank = 0; rank < size; ++rank)
        for (std::size_t i = 0; i < count; ++i) sum[i] += element_of(rank, i);
    return sum;
}

/// One block of everything, or one for each rank.
std::vector<Block> equal_blocks(Values& values, int number) {
    const std::size_t count = values.size() / static_cast<std::size_t>(number);
    std::vector<Block> blocks;
    for (int i = 0; i < number; ++i)
        blocks.push_back(
            {reinterpret_cast<std::byte*>(values.data() + static_cast<std::size_t>(i) * count),
             count});
    return blocks;
}

struct CollectiveCase {
    int size;
    std::size_t count;  // of a block
    bool in_place;
};

class CollectiveTest : public ::testing::TestWithParam<std::tuple<int, std::size_t>> {
   protected:
    [[nodiscard]] static int size() { return std::get<0>(GetParam()); }
    [[nodiscard]] static std::size_t count() { return std::get<1>(GetParam()); }

    static void run(CommunicatorImpl& comm, CollectiveKind kind, std::vector<Block> inputs,
                    std::vector<Block> outputs, Rank root = 0) {
        const Status status = comm.run({.kind = kind,
                                        .type = DataType::kInt32,
                                        .op = ReduceOp::kSum,
                                        .root = root,
                                        .inputs = inputs,
                                        .outputs = outputs});
        ASSERT_TRUE(status.is_ok()) << status.to_string();
    }
};

TEST_P(CollectiveTest, AllReduceSumsOutOfPlaceAndInPlace) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        Values input = input_of(comm.rank(), count());
        const Values before = input;
        Values output(count(), -1);
        run(comm, CollectiveKind::kAllReduce, equal_blocks(input, 1), equal_blocks(output, 1));
        EXPECT_EQ(output, sum_of_all(comm.size(), count()));
        EXPECT_EQ(input, before);
        run(comm, CollectiveKind::kAllReduce, equal_blocks(input, 1), equal_blocks(input, 1));
        EXPECT_EQ(input, output);
    });
}

TEST_P(CollectiveTest, AllGatherConcatenates) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        Values input = input_of(comm.rank(), count());
        Values output(count() * static_cast<std::size_t>(comm.size()), -1);
        run(comm, CollectiveKind::kAllGather, equal_blocks(input, 1),
            equal_blocks(output, comm.size()));
        Values expected;
        for (Rank rank = 0; rank < comm.size(); ++rank) {
            const Values part = input_of(rank, count());
            expected.insert(expected.end(), part.begin(), part.end());
        }
        EXPECT_EQ(output, expected);
    });
}

TEST_P(CollectiveTest, ReduceScatterKeepsTheOwnBlockOfTheSum) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        const std::size_t all = count() * static_cast<std::size_t>(comm.size());
        Values input = input_of(comm.rank(), all);
        Values output(count(), -1);
        run(comm, CollectiveKind::kReduceScatter, equal_blocks(input, comm.size()),
            equal_blocks(output, 1));
        const Values sum = sum_of_all(comm.size(), all);
        const auto begin = sum.begin() + static_cast<std::ptrdiff_t>(count()) * comm.rank();
        EXPECT_EQ(output, Values(begin, begin + static_cast<std::ptrdiff_t>(count())));
    });
}

TEST_P(CollectiveTest, BroadcastAndReduceWorkFromEveryRoot) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        for (Rank root = 0; root < comm.size(); ++root) {
            const bool is_root = comm.rank() == root;
            Values data = is_root ? input_of(root, count()) : Values(count(), -1);
            run(comm, CollectiveKind::kBroadcast,
                is_root ? equal_blocks(data, 1) : std::vector<Block>{}, equal_blocks(data, 1),
                root);
            EXPECT_EQ(data, input_of(root, count()));
            Values input = input_of(comm.rank(), count());
            Values output(count(), -1);
            run(comm, CollectiveKind::kReduce, equal_blocks(input, 1),
                is_root ? equal_blocks(output, 1) : std::vector<Block>{}, root);
            EXPECT_EQ(output, is_root ? sum_of_all(comm.size(), count()) : Values(count(), -1));
            EXPECT_EQ(input, input_of(comm.rank(), count()));
        }
    });
}

TEST_P(CollectiveTest, GatherAndScatterWorkFromEveryRoot) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        const std::size_t all = count() * static_cast<std::size_t>(comm.size());
        for (Rank root = 0; root < comm.size(); ++root) {
            const bool is_root = comm.rank() == root;
            Values input = input_of(comm.rank(), count());
            Values output(is_root ? all : 0, -1);
            run(comm, CollectiveKind::kGather, equal_blocks(input, 1),
                is_root ? equal_blocks(output, comm.size()) : std::vector<Block>{}, root);
            Values back(count(), -1);
            run(comm, CollectiveKind::kScatter,
                is_root ? equal_blocks(output, comm.size()) : std::vector<Block>{},
                equal_blocks(back, 1), root);
            EXPECT_EQ(back, input);
            if (!is_root) continue;
            for (Rank rank = 0; rank < comm.size(); ++rank) {
                const auto begin = output.begin() + static_cast<std::ptrdiff_t>(count()) * rank;
                EXPECT_EQ(Values(begin, begin + static_cast<std::ptrdiff_t>(count())),
                          input_of(rank, count()));
            }
        }
    });
}

TEST_P(CollectiveTest, AllToAllTransposes) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        const std::size_t all = count() * static_cast<std::size_t>(comm.size());
        Values input = input_of(comm.rank(), all);
        Values output(all, -1);
        run(comm, CollectiveKind::kAllToAll, equal_blocks(input, comm.size()),
            equal_blocks(output, comm.size()));
        const auto own = static_cast<std::size_t>(comm.rank()) * count();
        for (Rank rank = 0; rank < comm.size(); ++rank)
            for (std::size_t i = 0; i < count(); ++i)
                ASSERT_EQ(output[static_cast<std::size_t>(rank) * count() + i],
                          element_of(rank, own + i));
    });
}

TEST_P(CollectiveTest, AsynchronousOperationsKeepTheirOrder) {
    run_ranks({.size = size()}, [](CommunicatorImpl& comm) {
        constexpr int kInFlight = 20;
        std::vector<Values> data;
        std::vector<Event> events;
        const std::size_t length = std::min<std::size_t>(count(), 100'003);
        for (int i = 0; i < kInFlight; ++i) data.push_back(Values(length, i + comm.rank()));
        for (Values& values : data) {
            const auto blocks = equal_blocks(values, 1);
            auto event = comm.submit({.kind = CollectiveKind::kAllReduce,
                                      .type = DataType::kInt32,
                                      .op = ReduceOp::kMax,
                                      .inputs = blocks,
                                      .outputs = blocks});
            ASSERT_TRUE(event.is_ok()) << event.status().to_string();
            events.push_back(*event);
        }
        ASSERT_TRUE(events.back().wait().is_ok());
        for (int i = 0; i < kInFlight; ++i) {
            EXPECT_TRUE(events[static_cast<std::size_t>(i)].is_done());
            EXPECT_EQ(data[static_cast<std::size_t>(i)], Values(length, i + comm.size() - 1));
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Shm, CollectiveTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 8),
                                            ::testing::Values(0, 1, 17, 1000, 100'003, 700'001)));

TEST(UnevenCollectivesTest, BlocksOfDifferentLengthsArrive) {
    run_ranks({.size = 3}, [](CommunicatorImpl& comm) {
        const std::vector<std::size_t> counts{5, 0, 70'001};
        Values input = input_of(comm.rank(), counts[static_cast<std::size_t>(comm.rank())]);
        std::vector<Values> parts;
        std::vector<Block> outputs;
        for (const std::size_t count : counts) parts.emplace_back(count, -1);
        for (Values& part : parts) outputs.push_back(equal_blocks(part, 1).front());
        const auto inputs = equal_blocks(input, 1);
        ASSERT_TRUE(comm.run({.kind = CollectiveKind::kAllGather,
                              .type = DataType::kInt32,
                              .inputs = inputs,
                              .outputs = outputs})
                        .is_ok());
        for (Rank rank = 0; rank < 3; ++rank)
            EXPECT_EQ(parts[static_cast<std::size_t>(rank)],
                      input_of(rank, counts[static_cast<std::size_t>(rank)]));
    });
}

TEST(MismatchTest, AllRanksAreNotified) {
    run_ranks({.size = 4}, [](CommunicatorImpl& comm) {
        Values data = input_of(comm.rank(), comm.rank() == 3 ? 11 : 10);
        const auto blocks = equal_blocks(data, 1);
        const Status status = comm.run({.kind = CollectiveKind::kAllReduce,
                                        .type = DataType::kInt32,
                                        .inputs = blocks,
                                        .outputs = blocks});
        EXPECT_EQ(status.code(), StatusCode::kMismatch) << status.to_string();
    });
}

TEST(MismatchTest, ALongerBlockOnOneRankIsNamedOnBoth) {
    run_ranks({.size = 2}, [](CommunicatorImpl& comm) {
        Values data = input_of(comm.rank(), comm.rank() == 0 ? 10 : 11);
        const auto blocks = equal_blocks(data, 1);
        const Status status = comm.run({.kind = CollectiveKind::kAllReduce,
                                        .type = DataType::kInt32,
                                        .inputs = blocks,
                                        .outputs = blocks});
        ASSERT_FALSE(status.is_ok());
        const bool named =
            status.code() == StatusCode::kMismatch || status.code() == StatusCode::kPeerLost;
        EXPECT_TRUE(named) << status.to_string();
        EXPECT_EQ(status.peer(), 1 - comm.rank());
    });
}

}  // namespace
}  // namespace pccl::comm
