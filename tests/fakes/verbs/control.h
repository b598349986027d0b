/* SPDX-License-Identifier: Apache-2.0
 *
 * How tests watch and disturb the fabric of the fake libibverbs. The shared object exports these
 * functions beside ibv_*; a test finds them with dlsym. All act on the fabric that the calling
 * process belongs to, which it joins where it has not yet. Functions that return int return 0, or
 * an errno.
 *
 * Programs that are linked to libibverbs run on the fake, too:
 * LD_LIBRARY_PATH=build/dev/fakes/verbs ibv_devinfo -v
 *
 * A process reads these environment variables when it joins, at its first call of the library:
 *
 * - FAKE_VERBS_FABRIC: a folder, made if it is missing, whose processes reach each other. Without
 *   it, a process has a fabric of its own. The child of a fork() joins anew.
 * - FAKE_VERBS_HOST: a number, 0 without. Processes of one number share devices and ports, whose
 *   addresses are 10.(77 + number).DEVICE.PORT.
 * - FAKE_VERBS_DEVICES: the devices of the host (devices.h), "fake0" without.
 * - FAKE_VERBS_RETRY_MS: for how long an unreachable peer is tried at most, 200 without; timeout
 *   and retry_cnt may shorten it.
 * - FAKE_VERBS_MEMLOCK: bytes that the process may register.
 * - FAKE_VERBS_MAX_MR, FAKE_VERBS_MAX_QP: regions (65536 without) and QPs (1024) it may have.
 * - FAKE_VERBS_DMABUF: 0 if ibv_reg_dmabuf_mr is not supported.
 * - FAKE_VERBS_GUARD: 1 to find requests on memory that was unmapped or mapped anew after its
 *   registration (pinning.h); they end with an access error.
 * - FAKE_VERBS_VERBOSE: 1 for a line on stderr about each violated rule.
 */
#ifndef PCCL_TESTS_FAKES_VERBS_CONTROL_H
#define PCCL_TESTS_FAKES_VERBS_CONTROL_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FAKE_VERBS_OPCODES = 16 };

/* What a process has done so far. */
struct fake_verbs_counters {
    uint64_t requests[FAKE_VERBS_OPCODES]; /* send work requests posted, by enum ibv_wr_opcode */
    uint64_t receives;                     /* receive work requests posted */
    uint64_t doorbells;                    /* calls that posted one or more send work requests */
    uint64_t receive_doorbells;            /* likewise of receives */
    uint64_t signalled;                    /* completions written for its send requests */
    uint64_t receive_completions;          /* completions written for its receive requests */
    uint64_t polled;                       /* completions that it took */
    uint64_t polls;                        /* calls of poll_cq */
    uint64_t inline_requests;              /* requests with IBV_SEND_INLINE */
    uint64_t bytes;                        /* that its requests moved */
    uint64_t events;                       /* completion events written to its channels */
    uint64_t mrs;                          /* registered now */
    uint64_t qps;                          /* that exist now */
    uint64_t cqs;                          /* that exist now */
    uint64_t pinned;                       /* bytes registered now */
    uint64_t registrations;                /* so far */
    uint64_t not_ready; /* times that a request of its found no receive at the responder */
    uint64_t inside_ns; /* spent in the fake, while fake_verbs_measure_time is on */
};

/* Counters of process `pid` of the fabric, 0 for the caller's. ESRCH: it has not joined. */
int fake_verbs_read_counters(pid_t pid, struct fake_verbs_counters* counters);
/* Sets the counters of what was done (not of what exists) of the calling process to 0. */
int fake_verbs_reset_counters(void);

/* How fake_verbs_counters.inside_ns is measured. */
enum {
    FAKE_VERBS_TIME_OFF,
    FAKE_VERBS_TIME_CPU,  /* by the thread's CPU clock, whose own cost, up to 2 us a call, is
                             included */
    FAKE_VERBS_TIME_TICKS /* by the CPU's counter: cheap; intervals with a preemption count as the
                             mean of others */
};
int fake_verbs_measure_time(int how);

