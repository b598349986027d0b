// SPDX-License-Identifier: Apache-2.0

// Connections of iWARP QPs: rdma_cm makes them, and both ends share their end (RFC 5040, RFC 5044).

#include <cerrno>
#include <cstring>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/limits.h"

namespace pccl::fake_verbs {

void close_iwarp(const SharedQp& qp) {
    if (!qp.iwarp) return;
    const Index peer = find_qp(qp.attr.dest_qp_num);
    if (peer != kNone && fabric().qps[peer].attr.dest_qp_num == qp.qpn) fail_qp(peer);
}

}  // namespace pccl::fake_verbs

int fake_verbs_connect_iwarp(uint32_t number, int port, uint32_t peer, const uint8_t peer_gid[16],
                             int is_initiator) {
    using namespace pccl::fake_verbs;
    const Lock lock;
    const Index index = find_qp(number);
    if (index == kNone || !is_own_process(fabric().qps[index].process)) return EINVAL;
    SharedQp& qp = fabric().qps[index];
    const SharedContext& context = fabric().contexts[qp.context];
    if (!qp.iwarp || qp.state != IBV_QPS_INIT || port < 1 || port > context.ports) return EINVAL;
    qp.port = context.port + static_cast<Index>(port) - 1;
    qp.attr.dest_qp_num = peer;
    qp.attr.ah_attr.is_global = 1;
    std::memcpy(qp.attr.ah_attr.grh.dgid.raw, peer_gid, sizeof qp.attr.ah_attr.grh.dgid.raw);
    qp.attr.path_mtu = fabric().ports[qp.port].mtu;
    qp.attr.max_rd_atomic = qp.attr.max_dest_rd_atomic = kMaxReads;
    constexpr uint8_t kUsualTimeout = 14;
    qp.attr.timeout = kUsualTimeout;
    qp.attr.retry_cnt = qp.attr.rnr_retry = 7;
    qp.sq_psn = qp.rq_psn = 0;
    qp.must_wait = is_initiator == 0;
    qp.state = IBV_QPS_RTS;
    advance_waiting();
    return 0;
}
