// What host and device code share about a group of GPUs that map each other's memory.
//
// Each rank owns a heap of one layout, and has all ranks' heaps mapped. A heap holds, for each
// thread block of a kernel, a channel: the block talks to the blocks of its own index on the other
// ranks and to no others. A channel counts its launches (the epoch) in device memory, so that a
// launch means the same whenever a CUDA graph repeats it. That needs one rule: all ranks launch the
// same kernels with the same grids in the same order, and every launch passes something between
// every pair of ranks in every block. A block in epoch e then knows that all others have left epoch
// e - 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/abi/wire.h"

namespace pccl::abi {

inline constexpr int kMostDevices = 8;  // in a group
inline constexpr int kMostBlocks = 128;
inline constexpr int kMostLLBlocks = 64;  // of kernels that send LL lines
inline constexpr int kLLLinesPerBlock = 256;
inline constexpr std::size_t kLLDataBytes = 8;  // of data

/// 8 bytes of data with their arrival flag: each half travels in one piece with
/// the epoch beside it (NCCL's protocol LL). An epoch of 0 was never sent. Lines of collectives
/// carry the fingerprint of what their sender has called, too, so that nobody takes those of
/// another call for its own.
struct alignas(16) LLLine {
    std::uint32_t low;
    std::uint32_t low_epoch;
    std::uint32_t high;
    std::uint32_t high_epoch;  // ^ DeviceTeam::fingerprint
};

/// A cache line with its arrival flag, where the GPUs and what joins them
/// keep whole what a warp stores into it at once (NCCL's protocol LL128): that is tried before use.
struct alignas(128) LL128Line {
    std::byte data[120];
    std::uint64_t number;  // in both halves
};
static_assert(sizeof(LL128Line) == 128);

/// How LL128 lines came that were sent from each rank to each, as all of them have seen.
enum class LL128Trial : std::uint32_t { kNone = 0, kWhole = 1, kTorn = 2 };
inline constexpr int kTrialWarps = 8;  // of a rank, in the one block of the trial
inline constexpr int kWarpLines = 8;   // that a warp stores at once, 2 for a thread
/// From one rank, by the parity of the round.
struct LL128TrialLines {
    LL128Line lines[2][kTrialWarps][kWarpLines];
};

/// What a kernel sends each peer at the entry barrier: where this rank's tensors are in the peer's
/// address space.
struct EntryLines {
    LLLine input;
    LLLine output;
};

/// Of one block, in the heap of the rank that reads it.
struct Channel {
    EntryLines entries[kMostDevices];    // by sender
    std::uint32_t exited[kMostDevices];  // by sender: the epoch it has finished
    std::uint32_t stagger_step;          // the next rank's: its epoch, and the step it has ended
    std::uint32_t epoch;                 // launches so far; only its owner touches it
    std::uint32_t reserved[22];
};
static_assert(sizeof(Channel) == 384);

/// Lines of one block, by the parity of the epoch: the next launch may begin before this one has
/// read everything.
struct LLBuffer {
    LLLine lines[2][kMostDevices][kLLLinesPerBlock];  // by parity, sender
};

/// Messages between this rank and one peer, in this rank's heap. They are counted by pair and
/// direction, apart from the channels.
struct Mailbox {
    EntryLines posted;       // by the peer: where it wants this rank's message, and how many bytes
    std::uint32_t arrived;   // by the peer: the number of its message that is here
    std::uint32_t sent;      // this rank's: messages to the peer so far,
    std::uint32_t received;  // from the peer so far,
    std::uint32_t finished;  // and blocks that have finished with the message being sent
    std::uint32_t coming;    // by the peer: the number of its message that it may be storing
    std::uint32_t reserved[19];
};
static_assert(sizeof(Mailbox) == 128);

enum class DevicePhase : std::uint32_t {
    kNone = 0,
    kEntry = 1,
    kData = 2,
    kExit = 3,
    kStaggerStep = 4,
    kPostedReceive = 5,  // of memory for a message
    kMessage = 6,
    kLength = 7,  // of what is sent is another than its receiver expects: expected and seen, bytes
    kStep = 8,    // of a schedule's program: a message, room for one, or another lane
    kCall = 9,    // of the peer is another than this rank's
};
inline constexpr int kDevicePhases = 10;

/// Why a kernel gave up waiting: the first reason that this rank had, or heard from a peer's
/// kernels. Written once.
struct DeviceFault {
    DevicePhase phase;
    std::int32_t rank;  // that waited: this one, or the peer
    std::int32_t peer;  // that it waited for
    std::uint32_t block;
    std::uint32_t is_abort;  // told to stop, not too late
    std::uint64_t expected;  // epoch
    std::uint64_t seen;
    std::uint64_t ticket;  // of this rank's launch
    // kCall: what the rank has called, and the one it waited for; without magic where that has not
    // said it.
    CollectiveHeader ours;
    CollectiveHeader theirs;
};

struct Heap {
    std::uint32_t fault_is_claimed;  // by the thread that writes DeviceControl::fault
    std::uint32_t has_called;  // 1: claimed by the thread that writes `called`; 2: it is there
    std::uint32_t
        has_aborted[kMostDevices];    // by peer, which writes it: it has given up, and `fault`
    std::uint32_t reserved[12];       // in its heap says why
    CollectiveHeader called;          // by this rank, for peers that have called something else
    Mailbox mailboxes[kMostDevices];  // by peer
    Channel channels[kMostBlocks];
    LLBuffer buffers[kMostLLBlocks];
    LL128TrialLines trial[kMostDevices];       // by sender
    std::uint32_t ll128_trials[kMostDevices];  // by sender: an LL128Trial, of what came to it
    DeviceFault fault;                         // as in DeviceControl, for the peers
};

/// A wait that takes long: a thread that waits writes it anew each millisecond, or nobody does.
struct LongWait {
    std::uint64_t ticket;  // of the launch
    std::uint64_t waited_ns;
};

/// Where this rank saw the peers' inputs in an earlier launch: kernels leave it for the host, which
/// cannot ask. What it says of a later launch may be wrong.
struct CachedPointers {
    std::uint64_t inputs[kMostDevices];  // by peer; 0 where nothing is known
};
inline constexpr int kMostCachedPointers = 64;

/// In host memory that kernels see.
struct DeviceControl {
    std::uint32_t abort;         // not 0: kernels stop waiting
    std::uint32_t has_given_up;  // not 0: a kernel has, and `fault` says why
    std::uint32_t in_doubt;      // not 0: one has ended while rank in_doubt - 1 might still use
    std::uint32_t
        ll128_trial;  // this rank's tensors. The other: an LL128Trial, all ranks' together
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
    std::uint64_t ticket;   // of this launch, for whoever asks later what it was
    CollectiveHeader call;  // that this launch belongs to, for peers that have called another one
    std::uint32_t fingerprint;  // of that call, in the upper half; 0 below
    std::int32_t rank;
    std::int32_t size;
};
static_assert(std::is_trivially_copyable_v<DeviceTeam>);

/// Where a launch's tensors are, for each rank: what the entry lines carry. Entry r is an address
/// in rank r's address space.
struct PeerPointers {
    std::uint64_t inputs[kMostDevices];
    std::uint64_t outputs[kMostDevices];
};

}  // namespace pccl::abi
