// SPDX-License-Identifier: Apache-2.0

// Copies of a link that copy engines of GPUs complete, and reads of such copies in stream order.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>

#include <pccl/status.h>
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/posts.h"

namespace pccl::transport {

/// Result of a copy. The rule of rma.h applies: ok only if owner and registration were there
/// afterwards.
struct RmaCopied {
    Status link;         // error that ends the link
    Status pieces;       // error of these pieces alone
    bool later = false;  // nothing was copied yet: try again
};

/// Copy in progress, which copy engines of GPUs complete.
class RmaInFlightCopy {
   public:
    /// Waits until the copy no longer moves bytes.
    virtual ~RmaInFlightCopy() = default;
    /// Returns the result, once; `later` while the copy is in progress.
    virtual RmaCopied finish() = 0;
    /// Returns whether the copy has not failed so far and is complete before an immediate that is
    /// posted now (RmaPeer::post_immediates()).
    [[nodiscard]] virtual bool precedes_immediates() const { return false; }
};

/// Copy that was complete before it was in flight.
class RmaEnded final : public RmaInFlightCopy {
   public:
    explicit RmaEnded(RmaCopied copied) : copied_(std::move(copied)) {}
    RmaCopied finish() override { return copied_; }

   private:
    const RmaCopied copied_;
};

/// Reads of a copy link that keep the order of a caller's stream. They begin at once, before the
/// queue of the link, and no notification waits for them.
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
    std::size_t take_completions(std::span<RmaCompletion> into) {
        return posts_.take_completions(into);
    }

   private:
    struct InFlightCopy {
        std::unique_ptr<RmaInFlightCopy> copy;
        RmaPost* post;
    };
    RmaPosts posts_;
    std::deque<InFlightCopy> in_flight_;
};

}  // namespace pccl::transport
