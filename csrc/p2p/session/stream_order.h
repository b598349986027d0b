// SPDX-License-Identifier: Apache-2.0

// Order of transfers and the work of a stream: events (event_of()), and reads whose bytes the work
// that the stream gets later finds.
#pragma once

#include <memory>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/p2p/transfers/transfer_request.h"

namespace pccl::p2p {

class SessionCore;

/// Begins a read as Session::read_in_order() does. `args` are checked.
Result<std::shared_ptr<TransferRequest>> begin_ordered_read(SessionCore& core, TransferArgs args,
                                                            Deadline deadline);

}  // namespace pccl::p2p
