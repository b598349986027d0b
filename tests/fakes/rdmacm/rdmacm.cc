// SPDX-License-Identifier: Apache-2.0

// Stands in for librdmacm on the fake libibverbs: the functions by which a program connects queue
// pairs of its own (rdma_cm_id::qp stays null), with IPv4 addresses and RDMA_PS_TCP.

#include <endian.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <utility>

#include "tests/fakes/rdmacm/objects.h"
#include "tests/fakes/verbs/control.h"

namespace pccl::fake_rdmacm {

namespace {

// Reasons of rejections: IBTA table 95, and what the kernel has for iWARP.
constexpr int kNoListener = 8;
constexpr int kConsumerRejects = 28;

std::mutex& guard() {
    static auto* mutex = new std::mutex;
    return *mutex;
}

Channel& of(rdma_event_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
Id& of(rdma_cm_id* id) { return *reinterpret_cast<Id*>(id); }

int fail(int error) {
    errno = error;
    return -1;
}

int refuse(const char* what) {
    const char* verbose = std::getenv("FAKE_VERBS_VERBOSE");
    if (verbose != nullptr && *verbose == '1') std::fprintf(stderr, "fake librdmacm: %s\n", what);
    return fail(EINVAL);
}

void watch(Channel& channel, int socket, Id* id) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = id;
    ::epoll_ctl(channel.base.fd, EPOLL_CTL_ADD, socket, &event);
}

void close_socket(Id& id) {
    if (id.socket >= 0) ::close(id.socket);
    id.socket = -1;
}

void push(Id& id, rdma_cm_event_type type, int status, const Message* message = nullptr,
          Id* listener = nullptr) {
    Channel& channel = of(id.base.channel);
    auto* event = new Event{};
    event->owner = listener != nullptr ? listener : &id;
    event->base.id = &id.base;
    event->base.listen_id = listener != nullptr ? &listener->base : nullptr;
    event->base.event = type;
    event->base.status = status;
    if (message != nullptr) {
        rdma_conn_param& param = event->base.param.conn;
        std::memcpy(event->data, message->data, message->length);
        param.private_data = message->length > 0 ? event->data : nullptr;
        param.private_data_len = message->length;
        param.responder_resources = message->initiator_depth;
        param.initiator_depth = message->responder_resources;
        param.qp_num = message->qpn;
    }
    channel.events.push_back(event);
    const uint64_t one = 1;
    static_cast<void>(!::write(channel.wake, &one, sizeof one));
}

Id& make_id(Channel& channel, void* context) {
    auto* id = new Id{};
    static auto* random = new std::mt19937(std::random_device{}());
    id->base.channel = &channel.base;
    id->base.context = context;
    id->base.ps = RDMA_PS_TCP;
    id->base.qp_type = IBV_QPT_RC;
    id->socket = -1;
    id->psn = (*random)() & 0xffffff;
    channel.ids.insert(id);
    return *id;
}

void delete_id(Id& id) {
    Channel& channel = of(id.base.channel);
    for (auto next = channel.events.begin(); next != channel.events.end();) {
        Event* const event = *next;
        const bool is_its = event->owner == &id || event->base.id == &id.base;
        if (is_its) delete event;
        next = is_its ? channel.events.erase(next) : next + 1;
    }
    close_socket(id);
    channel.ids.erase(&id);
    delete &id;
}

// Abstract name of a listener.
socklen_t name_of(const sockaddr_in& address, sockaddr_un& name) {
    const std::string text = "pccl-fake-rdmacm" + fabric_name() + "/" +
                             std::to_string(ntohl(address.sin_addr.s_addr)) + ":" +
                             std::to_string(ntohs(address.sin_port));
    name = {};
    name.sun_family = AF_UNIX;
    const size_t length = std::min(text.size(), sizeof name.sun_path - 1);
    // The end differs.
    std::memcpy(name.sun_path + 1, text.data() + text.size() - length, length);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

void describe(Id& id, Message::Kind kind, const rdma_conn_param& param) {
    ibv_port_attr port{};
    ::ibv_query_port(id.place.context, static_cast<uint8_t>(id.place.port), &port);
    Message& own = id.own;
    own = {};
    own.kind = kind;
    own.qpn = param.qp_num;
    own.psn = id.psn;
    own.lid = port.lid;
    own.mtu = port.active_mtu;
    own.gid = gid_of(id.place);
    own.responder_resources = param.responder_resources;
    own.initiator_depth = param.initiator_depth;
    own.retry_count = param.retry_count;
    own.rnr_retry_count = param.rnr_retry_count;
    own.length = param.private_data_len;
    if (own.length > 0) std::memcpy(own.data, param.private_data, own.length);
}

int send(const Id& id, const Message& message) {
    return ::send(id.socket, &message, sizeof message, MSG_NOSIGNAL) == sizeof message ? 0 : -1;
}

int check_parameters(const Id& id, const rdma_conn_param* param) {
    if (id.base.qp != nullptr || param == nullptr) return refuse("only QPs of the program's own");
    if (param->private_data_len > kLongestData) return refuse("the private data is too long");
    if (param->responder_resources > 16 || param->initiator_depth > 16)
        return refuse("more outstanding reads than the device has");
    return 0;
}

int connect_iwarp(const Id& id, bool is_initiator) {
    return fake_verbs_connect_iwarp(id.own.qpn, id.place.port, id.peer.qpn, id.peer.gid.raw,
                                    is_initiator ? 1 : 0);
}

void take_connection(Id& listener) {
    const int socket = ::accept4(listener.socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    Id& id = make_id(of(listener.base.channel), listener.base.context);
    id.socket = socket;
    id.state = State::kIncoming;
    id.listener = &listener;
    id.place = listener.place;
    id.base.verbs = listener.base.verbs;
    id.base.port_num = listener.base.port_num;
    id.base.route = listener.base.route;
    watch(of(listener.base.channel), socket, &id);
}

void take_request(Id& id, const Message& message) {
    Id* const listener = std::exchange(id.listener, nullptr);
    id.peer = message;
    id.state = State::kAsked;
    push(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0, &message, listener);
}

void take_reply(Id& id, const Message& message) {
    if (message.kind == Message::kReject) {
        id.state = State::kOver;
        close_socket(id);
        return push(id, RDMA_CM_EVENT_REJECTED,
                    is_iwarp(id.place) ? ECONNREFUSED : kConsumerRejects, &message);
    }
    id.peer = message;
    if (!is_iwarp(id.place)) return push(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &message);
    const int error = connect_iwarp(id, true);
    id.state = error == 0 ? State::kConnected : State::kOver;
    push(id, error == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR, -error,
         &message);
}

// The peer has closed its end, or its process has ended.
void take_end(Id& id) {
    close_socket(id);
    const State before = std::exchange(id.state, State::kOver);
    if (before == State::kIncoming) return delete_id(id);
    if (before == State::kConnecting) return push(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    push(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

void take_input(Id& id) {
    if (id.state == State::kListening) return take_connection(id);
    Message message{};
    const ssize_t received = ::recv(id.socket, &message, sizeof message, MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) return;
    if (received != sizeof message) return take_end(id);
    if (id.state == State::kIncoming) return take_request(id, message);
    if (id.state == State::kConnecting) return take_reply(id, message);
    if (id.state == State::kAccepted) {
        id.state = State::kConnected;
        push(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    }
}

// Takes the input of one socket; false where there is none.
bool take_one(Channel& channel, int milliseconds) {
    epoll_event ready{};
    const int count = ::epoll_wait(channel.base.fd, &ready, 1, milliseconds);
    if (count <= 0) return false;
    const std::lock_guard hold(guard());
    auto* const id = static_cast<Id*>(ready.data.ptr);
    if (id != nullptr && channel.ids.contains(id)) take_input(*id);
    return true;
}

Event* take_event(Channel& channel) {
    const std::lock_guard hold(guard());
    uint64_t ignored = 0;
    if (channel.events.size() <= 1)
        static_cast<void>(!::read(channel.wake, &ignored, sizeof ignored));
    if (channel.events.empty()) return nullptr;
    Event* const event = channel.events.front();
    channel.events.pop_front();
    ++event->owner->unacknowledged;
    return event;
}

// Before it accepts, a responder finds what the request allows.
int attributes_of_roce(const Id& id, ibv_qp_attr& attr) {
    const auto port = static_cast<uint8_t>(id.place.port);
    const bool is_asked = id.state == State::kAsked;
    ibv_port_attr own_port{};
    ::ibv_query_port(id.place.context, port, &own_port);
    switch (attr.qp_state) {
        case IBV_QPS_INIT:
            attr.port_num = port;
            attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
            return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        case IBV_QPS_RTR:
            attr.path_mtu =
                static_cast<ibv_mtu>(std::min<uint16_t>(own_port.active_mtu, id.peer.mtu));
            attr.dest_qp_num = id.peer.qpn;
            attr.rq_psn = id.peer.psn;
            attr.max_dest_rd_atomic =
                is_asked ? id.peer.initiator_depth : id.own.responder_resources;
            attr.ah_attr.port_num = port;
            attr.ah_attr.dlid = id.peer.lid;
            attr.ah_attr.is_global = id.peer.lid == 0 ? 1 : 0;
            attr.ah_attr.grh.dgid = id.peer.gid;
            attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(gid_index_of(id.place));
            attr.ah_attr.grh.hop_limit = 64;
            return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        case IBV_QPS_RTS:
            attr.timeout = 14;
            attr.retry_cnt = is_asked ? id.peer.retry_count : id.own.retry_count;
            attr.rnr_retry = is_asked ? id.peer.rnr_retry_count : id.own.rnr_retry_count;
            attr.sq_psn = id.psn;
            attr.max_rd_atomic = is_asked ? id.peer.responder_resources : id.own.initiator_depth;
            return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        default:
            return 0;
    }
}

}  // namespace

}  // namespace pccl::fake_rdmacm

using namespace pccl::fake_rdmacm;  // NOLINT(google-build-using-namespace)

rdma_event_channel* rdma_create_event_channel() {
    auto* channel = new Channel{};
    channel->base.fd = ::epoll_create1(EPOLL_CLOEXEC);
    channel->wake = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    watch(*channel, channel->wake, nullptr);
    return &channel->base;
}

void rdma_destroy_event_channel(rdma_event_channel* channel) {
    Channel& own = of(channel);
    if (!own.ids.empty()) {
        refuse("a channel is destroyed with ids");
        std::abort();
    }
    ::close(own.wake);
    ::close(own.base.fd);
    delete &own;
}

int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
    if (channel == nullptr || space != RDMA_PS_TCP) return refuse("only channels, and RDMA_PS_TCP");
    const std::lock_guard hold(guard());
    *id = &make_id(of(channel), context).base;
    return 0;
}

int rdma_destroy_id(rdma_cm_id* id) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (own.unacknowledged != 0) {
        refuse("an id is destroyed with events that were not acknowledged: librdmacm would wait");
        std::abort();
    }
    if (own.state == State::kListening) {
        // Requests that nobody has taken end with their listener.
        Channel& channel = of(id->channel);
        std::set<Id*> untaken;
        for (Id* const each : channel.ids)
            if (each->listener == &own) untaken.insert(each);
        for (const Event* const event : channel.events)
            if (event->base.listen_id == id) untaken.insert(&of(event->base.id));
        for (Id* const each : untaken) delete_id(*each);
    }
    delete_id(own);
    return 0;
}

int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
    Id& own = of(id);
    if (own.place.context != nullptr) return fail(EINVAL);
    if (address->sa_family != AF_INET) return fail(EADDRNOTAVAIL);
    auto& ip = *reinterpret_cast<sockaddr_in*>(address);
    own.place = place_of(ip.sin_addr);
    if (own.place.context == nullptr) return fail(ENODEV);
    id->verbs = own.place.context;
    id->port_num = static_cast<uint8_t>(own.place.port);
    id->route.addr.src_sin = ip;
    return 0;
}

__be16 rdma_get_src_port(rdma_cm_id* id) { return id->route.addr.src_sin.sin_port; }

int rdma_listen(rdma_cm_id* id, int backlog) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (own.place.context == nullptr) return refuse("it listens without an address");
    own.socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in& here = id->route.addr.src_sin;
    const bool is_any = here.sin_port == 0;
    std::mt19937 random(std::random_device{}());
    sockaddr_un name{};
    do {
        if (is_any) here.sin_port = htons(static_cast<uint16_t>(32768 + random() % 28000));
        const socklen_t length = name_of(here, name);
        if (::bind(own.socket, reinterpret_cast<sockaddr*>(&name), length) == 0) break;
        if (errno != EADDRINUSE || !is_any) return -1;
    } while (true);
    if (::listen(own.socket, backlog) != 0) return -1;
    own.state = State::kListening;
    watch(of(id->channel), own.socket, &own);
    return 0;
}

int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* target, int /*milliseconds*/) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (source != nullptr || own.place.context == nullptr) return refuse("it is not bound before");
    if (target->sa_family != AF_INET) return fail(EINVAL);
    id->route.addr.dst_sin = *reinterpret_cast<sockaddr_in*>(target);
    const uint32_t ip = ntohl(id->route.addr.dst_sin.sin_addr.s_addr);
    const bool is_known = ip >> 24 == 10 || ip == INADDR_LOOPBACK;
    push(own, is_known ? RDMA_CM_EVENT_ADDR_RESOLVED : RDMA_CM_EVENT_ADDR_ERROR,
         is_known ? 0 : -ETIMEDOUT);
    return 0;
}

