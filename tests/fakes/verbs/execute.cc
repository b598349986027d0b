// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/execute.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "tests/fakes/verbs/access.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/network.h"
#include "tests/fakes/verbs/queues.h"
#include "tests/fakes/verbs/rules.h"

namespace pccl::fake_verbs {

namespace {

constexpr uint64_t kLookAgainNs = 1'000'000;
constexpr uint64_t kAtomic = sizeof(uint64_t);
constexpr uint32_t kLongestMessage = uint32_t{1} << 30;

// A request on its way, with what both sides need of it.
struct Passage {
    SharedQp& from;
    SharedQp& to;
    Index to_index;
    const SendWqe& request;
    Index source;               // the process of `pieces`
    std::vector<Piece> pieces;  // of the requester
    bool loses_last;
};

Outcome ended(ibv_wc_status status, uint32_t vendor = 0) {
    Outcome outcome;
    outcome.status = status;
    outcome.vendor_err = vendor;
    return outcome;
}

// The responder refuses it, and fails.
Outcome refused(const Passage& passage, ibv_wc_status status, ibv_event_type event) {
    Outcome outcome = ended(status, status == IBV_WC_REM_ACCESS_ERR ? 0x88 : 0x89);
    outcome.failed = passage.to_index;
    outcome.event = event;
    return outcome;
}

Outcome no_answer() {
    Outcome outcome;
    outcome.kind = Outcome::kNoAnswer;
    return outcome;
}

// A copy that failed: a responder that is ending does not answer.
Outcome not_copied(const Passage& passage, int error) {
    if (error == ESRCH) return no_answer();
    return refused(passage, IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL);
}

bool has_immediate(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
bool is_send(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}
bool is_atomic(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}
bool is_write(ibv_wr_opcode opcode) {
    return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
bool reads(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_READ || is_atomic(opcode); }

// The access flag that a request needs of the responder's QP and region.
uint32_t remote_right(ibv_wr_opcode opcode) {
    if (is_write(opcode)) return IBV_ACCESS_REMOTE_WRITE;
    return is_atomic(opcode) ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
}

// What the requester checks of its own: the status that ends it, or success.
ibv_wc_status check_requester(const SharedQp& qp, const SendWqe& request,
                              std::vector<Piece>& pieces) {
    if (reads(request.opcode) && qp.attr.max_rd_atomic == 0) {
        complain("QP 0x%x reads with max_rd_atomic 0", qp.qpn);
        return IBV_WC_LOC_QP_OP_ERR;
    }
    if (request.length > kLongestMessage ||
        (is_atomic(request.opcode) && request.length != kAtomic)) {
        complain("QP 0x%x: a request of %u bytes", qp.qpn, request.length);
        return IBV_WC_LOC_LEN_ERR;
    }
    if ((request.flags & IBV_SEND_INLINE) != 0) {
        pieces.push_back({reinterpret_cast<uint64_t>(request.sges), request.length});
        return IBV_WC_SUCCESS;
    }
    const uint32_t rights = reads(request.opcode) ? uint32_t{IBV_ACCESS_LOCAL_WRITE} : 0;
    return check_list(qp, {request.sges, request.num_sge}, rights, pieces) ? IBV_WC_SUCCESS
                                                                           : IBV_WC_LOC_PROT_ERR;
}

// Reads that are queued together are outstanding together, up to max_rd_atomic of the requester.
bool exceeds_responder_reads(const SharedQp& from, const SharedQp& to) {
    int outstanding = 0;
    for (uint64_t at_position = from.sq_next; at_position < from.sq_head; ++at_position) {
        if (!reads(send_at(from, at_position).opcode)) break;
        if (++outstanding == from.attr.max_rd_atomic) break;
    }
    return outstanding > to.attr.max_dest_rd_atomic;
}

// The range that a request names at the responder, as it lies in that process; false if it may not.
bool find_remote(const Passage& passage, Piece& piece) {
    const SendWqe& request = passage.request;
    if (request.length == 0) return true;  // the key is not looked at
    const SharedMr* mr = check_key(passage.to, request.rkey, request.remote_addr, request.length,
                                   remote_right(request.opcode), true);
    if (mr == nullptr) return false;
    piece = {mr->address + (request.remote_addr - mr->iova), request.length};
    return true;
}

ReceiveQueue& receives_of(SharedQp& qp) {
    return qp.srq != kNone ? fabric().srqs[qp.srq].queue : qp.rq;
}

void warn_of_limit(SharedQp& qp) {
    if (qp.srq == kNone) return;
    SharedSrq& srq = fabric().srqs[qp.srq];
    if (srq.limit == 0 || srq.queue.head - srq.queue.next >= srq.limit) return;
    srq.limit = 0;
    push_event(srq.context, IBV_EVENT_SRQ_LIMIT_REACHED, srq.local);
}

// Uses up a receive of the responder: its completion, and whether it could be written.
bool complete_receive(const Passage& passage, ibv_wc_status status) {
    SharedQp& qp = passage.to;
    ReceiveQueue& queue = receives_of(qp);
    const SendWqe& request = passage.request;
    Completion completion{};
    completion.wc.wr_id = receive_at(queue, queue.next++).wr_id;
    completion.wc.status = status;
    completion.wc.opcode = is_send(request.opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM;
    completion.wc.byte_len = request.length;
    completion.wc.qp_num = qp.qpn;
    completion.wc.src_qp = passage.from.qpn;
    if (has_immediate(request.opcode)) {
        completion.wc.imm_data = request.imm;
        completion.wc.wc_flags = IBV_WC_WITH_IMM;
    }
    completion.wc.slid = fabric().ports[passage.from.port].lid;
    completion.wc.sl = passage.from.attr.ah_attr.sl;
    completion.qp = passage.to_index;
    completion.srq = qp.srq;
    warn_of_limit(qp);
    if (passage.loses_last) {
        free_slots(completion);
        return true;
    }
    return push_completion(qp.recv_cq, completion, (request.flags & IBV_SEND_SOLICITED) != 0);
}

// A completion queue of the responder that is full ends the responder, after the requester was
// answered.
Outcome received(const Passage& passage) {
    Outcome outcome = ended(IBV_WC_SUCCESS);
    if (!complete_receive(passage, IBV_WC_SUCCESS)) outcome.failed = passage.to_index;
    return outcome;
}

Outcome not_ready(const Passage& passage) {
    Outcome outcome;
    outcome.kind = Outcome::kNotReady;
    outcome.rnr_timer = passage.to.attr.min_rnr_timer;
    return outcome;
}

Outcome do_send(const Passage& passage) {
    const ReceiveQueue& queue = receives_of(passage.to);
    if (queue.next == queue.head) return not_ready(passage);
    const ReceiveWqe& receive = receive_at(queue, queue.next);
    std::vector<Piece> into;
    uint64_t room = 0;
    for (uint32_t i = 0; i < receive.num_sge; ++i) room += receive.sges[i].length;
    if (room < passage.request.length) {
        complain("a receive of %lu bytes on QP 0x%x for a message of %u", room, passage.to.qpn,
                 passage.request.length);
        complete_receive(passage, IBV_WC_LOC_LEN_ERR);
        return refused(passage, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    const bool is_covered =
        check_list(passage.to, {receive.sges, receive.num_sge}, IBV_ACCESS_LOCAL_WRITE, into);
    const int error = is_covered ? copy(passage.source, passage.pieces, passage.to.process, into,
                                        passage.request.length)
                                 : EFAULT;
    if (error == EFAULT) complete_receive(passage, IBV_WC_LOC_PROT_ERR);
    if (error != 0) return not_copied(passage, error);
    return received(passage);
}

Outcome do_write(const Passage& passage) {
    const bool immediate = has_immediate(passage.request.opcode);
    const ReceiveQueue& queue = receives_of(passage.to);
    Piece into{};
    if (!find_remote(passage, into)) {
        return refused(passage, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    if (immediate && queue.next == queue.head) return not_ready(passage);
    const int error = copy(passage.source, passage.pieces, passage.to.process, {&into, 1},
                           passage.request.length);
    if (error != 0) return not_copied(passage, error);
    return immediate ? received(passage) : ended(IBV_WC_SUCCESS);
}

Outcome do_read(const Passage& passage) {
    Piece source{};
    if (exceeds_responder_reads(passage.from, passage.to)) {
        complain("QP 0x%x reads more at a time than max_dest_rd_atomic %d of QP 0x%x",
                 passage.from.qpn, passage.to.attr.max_dest_rd_atomic, passage.to.qpn);
        return refused(passage, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (is_atomic(passage.request.opcode) && passage.request.remote_addr % kAtomic != 0) {
        complain("an atomic operation at 0x%lx", passage.request.remote_addr);
        return refused(passage, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    if (!find_remote(passage, source)) {
        return refused(passage, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    }
    int error = 0;
    if (is_atomic(passage.request.opcode)) {
        uint64_t before = 0;
        const Piece result{reinterpret_cast<uint64_t>(&before), kAtomic};
        error = atomic_memory(passage.to.process, source.address, passage.request, before);
        if (error == 0)
            error =
                copy(this_process_index(), {&result, 1}, passage.source, passage.pieces, kAtomic);
    } else {
        error = copy(passage.to.process, {&source, 1}, passage.source, passage.pieces,
                     passage.request.length);
    }
    return error != 0 ? not_copied(passage, error) : ended(IBV_WC_SUCCESS);
}

// What the responder checks before it looks at memory.
bool is_invalid(const Passage& passage) {
    const SendWqe& request = passage.request;
    const int mtu = std::min(passage.from.attr.path_mtu, passage.to.attr.path_mtu);
    if (passage.from.attr.path_mtu != passage.to.attr.path_mtu && request.length > mtu_bytes(mtu)) {
        complain("QP 0x%x and 0x%x have path MTUs of different lengths", passage.from.qpn,
                 passage.to.qpn);
        return true;
    }
    if (is_send(request.opcode)) return false;
    const uint32_t right = remote_right(request.opcode);
    if ((passage.to.attr.qp_access_flags & right) != 0) return false;
    complain("qp_access_flags 0x%x of QP 0x%x lack 0x%x", passage.to.attr.qp_access_flags,
             passage.to.qpn, right);
    return true;
}

Outcome deliver(const Passage& passage) {
    if (is_invalid(passage)) return refused(passage, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    if (is_send(passage.request.opcode)) return do_send(passage);
    return is_write(passage.request.opcode) ? do_write(passage) : do_read(passage);
}

// After a delivery: both sides count its packets, and the responder's owner learns of the first
// one.
void account(const Passage& passage) {
    SharedQp& to = passage.to;
    const uint32_t packets = packets_of(passage.request.length, passage.from.attr.path_mtu);
    passage.from.sq_psn = (passage.from.sq_psn + packets) & 0xffffff;
    to.rq_psn = (to.rq_psn + packets) & 0xffffff;
    count(fabric().processes[passage.from.process].counters.bytes, passage.request.length);
    if (to.state != IBV_QPS_RTR || to.established) return;
    to.established = true;
    push_event(to.context, IBV_EVENT_COMM_EST, to.local);
}

bool is_delivered(const Outcome& outcome) {
    return outcome.kind == Outcome::kDone && outcome.status == IBV_WC_SUCCESS;
}

// Delivers the request at a position of the send queue.
Outcome deliver_at(SharedQp& qp, uint64_t position, bool loses_last) {
    const SendWqe& request = send_at(qp, position);
    std::vector<Piece> pieces;
    const ibv_wc_status local = check_requester(qp, request, pieces);
    if (local != IBV_WC_SUCCESS) return ended(local, 0x51);
    const Index responder = find_responder(qp);
    if (responder == kNone) return no_answer();
    const bool is_inline = (request.flags & IBV_SEND_INLINE) != 0;
    const Passage passage{qp,
                          fabric().qps[responder],
                          responder,
                          request,
                          is_inline ? this_process_index() : qp.process,
                          std::move(pieces),
                          loses_last};
    Outcome outcome = deliver(passage);
    if (is_delivered(outcome)) account(passage);
    return outcome;
}

Outcome held_until(uint64_t look_at) {
    Outcome held;
    held.kind = Outcome::kHeld;
    held.look_at = look_at;
    return held;
}

// Delivers the requests behind the first one, until one fails or `most` are delivered (0: all).
void deliver_next(SharedQp& qp, uint64_t most) {
    const uint64_t end = most == 0 ? qp.sq_head : std::min(qp.sq_head, qp.sq_next + most);
    for (uint64_t next = qp.sq_next + 1; next < end; ++next)
        if (!is_delivered(deliver_at(qp, next, false))) return;
}

// What a rule does once the request is no longer held.
Outcome deliver_by(SharedQp& qp, const fake_verbs_rule& rule) {
    const bool loses_last = rule.effect == FAKE_VERBS_LOSE_LAST;
    Outcome outcome = deliver_at(qp, qp.sq_next, loses_last);
    if (!is_delivered(outcome)) return outcome;
    if (rule.effect == FAKE_VERBS_HOLD_ANSWER) {
        qp.answer_held = qp.sq_next + 1;
        return held_until(now_ns() + kLookAgainNs);
    }
    if (rule.effect == FAKE_VERBS_LOSE_ANSWERS) deliver_next(qp, rule.operations);
    if (loses_last || rule.effect == FAKE_VERBS_LOSE_ANSWERS) outcome.status = IBV_WC_RETRY_EXC_ERR;
    return outcome;
}

}  // namespace

Outcome execute(Index index) {
    SharedQp& qp = fabric().qps[index];
    const fake_verbs_rule* rule = find_rule(qp);
    const bool was_delivered = qp.answer_held == qp.sq_next + 1;
    if (rule == nullptr)
        return was_delivered ? ended(IBV_WC_SUCCESS) : deliver_at(qp, qp.sq_next, false);
    const uint64_t now = now_ns();
    if (was_delivered) return held_until(now + kLookAgainNs);
    if (is_held(qp, *rule, now)) return held_until(std::max(qp.held_until, now + kLookAgainNs));
    if (rule->effect == FAKE_VERBS_FAIL)
        return ended(static_cast<ibv_wc_status>(rule->status), rule->vendor_err);
    return deliver_by(qp, *rule);
}

void deliver_late(Index index) {
    SharedQp& qp = fabric().qps[index];
    if (!qp.used || is_late_held(qp)) return;
    while (qp.late_next < qp.late_end) {
        if (is_delivered(deliver_at(qp, qp.late_next++, false))) continue;
        qp.late_next = qp.late_end;
    }
}

}  // namespace pccl::fake_verbs
