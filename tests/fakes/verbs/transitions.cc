// SPDX-License-Identifier: Apache-2.0

// ibv_modify_qp: which attributes each transition of an RC QP needs and takes (InfiniBand
// specification, table 91; qp_state_table of the Linux kernel), and their values.

#include <endian.h>

#include <algorithm>
#include <cstring>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/limits.h"
#include "tests/fakes/verbs/network.h"
#include "tests/fakes/verbs/objects.h"
#include "tests/fakes/verbs/queues.h"

namespace pccl::fake_verbs {

namespace {

struct Transition {
    ibv_qp_state from;
    ibv_qp_state to;
    int needed;
    int allowed;
};

constexpr int kAlways = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER |
                        IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kOfInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kOfRtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kOfRts =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kOfSqd = kAlways | kOfInit | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT |
                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
                       IBV_QP_MAX_DEST_RD_ATOMIC;

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kOfInit, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kOfInit},
    {IBV_QPS_INIT, IBV_QPS_RTR, kOfRtr, IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, kOfRts, kAlways},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kAlways},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, kOfSqd},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kAlways},
};

const Transition* find_transition(ibv_qp_state from, ibv_qp_state to) {
    const auto* found =
        std::find_if(std::begin(kTransitions), std::end(kTransitions),
                     [&](const Transition& known) { return known.from == from && known.to == to; });
    return found != std::end(kTransitions) ? found : nullptr;
}

bool check_mask(const SharedQp& qp, ibv_qp_state to, int mask) {
    const int given = mask & ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return given == 0;
    if (qp.iwarp) {
        const bool is_init = to == IBV_QPS_INIT && (given & ~kOfInit) == 0;
        if (!is_init) complain("QP 0x%x of iWARP is connected by rdma_cm alone", qp.qpn);
        return is_init;
    }
    const Transition* known = find_transition(qp.state, to);
    if (known == nullptr) {
        complain("QP 0x%x cannot go from state %d to %d", qp.qpn, qp.state, to);
        return false;
    }
    const int missing = known->needed & ~given;
    const int unknown = given & ~(known->needed | known->allowed);
    if (missing == 0 && unknown == 0) return true;
    complain("QP 0x%x from state %d to %d: attributes 0x%x are missing, 0x%x are not allowed",
             qp.qpn, qp.state, to, missing, unknown);
    return false;
}

int wrong(const SharedQp& qp, const char* what, uint64_t value, int error = EINVAL) {
    complain("QP 0x%x: %s %lu", qp.qpn, what, value);
    return error;
}

bool is_mapped_ipv4(const ibv_gid& gid) {
    static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

bool is_of_subnet(const ibv_gid& gid, const ibv_gid& own) {
    const int bits = fabric().subnet_bits;
    if (bits == 0 || !is_mapped_ipv4(own)) return true;
    uint32_t addresses[2];
    std::memcpy(&addresses[0], gid.raw + 12, sizeof addresses[0]);
    std::memcpy(&addresses[1], own.raw + 12, sizeof addresses[1]);
    return (be32toh(addresses[0]) ^ be32toh(addresses[1])) >> (32 - bits) == 0;
}

// What the kernel finds when it resolves the address of a peer.
int check_address(const SharedQp& qp, const ibv_ah_attr& address) {
    const SharedPort& port = fabric().ports[qp.port];
    static constexpr ibv_gid kZero{};
    if (address.port_num != port.number)
        return wrong(qp, "ah_attr.port_num is not its port:", address.port_num);
    if (port.infiniband && find_port(address.dlid) == kNone)
        return wrong(qp, "nobody has LID", address.dlid);
    if (!port.infiniband && address.is_global == 0)
        return wrong(qp, "RoCE needs ah_attr.is_global, not", 0);
    if (address.is_global == 0) return 0;
    const ibv_global_route& route = address.grh;
    if (route.sgid_index >= kGids) return wrong(qp, "there is no GID index", route.sgid_index);
    if (std::memcmp(route.dgid.raw, kZero.raw, sizeof kZero) == 0) return wrong(qp, "dgid is", 0);
    if (port.infiniband) return 0;
    if (is_mapped_ipv4(route.dgid) != is_mapped_ipv4(port.gids[route.sgid_index])) {
        return wrong(qp, "dgid is of another address family than GID index", route.sgid_index,
                     ENETUNREACH);
    }
    const bool known =
        find_port(route.dgid) != kNone && is_of_subnet(route.dgid, port.gids[route.sgid_index]);
    return known ? 0
                 : wrong(qp, "nobody answers for the dgid, seen from GID index", route.sgid_index,
                         ETIMEDOUT);
}

bool is_access(unsigned flags) {
    return (flags & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC)) == 0;
}

