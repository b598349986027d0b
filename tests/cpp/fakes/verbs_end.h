// SPDX-License-Identifier: Apache-2.0

// One side of a connection on the fake libibverbs, with a buffer that is registered.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/verbs/control.h"

namespace pccl::fakes {

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// The devices that all tests have: the fake reads the variable at its first use.
inline const int kSetVerbsDevices =
    ::setenv("FAKE_VERBS_DEVICES", "mlx5_0:2,mlx5_1:mtu=1024:speed=hdr,ib0:ib,siw0:down", 1);

/// What one side has to know of the other one.
struct VerbsAddress {
    uint32_t qpn;
    uint32_t psn;
    ibv_gid gid;
    uint16_t lid;
    uint64_t buffer;
    uint32_t rkey;
};

struct VerbsOptions {
    std::string device = "mlx5_0";
    uint8_t port = 1;
    uint8_t gid_index = 3;
    int cqe = 64;
    uint32_t max_send_wr = 16;
    uint32_t max_recv_wr = 16;
    uint32_t max_sge = 2;
    uint32_t max_inline = 64;
    int access = kAllAccess;     // of the region
    int qp_access = kAllAccess;  // of the QP
    uint8_t reads = 16;
    uint8_t responder_reads = 16;
    uint8_t rnr_retry = 7;
    ibv_mtu mtu = IBV_MTU_1024;
    bool channel = false;
    bool shared_receives = false;
};

class VerbsEnd {
   public:
    explicit VerbsEnd(const VerbsOptions& options = {}) : options_(options), buffer_(64 * 1024) {
        open();
        pd_ = ibv_alloc_pd(context_);
        if (options.channel) channel_ = ibv_create_comp_channel(context_);
        cq_ = ibv_create_cq(context_, options.cqe, this, channel_, 0);
        mr_ = ibv_reg_mr(pd_, buffer_.data(), buffer_.size(), options.access);
        if (options.shared_receives) {
            ibv_srq_init_attr shared{nullptr, {options.max_recv_wr, options.max_sge, 0}};
            srq_ = ibv_create_srq(pd_, &shared);
        }
        ibv_qp_init_attr made{};
        made.send_cq = made.recv_cq = cq_;
        made.srq = srq_;
        made.cap = {options.max_send_wr, options.max_recv_wr, options.max_sge, options.max_sge,
                    options.max_inline};
        made.qp_type = IBV_QPT_RC;
        qp_ = ibv_create_qp(pd_, &made);
    }
    ~VerbsEnd() {
        if (qp_ != nullptr) {
            EXPECT_EQ(ibv_destroy_qp(qp_), 0);
        }
        if (srq_ != nullptr) {
            EXPECT_EQ(ibv_destroy_srq(srq_), 0);
        }
        if (mr_ != nullptr) {
            EXPECT_EQ(ibv_dereg_mr(mr_), 0);
        }
        EXPECT_EQ(ibv_destroy_cq(cq_), 0);
        if (channel_ != nullptr) {
            EXPECT_EQ(ibv_destroy_comp_channel(channel_), 0);
        }
        EXPECT_EQ(ibv_dealloc_pd(pd_), 0);
        EXPECT_EQ(ibv_close_device(context_), 0);
    }
    VerbsEnd(const VerbsEnd&) = delete;
    VerbsEnd& operator=(const VerbsEnd&) = delete;

    [[nodiscard]] VerbsAddress address() const {
        VerbsAddress own{};
        ibv_port_attr port{};
        EXPECT_EQ(ibv_query_port(context_, options_.port, &port), 0);
        EXPECT_EQ(ibv_query_gid(context_, options_.port, options_.gid_index, &own.gid), 0);
        own.qpn = qp_->qp_num;
        own.psn = kPsn;
        own.lid = port.lid;
        own.buffer = reinterpret_cast<uint64_t>(buffer_.data());
        own.rkey = mr_->rkey;
        return own;
    }

    [[nodiscard]] int to_init() {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = options_.port;
        attr.qp_access_flags = static_cast<unsigned>(options_.qp_access);
        return ibv_modify_qp(qp_, &attr, kInit);
    }
    [[nodiscard]] ibv_qp_attr receiving_from(const VerbsAddress& peer) const {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RTR;
        attr.path_mtu = options_.mtu;
        attr.dest_qp_num = peer.qpn;
        attr.rq_psn = peer.psn;
        attr.max_dest_rd_atomic = options_.responder_reads;
        attr.min_rnr_timer = 1;
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = peer.gid;
        attr.ah_attr.grh.sgid_index = options_.gid_index;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.dlid = peer.lid;
        attr.ah_attr.port_num = options_.port;
        return attr;
    }
    [[nodiscard]] int to_rtr(const VerbsAddress& peer) {
        ibv_qp_attr attr = receiving_from(peer);
        return ibv_modify_qp(qp_, &attr, kRtr);
    }
    [[nodiscard]] int to_rts() {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RTS;
        attr.sq_psn = kPsn;
        attr.timeout = 14;
        attr.retry_cnt = 7;
        attr.rnr_retry = options_.rnr_retry;
        attr.max_rd_atomic = options_.reads;
        return ibv_modify_qp(qp_, &attr, kRts);
    }
    void connect(const VerbsAddress& peer) {
        ASSERT_EQ(to_init(), 0);
        ASSERT_EQ(to_rtr(peer), 0) << std::strerror(errno);
        ASSERT_EQ(to_rts(), 0);
    }

