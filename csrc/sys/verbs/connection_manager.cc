// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/verbs/connection_manager.h"

#include <endian.h>
#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/verbs/libibverbs.h"
#include "csrc/sys/verbs/librdmacm.h"

namespace pccl::sys::verbs {
namespace {

/// Returns the library that has made the objects of this file.
const Librdmacm& rdmacm() { return **librdmacm(); }

Status result_of(int returned, std::string_view what) {
    return returned == 0 ? Status::ok() : Status::from_errno(errno, what);
}

CmEvent::Kind kind_of(rdma_cm_event_type type) {
    switch (type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            return CmEvent::Kind::kAddressResolved;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            return CmEvent::Kind::kRouteResolved;
        case RDMA_CM_EVENT_CONNECT_REQUEST:
            return CmEvent::Kind::kRequest;
        case RDMA_CM_EVENT_CONNECT_RESPONSE:
            return CmEvent::Kind::kResponse;
        case RDMA_CM_EVENT_ESTABLISHED:
            return CmEvent::Kind::kEstablished;
        case RDMA_CM_EVENT_DISCONNECTED:
        case RDMA_CM_EVENT_TIMEWAIT_EXIT:
            return CmEvent::Kind::kEnded;
        default:
            return CmEvent::Kind::kFailed;
    }
}

rdma_conn_param raw_parameters(const CmParameters& parameters) {
    constexpr std::uint8_t kRetryForEver = 7;
    rdma_conn_param raw{};
    raw.private_data = parameters.data.data();
    raw.private_data_len = static_cast<std::uint8_t>(parameters.data.size());
    raw.responder_resources = parameters.reads_here;
    raw.initiator_depth = parameters.reads_there;
    raw.retry_count = parameters.retries;
    raw.rnr_retry_count = kRetryForEver;
    raw.qp_num = parameters.pair;
    return raw;
}

}  // namespace

Result<CmLibrary> find_connection_manager() {
    PCCL_ASSIGN_OR_RETURN(const Librdmacm* const library, librdmacm());
    return CmLibrary{.path = library->path, .version = library->version};
}

Result<std::shared_ptr<CmChannel>> CmChannel::create() {
    PCCL_ASSIGN_OR_RETURN(const Librdmacm* const library, librdmacm());
    rdma_event_channel* const channel = library->create_event_channel();
    if (channel == nullptr)
        return Status::from_errno(
            errno, "rdma_cm has no event channel (may this user open /dev/infiniband/rdma_cm?)");
    std::shared_ptr<CmChannel> made(new CmChannel(channel));
    const int flags = ::fcntl(channel->fd, F_GETFL);
    if (flags < 0 || ::fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK) != 0)
        return Status::from_errno(errno, "cannot change the descriptor of events of rdma_cm");
    return made;
}

CmChannel::~CmChannel() {
    if (!made_in_.is_child()) rdmacm().destroy_event_channel(channel_);
}

int CmChannel::fd() const { return channel_->fd; }

Result<std::optional<CmEvent>> CmChannel::next(const std::shared_ptr<CmChannel>& self) {
    rdma_cm_event* taken = nullptr;
    if (rdmacm().get_cm_event(self->channel_, &taken) != 0) {
        if (errno == EAGAIN || errno == EINTR) return std::optional<CmEvent>();
        return Status::from_errno(errno, "cannot take events of rdma_cm");
    }
    CmEvent event{.kind = kind_of(taken->event),
                  .of = taken->listen_id != nullptr ? taken->listen_id : taken->id,
                  .status = taken->status,
                  .name = rdmacm().event_str(taken->event),
                  .id = {},
                  .data = {}};
    const rdma_conn_param& of_peer = taken->param.conn;
    if (event.kind == CmEvent::Kind::kRequest) event.id.emplace(CmId(self, taken->id));
    if (of_peer.private_data != nullptr)
        event.data.assign(static_cast<const char*>(of_peer.private_data), of_peer.private_data_len);
    rdmacm().ack_cm_event(taken);
    return std::optional(std::move(event));
}

Result<CmId> CmId::create(std::shared_ptr<CmChannel> channel) {
    rdma_cm_id* id = nullptr;
    PCCL_TRY(
        result_of(rdmacm().create_id(channel->channel_, &id, nullptr, RDMA_PS_TCP), "rdma_cm"));
    return CmId(std::move(channel), id);
}

CmId::CmId(CmId&& other) noexcept
    : made_in_(other.made_in_),
      channel_(std::move(other.channel_)),
      id_(std::exchange(other.id_, nullptr)) {}

CmId& CmId::operator=(CmId&& other) noexcept {
    std::swap(made_in_, other.made_in_);
    std::swap(channel_, other.channel_);
    std::swap(id_, other.id_);
    return *this;
}

CmId::~CmId() {
    if (id_ != nullptr && !made_in_.is_child()) rdmacm().destroy_id(id_);
}

Status CmId::bind(const sockaddr& here) {
    // The library takes it without const, and does not change it.
    return result_of(rdmacm().bind_addr(id_, const_cast<sockaddr*>(&here)),
                     "rdma_cm cannot use an address of this host");
}

std::uint16_t CmId::local_port() const { return be16toh(rdmacm().get_src_port(id_)); }

std::string CmId::device() const { return id_->verbs != nullptr ? id_->verbs->device->name : ""; }

int CmId::port() const { return id_->port_num; }

Status CmId::listen(int backlog) {
    return result_of(rdmacm().listen(id_, backlog), "rdma_cm cannot listen");
}

Status CmId::resolve_address(const sockaddr& peer, int milliseconds) {
    return result_of(
        rdmacm().resolve_addr(id_, nullptr, const_cast<sockaddr*>(&peer), milliseconds),
        "rdma_cm finds no way to the peer");
}

Status CmId::resolve_route(int milliseconds) {
    return result_of(rdmacm().resolve_route(id_, milliseconds), "rdma_cm finds no route");
}

Status CmId::connect(const CmParameters& parameters) {
    rdma_conn_param raw = raw_parameters(parameters);
    return result_of(rdmacm().connect(id_, &raw), "rdma_cm cannot connect");
}

Status CmId::accept(const CmParameters& parameters) {
    rdma_conn_param raw = raw_parameters(parameters);
    return result_of(rdmacm().accept(id_, &raw), "rdma_cm cannot accept a connection");
}

Status CmId::reject() {
    return result_of(rdmacm().reject(id_, nullptr, 0), "rdma_cm cannot reject a connection");
}

Status CmId::establish() {
    return result_of(rdmacm().establish(id_), "rdma_cm cannot establish a connection");
}

Result<CmId::Attributes> CmId::attributes(ibv_qp_state state) const {
    Attributes found{.values = zeroed<ibv_qp_attr>(), .mask = 0};
    found.values.qp_state = state;
    PCCL_TRY(result_of(rdmacm().init_qp_attr(id_, &found.values, &found.mask),
                       "rdma_cm has no attributes of the queue pair"));
    return found;
}

}  // namespace pccl::sys::verbs
