// SPDX-License-Identifier: Apache-2.0

// Program of a collective as a plain value.
//
// A Schedule contains, for one collective over n ranks, the program of each rank. Buffers consist
// of blocks (one for each rank, or just one, see `blocks`). Each block is cut into `chunks` chunks,
// and chunk i of a buffer is chunk i % chunks of block i / chunks. A rank's Program is a set of
// lanes: the steps of a lane run in order, lanes run side by side, and a step may wait for steps of
// other lanes of the same rank.
//
// A (sender, receiver, channel) triple is a FIFO of messages; one send step fills one slot, one
// receive step empties one. The FIFO holds `slots` messages: a send blocks while all slots are
// full. Each end of a FIFO is used by one lane only, so the order of messages is the order of its
// steps.
//
// Reduction is dst = dst (+) incoming, or dst = src (+) incoming where a step names both. The
// operator is commutative and, up to rounding, associative.
//
// The step set is a superset of MSCCL's (github.com/microsoft/msccl), so that its XML imports one
// to one.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include "csrc/base/ids.h"
#include "csrc/schedule/slices.h"

namespace pccl::schedule {

using pccl::collective_named;
using pccl::CollectiveKind;
using pccl::is_per_pair;
using pccl::is_rooted;
using pccl::names_of_collectives;
using pccl::reduces;
using pccl::to_string;

/// Returns the blocks in `buffer` (kInput or kOutput) of one rank: n if the collective has one
/// block for each rank, else 1. A root-only buffer (gather's output, scatter's input) counts on
/// every rank.
[[nodiscard]] PCCL_API int blocks(CollectiveKind kind, Buffer buffer, int ranks);

/// End of a FIFO, from the view of the rank that runs the step.
struct PeerPort {
    Rank peer = kNoRank;
    ChannelId channel = 0;
    [[nodiscard]] bool is_used() const { return peer != kNoRank; }
    auto operator<=>(const PeerPort&) const = default;
};

/// Dependency on steps [0, step] of `lane`.
struct Dependency {
    int lane = 0;
    int step = 0;
    auto operator<=>(const Dependency&) const = default;
};

// Actions of steps, with their operands:
//
//   action               from  src        dst    to
//   kNop                                                (only waits)
//   kCopy                      read       write
//   kReduce                    read       both          dst = dst (+) src
//   kSend                      read              send
//   kRecv                recv             write
//   kRecvCopySend        recv             write  send
//   kRecvReduce          recv  read or -  write         src (+) incoming; no src: dst (+) incoming
//   kRecvReduceSend      recv  read              send   sends src (+) incoming, stores nothing
//   kRecvReduceCopySend  recv  read or -  write  send   kRecvReduce, and sends the result
//   kSwitchPhase                                        switches to the next of Schedule::phases
//
// "-" means an empty list. src and dst have equal numbers of chunks, all of which form one message:
// the sender gathers the slices of a list, and the receiver scatters or reduces it over another.
//
// At kSwitchPhase all lanes of all ranks wait for each other, and the network switches to another
// phase. Each lane has one such step for each phase. No message crosses it, and scratch does not
// outlive it.
enum class Action : std::uint8_t {
    kNop,
    kCopy,
    kReduce,
    kSend,
    kRecv,
    kRecvCopySend,
    kRecvReduce,
    kRecvReduceSend,
    kRecvReduceCopySend,
    kSwitchPhase,
};

[[nodiscard]] PCCL_API std::string_view to_string(Action action);

struct Step {
    Action action = Action::kNop;
    Slices src{};
    Slices dst{};
    PeerPort from{};
    PeerPort to{};
    // Initialised, so that designated initialisers may leave it out without a warning.
    std::vector<Dependency> after = {};  // NOLINT(readability-redundant-member-init)
    auto operator<=>(const Step&) const = default;
};

/// Returns the chunks that a step handles. src and dst agree in the number and in the length of
/// their chunks.
[[nodiscard]] inline const Slices& moved_by(const Step& step) {
    return step.src.is_empty() ? step.dst : step.src;
}
[[nodiscard]] inline int count_of(const Step& step) { return moved_by(step).count(); }

using Lane = std::vector<Step>;

/// Program of one rank. Scratch holds `scratch_chunks` chunks. Chunks of a block may differ in
/// length (the last ones are shorter). Scratch chunk i has the length of chunk i % shape.chunks of
/// a block, and each chunk that a step or a message moves keeps its index modulo shape.chunks.
struct Program {
    std::vector<Lane> lanes;
    int scratch_chunks = 0;
    auto operator<=>(const Program&) const = default;
};

/// Parameters of a schedule on which all ranks must agree.
struct Shape {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    int ranks = 1;
    Rank root = 0;        // only for rooted collectives; otherwise 0
    int chunks = 1;       // in each block
    int slots = 2;        // messages that a FIFO holds
    int aggregation = 0;  // maximum blocks per message, for sources with a choice; 0: any
    auto operator<=>(const Shape&) const = default;
};

/// Placement of input and output: separate or shared memory. In place: all_reduce, broadcast and
/// reduce use the same chunks; for all_gather and gather the input is block `rank` of the output;
/// for reduce_scatter and scatter the output is block `rank` of the input. all_to_all has no
/// in-place form.
enum class Placement : std::uint8_t { kOutOfPlace, kInPlace };

struct Schedule {
    std::string name;
    Shape shape;
    std::vector<Program> programs;  // one for each rank
    /// Target phase of the n-th kSwitchPhase of every lane.
    std::vector<std::string> phases = {};  // NOLINT(readability-redundant-member-init)
    auto operator<=>(const Schedule&) const = default;
};

/// Returns "recv_reduce input[3+1] -> output[3+1] from 2/0 after 1:4": slices as offset+count,
/// ports as peer/channel, dependencies as lane:step.
[[nodiscard]] PCCL_API std::string to_string(const Step& step);

/// Returns one line per step: "rank 0 lane 1 step 2: recv_reduce output[3+1] from 2/0".
[[nodiscard]] PCCL_API std::string to_string(const Schedule& schedule);

/// Returns the receivers in ascending order, each once.
[[nodiscard]] PCCL_API std::vector<Rank> receivers_of(const Program& program);

}  // namespace pccl::schedule