int rdma_resolve_route(rdma_cm_id* id, int /*milliseconds*/) {
    const std::lock_guard hold(guard());
    if (id->route.addr.dst_sin.sin_family != AF_INET) return refuse("no address is resolved");
    push(of(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

int rdma_connect(rdma_cm_id* id, rdma_conn_param* param) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (check_parameters(own, param) != 0) return -1;
    if (own.state != State::kIdle || own.place.context == nullptr) return fail(EINVAL);
    describe(own, Message::kRequest, *param);
    own.socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    const socklen_t length = name_of(id->route.addr.dst_sin, name);
    if (::connect(own.socket, reinterpret_cast<sockaddr*>(&name), length) != 0 ||
        send(own, own.own) != 0) {
        close_socket(own);
        own.state = State::kOver;
        push(own, RDMA_CM_EVENT_REJECTED, is_iwarp(own.place) ? ECONNREFUSED : kNoListener);
        return 0;
    }
    own.state = State::kConnecting;
    watch(of(id->channel), own.socket, &own);
    return 0;
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* param) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (check_parameters(own, param) != 0) return -1;
    if (own.state != State::kAsked) return fail(EINVAL);
    describe(own, Message::kReply, *param);
    if (is_iwarp(own.place)) {
        const int error = connect_iwarp(own, false);
        if (error != 0) return fail(error);
        push(own, RDMA_CM_EVENT_ESTABLISHED, 0);
    }
    own.state = is_iwarp(own.place) ? State::kConnected : State::kAccepted;
    static_cast<void>(send(own, own.own));  // an end of the peer is an event
    return 0;
}

int rdma_reject(rdma_cm_id* id, const void* /*data*/, uint8_t /*length*/) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (own.state != State::kAsked) return fail(EINVAL);
    own.own = {};
    own.own.kind = Message::kReject;
    static_cast<void>(send(own, own.own));
    own.state = State::kOver;
    return 0;
}

