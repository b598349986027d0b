// SPDX-License-Identifier: Apache-2.0

// Plans, reports and inspections as JSON, for the audit log and for Python.
#pragma once

#include <nlohmann/json.hpp>

#include "csrc/cluster/inspection.h"
#include "csrc/cluster/plan.h"
#include "csrc/cluster/progress.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

using OrderedJson = nlohmann::ordered_json;

[[nodiscard]] OrderedJson in_json(const Circuits& circuits);
[[nodiscard]] OrderedJson in_json(const Report& report);
[[nodiscard]] OrderedJson in_json(const Plan& plan);
[[nodiscard]] OrderedJson in_json(const Inspection& inspection);
[[nodiscard]] OrderedJson in_json(const Description& description);
[[nodiscard]] OrderedJson in_json(const Progress& progress);
/// Returns one line of ASCII, because text from a device need not be UTF-8.
[[nodiscard]] std::string dumped(const OrderedJson& json);

}  // namespace pccl::cluster
