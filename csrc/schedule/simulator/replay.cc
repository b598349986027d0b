// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/schedule/simulator/clockwork.h"
#include "csrc/schedule/simulator/live_chunks.h"

namespace pccl::schedule {
namespace {

constexpr double kMostWindows = 1 << 20;

/// Replay of the steps. The order of its members is the order of their construction.
class Player {
   public:
    Player(const PlayedPrograms& played, const StepGraph& graph, const SimulatedNetwork& network,
           double block_bytes)
        : played_(played),
          graph_(graph),
          network_(network),
          chunk_bytes_(block_bytes / played.shape.chunks / played.windows),
          clockwork_(graph, network, chunk_bytes_) {}

    Result<Replay> replay() {
        PCCL_TRY(run());
        Replay replay{
            .busiest = busiest(), .windows = played_.windows, .one_for_all = played_.one_for_all};
        for (StepId id = 0; id < graph_.size(); ++id) {
            replay.seconds = std::max(replay.seconds, end_of(id));
            replay.rounds = std::max(replay.rounds, clockwork_.depths()[at(id)]);
            replay.steps.push_back(time_of(id, graph_[id].rank));
            if (!graph_[id].step->to.is_used()) continue;
            replay.messages += copies();
            replay.bytes_sent += bytes_of(id) * static_cast<double>(copies());
        }
        replay.peak_chunks = peak_chunks(graph_, clockwork_.times());
        replay.critical_path = critical_path();
        return replay;
    }

    Result<std::vector<Round>> rounds() {
        PCCL_TRY(run());
        std::vector<std::vector<StepId>> sends;
        for (StepId id = 0; id < graph_.size(); ++id) {
            if (!graph_[id].step->to.is_used()) continue;
            const std::size_t round = at(clockwork_.depths()[at(id)]);
            if (sends.size() <= round) sends.resize(round + 1);
            sends[round].push_back(id);
        }
        std::vector<Round> rounds;
        rounds.reserve(sends.size());
        for (const std::vector<StepId>& each : sends) rounds.push_back(round_of(each));
        return rounds;
    }

   private:
    Status run() {
        if (clockwork_.run()) return Status::ok();
        return Status::invalid_argument("its steps wait for each other for ever");
    }

    /// Returns the number of ranks that one rank represents.
    [[nodiscard]] long long copies() const { return played_.one_for_all ? played_.shape.ranks : 1; }
    [[nodiscard]] double bytes_of(StepId id) const {
        return count_of(*graph_[id].step) * chunk_bytes_;
    }
    [[nodiscard]] double end_of(StepId id) const {
        const Times& times = clockwork_.times()[at(id)];
        return std::max(times.done, times.arrival);
    }

    [[nodiscard]] SimulatedStepTime time_of(StepId id, Rank rank) const {
        const auto& [step, own_rank, lane, index, needs, receiver, next, is_last] = graph_[id];
        const Times& times = clockwork_.times()[at(id)];
        const Program& program = played_.programs[at(own_rank)];
        const int length = static_cast<int>(program.lanes[at(lane)].size()) / played_.windows;
        const auto peer = [&](const PeerPort& port) {
            return port.is_used() ? graph_.peer_of(port, rank) : kNoRank;
        };
        return {.rank = rank,
                .lane = lane,
                .index = index % length,
                .window = index / length,
                .begin = times.begin,
                .start = times.start,
                .done = times.done,
                .arrival = times.arrival,
                .action = to_string(step->action),
                .sender = peer(step->from),
                .receiver = peer(step->to),
                .bytes = bytes_of(id)};
    }

    [[nodiscard]] LinkUse busiest() const {
        LinkUse most;
        for (std::size_t i = 0; i < clockwork_.bytes_over().size(); ++i) {
            const std::size_t link = played_.one_for_all ? i * at(network_.ranks) : i;
            const double bytes = clockwork_.bytes_over()[i];
            const double busy = bytes / network_.bandwidth[link];
            if (busy > most.busy) most = {network_.name(static_cast<int>(link)), bytes, busy};
        }
        return most;
    }