int rdma_establish(rdma_cm_id* id) {
    const std::lock_guard hold(guard());
    Id& own = of(id);
    if (own.state != State::kConnecting || is_iwarp(own.place)) return fail(EINVAL);
    own.own.kind = Message::kReady;
    own.state = State::kConnected;
    return send(own, own.own);
}

int rdma_disconnect(rdma_cm_id* id) {
    const std::lock_guard hold(guard());
    close_socket(of(id));
    return 0;
}

int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attr, int* mask) {
    const std::lock_guard hold(guard());
    const Id& own = of(id);
    if (own.place.context == nullptr) return fail(EINVAL);
    if (!is_iwarp(own.place)) {
        *mask = attributes_of_roce(own, *attr);
        return *mask != 0 ? 0 : fail(EINVAL);
    }
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    *mask = IBV_QP_STATE | (attr->qp_state == IBV_QPS_RTS ? 0 : IBV_QP_ACCESS_FLAGS);
    return 0;
}

int rdma_set_option(rdma_cm_id* /*id*/, int level, int option, void* /*value*/, size_t length) {
    const bool is_tos = level == RDMA_OPTION_ID && option == RDMA_OPTION_ID_TOS;
    return is_tos && length == 1 ? 0 : fail(EINVAL);
}

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
    Channel& own = of(channel);
    const bool may_wait = (::fcntl(own.base.fd, F_GETFL) & O_NONBLOCK) == 0;
    while (true) {
        Event* const taken = take_event(own);
        if (taken != nullptr) {
            *event = &taken->base;
            return 0;
        }
        if (!take_one(own, may_wait ? -1 : 0) && !may_wait) return fail(EAGAIN);
    }
}

