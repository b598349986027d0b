// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/selection/imagined_group.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/selection/selector.h"
#include "csrc/comm/shm/shm_segment.h"
#include "csrc/transport/shm/shm_transport.h"

namespace pccl::comm {
namespace {

Status check_ranks(const topo::JobTopology& job) {
    for (Rank rank = 0; rank < job.ranks(); ++rank)
        if (job.host_of(rank) < 0)
            return Status::invalid_argument(concat("a job of ", job.ranks(),
                                                   " ranks needs ranks 0 to ", job.ranks() - 1,
                                                   "; no host has rank ", rank));
    return Status::ok();
}

int most_ranks_on_a_host(const topo::JobTopology& job) {
    std::size_t most = 0;
    for (const topo::HostTopology& host : job.hosts()) most = std::max(most, host.ranks.size());
    return static_cast<int>(most);
}

std::optional<costs::ShmShape> segment_of(const topo::JobTopology& job) {
    const int ranks = job.ranks();
    if (job.hosts().size() > 1 || ranks == 1 || ranks > kMostShmRanks) return std::nullopt;
    const auto parts = static_cast<std::size_t>(ranks);
    const std::size_t buffer = transport::shm::data_bytes(ranks) / 2;
    return costs::ShmShape{.ranks = ranks,
                           .buffer_bytes = buffer,
                           .part_bytes = buffer / parts / kCacheLine * kCacheLine,
                           .reads_directly = true};
}

}  // namespace

Result<ImaginedChoice> explain(const topo::JobTopology& job, CollectiveKind kind, std::size_t bytes,
                               std::shared_ptr<const schedule::Catalogue> catalogue) {
    PCCL_TRY(check_ranks(job));
    const std::string& wanted = process_config().algorithm;
    PCCL_TRY(check_algorithm_list(wanted));
    PCCL_ASSIGN_OR_RETURN(const auto layout, bootstrap::Layout::make(job.ranks(), encode(job)));
    const bool is_on_one_host = job.hosts().size() == 1;
    Selector selector(
        Rank{0},
        {.reach = {.ranks = job.ranks(),
                   .is_on_one_host = is_on_one_host,
                   .shares_memory = true,
                   .most_on_a_host = most_ranks_on_a_host(job)},
         .segment = segment_of(job),
         .layout = layout},
        {.catalogue = std::move(catalogue), .wanted = wanted, .tuning = {}, .costs = {}});
    PCCL_ASSIGN_OR_RETURN(auto ways, selector.explain(kind, block_bytes(kind, bytes, job.ranks())));
    return ImaginedChoice{std::move(ways), costs::counted_on(*layout, {})};
}

}  // namespace pccl::comm
