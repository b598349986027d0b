// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/join/join_options.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/core_claim.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/capsule/capsule_file.h"
#include "csrc/collective/algorithm_list.h"
#include "csrc/comm/phase/phase_network.h"
#include "csrc/runtime/runtime.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/route.h"

namespace pccl::comm {
namespace {

/// Moves the address from which this process reaches the store to the front: peers can reach that
/// one, too.
void prefer_way_to_store(transport::PeerAddress& own, const CommunicatorImplOptions& options) {
    const auto tcp = own.links.find(transport::TransportKind::kTcp);
    if (options.store == nullptr || tcp == own.links.end() || tcp->second.size() < 2) return;
    const std::string server = options.store->server();
    if (!server.empty()) own.prefer(sys::sources_toward(server));
}

Status check_network(const CommunicatorImplOptions& options) {
    if (options.network == nullptr || !options.switches_phases ||
        options.size == options.network->ranks())
        return Status::ok();
    return Status::invalid_argument(concat("a cluster of ", options.network->ranks(),
                                           " devices for a group of ", options.size,
                                           " ranks: give each rank a device"));
}

}  // namespace

Status check_options(const CommunicatorImplOptions& options) {
    if (options.size < 1)
        return Status::invalid_argument(concat("a group of ", options.size, " ranks"));
    if (options.rank < 0 || options.rank >= options.size)
        return Status::invalid_argument(
            concat("rank ", options.rank, " is not in a group of ", options.size));
    if (options.size > 1 && options.store == nullptr)
        return Status::invalid_argument("a group of several ranks needs a rendezvous store");
    PCCL_TRY(check_network(options));
    return check_algorithm_list(options.algorithm);
}

Status use_this_process(CommunicatorImplOptions& options) {
    PCCL_TRY(check_settings());
    PCCL_TRY(capsule::check_trust());
    if (!options.gpu.empty()) {
        PCCL_ASSIGN_OR_RETURN(options.gpu, bootstrap::bus_id_of(options.gpu));
    }
    if (options.runtime == nullptr) {
        PCCL_ASSIGN_OR_RETURN(options.runtime, runtime::Runtime::of_process());
    }
    if (options.locality == nullptr) {
        PCCL_ASSIGN_OR_RETURN(auto own, bootstrap::Locality::of_process());
        options.locality = std::make_shared<const bootstrap::Locality>(std::move(own));
    }
    return Status::ok();
}

namespace {

/// Publishes the cores of this process, and its setting for threads.
void add_cores(bootstrap::Endpoint& endpoint) {
    const auto claim = bootstrap::CoreClaim::of_process();
    endpoint.cores = claim.cores;
    endpoint.core_set = claim.core_set;
    endpoint.tcp_threads = claim.tcp_threads;
}

}  // namespace

bootstrap::Endpoint endpoint_of(const runtime::Runtime& runtime,
                                const CommunicatorImplOptions& options) {
    bootstrap::Endpoint endpoint;
    endpoint.rank = options.rank;
    endpoint.host = options.locality->host;
    endpoint.machine = options.locality->machine;
    endpoint.numa = options.locality->numa;
    endpoint.gpu = options.gpu;
    endpoint.pid = ::getpid();
    add_cores(endpoint);
    endpoint.address.control = runtime.control().address();
    for (const auto& transport : runtime.transports()) {
        if (!options.transports.has(transport->kind())) continue;
        endpoint.transports = endpoint.transports | transport->kind();
        endpoint.address.links[transport->kind()] = transport->addresses();
    }
    prefer_way_to_store(endpoint.address, options);
    return endpoint;
}

CommunicatorImplOptions of_members(CommunicatorImplOptions options,
                                   const std::vector<Rank>& members) {
    options.size = static_cast<int>(members.size());
    options.rank = static_cast<Rank>(std::ranges::find(members, options.rank) - members.begin());
    if (options.network_ranks.empty()) {
        options.network_ranks = members;
    } else {
        const std::vector<Rank> all = std::move(options.network_ranks);
        options.network_ranks.clear();
        for (const Rank rank : members)
            options.network_ranks.push_back(all[static_cast<std::size_t>(rank)]);
    }
    if (options.global_ranks.empty()) return options;
    std::vector<std::uint64_t> global;
    global.reserve(members.size());
    for (const Rank rank : members)
        global.push_back(options.global_ranks[static_cast<std::size_t>(rank)]);
    options.global_ranks = std::move(global);
    return options;
}

Status join_network(const CommunicatorImplOptions& options,
                    const std::shared_ptr<PhasedGroup>& group) {
    if (options.network == nullptr) return Status::ok();
    std::vector<Rank> ranks = options.network_ranks;
    for (Rank rank = 0; options.network_ranks.empty() && rank < options.size; ++rank)
        ranks.push_back(rank);
    return options.network->join(group, std::move(ranks), options.switches_phases);
}

}  // namespace pccl::comm
