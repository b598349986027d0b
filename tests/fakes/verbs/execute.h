// SPDX-License-Identifier: Apache-2.0

// One request: what the requester, the network and the responder make of it.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

struct Outcome {
    enum Kind { kDone, kNoAnswer, kNotReady, kHeld };
    Kind kind = kDone;
    ibv_wc_status status = IBV_WC_SUCCESS;
    uint32_t vendor_err = 0;
    uint8_t rnr_timer = 0;                      // of the responder that is not ready
    uint64_t look_at = 0;                       // when a held one is tried again
    Index failed = kNone;                       // the responder's QP, if that fails
    ibv_event_type event = IBV_EVENT_QP_FATAL;  // which its owner gets
};

/// Tries the first request of a send queue. The caller holds the lock.
Outcome execute(Index qp);

/// Delivers the requests of a failed QP that were under way, once no rule holds them.
void deliver_late(Index qp);

}  // namespace pccl::fake_verbs
