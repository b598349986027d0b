#include "csrc/comm/machine_network.h"

#include <algorithm>

#include "csrc/bootstrap/layout.h"
#include "csrc/comm/selection/link_costs.h"

namespace pccl::comm {

Result<schedule::Network> machine_network(const MachineRanks& ranks,
                                          const costs::MachineCosts& costs) {
    PCCL_ASSIGN_OR_RETURN(const auto layout, bootstrap::Layout::make(ranks.ranks, {}));
    const Reach reach{.ranks = ranks.ranks,
                      .is_on_one_host = ranks.by_shared_memory,
                      .shares_memory = ranks.by_shared_memory,
                      .most_on_a_host = ranks.by_shared_memory ? ranks.ranks : 1};
    const schedule::LinkModel model = link_model(reach, *layout, costs);
    schedule::MessageWork work{.start_seconds = model.near.message_seconds,
                               .travel_seconds = model.near.round_seconds,
                               .seconds_per_byte = model.near.seconds_per_byte,
                               .takes_both = model.near.copies,
                               .sum_seconds_per_byte = model.reduce_seconds_per_byte,
                               .capacity = model.capacity};
    // A rank that has no core to itself is woken.
    if (ranks.ranks > ranks.cores)
        work.travel_seconds = std::max(work.travel_seconds, costs.shared_core_beat.seconds);
    return schedule::one_machine(ranks.ranks, ranks.cores, work);
}

}  // namespace pccl::comm
