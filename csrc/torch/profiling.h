// SPDX-License-Identifier: Apache-2.0

// Profiler events of operations: the operation by its title, which works open (work.h, gpu_work.h),
// and the metadata of its data and group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <tuple>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/torch/request.h"
#include "csrc/torch/tensors.h"

namespace pccl::backend {

[[nodiscard]] bool is_profiling();
/// Returns the inputs for torch's Work while a profiler runs, else nullopt: Work allocates memory
/// for them even without a profiler.
[[nodiscard]] std::optional<std::vector<at::Tensor>> inputs_if_profiling(
    const std::vector<at::Tensor>& inputs);

/// Group of an operation.
struct ProfiledGroup {
    std::string name;
    std::string description;
    Rank rank = 0;
    int size = 1;
    std::vector<std::uint64_t> global_ranks;  // empty: the ranks of the job
};

/// First rank, and the stride of the others; 0 where they are not evenly spaced.
struct RankSpacing {
    int first = 0;
    int stride = 1;
};
[[nodiscard]] RankSpacing spacing_of(const std::vector<std::uint64_t>& ranks);

[[nodiscard]] std::int64_t elements_of(const std::vector<at::Tensor>& tensors);
[[nodiscard]] at::ScalarType type_of(const Request& request);
/// Returns "all_reduce" for "pccl:all_reduce".
[[nodiscard]] std::string collective_of(const char* title);

/// Returns body(), inside an event with the data sizes of `request` and the ranks of group(), in
/// NCCL's format, which trace analyzers read.
template <typename Group, typename Body>
auto profiled(const Request& request, Group group, Body body) {
    if (!is_profiling()) return body();
    const ProfiledGroup among = group();
    const RankSpacing spacing = spacing_of(among.global_ranks);
    const std::vector<std::int64_t> equal_parts;
    RECORD_PARAM_COMMS_DATA(
        std::make_tuple(static_cast<std::int64_t>(request.sequence), request.peer.has_value()),
        std::make_tuple(among.name, among.description), request.inputs, request.outputs,
        request.peer.value_or(among.rank), collective_of(request.title),
        elements_of(request.inputs), elements_of(request.outputs), type_of(request), equal_parts,
        equal_parts, spacing.first, spacing.stride, among.size);
    return body();
}

}  // namespace pccl::backend
