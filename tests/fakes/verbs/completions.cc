// SPDX-License-Identifier: Apache-2.0

// Completion queues and channels.

#include <unistd.h>

#include <algorithm>

#include "tests/fakes/verbs/engine.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/inside.h"
#include "tests/fakes/verbs/limits.h"
#include "tests/fakes/verbs/objects.h"
#include "tests/fakes/verbs/queues.h"
#include "tests/fakes/verbs/wake.h"

namespace pccl::fake_verbs {

namespace {

// Of a failed request, only these members are valid: others keep what the caller's array had.
void give(const Completion& completion, ibv_wc& wc) {
    if (completion.wc.status == IBV_WC_SUCCESS) {
        wc = completion.wc;
        return;
    }
    wc.wr_id = completion.wc.wr_id;
    wc.status = completion.wc.status;
    wc.vendor_err = completion.wc.vendor_err;
    wc.qp_num = completion.wc.qp_num;
}

Completion take_oldest(SharedCq& cq) {
    const uint64_t tail = cq.tail.load(std::memory_order_relaxed);
    const Completion completion = at<Completion>(cq.ring)[tail % cq.capacity];
    cq.tail.store(tail + 1, std::memory_order_release);
    free_slots(completion);
    return completion;
}

bool has_completion(const SharedCq& cq) {
    return cq.head.load(std::memory_order_acquire) != cq.tail.load(std::memory_order_relaxed);
}

// What is due is delivered by polls, whoever polls.
void deliver_due() {
    const uint64_t due = fabric().next_look.load(std::memory_order_relaxed);
    if (due == kNever || due > now_ns()) return;
    const Lock lock;
    advance_waiting();
}

Cq* make_cq(ibv_context* context, int entries, ibv_comp_channel* channel) {
    Fabric& all = fabric();
    const Lock lock;
    Index index = free_entry(all.cqs, all.cqs_end, kMaxCqs);
    if (index == kNone) {
        remove_ended_processes();
        index = free_entry(all.cqs, all.cqs_end, kMaxCqs);
    }
    const uint64_t ring =
        index != kNone ? allocate(sizeof(Completion) * static_cast<uint64_t>(entries)) : 0;
    if (ring == 0) return fail_with(ENOMEM);
    auto* cq = new Cq{};
    SharedCq& shared = all.cqs[index];
    ++shared.generation;
    shared.process = this_process_index();
    shared.context = of(context).index;
    shared.local = reinterpret_cast<uint64_t>(cq);
    shared.wake = channel != nullptr ? of(channel).wake : 0;
    shared.capacity = static_cast<uint32_t>(entries);
    shared.ring = ring;
    shared.head = shared.tail = 0;
    shared.armed = 0;
    shared.overrun = false;
    shared.users = 0;
    shared.used = true;
    cq->index = index;
    cq->base.context = context;
    cq->base.channel = channel;
    cq->base.handle = index;
    cq->base.cqe = entries;
    ::pthread_mutex_init(&cq->base.mutex, nullptr);
    ::pthread_cond_init(&cq->base.cond, nullptr);
    if (channel != nullptr) ++channel->refcnt;
    ++of(context).users;
    count(this_process().counters.cqs);
    return cq;
}

// The queue that a record of a channel is about; null if it was destroyed meanwhile.
Cq* cq_of(uint64_t record) {
    const Lock lock;
    const auto index = static_cast<Index>(record);
    if (index >= kMaxCqs) return nullptr;
    const SharedCq& shared = fabric().cqs[index];
    if (!shared.used || shared.generation != record >> 32) return nullptr;
    auto* cq = reinterpret_cast<Cq*>(shared.local);
    ++cq->events;
    return cq;
}

}  // namespace

int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions) {
    const Inside inside;
    SharedCq& shared = fabric().cqs[of(cq).index];
    if (!is_own_process(shared.process)) return -1;
    count(this_process().counters.polls);
    deliver_due();
    if (!has_completion(shared)) return 0;
    const Lock lock;
    int taken = 0;
    while (taken < entries && has_completion(shared)) {
        give(take_oldest(shared), completions[taken]);
        ++taken;
    }
    count(this_process().counters.polled, static_cast<uint64_t>(taken));
    return taken;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
    const Inside inside;
    SharedCq& shared = fabric().cqs[of(cq).index];
    if (!is_own_process(shared.process)) return EINVAL;
    const Lock lock;
    if (shared.armed != kArmedAny) shared.armed = solicited_only != 0 ? kArmedSolicited : kArmedAny;
    return 0;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
    ibv_cq* made = ibv_create_cq(context, static_cast<int>(attributes->cqe), attributes->cq_context,
                                 attributes->channel, static_cast<int>(attributes->comp_vector));
    if (made == nullptr) return nullptr;
    ibv_cq_ex& cq = of(made).base;
    cq.start_poll = [](ibv_cq_ex* current, ibv_poll_cq_attr*) {
        return current->next_poll(current);
    };
    cq.next_poll = [](ibv_cq_ex* current) {
        Cq& own = of(current);
        own.current.opcode = IBV_WC_SEND;
        if (poll_cq(ibv_cq_ex_to_cq(current), 1, &own.current) != 1) return ENOENT;
        current->status = own.current.status;
        current->wr_id = own.current.wr_id;
        return 0;
    };
    cq.end_poll = [](ibv_cq_ex*) {};
    cq.read_opcode = [](ibv_cq_ex* current) { return of(current).current.opcode; };
    cq.read_vendor_err = [](ibv_cq_ex* current) { return of(current).current.vendor_err; };
    cq.read_byte_len = [](ibv_cq_ex* current) { return of(current).current.byte_len; };
    cq.read_imm_data = [](ibv_cq_ex* current) { return of(current).current.imm_data; };
    cq.read_qp_num = [](ibv_cq_ex* current) { return of(current).current.qp_num; };
    cq.read_src_qp = [](ibv_cq_ex* current) { return of(current).current.src_qp; };
    cq.read_wc_flags = [](ibv_cq_ex* current) { return of(current).current.wc_flags; };
    cq.read_slid = [](ibv_cq_ex* current) { return uint32_t{of(current).current.slid}; };
    cq.read_sl = [](ibv_cq_ex* current) { return of(current).current.sl; };
    cq.read_dlid_path_bits = [](ibv_cq_ex* current) { return of(current).current.dlid_path_bits; };
    cq.read_completion_ts = [](ibv_cq_ex*) { return now_ns(); };
    cq.read_completion_wallclock_ns = [](ibv_cq_ex*) { return now_ns(); };
    return &cq;
}

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
    const Lock lock;
    auto* channel = new Channel{};
    channel->base.context = context;
    channel->wake = make_wake(&channel->base.fd);
    if (channel->wake == 0) {
        delete channel;
        return fail_with(EMFILE);
    }
    ++of(context).users;
    start_timer();
    return &channel->base;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
    if (channel->refcnt != 0) {
        complain("a completion channel is destroyed with %d queues", channel->refcnt);
        return EBUSY;
    }
    if (is_own_process(fabric().contexts[of(channel->context).index].process)) {
        const Lock lock;
        remove_wake(of(channel).wake);
    }
    ::close(channel->fd);
    --of(channel->context).users;
    delete &of(channel);
    return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
    if (is_fatal(context)) return fail_with(EIO);
    if (entries < 1 || entries > kMaxCqe || vector < 0 || vector >= context->num_comp_vectors)
        return fail_with(EINVAL);
    Cq* cq = make_cq(context, entries, channel);
    if (cq == nullptr) return nullptr;
    cq->base.cq_context = cq_context;
    return ibv_cq_ex_to_cq(&cq->base);
}

