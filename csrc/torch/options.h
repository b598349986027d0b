// pccl.Options: what init_process_group(pg_options=...) takes.
#pragma once

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

namespace pccl::backend {

inline constexpr const char* kBackendName = "pccl";

/// The base class holds timeout, group_name, group_desc and global_ranks_in_group.
struct PcclOptions final : c10d::Backend::Options {
    PcclOptions() : Options(kBackendName) {}

    std::string transports;    // "shm,tcp": restricts this group; empty = all that the process has
    std::string gpu;           // as CommunicatorOptions::gpu
    std::optional<int> least;  // as ShrinkOptions::least
};

}  // namespace pccl::backend
