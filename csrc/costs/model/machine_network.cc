// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/machine_network.h"

#include "csrc/bootstrap/layout.h"
#include "csrc/costs/model/link_model.h"

namespace pccl::costs {
namespace {

// Measured on a core of about 3 GHz. In a message of 32 runs, 31 runs take 5 to 6 us more than a
// message of one run: two cores exchange two of them in 19 to 22 us by TCP, and two of one run each
// in 9.5 us.
constexpr double kRunSeconds = 0.09e-6;
// Cost of a system call without a result; over shared memory a poll reads a line in the own cache.
constexpr double kLookSeconds = 0.3e-6;

/// Adds the receiver's own time over TCP. There is no wire: apart from a wake-up, the time after
/// the sender's consists of the receiver's system calls, which copy data that another core has
/// written.
void add_receipt(schedule::MessageWork& work, const LinkModel& model, const MachineCosts& costs) {
    work.receipt_seconds = model.near.round_seconds;
    work.travel_seconds -= work.receipt_seconds;
    work.take_seconds_per_byte = at(costs.take, costs.level_of(model.capacity));
}

}  // namespace

Result<schedule::SimulatedNetwork> machine_network(const MachineRanks& ranks,
                                                   const MachineCosts& costs) {
    PCCL_ASSIGN_OR_RETURN(const auto layout, bootstrap::Layout::make(ranks.ranks, {}));
    Reach reach{.ranks = ranks.ranks,
                .is_on_one_host = ranks.by_shared_memory,
                .shares_memory = ranks.by_shared_memory,
                .most_on_a_host = ranks.by_shared_memory ? ranks.ranks : 1};
    // The network model makes ranks share cores with all other work, but does not add a wake-up for
    // each message.
    const LinkModel model = link_model(reach, *layout, costs);
    reach.ranks_on_core = (ranks.ranks + ranks.cores - 1) / ranks.cores;
    const double travel_seconds = link_model(reach, *layout, costs).near.round_seconds;
    schedule::MessageWork work{.start_seconds = model.near.message_seconds,
                               .travel_seconds = travel_seconds,
                               .seconds_per_byte = model.near.seconds_per_byte,
                               .takes_both = model.near.copies,
                               .sum_seconds_per_byte = model.reduce_seconds_per_byte,
                               .run_seconds = kRunSeconds,
                               .look_seconds = ranks.by_shared_memory ? 0 : kLookSeconds,
                               .capacity = model.capacity};
    if (!ranks.by_shared_memory) add_receipt(work, model, costs);
    return schedule::one_machine(ranks.ranks, ranks.cores, work);
}

Result<schedule::LinkSpeed> memory_speed(int ranks_on_host, const MachineCosts& costs) {
    PCCL_ASSIGN_OR_RETURN(const auto layout, bootstrap::Layout::make(ranks_on_host, {}));
    const Reach reach{.ranks = ranks_on_host,
                      .is_on_one_host = true,
                      .shares_memory = true,
                      .most_on_a_host = ranks_on_host};
    const LinkCost near = link_model(reach, *layout, costs).near;
    return schedule::LinkSpeed{.start_seconds = near.message_seconds,
                               .hop_seconds = near.round_seconds,
                               .bandwidth = 1 / near.seconds_per_byte};
}

}  // namespace pccl::costs
