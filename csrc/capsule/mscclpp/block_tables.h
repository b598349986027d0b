// SPDX-License-Identifier: Apache-2.0

// Numbered channels and remote buffers that the operations of a plan use.
#pragma once

#include <map>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"
#include "csrc/capsule/mscclpp/plan_value.h"

namespace pccl::capsule::mscclpp {

/// Buffer of a GPU.
struct RemoteBuffer {
    Rank rank = 0;
    schedule::Buffer buffer{};
};

/// Tables of a GPU, or of one of its thread blocks, indexed by the numbers in operations. Channels
/// of switches have no numbers here: operations on them are rejected.
template <typename Remotes>
struct Tables {
    Remotes remotes{};
    std::map<ChannelType, std::vector<PlanChannel>> channels{};
};
using GpuTables = Tables<std::vector<RemoteBuffer>>;
using BlockTables = Tables<std::map<ChannelType, std::vector<RemoteBuffer>>>;

/// Reads a buffer: "i", "o" or "s". kInvalidArgument: any other text.
[[nodiscard]] Result<schedule::Buffer> buffer_of(const PlanValue& of, const char* key);
/// Reads a type of channels. kInvalidArgument: any other text.
[[nodiscard]] Result<ChannelType> type_of(const PlanValue& of, const char* key);

/// Reads the tables of `gpu`, one of `ranks`. kInvalidArgument contains the place of the fault.
[[nodiscard]] Result<GpuTables> tables_of_gpu(const PlanValue& gpu, int ranks);
/// Reads the tables of a thread block of the GPU that has `tables`.
[[nodiscard]] Result<BlockTables> tables_of_block(const PlanValue& block, const GpuTables& tables);

}  // namespace pccl::capsule::mscclpp
