// SPDX-License-Identifier: Apache-2.0

// Events of the audit log, as JSON.
#pragma once

#include <string>
#include <vector>

#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Returns the event that begins a transaction. It is written before any request to a switch, so
/// that the log contains it after a crash.
[[nodiscard]] std::string beginning_json(const std::string& from, const std::string& to,
                                         const std::vector<SwitchMember>& members);
[[nodiscard]] std::string ending_json(const std::string& to, const Report& report);
[[nodiscard]] std::string adoption_json(const std::string& phase);

}  // namespace pccl::cluster
