// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/block_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "csrc/base/ids.h"

namespace pccl::transport::tcp {
namespace {

// A block in a long queue arrives too late: others have carried later blocks, which fill the
// receiver's buffers. So all queues are equally long in time: the queue of the fastest path may
// fill its send buffer, and the limits of others are smaller in proportion to their throughput.
constexpr std::size_t kMostUnsent = 2 * kMiB;
constexpr std::size_t kLeastUnsent = 512 * kKiB;
constexpr std::size_t kStep = 128 * kKiB;
// Bytes over all sockets between two calls of share_out(): a few blocks of each.
constexpr std::size_t kWindow = 4 * kMiB;

}  // namespace

BlockWriter::BlockWriter(Stripes stripes)
    : stripes_(std::move(stripes)),
      states_(stripes_.count(), SocketState{.limit = kMostUnsent}),
      order_(stripes_.count()),
      number_left_(stripes_.is_numbered() ? sizeof number_ : 0),
      left_(stripes_.block_bytes()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
}

void BlockWriter::measure() {
    std::size_t gone = 0;
    for (std::size_t i = 0; i < states_.size(); ++i) {
        states_[i].unsent = sys::unsent_bytes(stripes_.socket(i));
        gone += states_[i].gone();
    }
    if (gone >= kWindow) share_out();
}

void BlockWriter::share_out() {
    const std::size_t most = std::ranges::max(states_, {}, &SocketState::gone).gone();
    for (std::size_t i = 0; i < states_.size(); ++i) {
        SocketState& state = states_[i];
        const std::size_t share = kMostUnsent / kStep * state.gone() / most * kStep;
        const std::size_t limit = std::max(share, kLeastUnsent);
        if (limit != state.limit) sys::notify_once_unsent_below(stripes_.socket(i), limit);
        state.limit = limit;
        state.given = state.unsent;
    }
}

bool BlockWriter::has_candidates() {
    // Among equals, the one that has waited longest comes first.
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(candidate_) + 1,
                order_.end());
    measure();
    const auto load_of = [&](std::size_t socket) { return states_[socket].load(); };
    std::ranges::stable_sort(order_, {}, load_of);
    const auto end = std::ranges::lower_bound(order_, 1.0, {}, load_of);
    candidates_ = static_cast<std::size_t>(end - order_.begin());
    candidate_ = 0;
    return candidates_ > 0;
}

bool BlockWriter::others_have_room() {
    std::vector<sys::Interest> outputs;
    for (std::size_t i = candidates_; i < order_.size(); ++i)
        outputs.push_back({.fd = stripes_.socket(order_[i]), .output = true});
    if (!sys::wait_for_any(outputs, Duration::zero())) return false;
    if (!has_candidates()) candidates_ = order_.size();  // a system without such a limit
    return true;
}

bool BlockWriter::pass_on() {
    if (!may_choose()) return false;
    if (++candidate_ < candidates_) return true;
    candidate_ = order_.size() - 1;
    return candidates_ < order_.size() && others_have_room();
}

std::size_t BlockWriter::advance(std::size_t taken) {
    const std::size_t of_number = std::min(taken, number_left_);
    const std::size_t of_stream = taken - of_number;
    states_[order_[candidate_]].given += taken;
    number_left_ -= of_number;
    left_ -= of_stream;
    if (left_ == 0) {
        left_ = stripes_.block_bytes();
        ++number_;
        number_left_ = stripes_.is_numbered() ? sizeof number_ : 0;
    }
    return of_stream;
}

std::size_t BlockWriter::capacity() const {
    std::size_t smallest = static_cast<std::size_t>(-1);
    for (std::size_t i = 0; i < stripes_.count(); ++i)
        smallest = std::min(smallest, sys::granted_send_buffer(stripes_.socket(i)));
    if (!stripes_.is_numbered()) return smallest;
    const std::size_t block = stripes_.block_bytes() + sizeof number_;
    const std::size_t least = std::min(kLeastUnsent, smallest - std::min(block, smallest));
    return std::max(smallest, stripes_.count() * least);
}

}  // namespace pccl::transport::tcp
