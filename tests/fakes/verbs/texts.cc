// SPDX-License-Identifier: Apache-2.0

// Names of values, rates, and small functions that keep no state.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fakes/verbs/devices.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/objects.h"

namespace pccl::fake_verbs {

namespace {

template <size_t kCount>
const char* name_in(const char* const (&names)[kCount], int value, const char* otherwise) {
    return value >= 0 && static_cast<size_t>(value) < kCount ? names[value] : otherwise;
}

struct Rate {
    ibv_rate code;
    int mult;
    int mbps;
};
constexpr Rate kRates[] = {{IBV_RATE_2_5_GBPS, 1, 2500},    {IBV_RATE_5_GBPS, 2, 5000},
                           {IBV_RATE_10_GBPS, 4, 10000},    {IBV_RATE_20_GBPS, 8, 20000},
                           {IBV_RATE_30_GBPS, 12, 30000},   {IBV_RATE_40_GBPS, 16, 40000},
                           {IBV_RATE_60_GBPS, 24, 60000},   {IBV_RATE_80_GBPS, 32, 80000},
                           {IBV_RATE_120_GBPS, 48, 120000}, {IBV_RATE_14_GBPS, 6, 14062},
                           {IBV_RATE_56_GBPS, 22, 56250},   {IBV_RATE_112_GBPS, 45, 112500},
                           {IBV_RATE_168_GBPS, 67, 168750}, {IBV_RATE_25_GBPS, 10, 25781},
                           {IBV_RATE_100_GBPS, 40, 103125}, {IBV_RATE_200_GBPS, 80, 206250},
                           {IBV_RATE_300_GBPS, 120, 309375}};

bool fork_initialised = false;

}  // namespace

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

// The texts are those of rdma-core 44.
const char* ibv_wc_status_str(ibv_wc_status status) {
    static const char* const kNames[] = {"success",
                                         "local length error",
                                         "local QP operation error",
                                         "local EE context operation error",
                                         "local protection error",
                                         "Work Request Flushed Error",
                                         "memory management operation error",
                                         "bad response error",
                                         "local access error",
                                         "remote invalid request error",
                                         "remote access error",
                                         "remote operation error",
                                         "transport retry counter exceeded",
                                         "RNR retry counter exceeded",
                                         "local RDD violation error",
                                         "remote invalid RD request",
                                         "aborted error",
                                         "invalid EE context number",
                                         "invalid EE context state",
                                         "fatal error",
                                         "response timeout error",
                                         "general error",
                                         "TM error",
                                         "TM software rendezvous"};
    return name_in(kNames, status, "unknown");
}

const char* ibv_event_type_str(ibv_event_type event) {
    static const char* const kNames[] = {"CQ error",
                                         "local work queue catastrophic error",
                                         "invalid request local work queue error",
                                         "local access violation work queue error",
                                         "communication established",
                                         "send queue drained",
                                         "path migrated",
                                         "path migration request error",
                                         "local catastrophic error",
                                         "port active",
                                         "port error",
                                         "LID change",
                                         "P_Key change",
                                         "SM change",
                                         "SRQ catastrophic error",
                                         "SRQ limit reached",
                                         "last WQE reached",
                                         "client reregistration",
                                         "GID table change",
                                         "WQ fatal"};
    return name_in(kNames, event, "unknown");
}

const char* ibv_port_state_str(ibv_port_state state) {
    static const char* const kNames[] = {"no state change (NOP)", "down", "init", "armed", "active",
                                         "active defer"};
    return name_in(kNames, state, "invalid state");
}

const char* ibv_node_type_str(ibv_node_type type) {
    static const char* const kNames[] = {"unknown",           "InfiniBand channel adapter",
                                         "InfiniBand switch", "InfiniBand router",
                                         "iWARP NIC",         "usNIC",
                                         "usNIC UDP",         "unspecified"};
    return name_in(kNames, type, "unknown");
}

int ibv_rate_to_mult(ibv_rate rate) {
    for (const Rate& known : kRates) {
        if (known.code == rate) return known.mult;
    }
    return -1;
}

ibv_rate mult_to_ibv_rate(int mult) {
    for (const Rate& known : kRates) {
        if (known.mult == mult) return known.code;
    }
    return IBV_RATE_MAX;
}

int ibv_rate_to_mbps(ibv_rate rate) {
    for (const Rate& known : kRates) {
        if (known.code == rate) return known.mbps;
    }
    return -1;
}

ibv_rate mbps_to_ibv_rate(int mbps) {
    for (const Rate& known : kRates) {
        if (known.mbps == mbps) return known.code;
    }
    return IBV_RATE_MAX;
}

// The fake registers no memory with the kernel: nothing needs to be kept from children.
int ibv_fork_init() {
    fork_initialised = true;
    return 0;
}

ibv_fork_status ibv_is_fork_initialized() {
    return fork_initialised ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

extern "C" int ibv_dontfork_range(void* /*base*/, size_t /*size*/) { return 0; }
extern "C" int ibv_dofork_range(void* /*base*/, size_t /*size*/) { return 0; }

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
    const SharedPort* port = find_port_of(pd->context, attributes->port_num);
    if (port == nullptr || (!port->infiniband && attributes->is_global == 0))
        return fail_with(EINVAL);
    auto* ah = new Ah{};
    ah->base.context = pd->context;
    ah->base.pd = pd;
    ah->attributes = *attributes;
    ++of(pd).users;
    return &ah->base;
}

int ibv_destroy_ah(ibv_ah* ah) {
    --of(ah->pd).users;
    delete reinterpret_cast<Ah*>(ah);
    return 0;
}

int ibv_init_ah_from_wc(ibv_context* /*context*/, uint8_t /*port*/, ibv_wc* /*wc*/,
                        ibv_grh* /*grh*/, ibv_ah_attr* /*attributes*/) {
    errno = EOPNOTSUPP;
    return -1;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* /*pd*/, ibv_wc* /*wc*/, ibv_grh* /*grh*/, uint8_t /*port*/) {
    return fail_with(EOPNOTSUPP);
}

int ibv_attach_mcast(ibv_qp* /*qp*/, const ibv_gid* /*gid*/, uint16_t /*lid*/) {
    return EOPNOTSUPP;
}
int ibv_detach_mcast(ibv_qp* /*qp*/, const ibv_gid* /*gid*/, uint16_t /*lid*/) {
    return EOPNOTSUPP;
}

int ibv_resolve_eth_l2_from_gid(ibv_context* /*context*/, ibv_ah_attr* /*attributes*/,
                                uint8_t* /*mac*/, uint16_t* /*vlan*/) {
    return EOPNOTSUPP;
}

int ibv_query_ece(ibv_qp* /*qp*/, ibv_ece* ece) {
    *ece = {};
    return 0;
}

int ibv_set_ece(ibv_qp* /*qp*/, ibv_ece* ece) { return ece->vendor_id == 0 ? 0 : EOPNOTSUPP; }

int ibv_query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*opcode*/, uint32_t /*flags*/) {
    return 0;
}

extern "C" const char* ibv_get_sysfs_path() {
    const char* given = std::getenv("SYSFS_PATH");
    return given != nullptr ? given : "/sys";
}

extern "C" int ibv_read_sysfs_file(const char* folder, const char* name, char* into, size_t size) {
    char path[512];
    std::snprintf(path, sizeof path, "%s/%s", folder, name);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return -1;
    const ssize_t length = ::read(file, into, size);
    ::close(file);
    if (length <= 0) return -1;
    if (into[length - 1] == '\n') {
        into[length - 1] = '\0';
    } else if (static_cast<size_t>(length) < size) {
        into[length] = '\0';
    }
    return static_cast<int>(length);
}
