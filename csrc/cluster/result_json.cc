// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/result_json.h"

#include "csrc/cluster/json_text.h"

namespace pccl::cluster {

std::string json_of(const Description& description) { return dumped(in_json(description)); }

std::string json_of(const Plan& plan) { return dumped(in_json(plan)); }

std::string json_of(const Report& report) { return dumped(in_json(report)); }

std::string json_of(const Inspection& inspection) { return dumped(in_json(inspection)); }

std::string json_of(const Progress& progress) { return dumped(in_json(progress)); }

}  // namespace pccl::cluster