/* What a rule does to the requests that it applies to. */
enum fake_verbs_effect {
    FAKE_VERBS_FAIL = 1,  /* ends it with `status` and `vendor_err`; no data moves */
    FAKE_VERBS_LOSE_LAST, /* moves the data, but the responder gets no completion; the requester
                             RETRY_EXC_ERR */
    FAKE_VERBS_DELAY,    /* holds it until `ms` have passed, and `operations` more were delivered in
                            the fabric */
    FAKE_VERBS_HOLD_FOR, /* holds it until `operations` requests of `other_qp` were delivered since
                          */
    FAKE_VERBS_STALL,    /* holds it until the rule is removed */
    FAKE_VERBS_HOLD_ANSWER,  /* delivers it, and holds its completion until the rule is removed */
    FAKE_VERBS_LOSE_ANSWERS, /* delivers it and those behind it on its QP, until one would fail, and
                                `operations` at most (0: all); the requester gets RETRY_EXC_ERR for
                                the first one, and flushes the others */
    FAKE_VERBS_OUTLIVE /* holds it until the rule is removed; if its QP fails before, it and those
                          behind it arrive then all the same, as packets under way do, unless the
                          responder's QP has failed, too */
};

/* Zero fields apply to all. A request that a rule holds, holds those after it on its QP, too. */
struct fake_verbs_rule {
    int effect;      /* enum fake_verbs_effect */
    uint32_t qp;     /* requests of this QP number */
    char device[64]; /* requests of this device of the caller's host */
    int port;        /* requests of this port of it */
    int opcode;      /* enum ibv_wr_opcode, plus one */
    int empty;       /* 1: requests of no bytes */
    uint64_t skip;   /* so many that it would apply to pass */
    uint64_t count;  /* it applies to so many */
    int status;      /* enum ibv_wc_status */
    uint32_t vendor_err;
    uint32_t ms;
    uint32_t jitter_ms; /* from 0 to this are added to `ms`, by `seed` */
    uint64_t seed;
    uint64_t operations;
    uint32_t other_qp;
    int all_processes; /* else it applies to requests of the calling process */
};

/* Adds a rule; returns its number, above 0, or a negative errno. */
int fake_verbs_add_rule(const struct fake_verbs_rule* rule);
/* Removes a rule, 0 for all; held requests proceed. */
int fake_verbs_remove_rule(int number);

/* Takes port `port` of `device` of the caller's host down or up: IBV_EVENT_PORT_ERR or _ACTIVE on
 * each context. Requests that need it while it is down end with RETRY_EXC_ERR, unless it comes back
 * before. */
int fake_verbs_set_port(const char* device, int port, int up);
/* IBV_EVENT_DEVICE_FATAL on each context of the device; all its QPs fail. */
int fake_verbs_device_fatal(const char* device);
/* Changes the address of the last two GIDs of a port to `ipv4` (host order), with
 * IBV_EVENT_GID_CHANGE. */
int fake_verbs_change_gid(const char* device, int port, uint32_t ipv4);

/* Ports on Ethernet whose IPv4 addresses differ in the first `bits` bits do not reach each other
 * from now on, as on isolated rails; 0 ends that. */
int fake_verbs_isolate_subnets(int bits);

/* Registrations of the calling process fail with `error` after `after` more; 0 ends that. */
int fake_verbs_refuse_registrations(uint64_t after, int error);
/* Limits of the calling process: how many exist at most, bytes registered at most. */
int fake_verbs_limit_mrs(uint32_t mrs);
int fake_verbs_limit_qps(uint32_t qps);
int fake_verbs_limit_memlock(uint64_t bytes);
/* Whether ibv_reg_dmabuf_mr works: on by default, EOPNOTSUPP otherwise. A memfd that is mapped at
 * the iova stands for a dma-buf. */
int fake_verbs_set_dmabuf(int supported);

/* Lets `length` bytes at `address` of the calling process be memory of a GPU from now on, without
 * access of CPUs: an inline request from there fails, and so does ibv_reg_mr, with EFAULT, unless
 * fake_verbs_set_peermem(1) stands for nvidia_peermem. A length of 0 ends it. */
int fake_verbs_set_gpu_memory(const void* address, uint64_t length);
int fake_verbs_set_peermem(int loaded);

/* What the kernel does with iWARP QPs for rdma_cm: connects QP `qp` of the calling process, at port
 * `port` of its device, to QP `peer` at the port that has the GID `peer_gid`. */
int fake_verbs_connect_iwarp(uint32_t qp, int port, uint32_t peer, const uint8_t peer_gid[16],
                             int is_initiator);

/* Delivers what is due, as any poll does. */
int fake_verbs_progress(void);

#ifdef __cplusplus
}
#endif

#endif
