// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/capsule_links.h"

#include "csrc/base/text/text.h"
#include "csrc/comm/phase/phase_network.h"

namespace pccl::comm {

Status check_links(const schedule::ScheduleSource& source, const schedule::Shape& shape,
                   const schedule::LinkGraph& links, const std::string& phase) {
    for (Rank rank = 0; rank < shape.ranks; ++rank)
        if (const auto link = links.missing(source.program(shape, rank), rank))
            return Status::invalid_argument(concat("rank ", link->from, " sends to rank ", link->to,
                                                   " in phase ", phase,
                                                   ", which has no link for that"));
    return Status::ok();
}

Status check_present_links(const capsule::Capsule& capsule, const CommunicatorOptions& options,
                           const PhasedGroup& group) {
    const std::string phase = options.network == nullptr ? "" : options.network->phase();
    if (phase.empty()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(const auto links, options.network->links_in(phase, group));
    if (links == nullptr) return Status::ok();
    Status fits = check_links(*capsule.source(), capsule.schedule().shape, *links, phase);
    if (fits.is_ok()) return fits;
    return Status::invalid_argument(
        concat(fits.message(), ": load the capsule in a phase that has it"));
}

}  // namespace pccl::comm
