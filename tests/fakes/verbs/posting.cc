// SPDX-License-Identifier: Apache-2.0

// Work requests into queues. The call does what the network interface would do: the requests that
// can be delivered are delivered when it returns.

#include <algorithm>
#include <cstring>
#include <span>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/gpu_memory.h"
#include "tests/fakes/verbs/inside.h"
#include "tests/fakes/verbs/objects.h"
#include "tests/fakes/verbs/queues.h"

namespace pccl::fake_verbs {

namespace {

bool is_known_opcode(ibv_wr_opcode opcode) { return opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; }

bool carries_immediate(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool is_reading(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

uint64_t length_of(const ibv_sge* list, int elements) {
    uint64_t length = 0;
    for (int i = 0; i < elements; ++i) length += list[i].length;
    return length;
}

int refuse(const SharedQp& qp, const char* why, int error) {
    complain("a request on QP 0x%x is refused: %s", qp.qpn, why);
    return error;
}

int check_send(const SharedQp& qp, const ibv_send_wr& request) {
    if (qp.state == IBV_QPS_RESET || qp.state == IBV_QPS_INIT || qp.state == IBV_QPS_RTR) {
        return refuse(qp, "the QP is not ready to send", EINVAL);
    }
    if (qp.sq_head - qp.sq_tail >= qp.cap.max_send_wr) {
        return refuse(
            qp,
            "the send queue is full (a slot becomes free when a signalled completion is polled)",
            ENOMEM);
    }
    if (!is_known_opcode(request.opcode)) return refuse(qp, "the opcode is not supported", EINVAL);
    if (qp.iwarp && carries_immediate(request.opcode))
        return refuse(qp, "iWARP has no immediate data", EINVAL);
    if (qp.must_wait) return refuse(qp, "the initiator of an iWARP connection sends first", EINVAL);
    if (request.num_sge < 0 || static_cast<uint32_t>(request.num_sge) > qp.cap.max_send_sge) {
        return refuse(qp, "num_sge is above max_send_sge", EINVAL);
    }
    if ((request.send_flags & IBV_SEND_INLINE) == 0) return 0;
    if (is_reading(request.opcode)) return refuse(qp, "a read cannot be inline", EINVAL);
    const std::span<const ibv_sge> list(request.sg_list, static_cast<size_t>(request.num_sge));
    if (std::ranges::any_of(list, [](const ibv_sge& e) { return is_of_gpu(e.addr, e.length); }))
        return refuse(qp, "a CPU cannot read memory of a GPU for an inline request", EFAULT);
    const bool fits = length_of(request.sg_list, request.num_sge) <= qp.cap.max_inline_data;
    return fits ? 0 : refuse(qp, "it is longer than max_inline_data", EINVAL);
}

void copy_inline(const ibv_send_wr& request, char* to) {
    for (int i = 0; i < request.num_sge; ++i) {
        const ibv_sge& element = request.sg_list[i];
        if (element.length > 0)
            std::memcpy(to, reinterpret_cast<const void*>(element.addr), element.length);
        to += element.length;
    }
}

void enqueue(SharedQp& qp, const ibv_send_wr& request) {
    SendWqe& slot = send_at(qp, qp.sq_head);
    slot.wr_id = request.wr_id;
    slot.opcode = request.opcode;
    slot.flags = request.send_flags;
    slot.imm = request.imm_data;
    slot.num_sge = static_cast<uint32_t>(request.num_sge);
    slot.length = static_cast<uint32_t>(
        std::min<uint64_t>(length_of(request.sg_list, request.num_sge), UINT32_MAX));
    const bool atomic = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
                        request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    slot.remote_addr = atomic ? request.wr.atomic.remote_addr : request.wr.rdma.remote_addr;
    slot.rkey = atomic ? request.wr.atomic.rkey : request.wr.rdma.rkey;
    slot.compare_add = atomic ? request.wr.atomic.compare_add : 0;
    slot.swap = atomic ? request.wr.atomic.swap : 0;
    fake_verbs_counters& counters = this_process().counters;
    count(counters.requests[request.opcode]);
    if ((request.send_flags & IBV_SEND_INLINE) != 0) {
        copy_inline(request, reinterpret_cast<char*>(slot.sges));
        count(counters.inline_requests);
    } else {
        std::copy_n(request.sg_list, request.num_sge, slot.sges);
    }
    ++qp.sq_head;
}

int check_receive(const ReceiveQueue& queue, const ibv_recv_wr& request) {
    if (queue.head - queue.tail >= queue.capacity) {
        complain("a receive queue of %u is full", queue.capacity);
        return ENOMEM;
    }
    const bool fits =
        request.num_sge >= 0 && static_cast<uint32_t>(request.num_sge) <= queue.max_sge;
    if (!fits)
        complain("a receive of %d elements, where max_recv_sge is %u", request.num_sge,
                 queue.max_sge);
    return fits ? 0 : EINVAL;
}

// Puts a list into a queue; what is wrong with the first that does not go in.
int enqueue_all(ReceiveQueue& queue, ibv_recv_wr* request, ibv_recv_wr** bad) {
    fake_verbs_counters& counters = this_process().counters;
    count(counters.receive_doorbells);
    for (; request != nullptr; request = request->next) {
        const int error = check_receive(queue, *request);
        if (error != 0) {
            *bad = request;
            return error;
        }
        ReceiveWqe& slot = receive_at(queue, queue.head++);
        slot.wr_id = request->wr_id;
        slot.num_sge = static_cast<uint32_t>(request->num_sge);
        std::copy_n(request->sg_list, request->num_sge, slot.sges);
        count(counters.receives);
    }
    return 0;
}

}  // namespace

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
    const Inside inside;
    const Index index = of(qp).index;
    SharedQp& shared = fabric().qps[index];
    *bad = request;
    if (!is_own_process(shared.process)) return EINVAL;
    const Lock lock;
    int error = 0;
    const uint64_t before = shared.sq_head;
    for (; request != nullptr && error == 0; request = request->next) {
        *bad = request;
        error = check_send(shared, *request);
        if (error == 0) enqueue(shared, *request);
    }
    if (shared.sq_head != before) count(this_process().counters.doorbells);
    if (shared.state == IBV_QPS_ERR) {
        flush(index);
    } else if (shared.wait == Wait::kNo) {
        advance(index);
    }
    if (fabric().waiting_end > 0) advance_waiting();
    return error;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
    const Inside inside;
    const Index index = of(qp).index;
    SharedQp& shared = fabric().qps[index];
    *bad = request;
    if (!is_own_process(shared.process)) return EINVAL;
    const Lock lock;
    if (shared.state == IBV_QPS_RESET)
        return refuse(shared, "the QP is in the state RESET", EINVAL);
    if (shared.srq != kNone)
        return refuse(shared, "its receives come from a shared receive queue", EINVAL);
    const int error = enqueue_all(shared.rq, request, bad);
    if (shared.state == IBV_QPS_ERR) flush(index);
    if (fabric().waiting_end > 0) receive_was_posted(index);
    return error;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
    const Inside inside;
    SharedSrq& shared = fabric().srqs[of(srq).index];
    *bad = request;
    if (!is_own_process(shared.process)) return EINVAL;
    const Lock lock;
    const int error = enqueue_all(shared.queue, request, bad);
    if (fabric().waiting_end > 0) receive_was_posted(kNone);
    return error;
}

}  // namespace pccl::fake_verbs