    /// Returns the critical path from its first step on.
    [[nodiscard]] std::vector<SimulatedStepTime> critical_path() const {
        std::vector<SimulatedStepTime> path;
        StepId id = kNoStep;
        for (StepId other = 0; other < graph_.size(); ++other)
            if (id == kNoStep || end_of(other) > end_of(id)) id = other;
        Rank rank = id == kNoStep ? 0 : graph_[id].rank;
        while (id != kNoStep) {
            path.push_back(time_of(id, rank));
            const Cause& cause = clockwork_.causes()[at(id)];
            if (cause.kind == Cause::WaitKind::kMessage)
                rank = graph_.peer_of(graph_[id].step->from, rank);
            if (cause.kind == Cause::WaitKind::kSlot)
                rank = graph_.peer_of(graph_[id].step->to, rank);
            id = cause.step;
        }
        std::ranges::reverse(path);
        return path;
    }

    [[nodiscard]] Round round_of(const std::vector<StepId>& sends) const {
        Round round;
        double longest_way = 0;
        double busiest_seconds = 0;
        std::vector<double> bytes_over(clockwork_.bytes_over().size());
        for (const StepId id : sends) {
            const MessageRoute route = network_.route(graph_[id].rank, graph_[id].step->to.peer);
            longest_way = std::max(longest_way, route.start_seconds + route.travel_seconds);
            round.bytes = std::max(round.bytes, bytes_of(id));
            for (const auto& [link, times] : route.way) {
                double& bytes = bytes_over[at(played_.one_for_all ? link / network_.ranks : link)];
                bytes += bytes_of(id) * times;
                busiest_seconds = std::max(busiest_seconds, bytes / network_.bandwidth[at(link)]);
            }
        }
        round.seconds = longest_way + busiest_seconds;
        round.receivers = receivers_of(sends);
        return round;
    }

    [[nodiscard]] std::vector<Rank> receivers_of(const std::vector<StepId>& sends) const {
        const int ranks = played_.shape.ranks;
        std::vector<Rank> receivers(at(ranks), kNoRank);
        for (const StepId id : sends)
            for (Rank turn = 0; turn < copies(); ++turn) {
                Rank& receiver = receivers[at((graph_[id].rank + turn) % ranks)];
                if (receiver != kNoRank) return {};
                receiver = graph_.peer_of(graph_[id].step->to, turn);
            }
        return receivers;
    }

    const PlayedPrograms& played_;
    const StepGraph& graph_;
    const SimulatedNetwork& network_;
    double chunk_bytes_;
    Clockwork clockwork_;
};

/// Returns the number of windows with which a FIFO of the network can hold the messages of a
/// schedule.
Result<int> windows_of(const ReplayInput& piece, std::size_t capacity) {
    if (capacity == 0) return 1;
    const auto message = static_cast<double>(capacity) / piece.shape.slots;
    const double chunk = message / piece.source->longest_message(piece.shape);
    const double windows = std::ceil(piece.block_bytes / piece.shape.chunks / chunk);
    if (windows > kMostWindows)
        return Status::unsupported(concat("blocks of ", piece.block_bytes,
                                          " bytes go over links that hold ", capacity,
                                          " in more than ", kMostWindows, " windows"));
    return std::max(static_cast<int>(windows), 1);
}

template <typename Play>
auto play(const ReplayInput& piece, const SimulatedNetwork& network,
          Play what) -> decltype(what(std::declval<Player&>())) {
    PCCL_TRY(check_shape(*piece.source, piece.shape));
    if (network.ranks != piece.shape.ranks)
        return Status::invalid_argument(concat("a network of ", network.ranks,
                                               " ranks is not for a collective of ",
                                               piece.shape.ranks));
    PCCL_ASSIGN_OR_RETURN(const int windows, windows_of(piece, network.capacity));
    PCCL_ASSIGN_OR_RETURN(
        const PlayedPrograms played,
        played_programs(*piece.source, piece.shape, piece.order, network.turns, windows));
    PCCL_ASSIGN_OR_RETURN(const StepGraph graph, StepGraph::build(played));
    Player player(played, graph, network, piece.block_bytes);
    return what(player);
}

}  // namespace

Result<Replay> replay(const ReplayInput& piece, const SimulatedNetwork& network) {
    return play(piece, network, [](Player& player) { return player.replay(); });
}

Result<std::vector<Round>> replay_in_rounds(const ReplayInput& piece,
                                            const SimulatedNetwork& network) {
    return play(piece, network, [](Player& player) { return player.rounds(); });
}

}  // namespace pccl::schedule
