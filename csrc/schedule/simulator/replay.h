// Plays a schedule through, message by message, on the links of a network.
//
// A step begins when all that it waits for has happened. What it receives is added to what it is
// reduced with; then its slot is free, and its own message starts, which shares links with others
// (SharedLinks). The step is done when its last byte has left; the receiver has it when that has
// arrived.
//
// Times are those of one rank where it stands for all (StepGraph): 16,384 ranks on a ring then take
// as long as one rank's 16,383 messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/simulator/network.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// A step of one rank: seconds from the beginning.
struct StepTime {
    Rank rank = 0;
    int lane = 0;
    int index = 0;       // in the lane
    int window = 0;      // Network::capacity
    double begin = 0;    // all that it waits for has happened
    double start = 0;    // has reduced, and its message starts
    double done = 0;     // its message has left
    double arrival = 0;  // is with its receiver; `done` where it sends nothing
    std::string_view action{};
    Rank sender = kNoRank;    // of what it receives
    Rank receiver = kNoRank;  // of what it sends
    double bytes = 0;
};

struct LinkUse {
    std::string name{};  // empty: no link is crossed
    double bytes = 0;
    double busy = 0;  // of the whole time, if it had carried them at its full bandwidth
};

struct Replay {
    double seconds = 0;
    int rounds = 0;          // Verdict::rounds
    long long messages = 0;  // of all ranks
    double bytes_sent = 0;   // of all ranks
    LinkUse busiest{};
    /// Of the rank with the most at a time: chunks of messages under way to it or waiting in their
    /// slots, and of scratch that will be read again.
    long long peak_chunks = 0;
    int windows = 1;                        // of the data, one after the other
    std::vector<StepTime> critical_path{};  // each step was the last that the next one waited for
    bool one_for_all = false;               // the times of rank 0 are those of all
    std::vector<StepTime> steps{};          // of rank 0, or of all
};

/// What is played: a source in one shape, laid along an order of ranks where it follows orders.
struct Piece {
    SourcePtr source;
    Shape shape;
    RankOrder order = {};
    double block_bytes = 0;  // as blocks() counts them
};

/// kInvalidArgument where the network has other ranks; errors as of generate(), and kUnsupported
/// for more steps than are played.
[[nodiscard]] PCCL_API Result<Replay> replay(const Piece& piece, const Network& network);

/// Messages that are sent one round after the other: those of a round begin together, when all of
/// the round before have arrived, as where the network changes between rounds.
struct Round {
    double seconds = 0;  // the longest start and way, and the bytes of the busiest link
    double bytes = 0;    // of the longest message
    std::vector<Rank>
        receivers{};  // by sender; empty where one sends twice, or kNoRank: not at all
};

/// Errors as of replay().
[[nodiscard]] PCCL_API Result<std::vector<Round>> replay_in_rounds(const Piece& piece,
                                                                   const Network& network);

}  // namespace pccl::schedule
