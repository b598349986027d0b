// The lines of the audit log.
#pragma once

#include <string>
#include <vector>

#include "csrc/cluster/transaction.h"

namespace pccl::cluster {

/// Before anything is asked of a switch: what a crash leaves behind begins with it.
[[nodiscard]] std::string beginning_json(const std::string& from, const std::string& to,
                                         const std::vector<SwitchMember>& members);
[[nodiscard]] std::string ending_json(const std::string& to, const Report& report);
[[nodiscard]] std::string adoption_json(const std::string& phase);

}  // namespace pccl::cluster
