// Cluster files, and the circuits that switches show. What is accepted must make sense: every phase
// has its circuits, no port is in two, and a plan between two phases is their difference.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string_view>

#include "csrc/cluster/drivers/dialect.h"
#include "csrc/cluster/file/cluster_file.h"
#include "csrc/cluster/plan.h"
#include "csrc/sys/xml/xml_reader.h"

namespace {

using namespace pccl;  // NOLINT(google-build-using-namespace): one function

void require(bool holds) {
    if (!holds) std::abort();
}

void require_unique_ports(const cluster::Circuits& circuits) {
    std::set<int> ingresses;
    std::set<int> egresses;
    for (const cluster::Circuit& each : circuits)
        require(ingresses.insert(each.ingress).second && egresses.insert(each.egress).second);
}

void read_file(std::string_view bytes) {
    const auto description = cluster::parse_cluster_file(bytes, "fuzz");
    if (!description.is_ok()) return;
    for (const cluster::Phase& phase : description->phases) {
        const auto circuits = cluster::circuits_of(*description, phase);
        require(circuits.is_ok());
        for (const auto& [name, each] : *circuits) require_unique_ports(each);
        const auto plan = cluster::make_plan(*description, "", phase.name);
        require(plan.is_ok());
        for (const cluster::SwitchPlan& each : plan->switches)
            require(each.change.add == circuits->at(each.name) && each.change.remove.empty());
    }
}

void read_circuits(std::string_view bytes) {
    const auto root = sys::read_xml(bytes);
    if (!root.is_ok()) return;
    for (const char* name : {"pccl", "openconfig-wavelength-router"}) {
        const auto circuits = cluster::circuits_in(*cluster::find_dialect(name), *root);
        if (circuits.is_ok()) require_unique_ports(*circuits);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    read_file(bytes);
    read_circuits(bytes);
    return 0;
}
