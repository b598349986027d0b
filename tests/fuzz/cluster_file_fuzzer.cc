// SPDX-License-Identifier: Apache-2.0

// Cluster files, and the circuits that switches show. What is accepted must make sense: every phase
// has its circuits, no port is in two, and a plan between two phases is their difference.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/plan.h"
#include "csrc/sys/xml/xml_reader.h"
#include "tests/fuzz/require.h"

namespace {

using namespace pccl;  // NOLINT(google-build-using-namespace): one function

void require_unique_ports(const cluster::Circuits& circuits, bool is_electrical) {
    std::set<int> ingresses;
    std::set<int> egresses;
    for (const cluster::Circuit& each : circuits) {
        require(ingresses.insert(each.ingress).second);
        require(egresses.insert(each.egress).second || is_electrical);
    }
}

void read_file(std::string_view bytes) {
    const auto description = cluster::parse_cluster_file(bytes, "fuzz");
    if (!description.is_ok()) return;
    for (const cluster::Phase& phase : description->phases) {
        const auto circuits = cluster::circuits_of(*description, phase);
        require(circuits.is_ok());
        for (const auto& [name, each] : *circuits) {
            const auto kind = description->switch_called(name).kind;
            require_unique_ports(each, kind != cluster::SwitchKind::kOptical);
        }
        const auto plan = cluster::make_plan(*description, "", phase.name);
        require(plan.is_ok());
        for (const cluster::SwitchPlan& each : plan->switches)
            require(each.change.add == circuits->at(each.name) && each.change.remove.empty());
    }
}

void read_circuits(std::string_view bytes) {
    const auto root = sys::read_xml(bytes);
    if (!root.is_ok()) return;
    for (const char* name :
         {"pccl", "openconfig-wavelength-router", "pccl-vlan", "ietf-interfaces"}) {
        const cluster::Dialect& dialect = *cluster::find_dialect(name);
        const auto circuits = cluster::circuits_in(dialect, *root);
        if (circuits.is_ok()) require_unique_ports(*circuits, dialect.is_electrical());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    read_file(bytes);
    read_circuits(bytes);
    return 0;
}
