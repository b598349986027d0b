// Everything that is known about a machine, as a list: what, and who said so.
#pragma once

#include <string>
#include <vector>

#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

struct Fact {
    std::string device;     // bus id, "cpu 0", name of a port
    std::string attribute;  // as NCCL's XML names it
    std::string value;
    Source source = Source::kDefault;
};

/// In the order of the machine's tree.
[[nodiscard]] PCCL_API std::vector<Fact> facts(const Machine& machine);

}  // namespace pccl::topo
