// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/phased_capsule.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/capsule/sizes.h"
#include "csrc/comm/capsule_links.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::comm {
namespace {

using schedule::PartSource;

Status check_group(const CommunicatorOptions& options) {
    if (options.network == nullptr)
        return Status::unsupported(
            "it switches phases, and this group is on no cluster: give it one (cluster=), or set "
            "PCCL_CLUSTER");
    if (!options.switches_phases)
        return Status::unsupported(
            "it switches phases, and this group follows those of the group of all ranks: load it "
            "there");
    return Status::ok();
}

}  // namespace

Status check_phases(const capsule::Capsule& capsule, const CommunicatorOptions& options,
                    const PhasedGroup& group) {
    PCCL_TRY(check_group(options));
    for (const PartSource& part : capsule.parts()) {
        if (part.phase.empty()) continue;
        PCCL_ASSIGN_OR_RETURN(const auto links, options.network->links_in(part.phase, group));
        if (part.source == nullptr || links == nullptr) continue;
        PCCL_TRY(check_links(*part.source, capsule.schedule().shape, *links, part.phase));
    }
    return Status::ok();
}

Status add_parts(const capsule::Capsule& capsule, schedule::Catalogue& catalogue) {
    std::vector<schedule::SourcePtr> parts;
    for (PartSource& each : capsule.parts())
        if (each.source != nullptr) parts.push_back(std::move(each.source));
    return catalogue.add_in_parts(capsule.source(capsule::kByName), std::move(parts));
}

}  // namespace pccl::comm
