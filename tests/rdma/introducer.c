// SPDX-License-Identifier: Apache-2.0

// libibverbs for a PCCL process that connects a queue pair of somebody else (foreign_access.py). Once
// introduce() has been called with the number of a queue pair, the next one that PCCL creates has
// that number: PCCL describes it to its peer, and the peer connects to the other one. PCCL's own pair
// stays unconnected, and what is posted on it goes nowhere. All other functions are libibverbs's own.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <string.h>

#undef ibv_modify_qp

struct Connection {
    uint32_t peer_number;
    uint32_t peer_sequence;
    uint32_t own_sequence;
    uint32_t mtu;  // enum ibv_mtu
    uint8_t peer_gid[16];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t wanted_number;
static struct ibv_qp* introduced;
static struct Connection connection;
static int is_connected;
static int (*post_send)(struct ibv_qp*, struct ibv_send_wr*, struct ibv_send_wr**);

static void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

static int post_nothing(struct ibv_qp* pair, struct ibv_send_wr* first, struct ibv_send_wr** bad) {
    return pair == introduced ? 0 : post_send(pair, first, bad);
}

/// Lets the next queue pair have the number of another one of this host.
void introduce(uint32_t number) {
    pthread_mutex_lock(&mutex);
    wanted_number = number;
    is_connected = 0;
    pthread_mutex_unlock(&mutex);
}

/// Returns whether the peer has connected to the other queue pair, and how that one connects to it.
int connection_of_introduced(struct Connection* to) {
    pthread_mutex_lock(&mutex);
    const int done = is_connected;
    *to = connection;
    pthread_mutex_unlock(&mutex);
    return done;
}

struct ibv_qp* ibv_create_qp(struct ibv_pd* domain, struct ibv_qp_init_attr* attributes) {
    struct ibv_qp* (*const create)(struct ibv_pd*, struct ibv_qp_init_attr*) = next("ibv_create_qp");
    struct ibv_qp* const pair = create(domain, attributes);
    pthread_mutex_lock(&mutex);
    if (pair != NULL && wanted_number != 0) {
        pair->qp_num = wanted_number;
        wanted_number = 0;
        introduced = pair;
        if (pair->context->ops.post_send != post_nothing) {
            post_send = pair->context->ops.post_send;
            pair->context->ops.post_send = post_nothing;
        }
    }
    pthread_mutex_unlock(&mutex);
    return pair;
}

int ibv_modify_qp(struct ibv_qp* pair, struct ibv_qp_attr* attributes, int mask) {
    int (*const modify)(struct ibv_qp*, struct ibv_qp_attr*, int) = next("ibv_modify_qp");
    const int is_connecting =
        attributes->qp_state == IBV_QPS_RTR || attributes->qp_state == IBV_QPS_RTS;
    if (pair != introduced || !is_connecting) return modify(pair, attributes, mask);
    pthread_mutex_lock(&mutex);
    if (attributes->qp_state == IBV_QPS_RTR) {
        connection.peer_number = attributes->dest_qp_num;
        connection.peer_sequence = attributes->rq_psn;
        connection.mtu = attributes->path_mtu;
        memcpy(connection.peer_gid, attributes->ah_attr.grh.dgid.raw, sizeof connection.peer_gid);
    } else {
        connection.own_sequence = attributes->sq_psn;
        is_connected = 1;
    }
    pthread_mutex_unlock(&mutex);
    return 0;
}
