// SPDX-License-Identifier: Apache-2.0

// Replay of a schedule, message by message, on the links of a network.
//
// A step begins when all its dependencies are done. Received data is reduced first; then its slot
// is free, and the step's own message starts, which shares links with others (SharedLinks). The
// step is done when its last byte has left; the receiver has the message when it has arrived.
//
// The times are those of one rank if it represents all (StepGraph): 16,384 ranks on a ring then
// cost only the 16,383 messages of one rank.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/simulator/network.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Times of a step of one rank, in seconds from the start.
struct SimulatedStepTime {
    Rank rank = 0;
    int lane = 0;
    int index = 0;       // in the lane
    int window = 0;      // SimulatedNetwork::capacity
    double begin = 0;    // all its dependencies are done
    double start = 0;    // the reduction is done, and the message starts
    double done = 0;     // the message has left
    double arrival = 0;  // the message is at its receiver; `done` if the step sends nothing
    std::string_view action{};
    Rank sender = kNoRank;    // of the message that the step receives
    Rank receiver = kNoRank;  // of the message that the step sends
    double bytes = 0;
};

struct LinkUse {
    std::string name{};  // empty: no link is crossed
    double bytes = 0;
    double busy = 0;  // share of the total time at full bandwidth
};

struct Replay {
    double seconds = 0;
    int rounds = 0;          // Verdict::rounds
    long long messages = 0;  // of all ranks
    double bytes_sent = 0;   // of all ranks
    LinkUse busiest{};
    /// Maximum over ranks and time of: chunks of messages in flight to a rank or in its slots, plus
    /// chunks of scratch that will be read again.
    long long peak_chunks = 0;
    int windows = 1;  // of the data, consecutive
    std::vector<SimulatedStepTime>
        critical_path{};                     // each step was the last on which the next one waited
    bool one_for_all = false;                // the times of rank 0 hold for all ranks
    std::vector<SimulatedStepTime> steps{};  // of rank 0, or of all ranks
};

/// Input of a replay: a source in one shape, laid along an order of ranks if it follows orders.
struct ReplayInput {
    SourcePtr source;
    Shape shape;
    RankOrder order = {};
    double block_bytes = 0;  // as blocks() counts them
};

/// Replays a schedule. kInvalidArgument: the network has another number of ranks. kUnsupported: too
/// many steps. Other errors are those of generate().
[[nodiscard]] PCCL_API Result<Replay> replay(const ReplayInput& piece,
                                             const SimulatedNetwork& network);

/// Round of messages that begin together when all of the previous round have arrived, as on a
/// network that changes between rounds.
struct Round {
    double seconds = 0;  // longest start and travel time, plus the bytes of the busiest link
    double bytes = 0;    // of the longest message
    std::vector<Rank>
        receivers{};  // by sender, kNoRank: sends nothing; empty if a rank sends twice
};

/// Replays a schedule in rounds. Errors are those of replay().
[[nodiscard]] PCCL_API Result<std::vector<Round>> replay_in_rounds(const ReplayInput& piece,
                                                                   const SimulatedNetwork& network);

}  // namespace pccl::schedule
