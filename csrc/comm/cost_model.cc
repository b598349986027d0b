#include "csrc/comm/cost_model.h"

#include <algorithm>

#include "csrc/transport/shm/ring.h"
#include "csrc/transport/shm/shm_transport.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

// Measured between processes of one 2-core host, and over veth between two network namespaces.
constexpr LinkModel kShmModel{.round_seconds = 0.5e-6,
                              .message_seconds = 0.1e-6,
                              .seconds_per_byte = 0.08e-9,
                              .reduce_seconds_per_byte = 0.08e-9};
constexpr LinkModel kTcpModel{.round_seconds = 25e-6,
                              .message_seconds = 4e-6,
                              .seconds_per_byte = 0.5e-9,
                              .reduce_seconds_per_byte = 0.08e-9};
constexpr std::size_t kTcpCapacity = 256 * kKiB;

}  // namespace

bool is_on_one_host(const Roster& roster) {
    const auto first = roster.endpoints.front().addresses.find(TransportKind::kShm);
    if (first == roster.endpoints.front().addresses.end()) return false;
    return std::all_of(roster.endpoints.begin(), roster.endpoints.end(),
                       [&](const Endpoint& endpoint) {
                           const auto own = endpoint.addresses.find(TransportKind::kShm);
                           return own != endpoint.addresses.end() &&
                                  transport::shm::same_host(own->second, first->second);
                       });
}

LinkModel link_model(const Roster& roster) {
    const int ranks = static_cast<int>(roster.endpoints.size());
    const std::size_t ring = transport::shm::ring_bytes(ranks);
    if (is_on_one_host(roster)) {
        LinkModel model = kShmModel;
        model.capacity = ring;
        return model;
    }
    LinkModel model = kTcpModel;
    model.capacity = std::min(kTcpCapacity, ring);
    return model;
}

double predict(const LinkModel& links, const schedule::Cost& cost) {
    return cost.rounds * links.round_seconds +
           static_cast<double>(cost.messages) * links.message_seconds +
           cost.bytes_sent * links.seconds_per_byte +
           cost.bytes_reduced * links.reduce_seconds_per_byte;
}

}  // namespace pccl::comm
