// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/queues.h"

#include <algorithm>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/wake.h"

namespace pccl::fake_verbs {

namespace {

Completion& completion_at(const SharedCq& cq, uint64_t position) {
    return at<Completion>(cq.ring)[position % cq.capacity];
}

void ring_channel(Index index, SharedCq& cq, const Completion& completion, bool solicited) {
    const bool wanted =
        cq.armed == kArmedAny ||
        (cq.armed == kArmedSolicited && (solicited || completion.wc.status != IBV_WC_SUCCESS));
    if (!wanted) return;
    cq.armed = 0;
    if (cq.wake == 0) return;
    count(fabric().processes[cq.process].counters.events);
    write_wake(cq.wake, uint64_t{cq.generation} << 32 | index);
}

}  // namespace

bool make_receive_queue(ReceiveQueue& queue, uint32_t capacity, uint32_t max_sge) {
    queue = {};
    queue.slot = static_cast<uint32_t>(sizeof(ReceiveWqe) + max_sge * sizeof(ibv_sge));
    queue.capacity = capacity;
    queue.max_sge = max_sge;
    if (capacity == 0) return true;
    queue.ring = allocate(uint64_t{queue.slot} * capacity);
    return queue.ring != 0;
}

void free_receive_queue(ReceiveQueue& queue) {
    if (queue.capacity > 0) release(queue.ring, uint64_t{queue.slot} * queue.capacity);
    queue = {};
}

ReceiveWqe& receive_at(const ReceiveQueue& queue, uint64_t position) {
    return *at<ReceiveWqe>(queue.ring + position % queue.capacity * queue.slot);
}

SendWqe& send_at(const SharedQp& qp, uint64_t position) {
    return *at<SendWqe>(qp.sq_ring + position % qp.cap.max_send_wr * qp.sq_slot);
}

bool push_completion(Index index, const Completion& completion, bool solicited) {
    SharedCq& cq = fabric().cqs[index];
    if (!cq.used || cq.overrun) return false;
    const uint64_t head = cq.head.load(std::memory_order_relaxed);
    if (head - cq.tail.load(std::memory_order_relaxed) >= cq.capacity) {
        complain("a completion queue of %u entries is overrun", cq.capacity);
        cq.overrun = true;
        push_event(cq.context, IBV_EVENT_CQ_ERR, cq.local);
        return false;
    }
    completion_at(cq, head) = completion;
    cq.head.store(head + 1, std::memory_order_release);
    fake_verbs_counters& counters = fabric().processes[cq.process].counters;
    count(completion.is_send ? counters.signalled : counters.receive_completions);
    ring_channel(index, cq, completion, solicited);
    return true;
}

void remove_completions(Index index, Index qp) {
    if (index == kNone) return;
    SharedCq& cq = fabric().cqs[index];
    const uint64_t head = cq.head.load();
    uint64_t kept = cq.tail.load();
    for (uint64_t position = kept; position < head; ++position) {
        const Completion completion = completion_at(cq, position);
        if (completion.qp == qp) {
            free_slots(completion);
        } else {
            completion_at(cq, kept++) = completion;
        }
    }
    cq.head.store(kept);
}

void free_slots(const Completion& completion) {
    Fabric& all = fabric();
    if (completion.is_send) {
        SharedQp& qp = all.qps[completion.qp];
        qp.sq_tail = std::max(qp.sq_tail, completion.position + 1);
    } else if (completion.srq != kNone) {
        ++all.srqs[completion.srq].queue.tail;
    } else {
        ++all.qps[completion.qp].rq.tail;
    }
}

void push_event(Index index, ibv_event_type type, uint64_t element) {
    SharedContext& context = fabric().contexts[index];
    if (!context.used || context.head - context.tail == SharedContext::kEvents) return;
    context.events[context.head++ % SharedContext::kEvents] = {type, element};
    write_wake(context.wake, 1);
}

void free_qp(Index index) {
    Fabric& all = fabric();
    SharedQp& qp = all.qps[index];
    stop_waiting(index);
    if (qp.state == IBV_QPS_RTS) close_iwarp(qp);
    remove_completions(qp.send_cq, index);
    remove_completions(qp.recv_cq, index);
    release(qp.sq_ring, uint64_t{qp.sq_slot} * std::max(qp.cap.max_send_wr, 1U));
    if (qp.srq == kNone) free_receive_queue(qp.rq);
    if (qp.srq != kNone) --all.srqs[qp.srq].users;
    --all.cqs[qp.send_cq].users;
    --all.cqs[qp.recv_cq].users;
    qp.used = false;
}

void free_cq(Index index) {
    SharedCq& cq = fabric().cqs[index];
    release(cq.ring, sizeof(Completion) * cq.capacity);
    if (cq.process != this_process_index()) remove_wake(cq.wake);
    cq.used = false;
}

void free_srq(Index index) {
    SharedSrq& srq = fabric().srqs[index];
    free_receive_queue(srq.queue);
    srq.used = false;
}

}  // namespace pccl::fake_verbs