int check_values(const SharedQp& qp, const ibv_qp_attr& attr, int mask) {
    const SharedContext& context = fabric().contexts[qp.context];
    if ((mask & IBV_QP_PORT) != 0 && (attr.port_num < 1 || attr.port_num > context.ports))
        return wrong(qp, "there is no port", attr.port_num);
    if ((mask & IBV_QP_PKEY_INDEX) != 0 && attr.pkey_index != 0)
        return wrong(qp, "there is no pkey_index", attr.pkey_index);
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && !is_access(attr.qp_access_flags))
        return wrong(qp, "qp_access_flags", attr.qp_access_flags);
    if ((mask & IBV_QP_PATH_MTU) != 0) {
        const ibv_mtu active = fabric().ports[qp.port].mtu;
        if (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > active)
            return wrong(qp, "path_mtu is above the active one:", attr.path_mtu);
    }
    if ((mask & IBV_QP_DEST_QPN) != 0 && attr.dest_qp_num > 0xffffff)
        return wrong(qp, "dest_qp_num", attr.dest_qp_num);
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0 && attr.max_dest_rd_atomic > kMaxReads)
        return wrong(qp, "max_dest_rd_atomic", attr.max_dest_rd_atomic);
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0 && attr.max_rd_atomic > kMaxReads)
        return wrong(qp, "max_rd_atomic", attr.max_rd_atomic);
    if ((mask & IBV_QP_MIN_RNR_TIMER) != 0 && attr.min_rnr_timer > 31)
        return wrong(qp, "min_rnr_timer", attr.min_rnr_timer);
    if ((mask & IBV_QP_TIMEOUT) != 0 && attr.timeout > 31)
        return wrong(qp, "timeout", attr.timeout);
    if ((mask & IBV_QP_RETRY_CNT) != 0 && attr.retry_cnt > 7)
        return wrong(qp, "retry_cnt", attr.retry_cnt);
    if ((mask & IBV_QP_RNR_RETRY) != 0 && attr.rnr_retry > 7)
        return wrong(qp, "rnr_retry", attr.rnr_retry);
    return (mask & IBV_QP_AV) != 0 ? check_address(qp, attr.ah_attr) : 0;
}

void set_values(SharedQp& qp, const ibv_qp_attr& attr, int mask) {
    ibv_qp_attr& own = qp.attr;
    if ((mask & IBV_QP_PORT) != 0) {
        own.port_num = attr.port_num;
        qp.port = fabric().contexts[qp.context].port + attr.port_num - 1;
    }
    if ((mask & IBV_QP_PKEY_INDEX) != 0) own.pkey_index = attr.pkey_index;
    if ((mask & IBV_QP_ACCESS_FLAGS) != 0) own.qp_access_flags = attr.qp_access_flags;
    if ((mask & IBV_QP_AV) != 0) own.ah_attr = attr.ah_attr;
    if ((mask & IBV_QP_PATH_MTU) != 0) own.path_mtu = attr.path_mtu;
    if ((mask & IBV_QP_DEST_QPN) != 0) own.dest_qp_num = attr.dest_qp_num;
    if ((mask & IBV_QP_RQ_PSN) != 0) qp.rq_psn = attr.rq_psn & 0xffffff;
    if ((mask & IBV_QP_SQ_PSN) != 0) qp.sq_psn = attr.sq_psn & 0xffffff;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) own.max_dest_rd_atomic = attr.max_dest_rd_atomic;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) own.max_rd_atomic = attr.max_rd_atomic;
    if ((mask & IBV_QP_MIN_RNR_TIMER) != 0) own.min_rnr_timer = attr.min_rnr_timer;
    if ((mask & IBV_QP_TIMEOUT) != 0) own.timeout = attr.timeout;
    if ((mask & IBV_QP_RETRY_CNT) != 0) own.retry_cnt = attr.retry_cnt;
    if ((mask & IBV_QP_RNR_RETRY) != 0) own.rnr_retry = attr.rnr_retry;
}

void reset_qp(Index index) {
    SharedQp& qp = fabric().qps[index];
    stop_waiting(index);
    remove_completions(qp.send_cq, index);
    remove_completions(qp.recv_cq, index);
    qp.sq_head = qp.sq_next = qp.sq_tail = 0;
    qp.rq.head = qp.rq.next = qp.rq.tail = 0;
    qp.attr = {};
    qp.port = kNone;
    qp.ruled_for = 0;
    qp.answer_held = 0;
    qp.late_next = qp.late_end = 0;
    qp.established = false;
    qp.state = IBV_QPS_RESET;
}

void enter(Index index, ibv_qp_state to) {
    SharedQp& qp = fabric().qps[index];
    if (to == IBV_QPS_RESET) {
        reset_qp(index);
    } else if (to == IBV_QPS_ERR) {
        const bool was_reset = qp.state == IBV_QPS_RESET;
        fail_qp(index);
        if (was_reset) qp.state = to;
    } else {
        qp.state = to;
    }
}

}  // namespace

}  // namespace pccl::fake_verbs

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
    using namespace pccl::fake_verbs;
    const Index index = of(qp).index;
    SharedQp& shared = fabric().qps[index];
    if (!is_own_process(shared.process)) return EINVAL;
    const Lock lock;
    const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes->qp_state : shared.state;
    if ((mask & IBV_QP_CUR_STATE) != 0 && attributes->cur_qp_state != shared.state) return EINVAL;
    if (is_fatal(qp->context) && to != IBV_QPS_ERR && to != IBV_QPS_RESET) return EIO;
    if (!check_mask(shared, to, mask)) return EINVAL;
    const int error = check_values(shared, *attributes, mask);
    if (error != 0) return error;
    set_values(shared, *attributes, mask);
    enter(index, to);
    if ((mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attributes->en_sqd_async_notify != 0) {
        push_event(shared.context, IBV_EVENT_SQ_DRAINED, shared.local);
    }
    qp->state = shared.state;
    advance(index);
    advance_waiting();
    return 0;
}
