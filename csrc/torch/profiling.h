// What profilers see of operations, while one is running: the operation by its title, which works
// open (work.h, gpu_work.h), and what it passes on among whom.
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
/// What torch's Work takes: it allocates for them, and for a title, even while nobody profiles.
[[nodiscard]] std::optional<std::vector<at::Tensor>> inputs_if_profiling(
    const std::vector<at::Tensor>& inputs);

/// Who takes part in an operation.
struct ProfiledGroup {
    std::string name;
    std::string description;
    Rank rank = 0;
    int size = 1;
    std::vector<std::uint64_t> global_ranks;  // empty: those of the job
};

/// The first of `ranks` and how far each is from the next; 0 where they are not evenly spaced.
struct RankSpacing {
    int first = 0;
    int stride = 1;
};
[[nodiscard]] RankSpacing spacing_of(const std::vector<std::uint64_t>& ranks);

[[nodiscard]] std::int64_t elements_of(const std::vector<at::Tensor>& tensors);
[[nodiscard]] at::ScalarType type_of(const Request& request);
/// "all_reduce" of "pccl:all_reduce".
[[nodiscard]] std::string collective_of(const char* title);

/// Returns body(), within an event that says what `request` passes on in group(), as groups of NCCL
/// tell it: analyzers of traces read sizes and ranks there.
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
