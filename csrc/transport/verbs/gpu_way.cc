// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/gpu_way.h"

#include "csrc/base/text/text.h"

namespace pccl::transport::verbs {

const char* to_string(GpuWay way) { return way == GpuWay::kDmaBuf ? "dmabuf" : "peermem"; }

Result<std::vector<GpuWay>> parse_gpu_ways(std::string_view setting) {
    if (setting == "auto") return std::vector{GpuWay::kDmaBuf, GpuWay::kPeermem};
    if (setting == "off") return std::vector<GpuWay>();
    for (const GpuWay way : {GpuWay::kDmaBuf, GpuWay::kPeermem})
        if (setting == to_string(way)) return std::vector{way};
    return Status::invalid_argument(
        concat("\"", setting, "\" is no way to memory of GPUs; use auto, dmabuf, peermem or off"));
}

}  // namespace pccl::transport::verbs
