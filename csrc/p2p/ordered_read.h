// Reads that keep the order of a stream: what it gets later finds their bytes.
#pragma once

#include <memory>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/p2p/task.h"

namespace pccl::p2p {

class SessionCore;

/// As Session::read_in_order(); `order` is a checked one.
Result<std::shared_ptr<Task>> begin_ordered_read(SessionCore& core, Order order, Deadline deadline);

}  // namespace pccl::p2p
