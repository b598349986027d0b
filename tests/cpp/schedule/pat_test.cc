// The programs of PAT against a table of what is sent over each distance.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "csrc/schedule/generators/generators.h"

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
    Messages sent{};
    Messages received{};
};

int modulo(int number, int ranks) { return (number % ranks + ranks) % ranks; }

std::vector<Gathering> load_table() {
    std::ifstream file(std::string(PCCL_TEST_DATA) + "/schedule/pat_all_gather.tsv");
    std::vector<Gathering> table;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
        std::istringstream columns(line);
        int ranks = 0;
        int distance = 0;
        int send_to = 0;
        int receive_from = 0;
        columns >> ranks >> distance >> send_to >> receive_from;
        if (table.empty() || table.back().ranks != ranks) table.push_back({.ranks = ranks});
        for (int block = 0; columns >> block;) {  // relative to the receiver
            table.back().sent.push_back({modulo(send_to, ranks), modulo(send_to + block, ranks)});
            table.back().received.push_back({receive_from, block});
        }
    }
    return table;
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
    /// In which blocks are gathered.
    [[nodiscard]] int messages_sent() const {
        int count = 0;
        for (const Lane& lane : program_.lanes)
            for (const Step& step : lane) count += step.to.is_used() ? 1 : 0;
        return count;
    }

   private:
    [[nodiscard]] Messages messages(Port Step::*port, Slices Step::*list) const {
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

/// What was received goes back to where it came from, the last first; the blocks of a message in
/// their order.
Messages backwards(const Messages& messages) {
    Messages back;
    for (std::size_t end = messages.size(); end > 0;) {
        std::size_t begin = end;
        while (begin > 0 && messages[begin - 1].peer == messages[end - 1].peer) --begin;
        for (std::size_t i = begin; i < end; ++i) back.push_back(messages[i]);
        end = begin;
    }
    return back;
}

Messages operator+(Messages first, const Messages& then) {
    first.insert(first.end(), then.begin(), then.end());
    return first;
}

std::vector<int> peers_of(const Messages& messages) {
    std::vector<int> peers;
    for (const Message& message : messages) peers.push_back(message.peer);
    return peers;
}

TEST(PatTest, TheTableHasAllMessagesOf2To16Ranks) {
    int ranks = 2;
    for (const Gathering& gathering : load_table()) {
        EXPECT_EQ(gathering.ranks, ranks);
        EXPECT_EQ(gathering.sent.size(), static_cast<std::size_t>(ranks - 1));
        ++ranks;
    }
    EXPECT_EQ(ranks, 17);
}

TEST(PatTest, AllGatherIsTheTable) {
    for (const auto& [ranks, sent, received] : load_table()) {
        const Shape shape{.kind = CollectiveKind::kAllGather, .ranks = ranks, .chunks = 2};
        for (Rank rank = 0; rank < ranks; ++rank) {
            const Reader reader(shape, rank);
            EXPECT_EQ(reader.sent(), sent) << rank << " of " << ranks;
            EXPECT_EQ(reader.received(), received) << rank << " of " << ranks;
        }
    }
}

TEST(PatTest, AllReduceIsTheTableBackwardsAndThenForwards) {
    for (const auto& [ranks, sent, received] : load_table()) {
        const Shape shape{.ranks = ranks, .chunks = 2 * ranks};
        for (Rank rank = 0; rank < ranks; ++rank) {
            const Reader reader(shape, rank);
            EXPECT_EQ(reader.sent(), backwards(received) + sent) << rank << " of " << ranks;
            EXPECT_EQ(reader.received(), backwards(sent) + received) << rank << " of " << ranks;
        }
    }
}

/// A line of the table is a distance.
TEST(PatTest, TheBlocksOfADistanceTravelTogether) {
    for (const auto& [ranks, sent, received] : load_table()) {
        const std::vector<int> peers = peers_of(sent);
        const auto distances = static_cast<int>(std::set<int>(peers.begin(), peers.end()).size());
        const auto messages = [&, n = ranks](CollectiveKind kind) {
            return Reader({.kind = kind, .ranks = n, .chunks = n}, n - 1).messages_sent();
        };
        EXPECT_EQ(messages(CollectiveKind::kAllGather), distances) << ranks;
        EXPECT_EQ(messages(CollectiveKind::kReduceScatter), distances) << ranks;
        EXPECT_EQ(messages(CollectiveKind::kAllReduce), 2 * distances) << ranks;
    }
}

TEST(PatTest, ReduceScatterHasThePeersOfTheTableBackwards) {
    for (const auto& [ranks, sent, received] : load_table()) {
        const Shape shape{.kind = CollectiveKind::kReduceScatter, .ranks = ranks};
        for (Rank rank = 0; rank < ranks; ++rank) {
            const Reader reader(shape, rank);
            EXPECT_EQ(peers_of(reader.sent()), peers_of(backwards(received)));
            EXPECT_EQ(peers_of(reader.received()), peers_of(backwards(sent)));
        }
    }
}

TEST(PatTest, OnlyReduceScatterNeedsScratchForTheBlocksThatGrow) {
    for (const int ranks : {2, 3, 8, 9, 1000}) {
        const auto scratch_of = [&](CollectiveKind kind) {
            const Shape shape{.kind = kind, .ranks = ranks, .chunks = 3 * ranks};
            return Reader(shape, ranks - 1).program().scratch_chunks / shape.chunks;
        };
        EXPECT_EQ(scratch_of(CollectiveKind::kReduceScatter), ranks / 2 - 1);
        EXPECT_EQ(scratch_of(CollectiveKind::kAllGather), 0);
        EXPECT_EQ(scratch_of(CollectiveKind::kAllReduce), 0);
    }
}

}  // namespace
}  // namespace pccl::schedule
