// SPDX-License-Identifier: Apache-2.0

// Reads of a copy link that keep the order of a caller's stream. They begin at once, before the
// queue of the link, and no notification waits for them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "csrc/transport/rma.h"
#include "csrc/transport/rma/in_flight_copy.h"
#include "csrc/transport/rma/posts.h"

namespace pccl::transport {

class RmaOrderedReads {
   public:
    [[nodiscard]] bool is_empty() const { return in_flight_.empty(); }
    void add(std::unique_ptr<RmaInFlightCopy> copy, std::uint64_t ticket) {
        in_flight_.push_back({std::move(copy), &posts_.begin(ticket, 1)});
    }
    /// Ends the reads that have landed, and returns whether there were any. An error ends the link.
    Result<bool> finish();
    /// Fails all reads, once copy engines are done with them.
    void fail_all(const Status& status);
    /// Returns completions as RmaLink::poll() does.
    std::size_t take(std::span<RmaCompletion> into) { return posts_.take(into); }

   private:
    struct InFlightCopy {
        std::unique_ptr<RmaInFlightCopy> copy;
        RmaPost* post;
    };
    RmaPosts posts_;
    std::deque<InFlightCopy> in_flight_;
};

}  // namespace pccl::transport
