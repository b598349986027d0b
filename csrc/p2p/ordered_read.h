// SPDX-License-Identifier: Apache-2.0

// Reads in stream order: work that the stream gets later finds their bytes.
#pragma once

#include <memory>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/p2p/transfer_request.h"

namespace pccl::p2p {

class SessionCore;

/// Begins a read as Session::read_in_order() does. `args` are checked.
Result<std::shared_ptr<TransferRequest>> begin_ordered_read(SessionCore& core, TransferArgs args,
                                                            Deadline deadline);

}  // namespace pccl::p2p
