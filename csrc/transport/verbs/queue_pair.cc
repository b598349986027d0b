// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/queue_pair.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/crypto/sha256.h"

namespace pccl::transport::verbs {
namespace {

constexpr std::uint32_t kSequenceMask = (1U << 24) - 1;
// Time until a sender tries again that found no receive request: 0.01 ms (IBTA, RNR NAK timer).
constexpr std::uint8_t kReceiverNotReady = 1;
constexpr std::uint8_t kRetryForEver = 7;
constexpr std::uint8_t kHopLimit = 255;
constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
// Kernels set bits of their own above these in the masks of rdma_cm.
constexpr int kKnownAttributes = (IBV_QP_DEST_QPN << 1) - 1;

ibv_mtu mtu_of(std::size_t bytes) {
    for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512})
        if (bytes >= (std::size_t{128} << mtu)) return mtu;
    return IBV_MTU_256;
}

/// Address of the peer for packets of a queue pair.
ibv_ah_attr route_to(const Port& port, const QueuePairAddress& peer) {
    const Config::Rdma& config = process_config().rdma;
    ibv_ah_attr route{};
    route.dlid = peer.lid;
    route.sl = static_cast<std::uint8_t>(config.service_level);
    route.port_num = static_cast<std::uint8_t>(port.info.number);
    // Ethernet always needs the global header, InfiniBand between subnets (the upper half of a
    // GID).
    const bool is_other_subnet =
        !std::equal(peer.gid.begin(), peer.gid.begin() + 8, port.gid.gid.begin());
    route.is_global = port.info.is_ethernet || is_other_subnet ? 1 : 0;
    if (route.is_global == 0) return route;
    std::memcpy(route.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    route.grh.sgid_index = static_cast<std::uint8_t>(port.gid.index);
    route.grh.hop_limit = kHopLimit;
    route.grh.traffic_class = static_cast<std::uint8_t>(config.traffic_class);
    return route;
}

/// Returns what to look at after a failed step, for the errors that users meet.
std::string advice(const char* step, int error) {
    if (error == ETIMEDOUT)
        return concat("; the peer's GID resolves to no hardware address (", step,
                      "): check that both ports are in one network, and PCCL_IB_GID_INDEX");
    if (error == EINVAL)
        return "; check PCCL_IB_GID_INDEX, and the MTU and link layer of both ports";
    if (error == ENETUNREACH || error == EHOSTUNREACH)
        return "; no route leads to the peer's GID: check PCCL_IB_GID_INDEX and the routes";
    return {};
}

}  // namespace

Result<std::unique_ptr<QueuePair>> QueuePair::create(std::shared_ptr<Port> port,
                                                     const QueueDepths& depths) {
    std::unique_ptr<QueuePair> pair(new QueuePair(renewed(std::move(port)), depths));
    PCCL_TRY(pair->create_pair());
    PCCL_TRY(pair->initialise());
    return pair;
}

Status QueuePair::create_pair() {
    Adapter& adapter = *port_->adapter;
    const sys::verbs::Libibverbs& library = adapter.device().verbs();
    const int requests = depths_.sends + depths_.receives;
    PCCL_ASSIGN_OR_RETURN(CompletionQueue* const queue, adapter.queue_for(requests));
    int error = 0;
    // Devices differ in the bytes that fit into a request, and refuse more.
    for (std::uint32_t wanted = kInlineBytes; wanted >= kLeastInline && !pair_; wanted /= 2) {
        auto attributes = sys::verbs::zeroed<ibv_qp_init_attr>();
        attributes.send_cq = queue->handle();
        attributes.recv_cq = queue->handle();
        attributes.cap.max_send_wr = static_cast<std::uint32_t>(depths_.sends);
        attributes.cap.max_recv_wr = static_cast<std::uint32_t>(depths_.receives);
        attributes.cap.max_send_sge = static_cast<std::uint32_t>(depths_.pieces);
        attributes.cap.max_recv_sge = 1;
        attributes.cap.max_inline_data = wanted;
        attributes.qp_type = IBV_QPT_RC;
        pair_ = sys::verbs::Handle<ibv_qp>(library.create_qp(adapter.domain(), &attributes),
                                           library.destroy_qp);
        error = errno;
        inline_bytes_ = std::min(wanted, attributes.cap.max_inline_data);
    }
    if (!pair_) {
        queue->release(requests);
        return Status::from_errno(
            error, concat("cannot create a queue pair on ", port_->name(), " (it has room for ",
                          adapter.device().info().max_queue_pairs, ")"));
    }
    queue_ = queue;
    queue_->add(pair_->qp_num, inbox_);
    return Status::ok();
}

