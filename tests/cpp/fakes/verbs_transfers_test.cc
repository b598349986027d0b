// SPDX-License-Identifier: Apache-2.0

// What each opcode of the fake libibverbs does, and what its completions are.

#include <poll.h>

#include "tests/cpp/fakes/verbs_end.h"

namespace pccl::fakes {
namespace {

TEST(VerbsFakeTransfers, WriteMovesBytesAndCompletesAtItsRequester) {
    VerbsPair pair;
    std::strcpy(pair.first.buffer(), "hello");
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 6)), 0);
    const ibv_wc done = pair.first.wait();
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    EXPECT_EQ(done.opcode, IBV_WC_RDMA_WRITE);
    EXPECT_EQ(done.wr_id, 1U);
    EXPECT_EQ(done.qp_num, pair.to_first.qpn);
    EXPECT_STREQ(pair.second.buffer(), "hello");
    EXPECT_FALSE(pair.second.poll());
}

TEST(VerbsFakeTransfers, WriteWithImmediateUsesAReceive) {
    VerbsPair pair;
    ASSERT_EQ(pair.second.receive(0), 0);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE_WITH_IMM, pair.to_second, 5000)),
              0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    const ibv_wc received = pair.second.wait();
    EXPECT_EQ(received.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(received.wr_id, 1000U);
    EXPECT_EQ(received.byte_len, 5000U);
    EXPECT_EQ(received.imm_data, 0x12345678U);
    EXPECT_EQ(received.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
}

TEST(VerbsFakeTransfers, SendScattersIntoTheReceive) {
    VerbsPair pair;
    std::strcpy(pair.first.buffer(), "abcdefgh");
    const auto base = reinterpret_cast<uint64_t>(pair.second.buffer());
    ibv_sge into[2] = {{base + 100, 3, pair.second.mr()->lkey},
                       {base + 200, 30, pair.second.mr()->lkey}};
    ibv_recv_wr receive{7, nullptr, into, 2};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(pair.second.qp(), &receive, &bad), 0);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_SEND, pair.to_second, 9)), 0);
    const ibv_wc received = pair.second.wait();
    EXPECT_EQ(received.opcode, IBV_WC_RECV);
    EXPECT_EQ(received.byte_len, 9U);
    EXPECT_EQ(received.src_qp, pair.to_first.qpn);
    EXPECT_EQ(std::string(pair.second.buffer() + 100, 3), "abc");
    EXPECT_STREQ(pair.second.buffer() + 200, "defgh");
}

TEST(VerbsFakeTransfers, ReadBringsBytes) {
    VerbsPair pair;
    std::strcpy(pair.second.buffer() + 64, "there");
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_READ, pair.to_second, 6, 64)), 0);
    EXPECT_EQ(pair.first.wait().opcode, IBV_WC_RDMA_READ);
    EXPECT_STREQ(pair.first.buffer() + 64, "there");
}

