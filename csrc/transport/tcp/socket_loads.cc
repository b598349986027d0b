// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/socket_loads.h"

#include <algorithm>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {
namespace {

// A block in a long queue arrives too late: others have carried later blocks, which fill the
// receiver's buffers. So all queues are equally long in time: the queue of the fastest path may
// fill its send buffer, and the limits of others are smaller in proportion to their throughput.
constexpr std::size_t kMostUnsent = 2 * kMiB;
constexpr std::size_t kStep = 128 * kKiB;
// Bytes over all sockets between two calls of share_out(): a few blocks of each.
constexpr std::size_t kWindow = 4 * kMiB;

}  // namespace

SocketLoads::SocketLoads(std::vector<int> sockets)
    : sockets_(std::move(sockets)), states_(sockets_.size(), SocketState{.limit = kMostUnsent}) {}

void SocketLoads::measure() {
    std::size_t gone = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        states_[i].unsent = sys::unsent_bytes(sockets_[i]);
        gone += states_[i].gone();
    }
    if (gone >= kWindow) share_out();
}

void SocketLoads::share_out() {
    const std::size_t most = std::ranges::max(states_, {}, &SocketState::gone).gone();
    for (std::size_t i = 0; i < states_.size(); ++i) {
        SocketState& state = states_[i];
        const std::size_t share = kMostUnsent / kStep * state.gone() / most * kStep;
        const std::size_t limit = std::max(share, kLeastUnsent);
        if (limit != state.limit) sys::notify_once_unsent_below(sockets_[i], limit);
        state.limit = limit;
        state.given = state.unsent;
    }
}

}  // namespace pccl::transport::tcp
