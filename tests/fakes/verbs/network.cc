// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/network.h"

#include <algorithm>
#include <cstring>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

bool has_gid(const SharedPort& port, const ibv_gid& gid) {
    return std::any_of(std::begin(port.gids), std::end(port.gids), [&gid](const ibv_gid& own) {
        return std::memcmp(own.raw, gid.raw, sizeof gid.raw) == 0;
    });
}

// Whether an address leads to a port.
bool leads_to(const ibv_ah_attr& address, const SharedPort& port) {
    if (port.infiniband && address.dlid != port.lid) return false;
    return address.is_global == 0 || has_gid(port, address.grh.dgid);
}

bool takes_packets(ibv_qp_state state) {
    return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
           state == IBV_QPS_SQE;
}

// GIDs of odd indices are RoCE v2: packets of another version are dropped.
bool versions_differ(const SharedQp& from, const SharedQp& to) {
    if (fabric().ports[from.port].infiniband) return false;
    return from.attr.ah_attr.grh.sgid_index % 2 != to.attr.ah_attr.grh.sgid_index % 2;
}

}  // namespace

Index find_responder(const SharedQp& qp) {
    Fabric& all = fabric();
    const Index index = find_qp(qp.attr.dest_qp_num);
    const char* why = nullptr;
    const SharedQp& to = all.qps[index == kNone ? 0 : index];
    if (index == kNone) {
        why = "does not exist";
    } else if (!is_alive(to.process)) {
        why = "is one of a process that ended";
    } else if (!takes_packets(to.state)) {
        why = "is not ready to receive";
    } else if (!all.ports[qp.port].up || !all.ports[to.port].up) {
        why = "has a port that is down between";
    } else if (to.attr.dest_qp_num != qp.qpn) {
        why = "is connected to another";
    } else if (!leads_to(qp.attr.ah_attr, all.ports[to.port]) ||
               !leads_to(to.attr.ah_attr, all.ports[qp.port])) {
        why = "has another GID or LID than the address";
    } else if (versions_differ(qp, to)) {
        why = "has another version of RoCE by its sgid_index";
    } else if (qp.sq_psn != to.rq_psn) {
        why = "expects another PSN";
    } else {
        return index;
    }
    if (qp.wait != Wait::kUnreachable) {
        complain("QP 0x%x gets no answer: QP 0x%x %s", qp.qpn, qp.attr.dest_qp_num, why);
    }
    return kNone;
}

Index find_port(const ibv_gid& gid) {
    const Fabric& all = fabric();
    for (Index i = 0; i < all.ports_end; ++i) {
        if (all.ports[i].used && has_gid(all.ports[i], gid)) return i;
    }
    return kNone;
}

Index find_port(uint16_t lid) {
    const Fabric& all = fabric();
    for (Index i = 0; i < all.ports_end; ++i) {
        if (all.ports[i].used && all.ports[i].infiniband && all.ports[i].lid == lid) return i;
    }
    return kNone;
}

uint32_t mtu_bytes(int mtu) { return 128U << mtu; }

uint32_t packets_of(uint32_t length, ibv_mtu mtu) {
    return std::max(1U, (length + mtu_bytes(mtu) - 1) / mtu_bytes(mtu));
}

}  // namespace pccl::fake_verbs
