// SPDX-License-Identifier: Apache-2.0

// Choice of RDMA devices and ports by name, in the syntax of NCCL_IB_HCA.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>

namespace pccl::transport::verbs {

/// Parsed PCCL_IB_HCA:
///   ""                   every port
///   "mlx5,rxe0:1"        devices whose names begin with "mlx5", and port 1 of such that begin with
///                        "rxe0"
///   "=mlx5_0:1,mlx5_1"   exactly these names
///   "^mlx5_3"            other names than these; "^=mlx5_3" compares whole names
class HcaFilter {
   public:
    /// kInvalidArgument for an empty name, or a port that is no number from 1 to 255.
    static Result<HcaFilter> parse(std::string_view text);

    [[nodiscard]] bool takes(std::string_view device, int port) const;
    [[nodiscard]] bool is_empty() const { return entries_.empty(); }

   private:
    struct HcaName {
        std::string device;
        int port = 0;  // 0: any
    };
    static Result<HcaName> parse_name(std::string_view text);
    [[nodiscard]] bool has(std::string_view device, int port) const;

    bool is_exclusion_ = false;
    bool is_exact_ = false;
    std::vector<HcaName> entries_;
};

}  // namespace pccl::transport::verbs
