// From what a cluster file says of a switch to what speaks to it.
#pragma once

#include <functional>
#include <memory>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/drivers/driver.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Makes the driver of a switch; tests have their own.
using MakeDriver = std::function<Result<std::unique_ptr<Driver>>(const SwitchDescription&)>;
/// Over SSH, or a fabric of this process. Looks its host up when it connects.
[[nodiscard]] PCCL_API Result<std::unique_ptr<Driver>> make_driver(const SwitchDescription& of);

}  // namespace pccl::cluster
