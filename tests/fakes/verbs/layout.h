// SPDX-License-Identifier: Apache-2.0

// What the processes of one fabric share: a single mapping of fixed tables, whose entries refer to
// one another by index, and a heap of queues, which they refer to by offset. All is guarded by one
// mutex, but for what is atomic.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "tests/fakes/verbs/control.h"

namespace pccl::fake_verbs {

using Index = uint32_t;
inline constexpr Index kNone = 0xffffffff;

inline constexpr Index kMaxProcesses = 256;
inline constexpr Index kMaxPorts = 256;
inline constexpr Index kMaxContexts = 1024;
inline constexpr Index kMaxCqs = 8192;
inline constexpr Index kMaxQps = 16384;
inline constexpr Index kMaxSrqs = 1024;
inline constexpr Index kMaxMrs = 1 << 17;
/// Pages of a region that FAKE_VERBS_GUARD watches: as many as a pipe holds.
inline constexpr uint32_t kPinnedPages = 16;
/// Set in remote keys, so that one used in the place of the other is found.
inline constexpr uint32_t kRemoteKey = 0x80000000;
inline constexpr Index kMaxRules = 64;
inline constexpr int kGids = 4;
inline constexpr uint64_t kNever = UINT64_MAX;
inline constexpr uint64_t kFabricBytes = uint64_t{8} << 30;  // the file has holes

struct SharedProcess {
    bool used;
    pid_t pid;
    uint64_t started;  // by the kernel's ticks: a later process of the same number differs
    uint32_t generation;
    int host;
    fake_verbs_counters counters;  // each field is accessed atomically
    uint64_t pinned;               // bytes that are registered
    uint64_t memlock;              // at most so many
    uint32_t mr_limit;
    uint32_t qp_limit;
    uint64_t refuse_after;  // registrations
    int refuse_errno;
    bool no_dmabuf;
    bool guarded;  // pinning.h
};

struct SharedPort {
    bool used;
    int host;
    char device[64];
    int number;
    bool infiniband;
    bool iwarp;
    bool up;
    ibv_mtu mtu;
    uint16_t lid;
    ibv_gid gids[kGids];
};

/// An event that waits for ibv_get_async_event. `element` is a pointer of the owner, or a port.
struct SharedEvent {
    ibv_event_type type;
    uint64_t element;
};

struct SharedContext {
    static constexpr uint32_t kEvents = 256;
    bool used;
    bool fatal;
    uint32_t generation;
    Index process;
    Index port;  // the first of its device; those after it follow
    int ports;
    uint32_t wake;  // the number of a Wake
    uint32_t head;
    uint32_t tail;
    SharedEvent events[kEvents];
};

struct Completion {
    ibv_wc wc;
    Index qp;
    Index srq;          // which a receive came from
    uint64_t position;  // of a send: the slots of the queue up to this one become free
    bool is_send;
};

struct SharedCq {
    bool used;
    uint32_t generation;
    Index process;
    Index context;
    uint64_t local;  // the owner's ibv_cq
    uint32_t wake;   // of its channel, 0 without one
    uint32_t capacity;
    uint64_t ring;
    std::atomic<uint64_t> head;  // completions so far
    std::atomic<uint64_t> tail;  // polled so far
    int armed;                   // 0, kArmedAny or kArmedSolicited
    bool overrun;
    uint32_t users;  // QPs, counted for each of their queues
};
inline constexpr int kArmedAny = 1;
inline constexpr int kArmedSolicited = 2;

/// Receive work requests. Slots between `tail` and `next` are used up, but not polled.
struct ReceiveQueue {
    uint64_t ring;
    uint32_t slot;  // bytes of each
    uint32_t capacity;
    uint32_t max_sge;
    uint64_t head;
    uint64_t next;
    uint64_t tail;
};

struct ReceiveWqe {
    uint64_t wr_id;
    uint32_t num_sge;
    ibv_sge sges[];
};

/// `length` bytes follow where they are inline, else `num_sge` elements.
struct SendWqe {
    uint64_t wr_id;
    uint64_t remote_addr;
    uint64_t compare_add;
    uint64_t swap;
    uint32_t rkey;
    uint32_t imm;
    uint32_t num_sge;
    uint32_t length;
    ibv_wr_opcode opcode;
    uint32_t flags;
    alignas(16) ibv_sge sges[];
};

struct SharedSrq {
    bool used;
    uint32_t generation;
    Index process;
    Index context;
    uint64_t local;
    uint32_t pd;
    uint32_t limit;
    uint32_t users;
    ReceiveQueue queue;
};

/// Why the first request of a send queue is not done yet.
enum class Wait : uint8_t { kNo, kReceive, kUnreachable, kHeld };

struct SharedQp {
    bool used;
    uint32_t generation;
    uint32_t qpn;
    Index process;
    Index context;
    Index port;
    uint64_t local;
    uint32_t pd;
    Index send_cq;
    Index recv_cq;
    Index srq;
    bool signal_all;
    ibv_qp_cap cap;
    ibv_qp_state state;
    ibv_qp_attr attr;
    uint32_t sq_psn;  // of the next packet
    uint32_t rq_psn;
    uint64_t sq_ring;
    uint32_t sq_slot;
    uint64_t sq_head;
    uint64_t sq_next;  // to be done
    uint64_t sq_tail;
    ReceiveQueue rq;
    Wait wait;
    uint64_t look_at;   // when to try again, in ns of the monotonic clock
    uint64_t deadline;  // when to give up
    uint32_t rnr_left;
    uint64_t ruled_for;  // the position that rules were looked up for, plus one
    Index rule;          // what applies to it
    uint32_t rule_generation;
    uint64_t held_until;   // in ns
    uint64_t answer_held;  // the position of a delivered request whose answer is held, plus one
    uint64_t late_next;    // positions of a failed QP's requests that are under way
    uint64_t late_end;     // likewise, one past the last
    uint64_t held_count;   // what must have been delivered, in the fabric or on the rule's QP
    uint64_t delivered;    // requests
    bool established;      // IBV_EVENT_COMM_EST was given
    bool iwarp;            // of a device of that kind
    bool must_wait;        // an iWARP responder, which sends after its initiator alone (RFC 5044)
    uint32_t waiting_at;   // in Fabric::waiting
};

struct SharedMr {
    bool used;
    uint32_t generation;
    uint32_t key;
    Index process;
    Index context;
    uint32_t pd;
    uint32_t access;
    uint64_t address;
    uint64_t iova;
    uint64_t length;
    uint32_t pinned;               // how many pages are watched (pinning.h)
    uint64_t pages[kPinnedPages];  // their numbers
};

struct SharedRule {
    fake_verbs_rule rule;
    bool used;
    uint32_t generation;
    Index process;     // that added it
    uint64_t matched;  // requests, those that it passed included
};

/// Memory that was given back, by the power of two of its size.
inline constexpr int kHeapClasses = 40;

struct Fabric {
    uint64_t magic;
    pthread_mutex_t mutex;
    std::atomic<uint64_t> next_look;  // the earliest time of all that wait
    std::atomic<uint32_t> tick;       // a futex: next_look became earlier
    uint64_t heap_end;
    uint64_t heap_free[kHeapClasses];
    uint32_t next_pd;
    uint32_t next_wake;
    uint64_t delivered;  // requests
    int subnet_bits;  // of IPv4 addresses; ports of two subnets do not reach each other; 0: they do
    Index processes_end;
    Index ports_end;
    Index contexts_end;
    Index cqs_end;
    Index qps_end;
    Index srqs_end;
    Index mrs_end;
    Index waiting_end;
    Index waiting[kMaxQps];
    SharedProcess processes[kMaxProcesses];
    SharedPort ports[kMaxPorts];
    SharedContext contexts[kMaxContexts];
    SharedRule rules[kMaxRules];
    SharedSrq srqs[kMaxSrqs];
    SharedCq cqs[kMaxCqs];
    SharedQp qps[kMaxQps];
    SharedMr mrs[kMaxMrs];
};

}  // namespace pccl::fake_verbs
