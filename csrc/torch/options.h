// pccl.Options: what init_process_group(pg_options=...) takes.
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

/// The base class holds timeout, group_name, group_desc and global_ranks_in_group.
struct PcclOptions final : c10d::Backend::Options {
    PcclOptions() : Options(kBackendName) {}

    std::string transports;  // "shm,tcp": restricts this group; empty = all that the process has
    std::string algorithm;   // "all_reduce=ring": empty = as PCCL_ALGORITHM has it
    std::optional<bool> copy_engines;  // nullopt = as PCCL_GPU_COPY_ENGINES has it; rank 0's counts
    std::string gpu;                   // as CommunicatorOptions::gpu
    std::optional<int> max_blocks;     // of GPUs, as the next: Preferences
    std::optional<kernels::Protocol> protocol;
    std::optional<int> least;                     // as ShrinkOptions::least
    std::size_t timeline = 0;                     // steps that the group records from its beginning
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