int rdma_ack_cm_event(rdma_cm_event* event) {
    const std::lock_guard hold(guard());
    auto* const taken = reinterpret_cast<Event*>(event);
    --taken->owner->unacknowledged;
    delete taken;
    return 0;
}

const char* rdma_event_str(rdma_cm_event_type event) {
    switch (event) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            return "RDMA_CM_EVENT_ADDR_RESOLVED";
        case RDMA_CM_EVENT_ADDR_ERROR:
            return "RDMA_CM_EVENT_ADDR_ERROR";
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            return "RDMA_CM_EVENT_ROUTE_RESOLVED";
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            return "RDMA_CM_EVENT_CONNECT_REQUEST";
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            return "RDMA_CM_EVENT_CONNECT_RESPONSE";
        case RDMA_CM_EVENT_CONNECT_ERROR:
            return "RDMA_CM_EVENT_CONNECT_ERROR";
        case RDMA_CM_EVENT_UNREACHABLE:
            return "RDMA_CM_EVENT_UNREACHABLE";
        case RDMA_CM_EVENT_REJECTED:
            return "RDMA_CM_EVENT_REJECTED";
        case RDMA_CM_EVENT_ESTABLISHED:
            return "RDMA_CM_EVENT_ESTABLISHED";
        case RDMA_CM_EVENT_DISCONNECTED:
            return "RDMA_CM_EVENT_DISCONNECTED";
        default:
            return "another event";
    }
}
