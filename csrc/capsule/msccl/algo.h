// SPDX-License-Identifier: Apache-2.0

// Programs of MSCCL (github.com/microsoft/msccl): an algorithm contains GPUs, a GPU thread blocks,
// a thread block steps. These types mirror its XML (read_xml.h).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"

namespace pccl::capsule::msccl {

/// Parses "allreduce" or "all_reduce".
[[nodiscard]] std::optional<schedule::CollectiveKind> collective_called(std::string name);
/// Returns "allreduce".
[[nodiscard]] std::string_view name_of(schedule::CollectiveKind kind);

/// Parses "LL", "LL128" or "Simple".
[[nodiscard]] std::optional<schedule::MessageProtocol> protocol_called(std::string_view name);
[[nodiscard]] std::string_view name_of(schedule::MessageProtocol protocol);

/// Collective of a program that has coll="custom".
struct AlgoCollective {
    schedule::CollectiveKind kind{};
    Rank root = 0;
};

/// Chunks of a buffer: "i", "o" or "s".
struct ChunkSpan {
    schedule::Buffer buffer{};
    int offset = 0;
};

/// Position in the file.
using FileOffset = std::ptrdiff_t;

struct AlgoStep {
    FileOffset origin = 0;
    schedule::Action action{};
    ChunkSpan src{};
    ChunkSpan dst{};
    int count = 0;
    schedule::PeerPort from{};
    schedule::PeerPort to{};
    // Dependencies on lanes, which are thread blocks here. Initialised, so that designated
    // initialisers may leave it out without a warning.
    std::vector<schedule::Dependency> after = {};  // NOLINT(readability-redundant-member-init)
};

[[nodiscard]] inline bool has_src(schedule::Action action) {
    return action != schedule::Action::kNop && action != schedule::Action::kRecv &&
           action != schedule::Action::kRecvCopySend;
}
[[nodiscard]] inline bool has_dst(schedule::Action action) {
    return action != schedule::Action::kNop && action != schedule::Action::kSend &&
           action != schedule::Action::kRecvReduceSend;
}

struct ThreadBlock {
    std::vector<AlgoStep> steps;
};

struct AlgoGpu {
    FileOffset origin = 0;
    int scratch_chunks = 0;
    std::vector<AlgoStep> copies{};  // of the input, before all steps of blocks
    std::vector<ThreadBlock> blocks{};
};

struct Algo {
    std::string name{};
    std::optional<schedule::MessageProtocol> protocol{};
    schedule::CollectiveKind kind{};
    Rank root = 0;
    int chunks = 1;  // of a block
    bool in_place = false;
    schedule::SizeRange sizes{};
    std::vector<AlgoGpu> gpus{};  // by rank
    int most_slots = 8;           // of its queues, as in NCCL's Simple protocol, which MSCCL uses
    FileOffset origin = 0;
    /// Returns "file.xml:12", for error messages.
    std::function<std::string(FileOffset)> place{};
};

}  // namespace pccl::capsule::msccl
