// SPDX-License-Identifier: Apache-2.0

// Program of a schedule for one rank, as thread blocks of its GPU run it, and the memory for its
// messages.
//
// Several workers run the program side by side. Worker w of each lane handles one part of every
// chunk and exchanges it only with worker w of its peers' lanes. A worker cuts its parts into
// windows, short enough for the longest message to fit into a slot. It runs the program once for
// each window.
//
// Messages lie in their receiver's memory in one of three forms. Plain messages lie there as they
// are. Short ones are LL lines, which need no fence and no flag. LL128 lines carry more data for
// each byte of overhead. Message counters continue from launch to launch, so that a launch means
// the same whenever a CUDA graph replays it. A rank leaves as soon as it has its results. Its peers
// may not have taken its last messages by then, so its state stays until they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/abi/device_team.h"

namespace pccl::abi {

inline constexpr int kDeviceFifos = 64;  // from one rank to another: channels * workers
// The last ones carry messages of users, where these go through host memory; programs use the rest.
inline constexpr int kMessageFifos = 16;
inline constexpr int kFirstMessageFifo = kDeviceFifos - kMessageFifos;
inline constexpr int kDeviceSlots = 2;  // messages that a FIFO holds at least
inline constexpr int kLLSlots = 4;      // slots for LL and for LL128
inline constexpr int kAckInterval = 2;  // messages that the receiver acknowledges together
static_assert(kLLSlots - (kAckInterval - 1) >= kDeviceSlots);
inline constexpr std::size_t kSlotBytes = std::size_t{128} << 10;
inline constexpr std::size_t kLLSlotBytes = std::size_t{4} << 10;  // data bytes of an LL slot
inline constexpr int kLL128SlotLines = 128;                        // lines of an LL128 slot
inline constexpr int kMostLanePorts = 64;
inline constexpr int kMostLaneWaits = 128;        // waits of one step
inline constexpr int kLeastProgramThreads = 192;  // of a block: each wait has a thread
/// Alignment in bytes of chunks within a block, and within a message.
inline constexpr std::size_t kChunkAlignment = 128;

/// Packets of 16 bytes that two LL128 lines carry: seven and a half each.
inline constexpr int kPairPackets = 15;
inline constexpr std::size_t kPairBytes = std::size_t{16} * kPairPackets;

enum class DeviceBuffer : std::int32_t { kInput, kOutput, kScratch, kListed };

/// Range of chunks; the step contains their number. They are chunks of one block; or of scratch,
/// where they lie one after the other and have the lengths of a block's chunks; or of the program's
/// list, which has a slice for each.
struct DeviceSlice {
    DeviceBuffer buffer;
    std::int32_t at;     // index of the block, or of the first place in scratch or in the list
    std::int32_t chunk;  // number of the first chunk in its block
};

/// One end of a FIFO.
struct DevicePort {
    std::int32_t peer;
    std::int32_t channel;
    std::int32_t is_sending;
    std::int32_t messages;  // messages in a window
};

/// Wait for steps [0, step] of `lane`.
struct DeviceWait {
    std::int32_t lane;
    std::int32_t step;
};

inline constexpr std::int32_t kNoDevicePort = -1;

/// Combines its sources into its target and its outgoing message, chunk by chunk; a single source
/// is moved. A received message counts as the last source. There are at most two sources.
struct alignas(16) DeviceStep {
    DeviceSlice sources[2];
    DeviceSlice target;
    std::int32_t source_count;
    std::int32_t has_target;
    std::int32_t chunks;  // 0: the step only waits
    std::int32_t from;    // port of the lane, or kNoDevicePort
    std::int32_t to;
    std::int32_t received;  // messages of the window that arrived on that port earlier
    std::int32_t sent;
    std::int32_t first_wait;
    std::int32_t waits;
    std::int32_t is_awaited;  // another lane waits for it
};
static_assert(std::is_trivially_default_constructible_v<DeviceStep>);  // shared memory requires it

struct DeviceLane {
    std::int32_t steps;
    std::int32_t ports;
};

/// Form of a message in its slot: plain, or in lines that carry their own arrival flag.
enum class MessageForm : std::int32_t { kPlain, kLL, kLL128 };
inline constexpr int kMessageForms = 3;

/// Counters of the messages between this rank and one peer in both directions, in this rank's
/// memory.
struct DeviceCounters {
    std::uint32_t filled;   // written by the peer: messages that it has put here; plain ones only
    std::uint32_t emptied;  // written by the peer: messages of this rank that it has taken
    std::uint32_t sent;     // messages that this rank has put into the peer's slots
    std::uint32_t taken;    // messages that this rank has taken from its own slots
};
struct DeviceFifo {
    DeviceCounters counters[kMessageForms];
    std::uint32_t reserved[20];
};
static_assert(sizeof(DeviceFifo) == 128);

[[nodiscard]] constexpr std::uint32_t slots_for(MessageForm form) {
    return form == MessageForm::kPlain ? kDeviceSlots : kLLSlots;
}
/// Returns the least number of taken messages at which the message after `sent` others has a slot.
/// Counters wrap.
[[nodiscard]] constexpr std::uint32_t emptied_before(std::uint32_t sent, MessageForm form) {
    return sent + 1 - slots_for(form);
}
/// Returns whether the receiver acknowledges at this message. LL and LL128 do not acknowledge each
/// message, because that synchronises all threads of a block.
[[nodiscard]] constexpr bool is_acknowledged(std::uint32_t sent) {
    return (sent + 1) % kAckInterval == 0;
}

/// Slots of one FIFO, in the memory of the rank that reads it.
struct DeviceSlots {
    std::byte messages[kDeviceSlots][kSlotBytes];
    LLLine ll[kLLSlots][kLLSlotBytes / kLLDataBytes];
    LL128Line ll128[kLLSlots][kLL128SlotLines];
};

/// Returns how many FIFOs share a message of a user: the same on both sides, for every launch.
[[nodiscard]] constexpr int fifos_for(std::size_t message_bytes) {
    constexpr std::size_t kBytesForEach = std::size_t{64} << 10;
    const std::size_t wanted = message_bytes / kBytesForEach;
    if (wanted < 1) return 1;
    return wanted < kMessageFifos ? static_cast<int>(wanted) : kMessageFifos;
}

/// Returns the bytes of each message of a FIFO that carries `share` bytes of such a message:
/// several for most, so that one is written while the one before is read.
[[nodiscard]] constexpr std::size_t message_window(std::size_t share) {
    constexpr std::size_t kLeast = std::size_t{16} << 10;
    constexpr std::size_t kWindows = 4;
    const std::size_t even = share / kWindows / kChunkAlignment * kChunkAlignment;
    if (even < kLeast) return kLeast;
    return even < kSlotBytes ? even : kSlotBytes;
}

/// Progress of a rank's launch, in the memory of its GPU: its lanes alone wait for each other.
struct DeviceProgress {
    std::uint32_t steps[kMostBlocks];  // that each block of this launch has finished
    std::uint32_t finished;            // finished blocks of this launch
};

/// State that the programs of a rank share. The slots of its FIFOs follow it, by peer and FIFO.
struct DeviceProgramState {
    DeviceProgramState* peers[kMostDevices];  // by rank, as mapped here; includes this rank's
    DeviceFifo fifos[kMostDevices][kDeviceFifos];
};

[[nodiscard]] constexpr std::size_t state_bytes(int ranks) {
    return sizeof(DeviceProgramState) +
           static_cast<std::size_t>(ranks) * kDeviceFifos * sizeof(DeviceSlots);
}

/// States of this rank by peer: the messages of both are in the same kind of memory. Where only
/// some GPUs of a group reach each other, these have theirs in the GPUs' memory, the others in the
/// host's.
struct DeviceStates {
    DeviceProgramState* with[kMostDevices] = {};  // includes this rank's own
};

/// Times of one step of a block in one window, by the GPU's global timer; all 0 where the block did
/// not run it.
struct DeviceStepTime {
    std::uint64_t begin;  // the block reached the step
    std::uint64_t moved;  // plain messages: all inputs were there; LL and LL128: as `begin`
    std::uint64_t end;
    std::uint64_t bytes;
};

/// Program of one rank in GPU memory; passed by value.
struct DeviceProgram {
    const DeviceLane* lanes = nullptr;
    const DeviceStep* steps = nullptr;  // lane l: from l * most_steps on
    const DevicePort* ports = nullptr;  // lane l: from l * most_ports on. With both strides
    std::int32_t most_steps = 0;        // a lane finds its tables without reading `lanes` first
    std::int32_t most_ports = 0;
    const DeviceWait* waits = nullptr;
    const DeviceSlice* places = nullptr;  // of chunks that are listed one by one
    DeviceStates states{};
    DeviceProgress* progress = nullptr;
    std::byte* scratch = nullptr;  // scratch_chunks of window_bytes for each worker
    std::size_t chunk_bytes = 0;   // of every chunk of a block; the last ones may be shorter
    std::size_t part_bytes = 0;    // a worker's part of a chunk; the last ones may be shorter
    std::size_t window_bytes = 0;  // of a part at a time, at most
    std::int32_t lane_count = 0;   // blocks beyond lane_count * workers are idle
    std::int32_t workers = 1;      // of each lane
    std::int32_t scratch_chunks = 0;
    std::int32_t is_coupled = 0;      // lanes wait for each other
    DeviceStepTime* times = nullptr;  // by block, then by step in program order; null: not recorded
    std::size_t times_of_block = 0;
};
static_assert(std::is_trivially_copyable_v<DeviceProgram>);

}  // namespace pccl::abi
