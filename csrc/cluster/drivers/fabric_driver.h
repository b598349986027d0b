// SPDX-License-Identifier: Apache-2.0

// Simulated switch: circuits in this process, for notebooks and experiments.
#pragma once

#include <memory>

#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// Makes a fabric without circuits.
[[nodiscard]] PCCL_API std::unique_ptr<Driver> make_fabric_driver();

}  // namespace pccl::cluster
