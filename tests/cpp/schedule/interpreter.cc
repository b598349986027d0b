// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/schedule/interpreter.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::schedule::testing {
namespace {

// Sums modulo 2^64 of random numbers: a contribution that is missing, doubled or misplaced shows.
using Number = std::uint64_t;
using Chunk = std::vector<Number>;
using Memory = std::vector<Chunk>;

struct Fault {
    std::string what;
};

/// Buffers of one rank. Where two buffers are one memory, one of them is a window of the other.
struct RankState {
    Memory input;
    Memory output;
    Memory scratch;
    bool has_input = true;
    bool has_output = true;
    bool output_is_in_input = false;  // else, in place, input is in output
    bool in_place = false;
    std::size_t window = 0;
    std::vector<std::size_t> next;  // the step that each lane runs next

    Chunk& at(Buffer buffer, int index) {
        const auto i = static_cast<std::size_t>(index);
        if (buffer == Buffer::kScratch) return scratch.at(i);
        if (!(buffer == Buffer::kInput ? has_input : has_output)) {
            throw Fault{"touches a buffer that this rank does not have"};
        }
        if (buffer == Buffer::kInput) {
            return in_place && !output_is_in_input ? output.at(window + i) : input.at(i);
        }
        return in_place && output_is_in_input ? input.at(window + i) : output.at(i);
    }
};

class Interpreter {
   public:
    Interpreter(const Schedule& schedule, Placement placement, std::mt19937_64& random)
        : schedule_(schedule),
          shape_(schedule.shape),
          in_place_(placement == Placement::kInPlace),
          random_(random) {
        for (Rank rank = 0; rank < shape_.ranks; ++rank) make_rank(rank);
    }

    std::string run() {
        try {
            while (step_somewhere()) {
            }
            check_finished();
            check_outputs();
            check_inputs();
        } catch (const Fault& fault) {
            return fault.what;
        } catch (const std::out_of_range&) {
            return "a slice leaves its buffer";
        }
        return {};
    }

   private:
    using Fifo = std::tuple<Rank, Rank, ChannelId>;

    [[nodiscard]] std::size_t length_of(int chunk) const {
        return static_cast<std::size_t>(3 - chunk % shape_.chunks * 3 / shape_.chunks);
    }

    Memory random_memory(int chunks) {
        Memory memory;
        for (int i = 0; i < chunks; ++i) {
            Chunk& chunk = memory.emplace_back(length_of(i));
            for (Number& number : chunk) number = random_();
        }
        return memory;
    }

    void make_rank(Rank rank) {
        const bool root = rank == shape_.root;
        const auto kind = shape_.kind;
        RankState& state = ranks_.emplace_back();
        const int in = blocks(kind, Buffer::kInput, shape_.ranks) * shape_.chunks;
        const int out = blocks(kind, Buffer::kOutput, shape_.ranks) * shape_.chunks;
        const Program& program = schedule_.programs.at(static_cast<std::size_t>(rank));
        state.has_input =
            root || (kind != CollectiveKind::kBroadcast && kind != CollectiveKind::kScatter);
        state.has_output =
            root || (kind != CollectiveKind::kReduce && kind != CollectiveKind::kGather);
        state.in_place = in_place_ && state.has_input && state.has_output;
        state.output_is_in_input = in > out;
        if (in != out) state.window = static_cast<std::size_t>(rank * shape_.chunks);
        state.input = random_memory(in);
        state.output = random_memory(out);
        state.scratch = random_memory(program.scratch_chunks);
        state.next.resize(program.lanes.size());
        Memory& before = inputs_.emplace_back();
        for (int i = 0; state.has_input && i < in; ++i) {
            before.push_back(state.at(Buffer::kInput, i));
        }
    }