TEST(VerbsFakeTransfers, AtomicsReturnTheValueBefore) {
    VerbsPair pair;
    auto* remote = reinterpret_cast<uint64_t*>(pair.second.buffer());
    auto* local = reinterpret_cast<uint64_t*>(pair.first.buffer());
    *remote = 40;
    ibv_send_wr add = pair.first.request(IBV_WR_ATOMIC_FETCH_AND_ADD, pair.to_second, 8);
    add.wr.atomic.compare_add = 2;
    ASSERT_EQ(pair.first.post(add), 0);
    EXPECT_EQ(pair.first.wait().opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(*local, 40U);
    EXPECT_EQ(*remote, 42U);
    ibv_send_wr swap = pair.first.request(IBV_WR_ATOMIC_CMP_AND_SWP, pair.to_second, 8);
    swap.wr.atomic.compare_add = 41;
    swap.wr.atomic.swap = 7;
    ASSERT_EQ(pair.first.post(swap), 0);
    EXPECT_EQ(pair.first.wait().opcode, IBV_WC_COMP_SWAP);
    EXPECT_EQ(*remote, 42U) << "the comparison failed";
    swap.wr.atomic.compare_add = 42;
    ASSERT_EQ(pair.first.post(swap), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(*remote, 7U);
}

TEST(VerbsFakeTransfers, InlineNeedsNoKeyAndIsTakenAtOnce) {
    VerbsPair pair;
    const int rule = [] {
        fake_verbs_rule stall{};
        stall.effect = FAKE_VERBS_STALL;
        return fake_verbs_add_rule(&stall);
    }();
    char bytes[] = "inline";
    ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 0);
    ibv_sge from{reinterpret_cast<uint64_t>(bytes), sizeof bytes, 0};
    request.sg_list = &from;
    request.send_flags |= IBV_SEND_INLINE;
    ASSERT_EQ(pair.first.post(request), 0);
    std::strcpy(bytes, "later");
    EXPECT_FALSE(pair.first.poll());
    ASSERT_EQ(fake_verbs_remove_rule(rule), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_STREQ(pair.second.buffer(), "inline");
}

TEST(VerbsFakeTransfers, ExtendedRequestsArePostedByOneDoorbell) {
    VerbsPair pair;
    ASSERT_EQ(fake_verbs_reset_counters(), 0);
    ibv_qp_ex* qp = ibv_qp_to_qp_ex(pair.first.qp());
    const auto local = reinterpret_cast<uint64_t>(pair.first.buffer());
    std::strcpy(pair.first.buffer() + 8, "second");
    ASSERT_EQ(pair.second.receive(0), 0);
    ibv_wr_start(qp);
    qp->wr_id = 1;
    qp->wr_flags = 0;
    ibv_wr_rdma_write(qp, pair.to_second.rkey, pair.to_second.buffer);
    char bytes[] = "first";
    ibv_wr_set_inline_data(qp, bytes, sizeof bytes);
    qp->wr_id = 2;
    qp->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write_imm(qp, pair.to_second.rkey, pair.to_second.buffer + 8, 99);
    ibv_wr_set_sge(qp, pair.first.mr()->lkey, local + 8, 7);
    ASSERT_EQ(ibv_wr_complete(qp), 0);
    EXPECT_EQ(pair.first.wait().wr_id, 2U);
    EXPECT_EQ(pair.second.wait().imm_data, 99U);
    EXPECT_STREQ(pair.second.buffer(), "first");
    EXPECT_STREQ(pair.second.buffer() + 8, "second");
    fake_verbs_counters counters{};
    ASSERT_EQ(fake_verbs_read_counters(0, &counters), 0);
    EXPECT_EQ(counters.doorbells, 1U);
    EXPECT_EQ(counters.requests[IBV_WR_RDMA_WRITE], 1U);
    EXPECT_EQ(counters.requests[IBV_WR_RDMA_WRITE_WITH_IMM], 1U);
    EXPECT_EQ(counters.inline_requests, 1U);
    EXPECT_EQ(counters.signalled, 1U);
    EXPECT_EQ(counters.receive_completions, 1U);
    EXPECT_EQ(counters.polled, 2U);
    EXPECT_EQ(counters.bytes, 13U);
}

TEST(VerbsFakeTransfers, AQpMayBeConnectedToItself) {
    VerbsEnd own;
    own.connect(own.address());
    std::strcpy(own.buffer(), "loop");
    ibv_send_wr request = own.request(IBV_WR_RDMA_WRITE, own.address(), 5);
    request.wr.rdma.remote_addr += 512;
    ASSERT_EQ(own.post(request), 0);
    EXPECT_EQ(own.status(), IBV_WC_SUCCESS);
    EXPECT_STREQ(own.buffer() + 512, "loop");
}

TEST(VerbsFakeTransfers, SharedReceivesServeSeveralQps) {
    VerbsOptions shared;
    shared.shared_receives = true;
    VerbsPair pair({}, shared);
    ibv_srq_attr limit{0, 0, 2};
    ASSERT_EQ(ibv_modify_srq(pair.second.srq(), &limit, IBV_SRQ_LIMIT), 0);
    ASSERT_EQ(pair.second.receive(64, 0, 1), 0);
    ASSERT_EQ(pair.second.receive(64, 64, 2), 0);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_SEND_WITH_IMM, pair.to_second, 8)), 0);
    EXPECT_EQ(pair.second.wait().wr_id, 1U);
    EXPECT_EQ(pair.second.event().event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
    ibv_sge into{};
    ibv_recv_wr receive{1, nullptr, &into, 1};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(pair.second.qp(), &receive, &bad), EINVAL);
}

TEST(VerbsFakeTransfers, ChannelsWakeOncePerRequest) {
    VerbsOptions sleeping;
    sleeping.channel = true;
    VerbsPair pair({}, sleeping);
    pollfd readable{pair.second.channel()->fd, POLLIN, 0};
    ASSERT_EQ(ibv_req_notify_cq(pair.second.cq(), 1), 0);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(pair.second.receive(64), 0);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_SEND, pair.to_second, 8)), 0);
    EXPECT_EQ(::poll(&readable, 1, 0), 0) << "it waits for a solicited one";
    ibv_send_wr solicited = pair.first.request(IBV_WR_SEND, pair.to_second, 8);
    solicited.send_flags |= IBV_SEND_SOLICITED;
    ASSERT_EQ(pair.first.post(solicited), 0);
    ASSERT_EQ(pair.first.post(solicited), 0);
    EXPECT_EQ(::poll(&readable, 1, 0), 1);
    ibv_cq* cq = nullptr;
    void* given = nullptr;
    ASSERT_EQ(ibv_get_cq_event(pair.second.channel(), &cq, &given), 0);
    EXPECT_EQ(cq, pair.second.cq());
    EXPECT_EQ(given, &pair.second);
    EXPECT_EQ(::poll(&readable, 1, 0), 0) << "one event for one ibv_req_notify_cq";
    ibv_ack_cq_events(cq, 1);
}

TEST(VerbsFakeTransfers, ExtendedQueuesAreRead) {
    VerbsEnd end;
    ibv_cq_init_attr_ex wanted{};
    wanted.cqe = 8;
    ibv_cq_ex* cq = ibv_create_cq_ex(end.context(), &wanted);
    ASSERT_NE(cq, nullptr);
    ibv_poll_cq_attr none{};
    EXPECT_EQ(ibv_start_poll(cq, &none), ENOENT);
    EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

}  // namespace
}  // namespace pccl::fakes
