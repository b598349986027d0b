// The channels and buffers of other GPUs that the operations of a plan name by numbers.
#pragma once

#include <map>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/plan_value.h"

namespace pccl::capsule::mscclpp {

/// A buffer of a GPU.
struct Remote {
    Rank rank = 0;
    schedule::Buffer buffer{};
};

/// What a GPU, or one of its thread blocks, numbers. Channels of switches have no numbers here:
/// operations on them are refused.
template <typename Remotes>
struct Tables {
    Remotes remotes{};
    std::map<ChannelType, std::vector<Channel>> channels{};
};
using GpuTables = Tables<std::vector<Remote>>;
using BlockTables = Tables<std::map<ChannelType, std::vector<Remote>>>;

/// Reads a buffer: "i", "o" or "s". kInvalidArgument for another text.
[[nodiscard]] Result<schedule::Buffer> buffer_of(const Value& of, const char* key);
/// Reads a type of channels. kInvalidArgument for another text.
[[nodiscard]] Result<ChannelType> type_of(const Value& of, const char* key);

/// Reads the tables of `gpu`, one of `ranks`. kInvalidArgument names the place of what is wrong.
[[nodiscard]] Result<GpuTables> tables_of_gpu(const Value& gpu, int ranks);
/// Reads those of a thread block of the GPU that has `tables`.
[[nodiscard]] Result<BlockTables> tables_of_block(const Value& block, const GpuTables& tables);

}  // namespace pccl::capsule::mscclpp