int ibv_resize_cq(ibv_cq* cq, int entries) {
    const Lock lock;
    SharedCq& shared = fabric().cqs[of(cq).index];
    const uint64_t held = shared.head - shared.tail;
    if (entries < 1 || entries > kMaxCqe || held > static_cast<uint64_t>(entries)) return EINVAL;
    const uint64_t ring = allocate(sizeof(Completion) * static_cast<uint64_t>(entries));
    if (ring == 0) return ENOMEM;
    for (uint64_t position = shared.tail; position < shared.head; ++position) {
        at<Completion>(ring)[position % static_cast<uint64_t>(entries)] =
            at<Completion>(shared.ring)[position % shared.capacity];
    }
    release(shared.ring, sizeof(Completion) * shared.capacity);
    shared.ring = ring;
    shared.capacity = static_cast<uint32_t>(entries);
    cq->cqe = entries;
    return 0;
}

int ibv_destroy_cq(ibv_cq* cq) {
    Cq& own = of(cq);
    SharedCq& shared = fabric().cqs[own.index];
    if (is_own_process(shared.process)) {
        if (shared.users != 0) {
            complain("a completion queue is destroyed that %u queues use", shared.users);
            return EBUSY;
        }
        if (!wait_for_acknowledgement(own.events, "a completion queue")) return EBUSY;
        if (!wait_for_acknowledgement(own.async, "a completion queue")) return EBUSY;
        const Lock lock;
        remove_events(shared.context, cq);
        free_cq(own.index);
        discount(this_process().counters.cqs);
    }
    if (cq->channel != nullptr) --cq->channel->refcnt;
    --of(cq->context).users;
    delete &own;
    return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
    for (;;) {
        uint64_t record = 0;
        if (::read(channel->fd, &record, sizeof record) != sizeof record) return -1;
        Cq* found = cq_of(record);
        if (found == nullptr) continue;
        *cq = ibv_cq_ex_to_cq(&found->base);
        *cq_context = found->base.cq_context;
        return 0;
    }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned int events) { of(cq).events -= events; }
