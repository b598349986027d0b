// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/capsules/capsule_check.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/capsule/sizes.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::comm {
namespace {

using schedule::PartSource;

Status check_group(const CommunicatorImplOptions& options) {
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

/// Returns kInvalidArgument naming the first link that is missing from `links`, the links of
/// `phase`.
Status check_links(const schedule::ScheduleSource& source, const schedule::Shape& shape,
                   const schedule::LinkGraph& links, const std::string& phase) {
    for (Rank rank = 0; rank < shape.ranks; ++rank)
        if (const auto link = links.missing(source.program(shape, rank), rank))
            return Status::invalid_argument(concat("rank ", link->from, " sends to rank ", link->to,
                                                   " in phase ", phase,
                                                   ", which has no link for that"));
    return Status::ok();
}

}  // namespace

Status check_phases(const capsule::VerifiedCapsule& capsule, const CommunicatorImplOptions& options,
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

Status check_present_links(const capsule::VerifiedCapsule& capsule,
                           const CommunicatorImplOptions& options, const PhasedGroup& group) {
    const std::string phase = options.network == nullptr ? "" : options.network->phase();
    if (phase.empty()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const auto links, options.network->links_in(phase, group));
    if (links == nullptr) return Status::ok();
    Status fits = check_links(*capsule.source(), capsule.schedule().shape, *links, phase);
    if (fits.is_ok()) return fits;
    return Status::invalid_argument(
        concat(fits.message(), ": load the capsule in a phase that has it"));
}

Status add_parts(const capsule::VerifiedCapsule& capsule, schedule::Catalogue& catalogue) {
    std::vector<schedule::SourcePtr> parts;
    for (PartSource& each : capsule.parts())
        if (each.source != nullptr) parts.push_back(std::move(each.source));
    return catalogue.add_in_parts(capsule.source(capsule::kByName), std::move(parts));
}

}  // namespace pccl::comm
