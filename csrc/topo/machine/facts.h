// SPDX-License-Identifier: Apache-2.0

// List of all known attributes of a machine, with their sources.
#pragma once

#include <string>
#include <vector>

#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

struct Fact {
    std::string device;     // bus id, "cpu 0", name of a port
    std::string attribute;  // as in NCCL's XML
    std::string value;
    Source source = Source::kDefault;
};

/// Returns the facts in the order of the machine's tree.
[[nodiscard]] PCCL_API std::vector<Fact> facts(const Machine& machine);

}  // namespace pccl::topo
