// SPDX-License-Identifier: Apache-2.0

// The programs of PAT against a table of what is sent over each distance.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/fakes/places.h"

namespace pccl::schedule {
namespace {

/// The peer and the owner of the block, both relative to the rank that sends or receives it.
struct Message {
    int peer = 0;
    int block = 0;
    auto operator<=>(const Message&) const = default;
};
using Messages = std::vector<Message>;

/// What every rank does in an all_gather, in order.
struct Gathering {
    int ranks = 0;
    int aggregation = 0;
    std::vector<Messages> sent{};  // the blocks of each message
    std::vector<Messages> received{};
};

int modulo(int number, int ranks) { return (number % ranks + ranks) % ranks; }

/// Columns: ranks, aggregation, step, dimension, peers that it sends to and receives from, and the
/// blocks as the receiver sees them. A line is a message.
std::vector<Gathering> load_table() {
    std::ifstream file(fakes::in_tests("data/schedule/pat_all_gather.tsv"));
    std::vector<Gathering> table;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream columns(line);
        int ranks = 0;
        int aggregation = 0;
        int step = 0;
        int dimension = 0;
        int send_to = 0;
        int receive_from = 0;
        columns >> ranks >> aggregation >> step >> dimension >> send_to >> receive_from;
        if (step == 0) table.push_back({.ranks = ranks, .aggregation = aggregation});
        Messages& sent = table.back().sent.emplace_back();
        Messages& received = table.back().received.emplace_back();
        for (int block = 0; columns >> block;) {
            sent.push_back({modulo(send_to, ranks), modulo(send_to + block, ranks)});
            received.push_back({receive_from, block});
        }
    }
    return table;
}

Shape shape_of(CollectiveKind kind, const Gathering& line, int chunks) {
    return {.kind = kind, .ranks = line.ranks, .chunks = chunks, .aggregation = line.aggregation};
}

class Reader {
   public:
    Reader(const Shape& shape, Rank rank)
        : shape_(shape),
          rank_(rank),
          program_(generate_program(*built_in("pat", shape.kind).value(), shape, rank).value()) {}

    [[nodiscard]] Messages sent() const { return messages(&Step::to, &Step::src); }
    [[nodiscard]] Messages received() const { return messages(&Step::from, &Step::dst); }
    [[nodiscard]] const Program& program() const { return program_; }
    [[nodiscard]] int messages_sent() const {
        int count = 0;
        for (const Lane& lane : program_.lanes)
            for (const Step& step : lane) count += step.to.is_used() ? 1 : 0;
        return count;
    }

   private:
    [[nodiscard]] Messages messages(PeerPort Step::*port, Slices Step::*list) const {
        Messages found;
        for (const Lane& lane : program_.lanes)
            for (const Step& step : lane)
                if ((step.*port).is_used())
                    for (const Slice& block : blocks_of(step.*list))
                        found.push_back({relative((step.*port).peer), relative(owner(block))});
        return found;
    }

    /// Blocks of neighbours adjoin.
    [[nodiscard]] std::vector<Slice> blocks_of(const Slices& list) const {
        const bool has_parts = shape_.kind == CollectiveKind::kAllReduce;
        const int size = has_parts ? shape_.chunks / shape_.ranks : shape_.chunks;
        std::vector<Slice> found;
        for (const Slice& slice : list)
            for (int first = 0; first < slice.count; first += size)
                found.push_back({slice.buffer, slice.offset + first, size});
        return found;
    }

    [[nodiscard]] int relative(Rank rank) const { return modulo(rank - rank_, shape_.ranks); }

    /// Of what lies in scratch nothing tells the owner.
    [[nodiscard]] Rank owner(const Slice& slice) const {
        if (shape_.kind == CollectiveKind::kAllReduce)
            return slice.offset / (shape_.chunks / shape_.ranks);
        return slice.buffer == Buffer::kInput ? rank_ : slice.offset / shape_.chunks;
    }

