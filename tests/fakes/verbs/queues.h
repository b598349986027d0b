// SPDX-License-Identifier: Apache-2.0

// Queues of the fabric: completions, receives, events. The caller of each function holds the lock.
#pragma once

#include "tests/fakes/verbs/layout.h"

namespace pccl::fake_verbs {

/// Makes the ring of a receive queue; false where the heap is full.
bool make_receive_queue(ReceiveQueue& queue, uint32_t capacity, uint32_t max_sge);
void free_receive_queue(ReceiveQueue& queue);

/// The slot of a position.
ReceiveWqe& receive_at(const ReceiveQueue& queue, uint64_t position);
SendWqe& send_at(const SharedQp& qp, uint64_t position);

/// Writes a completion, and an event where the queue was armed. A full queue is overrun: it takes
/// no more, its owner gets IBV_EVENT_CQ_ERR, and false is returned.
bool push_completion(Index cq, const Completion& completion, bool solicited);

/// Takes out the completions of a QP, as a reset of it does.
void remove_completions(Index cq, Index qp);

/// Frees the queue slots that a completion accounts for.
void free_slots(const Completion& completion);

/// Gives an event to a context.
void push_event(Index context, ibv_event_type type, uint64_t element);

/// Frees entries, with their memory and what others know of them.
void free_qp(Index qp);
void free_cq(Index cq);
void free_srq(Index srq);

}  // namespace pccl::fake_verbs
