// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/engine.h"

#include <algorithm>

#include "tests/fakes/verbs/execute.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/queues.h"
#include "tests/fakes/verbs/rules.h"
#include "tests/fakes/verbs/wake.h"

namespace pccl::fake_verbs {

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

ibv_wc_opcode completed_opcode(ibv_wr_opcode opcode) {
    switch (opcode) {
        case IBV_WR_RDMA_WRITE:
        case IBV_WR_RDMA_WRITE_WITH_IMM:
            return IBV_WC_RDMA_WRITE;
        case IBV_WR_RDMA_READ:
            return IBV_WC_RDMA_READ;
        case IBV_WR_ATOMIC_CMP_AND_SWP:
            return IBV_WC_COMP_SWAP;
        case IBV_WR_ATOMIC_FETCH_AND_ADD:
            return IBV_WC_FETCH_ADD;
        default:
            return IBV_WC_SEND;
    }
}

// The completion of the request at a position of the send queue.
void complete_send(Index index, uint64_t position, ibv_wc_status status, uint32_t vendor) {
    SharedQp& qp = fabric().qps[index];
    const SendWqe& request = send_at(qp, position);
    const bool wanted =
        status != IBV_WC_SUCCESS || qp.signal_all || (request.flags & IBV_SEND_SIGNALED) != 0;
    if (!wanted) return;
    Completion completion{};
    completion.wc.wr_id = request.wr_id;
    completion.wc.status = status;
    completion.wc.opcode = completed_opcode(request.opcode);
    completion.wc.vendor_err = vendor;
    completion.wc.byte_len = request.length;
    completion.wc.qp_num = qp.qpn;
    completion.qp = index;
    completion.srq = kNone;
    completion.position = position;
    completion.is_send = true;
    if (!push_completion(qp.send_cq, completion, false)) fail_qp(index);
}

// How long the requester goes on, by timeout and retry_cnt; at most FAKE_VERBS_RETRY_MS, as tests
// have no minutes.
uint64_t give_up_after(const SharedQp& qp) {
    static const uint64_t most = environment_number("FAKE_VERBS_RETRY_MS", 200) * kNsPerMs;
    if (qp.attr.timeout == 0) return kNever / 2;
    return std::min(most, (uint64_t{4096} << qp.attr.timeout) * (qp.attr.retry_cnt + 1U));
}

// min_rnr_timer of the responder, in ns: table 45 of the InfiniBand specification.
uint64_t rnr_pause(uint8_t timer) {
    static constexpr uint32_t kTenMicroseconds[] = {
        65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
        48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
        2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return kTenMicroseconds[timer % 32] * uint64_t{10'000};
}

void reconsider_next_look() {
    Fabric& all = fabric();
    uint64_t earliest = kNever;
    for (Index i = 0; i < all.waiting_end; ++i) {
        earliest = std::min(earliest, all.qps[all.waiting[i]].look_at);
    }
    const uint64_t before = all.next_look.exchange(earliest);
    if (earliest < before) wake_timers();
}

// No answer: tries again every millisecond, until the requester gives up. Whether it has to wait.
bool wait_unreachable(Index index) {
    SharedQp& qp = fabric().qps[index];
    const uint64_t now = now_ns();
    if (qp.wait != Wait::kUnreachable) qp.deadline = now + give_up_after(qp);
    if (now >= qp.deadline) return false;
    wait_until(index, Wait::kUnreachable, std::min(qp.deadline, now + kNsPerMs));
    return true;
}

// The responder has no receive. Whether the requester has to wait.
bool wait_for_receive(Index index, uint8_t timer) {
    SharedQp& qp = fabric().qps[index];
    if (qp.wait != Wait::kReceive) qp.rnr_left = qp.attr.rnr_retry;
    if (qp.attr.rnr_retry == 7) {  // for ever; it looks now and then whether the responder lives
        wait_until(index, Wait::kReceive, now_ns() + 10 * kNsPerMs);
        return true;
    }
    const uint64_t now = now_ns();
    if (qp.wait == Wait::kReceive && now < qp.look_at) return true;  // somebody posted elsewhere
    if (qp.rnr_left == 0) return false;
    --qp.rnr_left;
    wait_until(index, Wait::kReceive, now + rnr_pause(timer));
    return true;
}

// Ends the first request. The error of one ends the QP.
void finish(Index index, ibv_wc_status status, uint32_t vendor) {
    SharedQp& qp = fabric().qps[index];
    stop_waiting(index);
    const uint64_t position = qp.sq_next++;
    complete_send(index, position, status, vendor);
    if (status != IBV_WC_SUCCESS) {
        fail_qp(index);
        return;
    }
    ++qp.delivered;
    ++fabric().delivered;
    if (!qp.iwarp) return;
    const Index peer = find_qp(qp.attr.dest_qp_num);
    if (peer != kNone) fabric().qps[peer].must_wait = false;
}

void count_not_ready(const SharedQp& qp) {
    if (qp.wait == Wait::kReceive) return;  // it waits since an earlier count
    count(fabric().processes[qp.process].counters.not_ready);
}

// Does the first request; whether it ended.
bool step(Index index) {
    const Outcome outcome = execute(index);
    switch (outcome.kind) {
        case Outcome::kHeld:
            wait_until(index, Wait::kHeld, outcome.look_at);
            return false;
        case Outcome::kNoAnswer:
            if (wait_unreachable(index)) return false;
            finish(index, IBV_WC_RETRY_EXC_ERR, 0x81);
            return true;
        case Outcome::kNotReady:
            count_not_ready(fabric().qps[index]);
            if (wait_for_receive(index, outcome.rnr_timer)) return false;
            finish(index, IBV_WC_RNR_RETRY_EXC_ERR, 0x87);
            return true;
        case Outcome::kDone:
            break;
    }
    finish(index, outcome.status, outcome.vendor_err);
    if (outcome.failed == kNone) return true;
    const SharedQp& responder = fabric().qps[outcome.failed];
    fail_qp(outcome.failed);
    push_event(responder.context, outcome.event, responder.local);
    return true;
}

}  // namespace

void advance(Index index) {
    SharedQp& qp = fabric().qps[index];
    if (!is_alive(qp.process)) {
        stop_waiting(index);  // what a killed process had queued is not sent any more
        return;
    }
    while (qp.used && qp.state == IBV_QPS_RTS && qp.sq_next < qp.sq_head) {
        if (!step(index)) return;
    }
    stop_waiting(index);
}

void advance_waiting() {
    Fabric& all = fabric();
    for (bool again = true; again;) {
        again = false;
        const uint64_t now = now_ns();
        for (Index i = all.waiting_end; i-- > 0;) {
            if (i >= all.waiting_end) continue;  // others left meanwhile
            const Index qp = all.waiting[i];
            if (all.qps[qp].wait != Wait::kHeld && all.qps[qp].look_at > now) continue;
            const uint64_t before = all.delivered;
            advance(qp);
            again = again || all.delivered != before;
        }
    }
    reconsider_next_look();
}

void receive_was_posted(Index receiver) {
    Fabric& all = fabric();
    for (Index i = all.waiting_end; i-- > 0;) {
        if (i >= all.waiting_end) continue;
        const Index qp = all.waiting[i];
        if (all.qps[qp].wait != Wait::kReceive) continue;
        if (receiver == kNone || all.qps[qp].attr.dest_qp_num == all.qps[receiver].qpn) advance(qp);
    }
}

void fail_qp(Index index) {
    Fabric& all = fabric();
    SharedQp& qp = all.qps[index];
    if (qp.state == IBV_QPS_ERR || qp.state == IBV_QPS_RESET) return;
    keep_late(qp);
    qp.state = IBV_QPS_ERR;
    stop_waiting(index);
    flush(index);
    close_iwarp(qp);
    if (qp.srq != kNone) push_event(qp.context, IBV_EVENT_QP_LAST_WQE_REACHED, qp.local);
}

void flush(Index index) {
    SharedQp& qp = fabric().qps[index];
    while (qp.sq_next < qp.sq_head) {
        complete_send(index, qp.sq_next++, IBV_WC_WR_FLUSH_ERR, 0xf9);
    }
    while (qp.srq == kNone && qp.rq.next < qp.rq.head) {
        Completion completion{};
        completion.wc.wr_id = receive_at(qp.rq, qp.rq.next++).wr_id;
        completion.wc.status = IBV_WC_WR_FLUSH_ERR;
        completion.wc.opcode = IBV_WC_RECV;
        completion.wc.vendor_err = 0xf9;
        completion.wc.qp_num = qp.qpn;
        completion.qp = index;
        completion.srq = kNone;
        push_completion(qp.recv_cq, completion, false);
    }
}

void stop_waiting(Index index) {
    Fabric& all = fabric();
    SharedQp& qp = all.qps[index];
    if (qp.wait == Wait::kNo) return;
    qp.wait = Wait::kNo;
    const Index last = all.waiting[--all.waiting_end];
    all.waiting[qp.waiting_at] = last;
    all.qps[last].waiting_at = qp.waiting_at;
}

void wait_until(Index index, Wait why, uint64_t look_at) {
    Fabric& all = fabric();
    SharedQp& qp = all.qps[index];
    if (qp.wait == Wait::kNo) {
        qp.waiting_at = all.waiting_end;
        all.waiting[all.waiting_end++] = index;
    }
    qp.wait = why;
    qp.look_at = look_at;
    if (look_at >= all.next_look.load()) return;
    all.next_look.store(look_at);
    wake_timers();
}

Index find_qp(uint32_t qpn) {
    const Index index = qpn % kMaxQps;
    const SharedQp& qp = fabric().qps[index];
    return qp.used && qp.qpn == qpn ? index : kNone;
}

}  // namespace pccl::fake_verbs
