// A copy of a link's own that engines of GPUs go on with.
#pragma once

#include <utility>

#include "csrc/base/status.h"

namespace pccl::transport {

/// How a copy went. The rule of rma.h: ok only if owner and registration were there afterwards.
struct RmaCopied {
    Status link;         // what ends the link
    Status pieces;       // of these alone
    bool later = false;  // nothing was done yet: try again
};

/// A copy that has begun, and that engines of GPUs go on with.
class RmaInFlightCopy {
   public:
    /// Waits until nothing of it moves any more.
    virtual ~RmaInFlightCopy() = default;
    /// How it went; `later` while it goes on. Once.
    virtual RmaCopied finish() = 0;
};

/// Of what was over before it was in flight.
class RmaEnded final : public RmaInFlightCopy {
   public:
    explicit RmaEnded(RmaCopied copied) : copied_(std::move(copied)) {}
    RmaCopied finish() override { return copied_; }

   private:
    const RmaCopied copied_;
};

}  // namespace pccl::transport
