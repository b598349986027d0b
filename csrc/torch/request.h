// SPDX-License-Identifier: Apache-2.0

// Description of an operation, from its call to its work.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::backend {

struct Request {
    c10d::OpType type = c10d::OpType::UNKNOWN;
    const char* title = "";  // "pccl:all_reduce", for profiles and errors; static memory
    const std::vector<at::Tensor>& inputs;  // borrowed for the call
    std::vector<at::Tensor> outputs;        // the result
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool async = true;
    std::optional<Rank> peer{};  // of a message
    std::uint64_t sequence = 0;  // of collectives; a message has that of the collective before it
};

}  // namespace pccl::backend
