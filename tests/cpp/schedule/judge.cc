// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/schedule/judge.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "tests/cpp/schedule/interpreter.h"

namespace pccl::schedule::testing {
namespace {

constexpr int kOrdersJudged = 50;

struct Node {
    Rank rank = 0;
    int lane = 0;
    int step = 0;
    const Step* what = nullptr;
};

class Closure {
   public:
    Closure(const Schedule& schedule, Placement placement)
        : schedule_(schedule), in_place_(placement == Placement::kInPlace) {
        collect();
        before_.assign(nodes_.size(), std::vector<bool>(nodes_.size()));
        add_edges();
        for (std::size_t via = 0; via < nodes_.size(); ++via) {
            for (std::size_t to = 0; to < nodes_.size(); ++to) {
                if (!before_[via][to]) continue;
                for (std::size_t from = 0; from < nodes_.size(); ++from) {
                    if (before_[from][via]) before_[from][to] = true;
                }
            }
        }
    }

    std::string find_race() const {
        for (std::size_t a = 0; a < nodes_.size(); ++a) {
            for (std::size_t b = a + 1; b < nodes_.size(); ++b) {
                if (before_[a][b] || before_[b][a] || !conflict(nodes_[a], nodes_[b])) continue;
                return concat("race on rank ", nodes_[a].rank, ": ", to_string(*nodes_[a].what),
                              " and ", to_string(*nodes_[b].what));
            }
        }
        return {};
    }

   private:
    void collect() {
        for (Rank rank = 0; rank < schedule_.shape.ranks; ++rank) {
            const auto& lanes = schedule_.programs.at(static_cast<std::size_t>(rank)).lanes;
            for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
                for (std::size_t step = 0; step < lanes[lane].size(); ++step) {
                    nodes_.push_back(
                        {rank, static_cast<int>(lane), static_cast<int>(step), &lanes[lane][step]});
                }
            }
        }
    }

    void add_edges() {
        std::map<std::tuple<Rank, Rank, ChannelId>, std::vector<std::size_t>> sends;
        std::map<std::tuple<Rank, Rank, ChannelId>, std::vector<std::size_t>> receives;
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const Node& node = nodes_[i];
            for (std::size_t other = 0; other < nodes_.size(); ++other) {
                if (waits_for(node, nodes_[other])) before_[other][i] = true;
            }
            const PeerPort& to = node.what->to;
            const PeerPort& from = node.what->from;
            if (to.is_used()) sends[{node.rank, to.peer, to.channel}].push_back(i);
            if (from.is_used()) receives[{from.peer, node.rank, from.channel}].push_back(i);
        }
        const auto slots = static_cast<std::size_t>(schedule_.shape.slots);
        for (const auto& [fifo, sent] : sends) {
            const auto& received = receives[fifo];
            for (std::size_t k = 0; k < std::min(sent.size(), received.size()); ++k) {
                before_[sent[k]][received[k]] = true;
                if (k + slots < sent.size()) before_[received[k]][sent[k + slots]] = true;
            }
        }
    }

    static bool waits_for(const Node& node, const Node& other) {
        if (node.rank != other.rank) return false;
        if (node.lane == other.lane) return other.step < node.step;
        return std::ranges::any_of(node.what->after, [&](const Dependency& after) {
            return after.lane == other.lane && other.step <= after.step;
        });
    }

    /// Two chunks of a rank are one place if this is equal for both.
    std::pair<bool, int> place(Rank rank, Buffer buffer, int index) const {
        if (buffer == Buffer::kScratch) return {true, index};
        const Shape& shape = schedule_.shape;
        const int in = blocks(shape.kind, Buffer::kInput, shape.ranks);
        const int out = blocks(shape.kind, Buffer::kOutput, shape.ranks);
        if (!in_place_) return {false, 2 * index + (buffer == Buffer::kInput ? 0 : 1)};
        const bool is_window = buffer == Buffer::kInput ? in < out : out < in;
        return {false, index + (is_window ? rank * shape.chunks : 0)};
    }

    bool overlap(Rank rank, const Slice& a, const Slice& b) const {
        for (int i = 0; i < a.count; ++i) {
            for (int k = 0; k < b.count; ++k) {
                if (place(rank, a.buffer, a.offset + i) == place(rank, b.buffer, b.offset + k)) {
                    return true;
                }
            }
        }
        return false;
    }

    bool overlap(Rank rank, const Slices& some, const Slices& others) const {
        return std::any_of(some.begin(), some.end(), [&](const Slice& a) {
            return std::any_of(others.begin(), others.end(),
                               [&](const Slice& b) { return overlap(rank, a, b); });
        });
    }

    bool conflict(const Node& a, const Node& b) const {
        if (a.rank != b.rank) return false;
        const Step& x = *a.what;
        const Step& y = *b.what;
        return overlap(a.rank, x.dst, y.dst) || overlap(a.rank, x.dst, y.src) ||
               overlap(a.rank, x.src, y.dst);
    }

    const Schedule& schedule_;
    bool in_place_;
    std::vector<Node> nodes_;
    std::vector<std::vector<bool>> before_;
};

}  // namespace

std::string judge(const Schedule& schedule, Placement placement) {
    std::mt19937_64 random(7);
    for (int order = 0; order < kOrdersJudged; ++order) {
        if (auto fault = interpret(schedule, placement, random); !fault.empty()) return fault;
    }
    return Closure(schedule, placement).find_race();
}

}  // namespace pccl::schedule::testing
