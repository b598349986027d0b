// SPDX-License-Identifier: Apache-2.0

// Simulated switch, and factory of drivers from the switches of a cluster file.
#pragma once

#include <functional>
#include <memory>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Makes a fabric without circuits.
[[nodiscard]] PCCL_API std::unique_ptr<SwitchDriver> make_fabric_driver();

/// Makes the driver of a switch; tests pass their own function.
using MakeDriver = std::function<Result<std::unique_ptr<SwitchDriver>>(const SwitchDescription&)>;
/// Makes a driver over SSH, or a fabric in this process. The host name is resolved when the driver
/// connects.
[[nodiscard]] PCCL_API Result<std::unique_ptr<SwitchDriver>> make_driver(
    const SwitchDescription& of);

}  // namespace pccl::cluster
