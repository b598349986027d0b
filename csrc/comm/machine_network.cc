#include "csrc/comm/machine_network.h"

#include <algorithm>

#include "csrc/comm/selection/link_costs.h"
#include "csrc/transport/shm/ring.h"

namespace pccl::comm {

using costs::Level;

schedule::Network machine_network(const MachineRanks& ranks, const costs::MachineCosts& costs) {
    const schedule::LinkCost link = ranks.by_shared_memory ? ring_cost(costs) : tcp_cost(costs);
    schedule::MessageWork work{
        .start_seconds = link.message_seconds,
        .travel_seconds = link.round_seconds,
        .seconds_per_byte = link.seconds_per_byte,
        .sum_seconds_per_byte = costs::at(costs.sum, Level::kSecond),
        .capacity = ranks.by_shared_memory ? transport::shm::ring_bytes(ranks.ranks) : kTcpCapacity,
    };
    // A rank that has no core to itself is woken.
    if (ranks.ranks > ranks.cores)
        work.travel_seconds = std::max(work.travel_seconds, costs.shared_core_beat.seconds);
    return schedule::one_machine(ranks.ranks, ranks.cores, work);
}

}  // namespace pccl::comm
