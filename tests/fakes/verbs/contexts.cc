// SPDX-License-Identifier: Apache-2.0

// Opened devices, their asynchronous events, and protection domains.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/fakes/verbs/devices.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/wake.h"

namespace pccl::fake_verbs {

namespace {

void set_operations(verbs_context& verbs) {
    verbs.query_port = query_port;
    verbs.query_device_ex = query_device;
    verbs.create_cq_ex = create_cq_ex;
    verbs.create_qp_ex = create_qp_ex;
    verbs.create_srq_ex = create_srq_ex;
    verbs.get_srq_num = get_srq_num;
    verbs.sz = sizeof verbs;
    ibv_context_ops& operations = verbs.context.ops;
    operations.poll_cq = poll_cq;
    operations.req_notify_cq = req_notify_cq;
    operations.post_send = post_send;
    operations.post_recv = post_recv;
    operations.post_srq_recv = post_srq_recv;
    verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

// The counter of events of what an event is about; null for those of ports and devices.
std::atomic<uint64_t>* unacknowledged(const ibv_async_event& event) {
    switch (event.event_type) {
        case IBV_EVENT_CQ_ERR:
            return &of(event.element.cq).async;
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_COMM_EST:
        case IBV_EVENT_SQ_DRAINED:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
            return &of(event.element.qp).async;
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED:
            return &of(event.element.srq).async;
        default:
            return nullptr;
    }
}

bool take_event(SharedContext& context, ibv_async_event& event) {
    const Lock lock;
    if (context.head == context.tail) return false;
    const SharedEvent& oldest = context.events[context.tail++ % SharedContext::kEvents];
    event = {};
    event.event_type = oldest.type;
    std::memcpy(&event.element, &oldest.element, sizeof oldest.element);
    std::atomic<uint64_t>* counter = unacknowledged(event);
    if (counter != nullptr) counter->fetch_add(1);
    return true;
}

}  // namespace

void remove_events(Index index, const void* element) {
    SharedContext& context = fabric().contexts[index];
    const auto wanted = reinterpret_cast<uint64_t>(element);
    uint32_t kept = context.tail;
    for (uint32_t i = context.tail; i != context.head; ++i) {
        const SharedEvent event = context.events[i % SharedContext::kEvents];
        if (event.element != wanted) context.events[kept++ % SharedContext::kEvents] = event;
    }
    context.head = kept;  // the descriptor has records too many, which ibv_get_async_event passes
}

bool wait_for_acknowledgement(const std::atomic<uint64_t>& unacknowledged, const char* what) {
    constexpr int kMilliseconds = 5000;
    for (int i = 0; i < kMilliseconds; ++i) {
        if (unacknowledged.load() == 0) return true;
        ::usleep(1000);
    }
    complain(
        "%s is destroyed with events that were not acknowledged: libibverbs would wait for ever",
        what);
    return false;
}

bool is_fatal(ibv_context* context) { return fabric().contexts[of(context).index].fatal; }

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

ibv_context* ibv_open_device(ibv_device* device) {
    devices();
    Fabric& all = fabric();
    const Lock lock;
    remove_ended_processes();
    const Index index = free_entry(all.contexts, all.contexts_end, kMaxContexts);
    if (index == kNone) return fail_with(ENOMEM);
    SharedContext& shared = all.contexts[index];
    auto* context = new Context{};
    context->index = index;
    context->device = reinterpret_cast<Device*>(device);
    ibv_context& base = context->verbs.context;
    shared.wake = make_wake(&base.async_fd);
    if (shared.wake == 0) {
        delete context;
        return fail_with(EMFILE);
    }
    shared.fatal = false;
    shared.process = this_process_index();
    shared.port = context->device->first_port;
    shared.ports = context->device->ports;
    shared.head = shared.tail = 0;
    shared.used = true;
    set_operations(context->verbs);
    base.device = device;
    base.cmd_fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    base.num_comp_vectors = 4;
    ::pthread_mutex_init(&base.mutex, nullptr);
    return &base;
}

int ibv_close_device(ibv_context* context) {
    Context& own = of(context);
    if (own.users.load() != 0) {
        complain("device %s is closed with %d objects of it", context->device->name,
                 own.users.load());
        errno = EBUSY;
        return -1;
    }
    SharedContext& shared = fabric().contexts[own.index];
    if (is_own_process(shared.process)) {
        const Lock lock;
        remove_wake(shared.wake);
        shared.used = false;
    }
    ::close(context->async_fd);
    ::close(context->cmd_fd);
    delete &own;
    return 0;
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    SharedContext& shared = fabric().contexts[of(context).index];
    for (;;) {
        uint64_t record = 0;
        if (::read(context->async_fd, &record, sizeof record) != sizeof record) return -1;
        if (take_event(shared, *event)) return 0;
    }
}

void ibv_ack_async_event(ibv_async_event* event) {
    std::atomic<uint64_t>* counter = unacknowledged(*event);
    if (counter != nullptr) counter->fetch_sub(1);
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
    if (is_fatal(context)) return fail_with(EIO);
    const Lock lock;
    auto* pd = new Pd{};
    pd->base.context = context;
    pd->base.handle = fabric().next_pd++;
    ++of(context).users;
    return &pd->base;
}

int ibv_dealloc_pd(ibv_pd* pd) {
    if (of(pd).users.load() != 0) {
        complain("a protection domain is destroyed with %d objects of it", of(pd).users.load());
        return EBUSY;
    }
    --of(pd->context).users;
    delete &of(pd);
    return 0;
}
