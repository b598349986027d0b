// SPDX-License-Identifier: Apache-2.0

// What rdma_* functions return pointers to. The structs of rdma_cma.h come first in each, so that
// pointers convert. Connections are sockets with abstract names: messages of sockets are those of
// the connection manager, and the descriptor of a channel is an epoll set of its ids' sockets.
#pragma once

#include <rdma/rdma_cma.h>

#include <deque>
#include <set>

#include "tests/fakes/rdmacm/places.h"

namespace pccl::fake_rdmacm {

inline constexpr size_t kLongestData = 56;  // of RDMA_PS_TCP over InfiniBand

struct Message {
    enum Kind : uint32_t { kRequest, kReply, kReject, kReady };
    Kind kind;
    uint32_t qpn;
    uint32_t psn;
    uint16_t lid;
    uint16_t mtu;
    ibv_gid gid;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t retry_count;
    uint8_t rnr_retry_count;
    uint8_t length;
    char data[kLongestData];
};

struct Id;

struct Event {
    rdma_cm_event base;
    Id* owner;
    char data[kLongestData];
};

struct Channel {
    rdma_event_channel base;
    int wake;  // is readable while `events` has some
    std::deque<Event*> events;
    std::set<Id*> ids;
};

enum class State {
    kIdle,
    kListening,
    kIncoming,
    kAsked,
    kConnecting,
    kAccepted,
    kConnected,
    kOver
};

struct Id {
    rdma_cm_id base;
    State state;
    Place place;
    int socket;
    Id* listener;  // of an incoming one that has not asked yet
    uint32_t psn;
    Message own;
    Message peer;
    int unacknowledged;
};

}  // namespace pccl::fake_rdmacm