    /// A request over `length` bytes of the buffer from `offset`, to the same ones of a peer.
    [[nodiscard]] ibv_send_wr request(ibv_wr_opcode opcode, const VerbsAddress& peer,
                                      uint32_t length, uint64_t offset = 0) {
        sge_ = {reinterpret_cast<uint64_t>(buffer_.data()) + offset, length, mr_->lkey};
        ibv_send_wr made{};
        made.wr_id = ++last_id_;
        made.sg_list = &sge_;
        made.num_sge = 1;
        made.opcode = opcode;
        made.send_flags = IBV_SEND_SIGNALED;
        made.imm_data = 0x12345678;
        if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
            made.wr.atomic.remote_addr = peer.buffer + offset;
            made.wr.atomic.rkey = peer.rkey;
        } else {
            made.wr.rdma.remote_addr = peer.buffer + offset;
            made.wr.rdma.rkey = peer.rkey;
        }
        return made;
    }
    int post(ibv_send_wr request) {
        ibv_send_wr* bad = nullptr;
        return ibv_post_send(qp_, &request, &bad);
    }
    int receive(uint32_t length, uint64_t offset = 0, uint64_t id = 1000) {
        ibv_sge into{reinterpret_cast<uint64_t>(buffer_.data()) + offset, length, mr_->lkey};
        ibv_recv_wr made{id, nullptr, &into, length > 0 ? 1 : 0};
        ibv_recv_wr* bad = nullptr;
        return srq_ != nullptr ? ibv_post_srq_recv(srq_, &made, &bad)
                               : ibv_post_recv(qp_, &made, &bad);
    }

    /// What there is now.
    [[nodiscard]] std::optional<ibv_wc> poll() {
        ibv_wc completion{};
        const int found = ibv_poll_cq(cq_, 1, &completion);
        return found == 1 ? std::optional(completion) : std::nullopt;
    }
    /// The next completion; one of GENERAL_ERR if there is none for long.
    [[nodiscard]] ibv_wc wait() {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (std::chrono::steady_clock::now() < limit) {
            const std::optional<ibv_wc> found = poll();
            if (found) return *found;
            std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        ADD_FAILURE() << "no completion for 10 s";
        ibv_wc none{};
        none.status = IBV_WC_GENERAL_ERR;
        return none;
    }
    [[nodiscard]] ibv_wc_status status() { return wait().status; }

    /// The next asynchronous event, acknowledged.
    [[nodiscard]] ibv_async_event event() {
        ibv_async_event found{};
        EXPECT_EQ(ibv_get_async_event(context_, &found), 0);
        ibv_ack_async_event(&found);
        return found;
    }
    [[nodiscard]] ibv_qp_state state() {
        ibv_qp_attr attr{};
        ibv_qp_init_attr made{};
        EXPECT_EQ(ibv_query_qp(qp_, &attr, IBV_QP_STATE, &made), 0);
        return attr.qp_state;
    }

    [[nodiscard]] ibv_context* context() const { return context_; }
    [[nodiscard]] ibv_pd* pd() const { return pd_; }
    [[nodiscard]] ibv_cq* cq() const { return cq_; }
    [[nodiscard]] ibv_qp* qp() const { return qp_; }
    [[nodiscard]] ibv_srq* srq() const { return srq_; }
    [[nodiscard]] ibv_comp_channel* channel() const { return channel_; }
    [[nodiscard]] ibv_mr*& mr() { return mr_; }
    [[nodiscard]] char* buffer() { return buffer_.data(); }
    [[nodiscard]] const VerbsOptions& options() const { return options_; }

    static constexpr uint32_t kPsn = 0xfffffe;  // the 24 bits wrap soon
    static constexpr int kInit =
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    static constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    static constexpr int kRts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

   private:
    void open() {
        int devices = 0;
        ibv_device** list = ibv_get_device_list(&devices);
        for (int i = 0; i < devices; ++i) {
            if (options_.device == ibv_get_device_name(list[i]))
                context_ = ibv_open_device(list[i]);
        }
        ibv_free_device_list(list);
        if (context_ == nullptr) ADD_FAILURE() << "there is no device " << options_.device;
    }

    VerbsOptions options_;
    std::vector<char> buffer_;
    ibv_context* context_ = nullptr;
    ibv_pd* pd_ = nullptr;
    ibv_comp_channel* channel_ = nullptr;
    ibv_cq* cq_ = nullptr;
    ibv_mr* mr_ = nullptr;
    ibv_srq* srq_ = nullptr;
    ibv_qp* qp_ = nullptr;
    ibv_sge sge_{};
    uint64_t last_id_ = 0;
};

/// Two connected sides in one process.
struct VerbsPair {
    explicit VerbsPair(const VerbsOptions& of_first = {}, const VerbsOptions& of_second = {})
        : first(of_first), second(of_second) {
        to_first = first.address();
        to_second = second.address();
        first.connect(to_second);
        second.connect(to_first);
    }
    VerbsEnd first;
    VerbsEnd second;
    VerbsAddress to_first{};
    VerbsAddress to_second{};
};

}  // namespace pccl::fakes
