// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/control.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tests/fakes/verbs/devices.h"
#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"

namespace pccl::fake_verbs {

namespace {

// Copies counters one by one, as other threads count on, in either place.
void read_counters(fake_verbs_counters& from, fake_verbs_counters& to) {
    static_assert(sizeof from % sizeof(uint64_t) == 0);
    auto* source = reinterpret_cast<uint64_t*>(&from);
    auto* target = reinterpret_cast<uint64_t*>(&to);
    for (size_t i = 0; i < sizeof from / sizeof(uint64_t); ++i) {
        const uint64_t value = __atomic_load_n(source + i, __ATOMIC_RELAXED);
        __atomic_store_n(target + i, value, __ATOMIC_RELAXED);
    }
}

}  // namespace

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

int fake_verbs_read_counters(pid_t pid, fake_verbs_counters* counters) {
    Fabric& all = fabric();
    const Lock lock;
    const pid_t wanted = pid != 0 ? pid : ::getpid();
    for (Index i = all.processes_end; i-- > 0;) {
        if (!all.processes[i].used || all.processes[i].pid != wanted) continue;
        read_counters(all.processes[i].counters, *counters);
        return 0;
    }
    return ESRCH;
}

int fake_verbs_reset_counters() {
    fake_verbs_counters& own = this_process().counters;
    const Lock lock;
    fake_verbs_counters kept{};
    kept.mrs = own.mrs;
    kept.qps = own.qps;
    kept.cqs = own.cqs;
    kept.pinned = own.pinned;
    read_counters(kept, own);
    return 0;
}

int fake_verbs_set_port(const char* device, int number, int up) {
    const Index index = find_port_named(device, number);
    if (index == kNone) return ENODEV;
    const Lock lock;
    SharedPort& port = fabric().ports[index];
    if (port.up == (up != 0)) return 0;
    port.up = up != 0;
    push_device_event(index, 1, port.up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR,
                      static_cast<uint64_t>(number));
    advance_waiting();
    return 0;
}

int fake_verbs_device_fatal(const char* device) {
    const Index first = find_port_named(device, 1);
    if (first == kNone) return ENODEV;
    Fabric& all = fabric();
    const Lock lock;
    for (Index i = 0; i < all.contexts_end; ++i) {
        if (all.contexts[i].used && all.contexts[i].port == first) all.contexts[i].fatal = true;
    }
    push_device_event(first, 1, IBV_EVENT_DEVICE_FATAL, 0);
    for (Index i = 0; i < all.qps_end; ++i) {
        if (all.qps[i].used && all.contexts[all.qps[i].context].port == first) fail_qp(i);
    }
    return 0;
}

int fake_verbs_change_gid(const char* device, int number, uint32_t ipv4) {
    const Index index = find_port_named(device, number);
    if (index == kNone) return ENODEV;
    const Lock lock;
    for (int gid = 2; gid < kGids; ++gid) {
        for (int byte = 0; byte < 4; ++byte) {
            fabric().ports[index].gids[gid].raw[12 + byte] =
                static_cast<uint8_t>(ipv4 >> (24 - 8 * byte));
        }
    }
    push_device_event(index, 1, IBV_EVENT_GID_CHANGE, static_cast<uint64_t>(number));
    return 0;
}

int fake_verbs_isolate_subnets(int bits) {
    fabric().subnet_bits = bits;
    return 0;
}

int fake_verbs_refuse_registrations(uint64_t after, int error) {
    SharedProcess& self = this_process();
    const Lock lock;
    self.refuse_after = after;
    self.refuse_errno = error;
    return 0;
}

int fake_verbs_limit_mrs(uint32_t mrs) {
    this_process().mr_limit = mrs;
    return 0;
}

int fake_verbs_limit_qps(uint32_t qps) {
    this_process().qp_limit = qps;
    return 0;
}

int fake_verbs_limit_memlock(uint64_t bytes) {
    this_process().memlock = bytes;
    return 0;
}

int fake_verbs_set_dmabuf(int supported) {
    this_process().no_dmabuf = supported == 0;
    return 0;
}
