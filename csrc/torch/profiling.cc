// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/profiling.h"

#include <ATen/record_function.h>

#include <numeric>
#include <string_view>

namespace pccl::backend {

bool is_profiling() {
    return at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
}

std::optional<std::vector<at::Tensor>> inputs_if_profiling(const std::vector<at::Tensor>& inputs) {
    if (!is_profiling()) return std::nullopt;
    return inputs;
}

RankSpacing spacing_of(const std::vector<std::uint64_t>& ranks) {
    if (ranks.empty()) return {};
    RankSpacing spacing{.first = static_cast<int>(ranks.front())};
    if (ranks.size() > 1) spacing.stride = static_cast<int>(ranks[1]) - spacing.first;
    for (std::size_t i = 1; i < ranks.size(); ++i)
        if (static_cast<int>(ranks[i] - ranks[i - 1]) != spacing.stride) spacing.stride = 0;
    return spacing;
}

std::int64_t elements_of(const std::vector<at::Tensor>& tensors) {
    return std::accumulate(
        tensors.begin(), tensors.end(), std::int64_t{0},
        [](std::int64_t sum, const at::Tensor& tensor) { return sum + tensor.numel(); });
}

at::ScalarType type_of(const Request& request) {
    const auto& tensors = request.inputs.empty() ? request.outputs : request.inputs;
    return tensors.empty() ? at::kByte : tensors.front().scalar_type();
}

std::string collective_of(const char* title) {
    const std::string_view whole = title;
    return std::string(whole.substr(whole.find(':') + 1));
}

}  // namespace pccl::backend
