// A schedule's program for one rank as thread blocks of its GPU run it, and the memory that its
// messages go through.
//
// The program runs several times side by side: worker w of each lane has a part of every chunk of
// the data to itself, and passes it on to worker w of its peers' lanes alone. A worker cuts its
// parts into windows, short enough for the longest message to fit into a slot, and runs the program
// once for each.
//
// Messages lie in their receiver's memory, as they are; or by LL where they are short: as LL lines,
// which need no fence and no flag; or by LL128, which carries more of them. Counters of messages
// go on from launch to launch, so that a launch means the same whenever a CUDA graph repeats it. A
// rank leaves as soon as it has what it is to get: its last messages may not be taken yet, and its
// state stays until they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "csrc/abi/device_team.h"

namespace pccl::abi {

inline constexpr int kDeviceFifos = 64;  // from one rank to another: a channel and a worker each
inline constexpr int kDeviceSlots = 2;   // messages that a FIFO holds, at least
inline constexpr int kLLSlots = 4;       // of LL and LL128
inline constexpr int kAckInterval = 2;   // messages that the receiver acknowledges at once
static_assert(kLLSlots - (kAckInterval - 1) >= kDeviceSlots);
inline constexpr std::size_t kSlotBytes = std::size_t{128} << 10;
inline constexpr std::size_t kLLSlotBytes = std::size_t{4} << 10;  // by LL
inline constexpr int kLL128SlotLines = 128;                        // by LL128
inline constexpr int kMostLanePorts = 64;
inline constexpr int kMostLaneWaits = 128;        // of one step
inline constexpr int kLeastProgramThreads = 192;  // of a block: those that wait, each on its own
/// Where chunks begin within a block, and within a message.
inline constexpr std::size_t kChunkAlignment = 128;

/// Packets of 16 bytes that two LL128 lines carry: seven and a half each.
inline constexpr int kPairPackets = 15;
inline constexpr std::size_t kPairBytes = std::size_t{16} * kPairPackets;

enum class DeviceBuffer : std::int32_t { kInput, kOutput, kScratch, kListed };

/// As many chunks as the step says: of one block, or of scratch, where they lie one after the other
/// and are as long as those of a block; or of the program's list, which has a slice for each.
struct DeviceSlice {
    DeviceBuffer buffer;
    std::int32_t at;     // the block; in scratch and in the list, the first place
    std::int32_t chunk;  // the first one's number in its block
};

/// One end of a FIFO.
struct DevicePort {
    std::int32_t peer;
    std::int32_t channel;
    std::int32_t is_sending;
    std::int32_t messages;  // of a window
};

/// Steps [0, step] of `lane` must be done.
struct DeviceWait {
    std::int32_t lane;
    std::int32_t step;
};

inline constexpr std::int32_t kNoDevicePort = -1;

/// Combines its sources (one: moves it) into its target and the message it sends, chunk by chunk.
/// A message that it receives is one source more, the last; there are at most two.
struct alignas(16) DeviceStep {
    DeviceSlice sources[2];
    DeviceSlice target;
    std::int32_t source_count;
    std::int32_t has_target;
    std::int32_t chunks;  // 0: the step only waits
    std::int32_t from;    // port of the lane, or kNoDevicePort
    std::int32_t to;
    std::int32_t received;  // messages of the window that came from that port before
    std::int32_t sent;
    std::int32_t first_wait;
    std::int32_t waits;
    std::int32_t is_awaited;  // by another lane
};
static_assert(std::is_trivially_default_constructible_v<DeviceStep>);  // as shared memory must be

struct DeviceLane {
    std::int32_t steps;
    std::int32_t ports;
};

/// How messages lie in slots: as they are, or in what shows by itself that it has arrived.
enum class MessageForm : std::int32_t { kPlain, kLL, kLL128 };
inline constexpr int kMessageForms = 3;

/// Messages between this rank and one peer, both ways, in this rank's memory.
struct DeviceCounters {
    std::uint32_t filled;   // by the peer: messages that it has put here; plain ones alone
    std::uint32_t emptied;  // by the peer: this rank's messages that it has taken
    std::uint32_t sent;     // this rank's count of what it has put there
    std::uint32_t taken;    // and of what it has taken here
};
struct DeviceFifo {
    DeviceCounters counters[kMessageForms];
    std::uint32_t reserved[20];
};
static_assert(sizeof(DeviceFifo) == 128);

[[nodiscard]] constexpr std::uint32_t slots_for(MessageForm form) {
    return form == MessageForm::kPlain ? kDeviceSlots : kLLSlots;
}
/// Of the message after `sent` others, how many must have been taken, at least, before there is a
/// slot for it; counters wrap.
[[nodiscard]] constexpr std::uint32_t emptied_before(std::uint32_t sent, MessageForm form) {
    return sent + 1 - slots_for(form);
}
/// Whether its receiver then acknowledges what it has taken: of LL and LL128 not each time: that
/// asks all threads of a block to meet.
[[nodiscard]] constexpr bool is_acknowledged(std::uint32_t sent) {
    return (sent + 1) % kAckInterval == 0;
}

/// Of one FIFO, in the memory of the rank that reads it.
struct DeviceSlots {
    std::byte messages[kDeviceSlots][kSlotBytes];
    LLLine ll[kLLSlots][kLLSlotBytes / kLLDataBytes];
    LL128Line ll128[kLLSlots][kLL128SlotLines];
};

/// What a rank's programs share; the slots of its FIFOs follow, by peer and FIFO.
struct DeviceProgramState {
    std::uint32_t progress[kMostBlocks];  // steps that each block of this launch has done
    std::uint32_t finished;               // blocks of this launch
    std::uint32_t reserved[15];
    DeviceProgramState* peers[kMostDevices];  // as mapped here, by rank; this rank's, too
    DeviceFifo fifos[kMostDevices][kDeviceFifos];
};

[[nodiscard]] constexpr std::size_t state_bytes(int ranks) {
    return sizeof(DeviceProgramState) +
           static_cast<std::size_t>(ranks) * kDeviceFifos * sizeof(DeviceSlots);
}

/// When a block did a step in one window, by its GPU's global timer; all 0 where it did not.
struct StepTime {
    std::uint64_t begin;  // it came to it
    std::uint64_t moved;  // what the step awaits was there; not of LL and LL128
    std::uint64_t end;
    std::uint64_t bytes;
};

/// One rank's program in GPU memory; passed by value.
struct DeviceProgram {
    const DeviceLane* lanes = nullptr;
    const DeviceStep* steps = nullptr;  // lane l's from l * most_steps on
    const DevicePort* ports = nullptr;  // and its ports from l * most_ports on: a lane finds both
    std::int32_t most_steps = 0;        // without looking at `lanes` first
    std::int32_t most_ports = 0;
    const DeviceWait* waits = nullptr;
    const DeviceSlice* places = nullptr;  // of chunks that are listed one by one
    DeviceProgramState* state = nullptr;  // this rank's
    std::byte* scratch = nullptr;         // scratch_chunks of window_bytes for each worker
    std::size_t chunk_bytes = 0;          // of every chunk of a block but the last ones
    std::size_t part_bytes = 0;           // of a chunk: a worker's, but for the last ones
    std::size_t window_bytes = 0;         // of a part at once, at most
    std::int32_t lane_count = 0;          // blocks beyond lane_count * workers have nothing to do
    std::int32_t workers = 1;             // of each lane
    std::int32_t scratch_chunks = 0;
    std::int32_t is_coupled = 0;  // lanes wait for each other
    StepTime* times = nullptr;    // by block, and steps in their order there; null: nobody asks
    std::size_t times_of_block = 0;
};
static_assert(std::is_trivially_copyable_v<DeviceProgram>);

}  // namespace pccl::abi
