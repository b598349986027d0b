// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/comm/ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/runtime/runtime.h"
#include "tests/fakes/memory_store.h"

namespace pccl::comm {
namespace {

std::shared_ptr<const bootstrap::Locality> locality_of_rank(Rank rank,
                                                            const RanksOptions& options) {
    bootstrap::Locality locality = bootstrap::Locality::of_process().value();
    if (options.on_hosts_of_their_own) locality.machine = locality.host = concat("host", rank);
    return std::make_shared<const bootstrap::Locality>(std::move(locality));
}

std::shared_ptr<PhaseNetwork> network_of(Rank rank, const RanksOptions& options) {
    return options.networks.empty() ? nullptr : options.networks[static_cast<std::size_t>(rank)];
}

}  // namespace

void run_ranks(const RanksOptions& options, const std::function<void(CommunicatorImpl&)>& body) {
    const auto store = std::make_shared<fakes::MemoryStore>();
    std::vector<std::thread> threads;
    for (Rank rank = 0; rank < options.size; ++rank) {
        threads.emplace_back([&, rank] {
            auto runtime = runtime::Runtime::create(options.transports);
            ASSERT_TRUE(runtime.is_ok()) << runtime.status().to_string();
            auto comm = CommunicatorImpl::create({.rank = rank,
                                                  .size = options.size,
                                                  .store = store,
                                                  .timeout = options.timeout,
                                                  .algorithm = options.algorithm,
                                                  .catalogue = options.catalogue,
                                                  .runtime = *runtime,
                                                  .locality = locality_of_rank(rank, options),
                                                  .network = network_of(rank, options)});
            ASSERT_TRUE(comm.is_ok()) << comm.status().to_string();
            body(**comm);
            // Leaving early must not cut off a peer that still reads.
            static_cast<void>((*comm)->barrier());
        });
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace pccl::comm
