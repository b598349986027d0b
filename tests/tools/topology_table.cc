// SPDX-License-Identifier: Apache-2.0

// What NCCL's search finds for real machines, and what ours does: build/dev/topology_table.

#include <cstdio>
#include <string>

#include "tests/cpp/topo/nccl_table.h"

using namespace pccl::topo;

namespace {

std::string types(const NcclRow& row, PathType intra, PathType inter) {
    std::string text(to_string(intra));
    if (row.search.nodes > 1) text += "/" + std::string(to_string(inter));
    return text;
}

}  // namespace

int main() {
    std::printf("%-20s %-5s | %8s %8s %5s %-7s | %8s %8s %5s %-7s %7s %s\n", "", "", "NCCL",
                "paths", "", "", "PCCL", "paths", "", "", "", "");
    std::printf("%-20s %-5s | %8s %8s %5s %-7s | %8s %8s %5s %-7s %7s %s\n", "machine", "", "GB/s",
                "ms", "ms", "types", "GB/s", "ms", "ms", "types", "chans", "optimal");
    for (const NcclRow& row : nccl_rows()) {
        const OwnResult own = own_result(row);
        std::printf("%-20s %-5s | %8.1f %8.2f %5.4g %-7s | %8.1f %8.2f %5.2f %-7s %7zu %s\n",
                    row.name.c_str(), std::string(to_string(row.search.pattern)).c_str(),
                    row.bandwidth, row.path_seconds * 1e3, row.seconds * 1e3,
                    types(row, row.type_intra, row.type_inter).c_str(), own.plan.bandwidth,
                    own.path_seconds * 1e3, own.plan.seconds * 1e3,
                    types(row, own.plan.type_intra, own.plan.type_inter).c_str(),
                    own.plan.channels.size(), own.plan.optimal ? "yes" : "no");
    }
    return 0;
}