Status QueuePair::initialise() {
    address_ = {.number = pair_->qp_num,
                .lid = port_->info.lid,
                .gid = port_->gid.gid,
                .mtu = static_cast<std::uint8_t>(mtu_of(port_->info.mtu_bytes)),
                .reads = static_cast<std::uint8_t>(
                    std::clamp(port_->adapter->device().info().max_reads, 1, 16)),
                .is_ethernet = port_->info.is_ethernet};
    PCCL_TRY(sys::fill_random(
        {reinterpret_cast<std::uint8_t*>(&address_.sequence), sizeof address_.sequence}));
    address_.sequence &= kSequenceMask;
    auto attributes = sys::verbs::zeroed<ibv_qp_attr>();
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = static_cast<std::uint8_t>(port_->info.number);
    attributes.qp_access_flags = kAccess;
    // iWARP has no partitions.
    const int of_infiniband = is_iwarp() ? 0 : IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    return modify(attributes, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | of_infiniband, "INIT");
}

QueuePair::~QueuePair() {
    if (queue_ == nullptr) return;
    queue_->remove(pair_->qp_num);
    pair_ = {};  // afterwards the device adds no completion for it
    queue_->release(depths_.sends + depths_.receives);
}

Status QueuePair::connect(const QueuePairAddress& peer) {
    if (peer.is_ethernet != port_->info.is_ethernet)
        return Status::unavailable(concat(port_->name(), " has the link layer ",
                                          port_->info.is_ethernet ? "Ethernet" : "InfiniBand",
                                          ", the peer's port the other one; choose ports of one "
                                          "network by PCCL_IB_HCA"));
    const Config::Rdma& config = process_config().rdma;
    auto attributes = sys::verbs::zeroed<ibv_qp_attr>();
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = static_cast<ibv_mtu>(std::min(peer.mtu, address_.mtu));
    attributes.dest_qp_num = peer.number;
    attributes.rq_psn = peer.sequence;
    attributes.max_dest_rd_atomic = address_.reads;
    attributes.min_rnr_timer = kReceiverNotReady;
    attributes.ah_attr = route_to(*port_, peer);
    PCCL_TRY(modify(attributes,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                    "RTR"));
    attributes = sys::verbs::zeroed<ibv_qp_attr>();
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = static_cast<std::uint8_t>(config.ack_timeout);
    attributes.retry_cnt = static_cast<std::uint8_t>(config.retry_count);
    attributes.rnr_retry = kRetryForEver;
    attributes.sq_psn = address_.sequence;
    attributes.max_rd_atomic = reads_at(peer);
    return modify(attributes,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                  "RTS");
}

std::uint8_t QueuePair::reads_at(const QueuePairAddress& peer) const {
    return static_cast<std::uint8_t>(
        std::clamp(port_->adapter->device().info().max_read_posts, 1, int{peer.reads}));
}

