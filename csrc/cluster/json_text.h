// SPDX-License-Identifier: Apache-2.0

// Reports and circuits as JSON, for the audit log.
#pragma once

#include <nlohmann/json.hpp>

#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

using OrderedJson = nlohmann::ordered_json;

[[nodiscard]] OrderedJson in_json(const Circuits& circuits);
[[nodiscard]] OrderedJson in_json(const Report& report);
/// Returns one line of ASCII, because text from a device need not be UTF-8.
[[nodiscard]] std::string dumped(const OrderedJson& json);

}  // namespace pccl::cluster