    Shape shape_;
    Rank rank_;
    Program program_;
};

Messages joined(const std::vector<Messages>& messages) {
    Messages all;
    for (const Messages& message : messages) all.insert(all.end(), message.begin(), message.end());
    return all;
}

/// What was received goes back to where it came from, the last first; the blocks of a message in
/// their order.
std::vector<Messages> backwards(std::vector<Messages> messages) {
    std::ranges::reverse(messages);
    return messages;
}

Messages operator+(const std::vector<Messages>& first, const std::vector<Messages>& then) {
    std::vector<Messages> both = first;
    both.insert(both.end(), then.begin(), then.end());
    return joined(both);
}

std::vector<int> peers_of(const Messages& messages) {
    std::vector<int> peers;
    for (const Message& message : messages) peers.push_back(message.peer);
    return peers;
}

TEST(PatTest, TheTableHasAllMessagesOf2To16Ranks) {
    std::set<std::pair<int, int>> seen;
    for (const Gathering& line : load_table()) {
        EXPECT_EQ(joined(line.sent).size(), static_cast<std::size_t>(line.ranks - 1));
        seen.emplace(line.ranks, line.aggregation);
    }
    for (int ranks = 2; ranks <= 16; ++ranks)
        for (int aggregation = 1; aggregation == 1 || aggregation < ranks; aggregation *= 2)
            EXPECT_TRUE(seen.erase({ranks, aggregation})) << ranks << ", " << aggregation;
    EXPECT_TRUE(seen.empty());
}

TEST(PatTest, AllGatherIsTheTable) {
    for (const Gathering& line : load_table()) {
        for (Rank rank = 0; rank < line.ranks; ++rank) {
            const Reader reader(shape_of(CollectiveKind::kAllGather, line, 2), rank);
            EXPECT_EQ(reader.sent(), joined(line.sent)) << rank << " of " << line.ranks;
            EXPECT_EQ(reader.received(), joined(line.received)) << rank << " of " << line.ranks;
        }
    }
}

TEST(PatTest, AllReduceIsTheTableBackwardsAndThenForwards) {
    for (const Gathering& line : load_table()) {
        for (Rank rank = 0; rank < line.ranks; ++rank) {
            const Reader reader(shape_of(CollectiveKind::kAllReduce, line, 2 * line.ranks), rank);
            EXPECT_EQ(reader.sent(), backwards(line.received) + line.sent) << rank;
            EXPECT_EQ(reader.received(), backwards(line.sent) + line.received) << rank;
        }
    }
}

TEST(PatTest, ALineOfTheTableIsAMessage) {
    for (const Gathering& line : load_table()) {
        const auto messages = [&](CollectiveKind kind) {
            return Reader(shape_of(kind, line, line.ranks), line.ranks - 1).messages_sent();
        };
        EXPECT_EQ(messages(CollectiveKind::kAllGather), std::ssize(line.sent)) << line.ranks;
        EXPECT_EQ(messages(CollectiveKind::kReduceScatter), std::ssize(line.sent)) << line.ranks;
        EXPECT_EQ(messages(CollectiveKind::kAllReduce), 2 * std::ssize(line.sent)) << line.ranks;
    }
}

TEST(PatTest, ReduceScatterHasThePeersOfTheTableBackwards) {
    for (const Gathering& line : load_table()) {
        for (Rank rank = 0; rank < line.ranks; ++rank) {
            const Reader reader(shape_of(CollectiveKind::kReduceScatter, line, 1), rank);
            EXPECT_EQ(peers_of(reader.sent()), peers_of(joined(backwards(line.received))));
            EXPECT_EQ(peers_of(reader.received()), peers_of(joined(backwards(line.sent))));
        }
    }
}

/// The paper's formulas, for n = P: log2 A + P/A - 1 messages, A log2(P/A) - 1 sums that wait.
TEST(PatTest, MessagesAndScratchAreTheFormulas) {
    for (int log = 1; log <= 10; ++log) {
        for (int up = 0; up < log; ++up) {
            const Gathering line{.ranks = 1 << log, .aggregation = 1 << up};
            const Reader reader(shape_of(CollectiveKind::kReduceScatter, line, 3), 1);
            EXPECT_EQ(reader.messages_sent(), up + (1 << (log - up)) - 1) << log << ", " << up;
            EXPECT_EQ(reader.program().scratch_chunks, 3 * ((1 << up) * (log - up) - 1));
            const Reader gathering(shape_of(CollectiveKind::kAllGather, line, 3), 1);
            EXPECT_EQ(gathering.program().scratch_chunks, 0);
        }
    }
    for (const auto& [ranks, messages] : {std::pair(64, 6), std::pair(128, 7)}) {
        const Shape shape{.kind = CollectiveKind::kAllGather, .ranks = ranks, .chunks = 1};
        EXPECT_EQ(Reader(shape, 0).messages_sent(), messages);
    }
}

TEST(PatTest, NoRoundIsLostBehindAPowerOfTwo) {
    for (int log = 1; log <= 7; ++log) {
        const Shape shape{.kind = CollectiveKind::kAllGather, .ranks = (1 << log) + 1, .chunks = 1};
        EXPECT_EQ(Reader(shape, 0).messages_sent(), log + 1);
    }
}

/// Where a message that waits for the one before it, and each message of a rank, takes one unit.
TEST(PatTest, NoneHasFewerRoundsAndMessages) {
    const auto units = [](std::string_view name, CollectiveKind kind, int ranks) {
        const SourcePtr source = built_in(name, kind).value();
        const Cost cost = source->cost(least_shape(*source, ranks), 1);
        return cost.rounds + cost.messages;
    };
    for (int ranks = 8; ranks <= 128; ++ranks) {
        for (const std::string_view other : {"ring", "recursive_doubling", "bruck"})
            EXPECT_LE(units("pat", CollectiveKind::kAllGather, ranks),
                      units(other, CollectiveKind::kAllGather, ranks))
                << other << ", " << ranks;
        for (const std::string_view other : {"ring", "recursive_halving"})
            EXPECT_LE(units("pat", CollectiveKind::kReduceScatter, ranks),
                      units(other, CollectiveKind::kReduceScatter, ranks))
                << other << ", " << ranks;
    }
}

TEST(PatTest, OthersDoNotAggregate) {
    const SourcePtr ring = built_in("ring", CollectiveKind::kAllGather).value();
    const Shape shape{.kind = CollectiveKind::kAllGather, .ranks = 4, .aggregation = 2};
    EXPECT_EQ(generate(*ring, shape).status().code(), StatusCode::kInvalidArgument);
}

class PatProof : public ::testing::TestWithParam<CollectiveKind> {};

/// Every number of ranks and blocks in a message: right, without races or deadlock, and with the
/// rounds that its closed form says.
TEST_P(PatProof, IsProvenForEveryAggregation) {
    const SourcePtr pat = built_in("pat", GetParam()).value();
    const int most = GetParam() == CollectiveKind::kAllReduce ? 48 : 128;  // it is both of these
    for (int ranks = 2; ranks <= most; ++ranks) {
        for (int aggregation = 1; aggregation == 1 || aggregation < ranks; aggregation *= 2) {
            Shape shape = least_shape(*pat, ranks);
            shape.aggregation = aggregation;
            const auto schedule = generate(*pat, shape);
            for (const Placement placement : testing::placements(GetParam())) {
                const auto verdict = verify(*schedule, placement);
                ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
                EXPECT_EQ(verdict->rounds, pat->cost(shape, 1).rounds)
                    << ranks << " ranks, " << aggregation;
                EXPECT_EQ(verdict->takes_uneven, pat->takes_uneven);
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All, PatProof,
                         ::testing::Values(CollectiveKind::kAllGather,
                                           CollectiveKind::kReduceScatter,
                                           CollectiveKind::kAllReduce),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

}  // namespace
}  // namespace pccl::schedule
