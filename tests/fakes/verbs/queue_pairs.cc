// SPDX-License-Identifier: Apache-2.0

// Queue pairs and shared receive queues: making, asking, destroying.

#include <algorithm>
#include <cstring>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/limits.h"
#include "tests/fakes/verbs/objects.h"
#include "tests/fakes/verbs/queues.h"

namespace pccl::fake_verbs {

namespace {

bool is_above_limits(const ibv_qp_cap& cap) {
    return cap.max_send_wr > kMaxRequests || cap.max_recv_wr > kMaxRequests ||
           cap.max_send_sge > kMaxSge || cap.max_recv_sge > kMaxSge ||
           cap.max_inline_data > kMaxInline;
}

int check_attributes(const ibv_qp_init_attr_ex& wanted, const SharedProcess& self) {
    if (wanted.qp_type != IBV_QPT_RC) return EOPNOTSUPP;
    if (wanted.send_cq == nullptr || wanted.recv_cq == nullptr) return EINVAL;
    if (is_above_limits(wanted.cap)) {
        complain(
            "a QP with %u requests, %u receives, %u and %u elements, %u inline is above the limits",
            wanted.cap.max_send_wr, wanted.cap.max_recv_wr, wanted.cap.max_send_sge,
            wanted.cap.max_recv_sge, wanted.cap.max_inline_data);
        return EINVAL;
    }
    if (is_fatal(wanted.pd->context)) return EIO;
    return self.counters.qps >= self.qp_limit ? ENOMEM : 0;
}

// Rings of the heap. They are zeroed as they are used.
int make_rings(SharedQp& qp, const ibv_qp_init_attr_ex& wanted) {
    const uint64_t list =
        std::max<uint64_t>(wanted.cap.max_send_sge * sizeof(ibv_sge), wanted.cap.max_inline_data);
    qp.sq_slot = static_cast<uint32_t>((sizeof(SendWqe) + list + 15) / 16 * 16);
    qp.sq_ring = allocate(uint64_t{qp.sq_slot} * std::max(wanted.cap.max_send_wr, 1U));
    if (qp.sq_ring == 0) return ENOMEM;
    qp.rq = {};
    if (wanted.srq != nullptr) return 0;
    if (make_receive_queue(qp.rq, wanted.cap.max_recv_wr, wanted.cap.max_recv_sge)) return 0;
    release(qp.sq_ring, uint64_t{qp.sq_slot} * std::max(wanted.cap.max_send_wr, 1U));
    return ENOMEM;
}

void fill(SharedQp& shared, Index index, const ibv_qp_init_attr_ex& wanted, const Qp& qp) {
    shared.generation = shared.generation % 1023 + 1;
    shared.qpn = shared.generation * kMaxQps + index;
    shared.process = this_process_index();
    shared.context = of(wanted.pd->context).index;
    shared.port = kNone;
    shared.local = reinterpret_cast<uint64_t>(&qp);
    shared.pd = wanted.pd->handle;
    shared.send_cq = of(wanted.send_cq).index;
    shared.recv_cq = of(wanted.recv_cq).index;
    shared.srq = wanted.srq != nullptr ? of(wanted.srq).index : kNone;
    shared.signal_all = wanted.sq_sig_all != 0;
    shared.cap = wanted.cap;
    shared.state = IBV_QPS_RESET;
    shared.attr = {};
    shared.sq_head = shared.sq_next = shared.sq_tail = 0;
    shared.wait = Wait::kNo;
    shared.late_next = shared.late_end = 0;
    shared.ruled_for = shared.answer_held = shared.delivered = 0;
    shared.established = false;
    shared.iwarp = fabric().ports[fabric().contexts[shared.context].port].iwarp;
    shared.must_wait = false;
    shared.used = true;
}

ibv_qp* make_qp(const ibv_qp_init_attr_ex& wanted) {
    Fabric& all = fabric();
    const Lock lock;
    const int wrong = check_attributes(wanted, this_process());
    if (wrong != 0) return fail_with(wrong);
    Index index = free_entry(all.qps, all.qps_end, kMaxQps);
    if (index == kNone) {
        remove_ended_processes();
        index = free_entry(all.qps, all.qps_end, kMaxQps);
    }
    if (index == kNone) return fail_with(ENOMEM);
    SharedQp& shared = all.qps[index];
    const int full = make_rings(shared, wanted);
    if (full != 0) return fail_with(full);
    auto* qp = new Qp{};
    fill(shared, index, wanted, *qp);
    ++all.cqs[shared.send_cq].users;
    ++all.cqs[shared.recv_cq].users;
    if (shared.srq != kNone) ++all.srqs[shared.srq].users;
    count(this_process().counters.qps);
    qp->index = index;
    ibv_qp& base = qp->base.qp_base;
    base.context = wanted.pd->context;
    base.qp_context = wanted.qp_context;
    base.pd = wanted.pd;
    base.send_cq = wanted.send_cq;
    base.recv_cq = wanted.recv_cq;
    base.srq = wanted.srq;
    base.handle = index;
    base.qp_num = shared.qpn;
    base.state = IBV_QPS_RESET;
    base.qp_type = IBV_QPT_RC;
    ::pthread_mutex_init(&base.mutex, nullptr);
    ::pthread_cond_init(&base.cond, nullptr);
    set_builders(qp->base);
    ++of(base.pd).users;
    ++of(base.context).users;
    return &base;
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes) {
    constexpr uint32_t kKnown =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    constexpr uint64_t kBuilt = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                                IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
                                IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    if ((attributes->comp_mask & ~kKnown) != 0) return fail_with(EOPNOTSUPP);
    const bool builds = (attributes->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
    if (builds && (attributes->send_ops_flags & ~kBuilt) != 0) return fail_with(EOPNOTSUPP);
    const bool has_flags = (attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0;
    if (has_flags && attributes->create_flags != 0) return fail_with(EOPNOTSUPP);
    if ((attributes->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || attributes->pd->context != context) {
        return fail_with(EINVAL);
    }
    return make_qp(*attributes);
}

ibv_srq* create_srq_ex(ibv_context* /*context*/, ibv_srq_init_attr_ex* /*attributes*/) {
    return fail_with(EOPNOTSUPP);  // basic ones are made by ibv_create_srq
}

int get_srq_num(ibv_srq* srq, uint32_t* number) {
    *number = of(srq).index;
    return 0;
}

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
    ibv_qp_init_attr_ex wanted{};
    std::memcpy(&wanted, attributes, sizeof *attributes);
    wanted.pd = pd;
    wanted.comp_mask = IBV_QP_INIT_ATTR_PD;
    return make_qp(wanted);
}

ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* qp) { return &of(qp).base; }

int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* made) {
    const Lock lock;
    const SharedQp& shared = fabric().qps[of(qp).index];
    *attributes = shared.attr;
    attributes->qp_state = attributes->cur_qp_state = shared.state;
    attributes->sq_psn = shared.sq_psn;
    attributes->rq_psn = shared.rq_psn;
    attributes->cap = shared.cap;
    qp->state = shared.state;
    if (made == nullptr) return 0;
    *made = {qp->qp_context,           qp->send_cq, qp->recv_cq, qp->srq, shared.cap, qp->qp_type,
             shared.signal_all ? 1 : 0};
    return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
    Qp& own = of(qp);
    SharedQp& shared = fabric().qps[own.index];
    if (is_own_process(shared.process)) {
        if (!wait_for_acknowledgement(own.async, "a QP")) return EBUSY;
        const Lock lock;
        remove_events(shared.context, qp);
        free_qp(own.index);
        discount(this_process().counters.qps);
    }
    --of(qp->pd).users;
    --of(qp->context).users;
    delete &own;
    return 0;
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
    Fabric& all = fabric();
    const ibv_srq_attr& wanted = attributes->attr;
    if (wanted.max_wr == 0 || wanted.max_wr > kMaxRequests || wanted.max_sge > kMaxSge)
        return fail_with(EINVAL);
    const Lock lock;
    const Index index = free_entry(all.srqs, all.srqs_end, kMaxSrqs);
    if (index == kNone) return fail_with(ENOMEM);
    SharedSrq& shared = all.srqs[index];
    if (!make_receive_queue(shared.queue, wanted.max_wr, wanted.max_sge)) return fail_with(ENOMEM);
    auto* srq = new Srq{};
    ++shared.generation;
    shared.process = this_process_index();
    shared.context = of(pd->context).index;
    shared.local = reinterpret_cast<uint64_t>(srq);
    shared.pd = pd->handle;
    shared.limit = 0;
    shared.users = 0;
    shared.used = true;
    srq->index = index;
    srq->base.context = pd->context;
    srq->base.srq_context = attributes->srq_context;
    srq->base.pd = pd;
    srq->base.handle = index;
    ++of(pd).users;
    return &srq->base;
}

int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
    const Lock lock;
    SharedSrq& shared = fabric().srqs[of(srq).index];
    if ((mask & IBV_SRQ_MAX_WR) != 0) return EOPNOTSUPP;
    if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
    if (attributes->srq_limit > shared.queue.capacity) return EINVAL;
    shared.limit = attributes->srq_limit;
    return 0;
}

int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
    const Lock lock;
    const SharedSrq& shared = fabric().srqs[of(srq).index];
    *attributes = {shared.queue.capacity, shared.queue.max_sge, shared.limit};
    return 0;
}

int ibv_destroy_srq(ibv_srq* srq) {
    Srq& own = of(srq);
    SharedSrq& shared = fabric().srqs[own.index];
    if (is_own_process(shared.process)) {
        if (shared.users != 0) {
            complain("a shared receive queue is destroyed that %u QPs use", shared.users);
            return EBUSY;
        }
        if (!wait_for_acknowledgement(own.async, "a shared receive queue")) return EBUSY;
        const Lock lock;
        remove_events(shared.context, srq);
        free_srq(own.index);
    }
    --of(srq->pd).users;
    delete &own;
    return 0;
}
