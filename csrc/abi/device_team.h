// SPDX-License-Identifier: Apache-2.0

// Memory layout that host and device code share for a group of GPUs that map each other's memory.
//
// Each rank owns a heap of one layout and maps the heaps of all ranks. A heap has a channel for
// each thread block of a kernel: a block communicates only with the blocks of its own index on the
// other ranks. A channel counts its launches (the epoch) in device memory, so that a launch means
// the same whenever a CUDA graph replays it. This requires one rule: all ranks launch the same
// kernels with the same grids in the same order, and every launch passes a message between every
// pair of ranks in every block. When a block is in epoch e, all others have then left epoch e - 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/abi/wire.h"

namespace pccl::abi {

inline constexpr int kMostDevices = 8;  // ranks of a group
inline constexpr int kMostBlocks = 128;
inline constexpr int kMostLLBlocks = 64;  // blocks of a kernel that sends LL lines
inline constexpr int kLLLinesPerBlock = 256;
inline constexpr std::size_t kLLDataBytes = 8;  // data bytes of an LL line

/// 8 bytes of data with their arrival flag: each half travels in one piece with the epoch beside it
/// (NCCL's protocol LL). Epoch 0 is never sent. Lines of collectives also carry the fingerprint of
/// their sender's call, so that no rank takes the lines of another call for its own.
struct alignas(16) LLLine {
    std::uint32_t low;
    std::uint32_t low_epoch;
    std::uint32_t high;
    std::uint32_t high_epoch;  // ^ DeviceTeam::fingerprint
};

/// A cache line with its arrival flag (NCCL's protocol LL128). It requires GPUs and interconnects
/// that keep a line whole when a warp stores it at once. A trial checks that before the first use.
struct alignas(128) LL128Line {
    std::byte data[120];
    std::uint64_t number;  // in both halves
};
static_assert(sizeof(LL128Line) == 128);

/// Result of the LL128 trial between all pairs of ranks, which all of them share.
enum class LL128Trial : std::uint32_t { kNone = 0, kWhole = 1, kTorn = 2 };
inline constexpr int kTrialWarps = 8;  // of a rank, in the one block of the trial
inline constexpr int kWarpLines = 8;   // lines that a warp stores at once, 2 for each thread
/// Trial lines from one rank, by the parity of the round.
struct LL128TrialLines {
    LL128Line lines[2][kTrialWarps][kWarpLines];
};

/// Lines that a kernel sends each peer at the entry barrier: the addresses of this rank's tensors
/// in the peer's address space.
struct EntryLines {
    LLLine input;
    LLLine output;
};

/// Channel of one block, in the heap of the rank that reads it.
struct BlockChannel {
    EntryLines entries[kMostDevices];    // by sender
    std::uint32_t exited[kMostDevices];  // by sender: the epoch it has finished
    std::uint32_t stagger_step;          // of the next rank: its epoch and the step it has finished
    std::uint32_t epoch;                 // launches so far; only its owner accesses it
    std::uint32_t reserved[22];
};
static_assert(sizeof(BlockChannel) == 384);

/// LL lines of one block, by the parity of the epoch: the next launch may begin before this one has
/// read all lines.
struct LLBuffer {
    LLLine lines[2][kMostDevices][kLLLinesPerBlock];  // by parity, sender
};

/// Messages between this rank and one peer, in this rank's heap. They are counted by pair and
/// direction, apart from the channels.
struct PairMailbox {
    EntryLines posted;       // written by the peer: its receive address and byte count
    std::uint32_t arrived;   // written by the peer: number of its message that has arrived
    std::uint32_t sent;      // messages that this rank has sent to the peer
    std::uint32_t received;  // messages that this rank has received from the peer
    std::uint32_t finished;  // blocks that have finished the message being sent
    std::uint32_t coming;    // written by the peer: number of the message that it may be storing
    std::uint32_t taken;     // blocks that have finished the message being received
    std::uint32_t reserved[18];
};
static_assert(sizeof(PairMailbox) == 128);

enum class DevicePhase : std::uint32_t {
    kNone = 0,
    kEntry = 1,
    kData = 2,
    kExit = 3,
    kStaggerStep = 4,
    kPostedReceive = 5,  // waits for the memory of a message
    kMessage = 6,
    kLength = 7,  // a message's length differs from the receiver's; expected and seen are bytes
    kStep = 8,    // of a schedule's program: waits for a message, for a slot, or for another lane
    kCall = 9,    // the peer's call differs from this rank's
};
inline constexpr int kDevicePhases = 10;

/// Reason why a kernel gave up waiting: the first one of this rank, or one that it received from a
/// peer's kernels. It is written once.
struct DeviceFault {
    DevicePhase phase;
    std::int32_t rank;  // the rank that waited: this one, or the peer
    std::int32_t peer;  // the rank that it waited for
    std::uint32_t block;
    std::uint32_t is_abort;  // the host stopped the kernel; it was no timeout
    std::uint64_t expected;  // epoch
    std::uint64_t seen;
    std::uint64_t ticket;  // of this rank's launch
    // For kCall: the call of this rank and that of the awaited rank. `theirs` has no magic where
    // that rank has not published its call.
    CollectiveHeader ours;
    CollectiveHeader theirs;
};

struct Heap {
    std::uint32_t fault_is_claimed;  // by the thread that writes DeviceControl::fault
    std::uint32_t has_called;        // 1: a thread claimed `called` to write it; 2: it is complete
    std::uint32_t has_aborted[kMostDevices];  // by peer, which writes it after it has given up;
    std::uint32_t reserved[12];               // its heap's `fault` contains the reason
    CollectiveHeader called;  // call of this rank, for peers that have called something else
    PairMailbox mailboxes[kMostDevices];  // by peer
    BlockChannel channels[kMostBlocks];
    LLBuffer buffers[kMostLLBlocks];
    LL128TrialLines trial[kMostDevices];  // by sender
    std::uint32_t
        ll128_trials[kMostDevices];  // by sender: LL128Trial of the lines that it received
    DeviceFault fault;               // as in DeviceControl, for the peers
};

/// A long wait. The waiting thread renews it about once a millisecond.
struct LongWait {
    std::uint64_t ticket;  // of the launch
    std::uint64_t waited_ns;
};

/// Addresses of the peers' inputs in an earlier launch. Kernels leave them for the host, which
/// cannot read them otherwise. They may be wrong for a later launch.
struct CachedPointers {
    std::uint64_t inputs[kMostDevices];  // by peer; 0: unknown
};
inline constexpr int kMostCachedPointers = 64;

/// Control block in host memory that kernels can access.
struct DeviceControl {
    std::uint32_t abort;         // not 0: kernels stop waiting
    std::uint32_t has_given_up;  // not 0: a kernel has given up; `fault` contains the reason
    std::uint32_t in_doubt;      // not 0: a kernel ended while rank in_doubt - 1 might still use
    std::uint32_t
        ll128_trial;  // this rank's tensors. ll128_trial: an LL128Trial, all ranks' together
    std::uint32_t reserved[12];
    DeviceFault fault;
    LongWait waits[kDevicePhases][kMostDevices];  // by phase, peer
    CachedPointers cached_pointers[kMostCachedPointers];
};

/// A kernel's view of its group; passed by value.
struct DeviceTeam {
    Heap* heaps[kMostDevices];  // by rank, as mapped here
    DeviceControl* control;
    std::uint64_t timeout_ns;
    std::uint64_t ticket;       // of this launch, for diagnosis
    CollectiveHeader call;      // the call of this launch, for peers that have called another one
    std::uint32_t fingerprint;  // of that call, in the upper half; the lower half is 0
    std::int32_t rank;
    std::int32_t size;
};
static_assert(std::is_trivially_copyable_v<DeviceTeam>);

/// Addresses of a launch's tensors for each rank, which the entry lines carry. Entry r is an
/// address in rank r's address space.
struct PeerPointers {
    std::uint64_t inputs[kMostDevices];
    std::uint64_t outputs[kMostDevices];
};

}  // namespace pccl::abi
