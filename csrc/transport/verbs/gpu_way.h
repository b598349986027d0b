// SPDX-License-Identifier: Apache-2.0

// Ways by which RDMA devices reach memory of GPUs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <pccl/status.h>

namespace pccl::transport::verbs {

enum class GpuWay : std::uint8_t {
    kDmaBuf,   // the driver of the GPU exports the memory as a file
    kPeermem,  // the module nvidia_peermem answers for addresses of the GPU
};

/// Returns "dmabuf" or "peermem", the values of PCCL_IB_GPU.
[[nodiscard]] const char* to_string(GpuWay way);

/// Returns the ways that a value of PCCL_IB_GPU allows, in the order in which they are tried; none
/// for "off". kInvalidArgument for other texts.
[[nodiscard]] Result<std::vector<GpuWay>> parse_gpu_ways(std::string_view setting);

}  // namespace pccl::transport::verbs
