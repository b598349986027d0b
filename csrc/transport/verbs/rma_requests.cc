// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/rma_requests.h"

#include <algorithm>
#include <iterator>

namespace pccl::transport::verbs {
namespace {

/// Returns the read that flushes a write, and those before it, into memory of a GPU.
VerbsRequest flush_behind(const VerbsRequest& write) {
    return {.op = RmaOp::kRead,
            .here = write.memory->flush_into(),
            .there = write.there + write.bytes - 1,
            .bytes = 1,
            .memory = write.memory,
            .copy = write.copy,
            .is_flush = true};
}

}  // namespace

std::uint32_t value_of(const RmaImmediate& immediate) {
    return immediate.lane << 24 | (immediate.number & 0xff'ffff);
}

std::size_t complete_among(const std::deque<VerbsRequest>& posted, std::size_t acknowledged) {
    std::size_t count = std::min(acknowledged, posted.size());
    // A write that needs a flush is complete with it.
    while (count > 0 && posted[count - 1].needs_flush()) --count;
    return count;
}

void WaitingRequests::add(std::span<VerbsRequest> requests) {
    std::ranges::move(requests, std::back_inserter(requests_));
}

void WaitingRequests::take(std::size_t room, std::vector<VerbsRequest>& chain) {
    while (!requests_.empty()) {
        const bool needs_flush = requests_.front().needs_flush();
        if (chain.size() + (needs_flush ? 2 : 1) > room) break;
        chain.push_back(std::move(requests_.front()));
        requests_.pop_front();
        const VerbsRequest& last = chain.back();
        const bool goes_on = !requests_.empty() && requests_.front().copy == last.copy &&
                             requests_.front().needs_flush() && chain.size() + 2 <= room;
        if (!needs_flush || goes_on) continue;
        ++last.copy->left;
        chain.push_back(flush_behind(last));
    }
}

void WaitingRequests::put_back(VerbsRequest request) {
    if (request.is_flush)
        --request.copy->left;
    else if (!request.is_immediate())
        requests_.push_front(std::move(request));
}

}  // namespace pccl::transport::verbs
