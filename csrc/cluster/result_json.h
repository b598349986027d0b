// SPDX-License-Identifier: Apache-2.0

// Plans, reports and inspections as JSON text, for Python.
#pragma once

#include <string>

#include <pccl/export.h>
#include "csrc/cluster/inspection.h"
#include "csrc/cluster/model/description.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/progress.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

[[nodiscard]] PCCL_API std::string json_of(const Description& description);
[[nodiscard]] PCCL_API std::string json_of(const Plan& plan);
[[nodiscard]] PCCL_API std::string json_of(const Report& report);
[[nodiscard]] PCCL_API std::string json_of(const Inspection& inspection);
[[nodiscard]] PCCL_API std::string json_of(const Progress& progress);

}  // namespace pccl::cluster
