// SPDX-License-Identifier: Apache-2.0

// What a network interface does with posted requests. The caller of each function holds the lock.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Does the requests of a send queue in order, until one has to wait.
void advance(Index qp);

/// Does those of all queues whose time has come, or whose condition may have changed.
void advance_waiting();

/// Tries again those that wait for a receive of `qp`, or of a shared receive queue.
void receive_was_posted(Index qp);

/// Puts a QP into the error state: all that is queued is flushed, in order.
void fail_qp(Index qp);

/// Ends the connection of an iWARP QP: that of the peer fails, too.
void close_iwarp(const SharedQp& qp);

/// Ends all that is queued in WR_FLUSH_ERR, in order.
void flush(Index qp);

/// Removes a QP from those that wait.
void stop_waiting(Index qp);

/// Lets a QP wait, until `look_at` at most.
void wait_until(Index qp, Wait why, uint64_t look_at);

/// The QP of a number; kNone if there is none.
Index find_qp(uint32_t qpn);

}  // namespace pccl::fake_verbs
