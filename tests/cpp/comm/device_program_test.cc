// Schedules as tables for GPUs: run here as the kernel runs them, on numbers in place of chunks.

#include "csrc/comm/device/device_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/comm/collective_operation.h"
#include "csrc/schedule/generators.h"

namespace pccl::comm {
namespace {

using schedule::Algorithm;
using schedule::Buffer;
using schedule::CollectiveKind;
using ::testing::HasSubstr;

using Values = std::vector<double>;
using Message = Values;

/// Counted as the kernel counts.
class Fifo {
   public:
    [[nodiscard]] bool has_room() const {
        return static_cast<std::int32_t>(emptied_ - abi::emptied_before(filled_)) >= 0;
    }
    [[nodiscard]] bool has_message() const { return filled_ != emptied_; }
    void put(Message message) { slots_.at(abi::slot_after(filled_++)) = std::move(message); }
    Message take() { return slots_.at(abi::slot_after(emptied_++)); }

   private:
    std::array<Message, abi::kDeviceSlots> slots_;
    std::uint32_t filled_ = std::uint32_t{0} - 3;  // so that both wrap
    std::uint32_t emptied_ = std::uint32_t{0} - 3;
};

std::size_t index(int i) { return static_cast<std::size_t>(i); }

struct Rank {
    DeviceTables tables;
    std::map<abi::DeviceBuffer, Values> memory;
    std::vector<int> done;  // steps, by lane
};

/// All ranks of one schedule, a step of any lane at a time.
class Machine {
   public:
    explicit Machine(const schedule::Schedule& made) : shape_(made.shape) {
        for (const schedule::Program& program : made.programs) {
            auto tables = tabulate(program);
            EXPECT_TRUE(tables.is_ok()) << tables.status().to_string();
            Rank rank{
                .tables = *tables, .memory = {}, .done = std::vector<int>(program.lanes.size())};
            const auto chunks = [&](Buffer buffer) {
                return index(schedule::blocks(shape_.kind, buffer, shape_.ranks) * shape_.chunks);
            };
            Values input(chunks(Buffer::kInput));
            std::iota(input.begin(), input.end(), 1000.0 * static_cast<double>(ranks_.size()));
            rank.memory[abi::DeviceBuffer::kInput] = input;
            rank.memory[abi::DeviceBuffer::kOutput] = Values(chunks(Buffer::kOutput), -1);
            rank.memory[abi::DeviceBuffer::kScratch] = Values(index(program.scratch_chunks), -2);
            ranks_.push_back(std::move(rank));
        }
    }

    /// Whether all steps could be run.
    bool run() {
        while (advance()) {
        }
        return std::ranges::all_of(ranks_, [](const Rank& rank) {
            for (std::size_t lane = 0; lane < rank.done.size(); ++lane)
                if (rank.done[lane] < rank.tables.lanes[lane].steps) return false;
            return true;
        });
    }

    /// No message is left for the next launch.
    [[nodiscard]] bool is_empty() const {
        return std::ranges::none_of(fifos_,
                                    [](const auto& each) { return each.second.has_message(); });
    }

    Values& of(int rank, abi::DeviceBuffer buffer) { return ranks_[index(rank)].memory[buffer]; }

   private:
    bool advance() {
        bool moved = false;
        for (int rank = 0; rank < shape_.ranks; ++rank)
            for (std::size_t lane = 0; lane < ranks_[index(rank)].done.size(); ++lane)
                while (step(rank, lane)) moved = true;
        return moved;
    }

    bool step(int self, std::size_t lane_index) {
        Rank& rank = ranks_[index(self)];
        const abi::DeviceLane& lane = rank.tables.lanes[lane_index];
        if (rank.done[lane_index] == lane.steps) return false;
        const auto& step = rank.tables.steps[index(lane.first_step + rank.done[lane_index])];
        for (int i = 0; i < step.waits; ++i) {
            const abi::DeviceWait& wait = rank.tables.waits[index(step.first_wait + i)];
            if (rank.done[index(wait.lane)] <= wait.step) return false;
        }
        Fifo* const from = fifo(self, lane, step.from);
        Fifo* const to = fifo(self, lane, step.to);
        if (from != nullptr && !from->has_message()) return false;
        if (to != nullptr && !to->has_room()) return false;
        move(rank, step, from, to);
        ++rank.done[lane_index];
        return true;
    }

    Fifo* fifo(int self, const abi::DeviceLane& lane, int port) {
        if (port == abi::kNoDevicePort) return nullptr;
        const auto& end = ranks_[index(self)].tables.ports[index(lane.first_port + port)];
        return end.is_sending != 0 ? &fifos_[{self, end.peer, end.channel}]
                                   : &fifos_[{end.peer, self, end.channel}];
    }

    static void move(Rank& rank, const abi::DeviceStep& step, Fifo* from, Fifo* to) {
        const Message incoming = from != nullptr ? from->take() : Message(index(step.chunks));
        EXPECT_EQ(incoming.size(), index(step.chunks));
        Message outgoing;
        for (int i = 0; i < step.chunks; ++i) {
            double value = incoming.at(index(i));
            for (int source = 0; source < step.source_count; ++source)
                value += at(rank, step.sources[source], i);
            EXPECT_LE(step.source_count + (from != nullptr ? 1 : 0), 2);
            if (step.has_target != 0) at(rank, step.target, i) = value;
            outgoing.push_back(value);
        }
        if (to != nullptr) to->put(std::move(outgoing));
    }

