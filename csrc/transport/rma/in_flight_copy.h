// SPDX-License-Identifier: Apache-2.0

// Copy of a link that copy engines of GPUs complete.
#pragma once

#include <utility>

#include <pccl/status.h>

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
};

/// Copy that was complete before it was in flight.
class RmaEnded final : public RmaInFlightCopy {
   public:
    explicit RmaEnded(RmaCopied copied) : copied_(std::move(copied)) {}
    RmaCopied finish() override { return copied_; }

   private:
    const RmaCopied copied_;
};

}  // namespace pccl::transport
