// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/block_writer.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"

namespace pccl::transport::tcp {
namespace {

std::vector<int> descriptors_of(const Stripes& stripes) {
    std::vector<int> sockets(stripes.count());
    for (std::size_t i = 0; i < sockets.size(); ++i) sockets[i] = stripes.socket(i);
    return sockets;
}

}  // namespace

BlockWriter::BlockWriter(Stripes stripes)
    : stripes_(std::move(stripes)),
      loads_(descriptors_of(stripes_)),
      order_(stripes_.count()),
      number_left_(stripes_.is_numbered() ? sizeof number_ : 0),
      left_(stripes_.block_bytes()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
}

bool BlockWriter::has_candidates() {
    // Among equals, the one that has waited longest comes first.
    std::rotate(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(candidate_) + 1,
                order_.end());
    loads_.measure();
    const auto load_of = [&](std::size_t socket) { return loads_.load(socket); };
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
    loads_.add(order_[candidate_], taken);
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