    static double& at(Rank& rank, const abi::DeviceSlice& slice, int i) {
        return rank.memory[slice.buffer].at(index(slice.first + i));
    }

    const schedule::Shape shape_;
    std::vector<Rank> ranks_;
    std::map<std::tuple<int, int, int>, Fifo> fifos_;  // sender, receiver, channel
};

/// What `rank` gets, by the definition of the collective.
Values expected(const schedule::Shape& shape, Machine& machine, int rank) {
    const int n = shape.ranks;
    const int chunks = shape.chunks;
    const auto input = [&](int from, int chunk) {
        return machine.of(from, abi::DeviceBuffer::kInput).at(index(chunk));
    };
    Values values;
    const int count = schedule::blocks(shape.kind, Buffer::kOutput, n) * chunks;
    for (int i = 0; i < count; ++i) {
        const int block = i / chunks;
        double sum = 0;
        for (int from = 0; from < n; ++from)
            sum += shape.kind == CollectiveKind::kReduceScatter ? input(from, rank * chunks + i)
                   : reduces(shape.kind)                        ? input(from, i)
                                                                : 0;
        if (shape.kind == CollectiveKind::kAllGather) sum = input(block, i % chunks);
        if (shape.kind == CollectiveKind::kAllToAll) sum = input(block, rank * chunks + i % chunks);
        if (shape.kind == CollectiveKind::kBroadcast) sum = input(shape.root, i);
        values.push_back(sum);
    }
    return values;
}

class DeviceProgramTest : public ::testing::TestWithParam<int> {};

TEST_P(DeviceProgramTest, TablesDoWhatTheSchedulesSay) {
    const int n = GetParam();
    for (const auto kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kAllToAll}) {
        for (const Algorithm algorithm : schedule::algorithms_for(kind)) {
            const schedule::Shape shape{.kind = kind,
                                        .ranks = n,
                                        .root = schedule::is_rooted(kind) ? n - 1 : 0,
                                        .chunks = schedule::chunk_granularity(algorithm, kind, n),
                                        .slots = schedule::slots_needed(algorithm, kind)};
            SCOPED_TRACE(testing::Message() << schedule::to_string(algorithm) << " "
                                            << schedule::to_string(kind) << " of " << n);
            const auto made = schedule::generate(algorithm, shape);
            ASSERT_TRUE(made.is_ok()) << made.status().to_string();
            ASSERT_TRUE(device_grid(*made).is_ok()) << device_grid(*made).status().to_string();
            Machine machine(*made);
            ASSERT_TRUE(machine.run());
            EXPECT_TRUE(machine.is_empty());
            for (int rank = 0; rank < n; ++rank) {
                if (kind == CollectiveKind::kReduce && rank != shape.root) continue;
                EXPECT_EQ(machine.of(rank, abi::DeviceBuffer::kOutput),
                          expected(shape, machine, rank))
                    << "rank " << rank;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, DeviceProgramTest, ::testing::Range(2, 9));

TEST(DeviceGridTest, WorkersAreAsManyAsFifosAndBlocksAllow) {
    const DeviceGrid ring{.lanes = 1, .channels = 1, .chunks = 4, .longest = 1};
    EXPECT_EQ(ring.chunk_bytes(), abi::kSlotBytes);
    EXPECT_EQ(ring.workers(std::size_t{1} << 30), abi::kDeviceFifos);
    EXPECT_EQ(ring.workers(1), 1);
    const DeviceGrid pairs{.lanes = 14, .channels = 1, .chunks = 1, .longest = 1};
    EXPECT_EQ(pairs.workers(std::size_t{1} << 30), abi::kMostBlocks / 14);
    const DeviceGrid long_messages{.lanes = 1, .channels = 2, .chunks = 8, .longest = 7};
    EXPECT_EQ(long_messages.workers(std::size_t{1} << 30), abi::kDeviceFifos / 2);
    EXPECT_LE(7 * long_messages.chunk_bytes(), abi::kSlotBytes);
    EXPECT_EQ(long_messages.chunk_bytes() % abi::kChunkAlignment, 0U);
}

TEST(DeviceGridTest, WhatAGpuDoesNotRunIsRefused) {
    schedule::Schedule wide{.name = "wide", .shape = {.ranks = 1}, .programs = {{}}};
    wide.programs.front().lanes.resize(index(abi::kMostBlocks) + 1);
    EXPECT_THAT(device_grid(wide).status().message(), HasSubstr("wide with 129 lanes"));
    schedule::Schedule slow{.name = "slow", .shape = {.ranks = 1, .slots = 9}, .programs = {{}}};
    EXPECT_THAT(device_grid(slow).status().message(), HasSubstr("9 slots"));
    const schedule::Program phases{.lanes = {{{.action = schedule::Action::kSwitchPhase}}}};
    EXPECT_THAT(tabulate(phases).status().message(), HasSubstr("switch_phase"));
}

}  // namespace
}  // namespace pccl::comm