    bool step_somewhere() {
        std::vector<std::pair<Rank, std::size_t>> places;
        for (Rank rank = 0; rank < shape_.ranks; ++rank) {
            for (std::size_t lane = 0; lane < program(rank).lanes.size(); ++lane) {
                places.emplace_back(rank, lane);
            }
        }
        std::ranges::shuffle(places, random_);
        // A lane runs on for a while at times, to reach far apart states, too.
        bool moved = false;
        for (const auto& [rank, lane] : places) {
            for (auto turns = random_() % 4; turns > 0 && try_step(rank, lane); --turns)
                moved = true;
        }
        for (const auto& [rank, lane] : places) {
            if (moved) break;
            moved = try_step(rank, lane);
        }
        return moved;
    }

    [[nodiscard]] const Program& program(Rank rank) const {
        return schedule_.programs[static_cast<std::size_t>(rank)];
    }

    bool try_step(Rank rank, std::size_t lane) {
        RankState& state = ranks_[static_cast<std::size_t>(rank)];
        const Lane& steps = program(rank).lanes[lane];
        if (state.next[lane] == steps.size()) return false;
        const Step& step = steps[state.next[lane]];
        for (const Dependency& after : step.after) {
            if (state.next.at(static_cast<std::size_t>(after.lane)) <=
                static_cast<std::size_t>(after.step)) {
                return false;
            }
        }
        const Fifo out{rank, step.to.peer, step.to.channel};
        const Fifo in{step.from.peer, rank, step.from.channel};
        const auto slots = static_cast<std::size_t>(shape_.slots);
        if (step.to.is_used() && fifos_[out].size() >= slots) return false;
        if (step.from.is_used() && fifos_[in].empty()) return false;
        Memory incoming;
        if (step.from.is_used()) {
            incoming = std::move(fifos_[in].front());
            fifos_[in].pop_front();
        }
        Memory outgoing = perform(state, step, std::move(incoming));
        if (step.to.is_used()) fifos_[out].push_back(std::move(outgoing));
        ++state.next[lane];
        return true;
    }

    static std::vector<Chunk*> places(RankState& state, const Slices& slices) {
        std::vector<Chunk*> chunks;
        for (const Slice& slice : slices)
            for (int i = 0; i < slice.count; ++i)
                chunks.push_back(&state.at(slice.buffer, slice.offset + i));
        return chunks;
    }

    static Memory read(RankState& state, const Slices& slices) {
        Memory chunks;
        for (const Chunk* chunk : places(state, slices)) chunks.push_back(*chunk);
        return chunks;
    }

    static void write(RankState& state, const Slices& slices, const Memory& chunks) {
        const std::vector<Chunk*> targets = places(state, slices);
        if (chunks.size() != targets.size()) throw Fault{"wrong count"};
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            if (targets[i]->size() != chunks[i].size()) throw Fault{"chunk of another length"};
            *targets[i] = chunks[i];
        }
    }

    static Memory add(Memory left, const Memory& right) {
        if (left.size() != right.size()) throw Fault{"wrong count"};
        for (std::size_t i = 0; i < left.size(); ++i) {
            if (left[i].size() != right[i].size()) throw Fault{"chunk of another length"};
            for (std::size_t k = 0; k < left[i].size(); ++k) left[i][k] += right[i][k];
        }
        return left;
    }

    /// What the step sends.
    static Memory perform(RankState& state, const Step& step, Memory incoming) {
        const Slices& own = step.src.is_empty() ? step.dst : step.src;
        Memory result;
        switch (step.action) {
            case Action::kNop:
            case Action::kSwitchPhase:
                return {};
            case Action::kCopy:
            case Action::kSend:
                result = read(state, step.src);
                break;
            case Action::kReduce:
                result = add(read(state, step.dst), read(state, step.src));
                break;
            case Action::kRecv:
            case Action::kRecvCopySend:
                result = std::move(incoming);
                break;
            case Action::kRecvReduce:
            case Action::kRecvReduceSend:
            case Action::kRecvReduceCopySend:
                result = add(read(state, own), incoming);
                break;
        }
        if (!step.dst.is_empty()) write(state, step.dst, result);
        return result;
    }

