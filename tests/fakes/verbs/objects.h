// SPDX-License-Identifier: Apache-2.0

// What ibv_* functions return pointers to. The structs of verbs.h come first in each, so that
// pointers convert.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <string>
#include <vector>

#include "tests/fakes/verbs/layout.h"

// These are macros over functions that the library exports.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace pccl::fake_verbs {

/// A device as FAKE_VERBS_DEVICES describes it.
struct Device {
    ibv_device base;
    int number;
    int ports;
    bool infiniband;
    bool iwarp;
    bool down;
    ibv_mtu mtu;
    uint8_t speed;
    uint8_t width;
    Index first_port;  // in the fabric's table
};

struct Context {
    Index index;
    uint32_t generation;
    Device* device;
    std::atomic<int> users;  // objects made of it
    verbs_context verbs;     // its last member is what the caller has
};

struct Pd {
    ibv_pd base;
    std::atomic<int> users;
};

struct Mr {
    ibv_mr base;
    Index index;
    int pinning[2];  // descriptors of pinning.h
};

struct Channel {
    ibv_comp_channel base;
    uint32_t wake;
};

struct Cq {
    ibv_cq_ex base;
    Index index;
    std::atomic<uint64_t> events;  // taken, minus acknowledged
    std::atomic<uint64_t> async;   // likewise
    ibv_wc current;                // of ibv_start_poll
};

struct Srq {
    ibv_srq base;
    Index index;
    std::atomic<uint64_t> async;
};

/// A request that ibv_wr_* builds.
struct BuiltRequest {
    ibv_send_wr request;
    std::vector<ibv_sge> sges;
    std::vector<char> inlined;
};

struct Qp {
    ibv_qp_ex base;
    Index index;
    std::atomic<uint64_t> async;
    std::vector<BuiltRequest> built;
    int build_error;
};

struct Ah {
    ibv_ah base;
    ibv_ah_attr attributes;
};

inline Context& of(ibv_context* context) {
    // The offset of the last member of verbs_context, which the caller's pointer refers to.
    return *reinterpret_cast<Context*>(reinterpret_cast<char*>(context) -
                                       offsetof(verbs_context, context) - offsetof(Context, verbs));
}
inline Pd& of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
inline Mr& of(ibv_mr* mr) { return *reinterpret_cast<Mr*>(mr); }
inline Channel& of(ibv_comp_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
inline Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
inline Cq& of(ibv_cq_ex* cq) { return *reinterpret_cast<Cq*>(cq); }
inline Srq& of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }
inline Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
inline Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }

/// Returns null with errno set, as functions that make objects do.
inline std::nullptr_t fail_with(int error) {
    errno = error;
    return nullptr;
}

/// Functions behind the tables of a context, which inline functions of verbs.h call.
int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t length);
int query_device(ibv_context* context, const ibv_query_device_ex_input* input,
                 ibv_device_attr_ex* attributes, size_t length);
int poll_cq(ibv_cq* cq, int entries, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int get_srq_num(ibv_srq* srq, uint32_t* number);

/// Sets the functions of ibv_wr_*.
void set_builders(ibv_qp_ex& qp);

/// Waits until a count of events that were taken is acknowledged; false where nobody does so.
bool wait_for_acknowledgement(const std::atomic<uint64_t>& unacknowledged, const char* what);

/// Drops the events of an object that is destroyed. The caller holds the lock.
void remove_events(Index context, const void* element);

/// The value of a rule's limits for registrations, protection domains and the like.
bool is_fatal(ibv_context* context);

}  // namespace pccl::fake_verbs
