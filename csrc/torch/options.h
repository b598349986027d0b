// SPDX-License-Identifier: Apache-2.0

// pccl.Options: the argument of init_process_group(pg_options=...).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "csrc/base/config.h"
#include "csrc/device/launch/preferences.h"

namespace pccl::comm {
class PhaseNetwork;
}

namespace pccl::backend {

inline constexpr const char* kBackendName = "pccl";

/// Options of a group. The base class holds timeout, group_name, group_desc and
/// global_ranks_in_group.
struct PcclOptions final : c10d::Backend::Options {
    PcclOptions() : Options(kBackendName) {}

    std::string transports;            // "shm,tcp": restricts this group; empty: all of the process
    std::string algorithm;             // "all_reduce=ring"; empty: PCCL_ALGORITHM
    std::optional<bool> copy_engines;  // nullopt: PCCL_GPU_COPY_ENGINES; rank 0's value applies
    std::string gpu;                   // as CommunicatorOptions::gpu
    std::optional<int> max_blocks;     // of GPUs, as the next member: Preferences
    std::optional<kernels::Protocol> protocol;
    std::optional<int> least;                     // as ShrinkOptions::least
    std::size_t timeline = 0;                     // steps to record from the group's beginning
    std::shared_ptr<comm::PhaseNetwork> network;  // as CommunicatorOptions::network
    bool switches_phases = true;

    [[nodiscard]] const std::string& algorithms() const {
        return algorithm.empty() ? process_config().algorithm : algorithm;
    }
    [[nodiscard]] device::Preferences preferences() const {
        return {.copy_engines = copy_engines.value_or(process_config().gpu_copy_engines),
                .most_blocks = max_blocks.value_or(abi::kMostBlocks),
                .protocol = protocol};
    }
};

}  // namespace pccl::backend