    void check_finished() const {
        for (Rank rank = 0; rank < shape_.ranks; ++rank) {
            const RankState& state = ranks_[static_cast<std::size_t>(rank)];
            for (std::size_t lane = 0; lane < state.next.size(); ++lane) {
                if (state.next[lane] < program(rank).lanes[lane].size()) {
                    throw Fault{concat("deadlock: rank ", rank, " lane ", lane, " step ",
                                       state.next[lane])};
                }
            }
        }
        for (const auto& [name, fifo] : fifos_) {
            if (!fifo.empty()) throw Fault{"a message was never received"};
        }
    }

    Chunk sum_of_inputs(int chunk) const {
        Chunk sum(length_of(chunk));
        for (const Memory& input : inputs_) {
            for (std::size_t k = 0; k < sum.size(); ++k) {
                sum[k] += input.at(static_cast<std::size_t>(chunk)).at(k);
            }
        }
        return sum;
    }

    Chunk input_of(Rank rank, int chunk) const {
        return inputs_.at(static_cast<std::size_t>(rank)).at(static_cast<std::size_t>(chunk));
    }

    /// Chunk `i` of block `b` of the output of `rank`, in the words of the collective's definition.
    Chunk expected(Rank rank, int b, int i) const {
        const int own_block = rank * shape_.chunks + i;
        switch (shape_.kind) {
            case CollectiveKind::kAllReduce:
            case CollectiveKind::kReduce:
                return sum_of_inputs(i);
            case CollectiveKind::kReduceScatter:
                return sum_of_inputs(own_block);
            case CollectiveKind::kAllGather:
            case CollectiveKind::kGather:
                return input_of(b, i);
            case CollectiveKind::kBroadcast:
                return input_of(shape_.root, i);
            case CollectiveKind::kScatter:
                return input_of(shape_.root, own_block);
            case CollectiveKind::kAllToAll:
                return input_of(b, own_block);
        }
        return {};
    }

    void check_outputs() {
        const int out_blocks = blocks(shape_.kind, Buffer::kOutput, shape_.ranks);
        for (Rank rank = 0; rank < shape_.ranks; ++rank) {
            RankState& state = ranks_[static_cast<std::size_t>(rank)];
            if (!state.has_output) continue;
            for (int b = 0; b < out_blocks; ++b) {
                for (int i = 0; i < shape_.chunks; ++i) {
                    if (state.at(Buffer::kOutput, b * shape_.chunks + i) == expected(rank, b, i)) {
                        continue;
                    }
                    throw Fault{concat("rank ", rank, " has a wrong chunk ", i, " in block ", b)};
                }
            }
        }
    }

    /// Only what is output, too, may have changed.
    void check_inputs() {
        for (Rank rank = 0; rank < shape_.ranks; ++rank) {
            RankState& state = ranks_[static_cast<std::size_t>(rank)];
            const Memory& before = inputs_[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < before.size(); ++i) {
                const bool is_output =
                    state.in_place &&
                    (!state.output_is_in_input ||
                     (i >= state.window && i < state.window + state.output.size()));
                if (is_output) continue;
                if (state.at(Buffer::kInput, static_cast<int>(i)) != before[i]) {
                    throw Fault{concat("rank ", rank, " changed its input")};
                }
            }
        }
    }

    const Schedule& schedule_;
    const Shape& shape_;
    bool in_place_;
    std::mt19937_64& random_;
    std::vector<RankState> ranks_;
    std::vector<Memory> inputs_;
    std::map<Fifo, std::deque<Memory>> fifos_;
};

}  // namespace

std::string interpret(const Schedule& schedule, Placement placement, std::mt19937_64& random) {
    return Interpreter(schedule, placement, random).run();
}

}  // namespace pccl::schedule::testing
