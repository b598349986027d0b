// SPDX-License-Identifier: Apache-2.0

// Reads anything as topology XML, as hwloc's XML and as graph XML. What is accepted must come back
// equal after saving, and a plan for it must be found, or refused, without harm.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "csrc/topo/search/plan_xml.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/topology.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl::topo;

void check_machine(const Topology& topology) {
    const auto again = Topology::parse(topology.to_xml(), "saved", {});
    require(again.is_ok() && again->machine() == topology.machine());
    if (topology.graph().gpus().size() > 12 || topology.graph().nets().size() > 12) return;
    for (const Pattern pattern : {Pattern::kRing, Pattern::kTree, Pattern::kHeads}) {
        const auto plan = search(topology, {.pattern = pattern, .nodes = 2, .steps = 100'000});
        if (!plan.is_ok()) continue;
        const auto read = parse_plan_xml(plan_xml({*plan}, topology), "saved", topology);
        require(read.is_ok() && read->size() == 1);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Topology pair = *Topology::parse(
        "<system version=\"1\"><cpu numaid=\"0\">"
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\"/></pci>"
        "<pci busid=\"0000:02:00.0\" class=\"0x030200\"><gpu dev=\"1\" sm=\"90\"/></pci>"
        "<nic><net name=\"eth0\" dev=\"0\" speed=\"10000\"/></nic></cpu></system>",
        "pair", {});
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)parse_plan_xml(text, "fuzz", pair);
    const auto topology = Topology::parse(text, "fuzz", {});
    if (topology.is_ok()) check_machine(*topology);
    return 0;
}
