// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/tcp/block_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::transport::tcp {

BlockReader::BlockReader(Stripes stripes)
    : stripes_(std::move(stripes)),
      delayed_acks_(stripes_.count()),
      fronts_(stripes_.is_numbered() ? stripes_.count() : 0) {
    if (!stripes_.is_numbered()) left_ = stripes_.block_bytes();
}

Result<std::size_t> BlockReader::read(MutableBytes into) {
    std::size_t total = 0;
    while (total < into.size()) {
        const auto found = left_ > 0 ? Result<bool>(true) : find_block();
        if (!found.is_ok() && total == 0) return found.status();
        if (!found.is_ok() || !*found) break;
        const MutableBytes wanted = into.subspan(total, std::min(into.size() - total, left_));
        const auto got = read_current(wanted);
        if (!got.is_ok() && total == 0) return got.status();
        if (!got.is_ok()) break;
        total += *got;
        if (*got < wanted.size()) break;
    }
    return total;
}

Result<std::size_t> BlockReader::read_current(MutableBytes into) {
    const int socket = stripes_.socket(current_);
    Result<std::size_t> got = std::size_t{0};
    if (into.size() < left_ || !stripes_.is_numbered()) {
        got = sys::receive_some(socket, into);
        if (!got.is_ok()) return got;
    } else {
        BlockFront& front = fronts_[current_];
        const std::array<iovec, 2> pieces{
            {{into.data(), into.size()}, {&front.number, sizeof front.number}}};
        got = sys::receive_some(socket, pieces);
        if (!got.is_ok()) return got;
        front.number_bytes = *got - std::min(*got, into.size());
        *got -= front.number_bytes;
    }
    if (*got > 0) delayed_acks_.received(socket, current_, into.size());
    left_ -= *got;
    if (left_ == 0) end_block();
    return got;
}

void BlockReader::end_block() {
    ++next_;
    if (!stripes_.is_numbered()) left_ = stripes_.block_bytes();
}

Result<bool> BlockReader::find_block() {
    for (std::size_t step = 1; step <= fronts_.size(); ++step) {
        const std::size_t socket = (current_ + step) % fronts_.size();
        look_for_number(socket);
        BlockFront& front = fronts_[socket];
        if (!is_known(front) || front.number > next_) continue;
        if (front.number < next_)
            return Status::invalid_argument(concat("block ", front.number, " arrived where ", next_,
                                                   " or a later one was due"));
        front.number_bytes = 0;
        current_ = socket;
        left_ = stripes_.block_bytes();
        return true;
    }
    return why_none();
}

void BlockReader::look_for_number(std::size_t socket) {
    BlockFront& front = fronts_[socket];
    if (is_known(front) || !front.end.is_ok()) return;
    const auto rest =
        std::as_writable_bytes(std::span(&front.number, 1)).subspan(front.number_bytes);
    const auto got = sys::receive_some(stripes_.socket(socket), rest);
    if (got.is_ok())
        front.number_bytes += *got;
    else
        front.end = got.status();
}

Result<bool> BlockReader::why_none() const {
    const auto may_have_it = [](const BlockFront& front) {
        return !is_known(front) && front.end.is_ok();
    };
    if (std::ranges::any_of(fronts_, may_have_it)) return false;
    PCCL_TRY(doubt());
    return Status::invalid_argument(
        concat("block ", next_, " is due, and all sockets have later ones"));
}

Status BlockReader::doubt() const {
    for (const BlockFront& front : fronts_) PCCL_TRY(front.end);
    return Status::ok();
}

bool BlockReader::is_drained() const {
    if (fronts_.empty()) return sys::peer_has_closed(stripes_.socket(0));
    if (left_ > 0) return sys::peer_has_closed(stripes_.socket(current_));
    for (std::size_t socket = 0; socket < fronts_.size(); ++socket)
        if (is_known(fronts_[socket]) || !sys::peer_has_closed(stripes_.socket(socket)))
            return false;
    return true;
}

}  // namespace pccl::transport::tcp
