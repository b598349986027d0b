// A switch that is no hardware: circuits in this process, for notebooks and for trying things out.
#pragma once

#include <memory>

#include "csrc/cluster/drivers/driver.h"

namespace pccl::cluster {

/// Dark at first.
[[nodiscard]] PCCL_API std::unique_ptr<Driver> make_fabric_driver();

}  // namespace pccl::cluster