Status QueuePair::enter(ibv_qp_attr attributes, int mask, const QueuePairAddress& peer) {
    const Config::Rdma& config = process_config().rdma;
    attributes.qp_access_flags = kAccess;
    attributes.path_mtu = std::min(attributes.path_mtu, static_cast<ibv_mtu>(address_.mtu));
    attributes.max_dest_rd_atomic = address_.reads;
    attributes.min_rnr_timer = kReceiverNotReady;
    attributes.timeout = static_cast<std::uint8_t>(config.ack_timeout);
    attributes.retry_cnt = static_cast<std::uint8_t>(config.retry_count);
    attributes.rnr_retry = kRetryForEver;
    attributes.max_rd_atomic = reads_at(peer);
    if (config.traffic_class != 0)
        attributes.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(config.traffic_class);
    if (config.service_level != 0)
        attributes.ah_attr.sl = static_cast<std::uint8_t>(config.service_level);
    const char* const step = attributes.qp_state == IBV_QPS_INIT  ? "INIT"
                             : attributes.qp_state == IBV_QPS_RTR ? "RTR"
                                                                  : "RTS";
    return modify(attributes, mask & kKnownAttributes, step);
}

void QueuePair::fail() {
    auto attributes = sys::verbs::zeroed<ibv_qp_attr>();
    attributes.qp_state = IBV_QPS_ERR;
    static_cast<void>(modify(attributes, IBV_QP_STATE, "ERROR"));
}

Status QueuePair::modify(ibv_qp_attr& attributes, int mask, const char* step) const {
    const int error = port_->adapter->device().verbs().modify_qp(pair_.get(), &attributes, mask);
    if (error == 0) return Status::ok();
    const Status failure = Status::from_errno(
        error, concat("cannot move a queue pair of ", port_->name(), " (GID index ",
                      port_->gid.index, ", ", port_->gid.address(), ") to the state ", step));
    return failure.with_message(concat(failure.message(), advice(step, error)));
}

Status QueuePair::post(ibv_send_wr& first) {
    ibv_send_wr* refused = nullptr;
    const int error = ::ibv_post_send(pair_.get(), &first, &refused);
    if (error == 0) return Status::ok();
    return Status::from_errno(error, concat("cannot post a request on ", port_->name()));
}

Status QueuePair::post_receives(int count) {
    std::array<ibv_recv_wr, 64> requests{};
    while (count > 0) {
        const int some = std::min<int>(count, requests.size());
        for (int i = 0; i < some; ++i) {
            ibv_recv_wr& request = requests[static_cast<std::size_t>(i)];
            request = {};
            request.wr_id = kReceive;
            request.next = i + 1 < some ? &request + 1 : nullptr;
        }
        ibv_recv_wr* refused = nullptr;
        const int error = ::ibv_post_recv(pair_.get(), requests.data(), &refused);
        if (error != 0)
            return Status::from_errno(error, concat("cannot post receives on ", port_->name()));
        count -= some;
    }
    return Status::ok();
}

Result<std::optional<WorkCompletion>> QueuePair::next() {
    WorkCompletion completion;
    if (inbox_.is_empty()) PCCL_TRY(queue_->poll());
    if (inbox_.pop(completion)) return std::optional(completion);
    return std::optional<WorkCompletion>();
}

std::string explain(const WorkCompletion& completion) {
    const auto in_words = [](ibv_wc_status status) -> const char* {
        switch (status) {
            case IBV_WC_RETRY_EXC_ERR:
                return "no acknowledgement came: the peer's process or port, or the path to it, is "
                       "gone";
            case IBV_WC_RNR_RETRY_EXC_ERR:
                return "the peer posted no receive request in time";
            case IBV_WC_REM_ACCESS_ERR:
                return "the peer's memory is not registered for this access";
            case IBV_WC_REM_INV_REQ_ERR:
                return "the peer refused the request as invalid";
            case IBV_WC_REM_OP_ERR:
                return "the peer's device failed";
            case IBV_WC_LOC_PROT_ERR:
                return "local memory is not registered";
            case IBV_WC_LOC_LEN_ERR:
                return "a message did not fit";
            case IBV_WC_LOC_QP_OP_ERR:
                return "the device refused the request";
            case IBV_WC_WR_FLUSH_ERR:
                return "an earlier request failed";
            case IBV_WC_FATAL_ERR:
                return "the device failed";
            default:
                return "the device reports an error";
        }
    };
    return concat(in_words(completion.status), " (completion status ",
                  static_cast<int>(completion.status), ", vendor code ", completion.vendor_error,
                  ")");
}

}  // namespace pccl::transport::verbs
