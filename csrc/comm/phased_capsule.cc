#include "csrc/comm/phased_capsule.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/capsule/sizes.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::comm {
namespace {

using schedule::PartSource;

Status check_links(const PartSource& part, const schedule::Shape& shape,
                   const schedule::LinkGraph& links) {
    for (Rank rank = 0; rank < shape.ranks; ++rank)
        for (const schedule::Lane& lane : part.source->program(shape, rank).lanes)
            for (const schedule::Step& step : lane)
                if (step.to.is_used() && !links.has(rank, step.to.peer))
                    return Status::invalid_argument(concat("rank ", rank, " sends to rank ",
                                                           step.to.peer, " in phase ", part.phase,
                                                           ", which has no link for that"));
    return Status::ok();
}

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
        PCCL_TRY(check_links(part, capsule.schedule().shape, *links));
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
