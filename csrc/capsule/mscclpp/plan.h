// The execution plans of MSCCL++ (github.com/microsoft/mscclpp), as its JSON says them: GPUs, of
// thread blocks, of operations on memory of their own and of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule::mscclpp {

/// Chunks of a buffer of some GPU.
struct Chunks {
    Rank rank = 0;
    schedule::Buffer buffer{};
    int index = 0;
    int size = 0;
    auto operator<=>(const Chunks&) const = default;
};

enum class ChannelType : std::uint8_t { kMemory, kPort };

/// The `nth` connection of its type from a GPU to `peer`; it is the same as that of its peer.
struct Channel {
    ChannelType type{};
    Rank peer = 0;
    int nth = 0;
    auto operator<=>(const Channel&) const = default;
};

enum class Kind : std::uint8_t {
    kNothing,  // nop, flush: lanes have an order anyway
    kBarrier,  // of thread blocks of one GPU
    kAcquire,
    kRelease,
    kSignal,
    kWait,
    kMove,    // each of src to the same of dst, whosever they are
    kReduce,  // all of src to the first of dst, and from there to the others
};

struct Operation {
    std::string_view name;
    int line = 0;  // of the file
    Kind kind{};
    bool reads_packets = false;   // of src, those in the GPU's own scratch, when they have come
    bool writes_packets = false;  // they say themselves that they are there
    bool signals = false;         // after what it moves
    std::vector<Chunks> src{};
    std::vector<Chunks> dst{};
    std::vector<Channel> channels{};
    std::vector<int> ids{};  // of semaphores, or of a barrier
};

using ThreadBlock = std::vector<Operation>;

struct Gpu {
    int line = 0;  // of the file
    int scratch_chunks = 0;
    std::vector<int> semaphores{};  // what they begin with
    std::vector<ThreadBlock> blocks{};
};

struct Plan {
    std::string name;
    std::optional<schedule::MessageProtocol> protocol;
    schedule::CollectiveKind kind{};
    bool in_place = false;
    int chunks = 1;  // of a block
    schedule::SizeRange sizes{};
    std::vector<Gpu> gpus;  // by rank
};

/// Of operation `op` of a thread block, for messages: "plan.json:12: gpu 0, threadblock 0, op 5
/// (put)".
[[nodiscard]] std::string place_of(std::string_view file, Rank gpu, std::size_t block,
                                   std::size_t op, const Operation& operation);

/// From text of any origin. kInvalidArgument with line and operation for what is no plan,
/// kUnsupported for what it says that capsules cannot.
[[nodiscard]] Result<Plan> read_plan(std::string_view text, std::string_view file);

}  // namespace pccl::capsule::mscclpp
