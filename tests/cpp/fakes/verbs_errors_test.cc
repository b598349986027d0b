// SPDX-License-Identifier: Apache-2.0

// Rules of RC queue pairs that the fake libibverbs keeps, and the errors of violated ones.

#include "tests/cpp/fakes/verbs_end.h"

namespace pccl::fakes {
namespace {

// How a request ends whose first side was changed; both QPs fail then.
struct Ending {
    ibv_wc_status status;
    ibv_qp_state of_first;
    ibv_qp_state of_second;
};
bool operator==(const Ending& a, const Ending& b) {
    return a.status == b.status && a.of_first == b.of_first && a.of_second == b.of_second;
}
void PrintTo(const Ending& ending, std::ostream* to) {
    *to << ibv_wc_status_str(ending.status) << ", states " << ending.of_first << ", "
        << ending.of_second;
}

Ending end_of(VerbsPair& pair, const ibv_send_wr& request) {
    EXPECT_EQ(pair.first.post(request), 0);
    const ibv_wc_status status = pair.first.status();
    return {status, pair.first.state(), pair.second.state()};
}
constexpr Ending kLocal{IBV_WC_LOC_PROT_ERR, IBV_QPS_ERR, IBV_QPS_RTS};
constexpr Ending kRemoteAccess{IBV_WC_REM_ACCESS_ERR, IBV_QPS_ERR, IBV_QPS_ERR};
constexpr Ending kRemoteInvalid{IBV_WC_REM_INV_REQ_ERR, IBV_QPS_ERR, IBV_QPS_ERR};

TEST(VerbsFakeErrors, RemoteKeysAreChecked) {
    {
        VerbsPair pair;
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        request.wr.rdma.rkey = 0;
        EXPECT_EQ(end_of(pair, request), kRemoteAccess);
        EXPECT_EQ(pair.second.event().event_type, IBV_EVENT_QP_ACCESS_ERR);
    }
    {
        VerbsPair pair;
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        request.wr.rdma.remote_addr += 64 * 1024 - 7;
        EXPECT_EQ(end_of(pair, request), kRemoteAccess) << "one byte beyond the end";
    }
    {
        VerbsPair pair;
        ASSERT_EQ(ibv_dereg_mr(pair.second.mr()), 0);
        pair.second.mr() = ibv_reg_mr(pair.second.pd(), pair.second.buffer(), 4096, kAllAccess);
        EXPECT_NE(pair.second.mr()->rkey, pair.to_second.rkey);
        const ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        EXPECT_EQ(end_of(pair, request), kRemoteAccess) << "a stale key";
    }
    {
        VerbsPair pair;
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_READ, pair.to_second, 8);
        request.wr.rdma.rkey = pair.second.mr()->lkey;
        EXPECT_EQ(end_of(pair, request), kRemoteAccess)
            << "the local key in place of the remote one";
    }
}

TEST(VerbsFakeErrors, RemoteAccessIsChecked) {
    const struct {
        ibv_wr_opcode opcode;
        int without;
    } cases[] = {{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
                 {IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
                 {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC}};
    for (const auto& tried : cases) {
        VerbsOptions region;
        region.access = kAllAccess & ~tried.without;
        VerbsPair of_region({}, region);
        EXPECT_EQ(end_of(of_region, of_region.first.request(tried.opcode, of_region.to_second, 8)),
                  kRemoteAccess);
        VerbsOptions qp;
        qp.qp_access = kAllAccess & ~tried.without;
        VerbsPair of_qp({}, qp);
        EXPECT_EQ(end_of(of_qp, of_qp.first.request(tried.opcode, of_qp.to_second, 8)),
                  kRemoteInvalid);
    }
}

TEST(VerbsFakeErrors, LocalKeysAndAccessAreChecked) {
    {
        VerbsPair pair;
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        request.sg_list->lkey = 0;
        EXPECT_EQ(end_of(pair, request), kLocal);
    }
    {
        VerbsPair pair;
        ibv_send_wr request = pair.first.request(IBV_WR_SEND, pair.to_second, 8);
        request.sg_list->addr -= 1;
        EXPECT_EQ(end_of(pair, request), kLocal);
    }
    {
        VerbsOptions readable;
        readable.access = IBV_ACCESS_REMOTE_READ;
        VerbsPair pair(readable);
        EXPECT_EQ(end_of(pair, pair.first.request(IBV_WR_RDMA_READ, pair.to_second, 8)), kLocal);
    }
    {
        VerbsPair pair;
        VerbsEnd other;
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        request.sg_list->addr = reinterpret_cast<uint64_t>(other.buffer());
        request.sg_list->lkey = other.mr()->lkey;
        EXPECT_EQ(end_of(pair, request), kLocal) << "of another protection domain";
    }
}

TEST(VerbsFakeErrors, ReceivesAreChecked) {
    {
        VerbsPair pair;
        ASSERT_EQ(pair.second.receive(7), 0);
        EXPECT_EQ(end_of(pair, pair.first.request(IBV_WR_SEND, pair.to_second, 8)), kRemoteInvalid);
        EXPECT_EQ(pair.second.status(), IBV_WC_LOC_LEN_ERR);
    }
    {
        VerbsOptions read_only;
        read_only.access = 0;
        VerbsPair pair({}, read_only);
        ASSERT_EQ(pair.second.receive(8), 0);
        EXPECT_EQ(end_of(pair, pair.first.request(IBV_WR_SEND, pair.to_second, 8)),
                  (Ending{IBV_WC_REM_OP_ERR, IBV_QPS_ERR, IBV_QPS_ERR}));
        EXPECT_EQ(pair.second.status(), IBV_WC_LOC_PROT_ERR);
    }
}

TEST(VerbsFakeErrors, WithoutAReceiveItWaits) {
    VerbsPair pair;
    std::strcpy(pair.first.buffer(), "late");
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_SEND, pair.to_second, 5)), 0);
    EXPECT_FALSE(pair.first.poll());
    ASSERT_EQ(pair.second.receive(64), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(pair.second.status(), IBV_WC_SUCCESS);
    EXPECT_STREQ(pair.second.buffer(), "late");
}

TEST(VerbsFakeErrors, WithoutAReceiveRetriesEnd) {
    VerbsOptions few;
    few.rnr_retry = 2;
    VerbsPair pair(few);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE_WITH_IMM, pair.to_second, 5)),
              0);
    EXPECT_EQ(pair.first.status(), IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(pair.first.state(), IBV_QPS_ERR);
    EXPECT_EQ(pair.second.state(), IBV_QPS_RTS);
}

TEST(VerbsFakeErrors, WhatIsQueuedIsFlushedInOrder) {
    VerbsPair pair;
    ASSERT_EQ(pair.first.receive(8, 0, 70), 0);
    ASSERT_EQ(pair.first.receive(8, 0, 71), 0);
    ibv_send_wr last = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
    ibv_send_wr wrong = last;
    last.wr_id = 12;
    last.send_flags = 0;
    wrong.wr_id = 11;
    wrong.wr.rdma.rkey = 0;
    wrong.next = &last;
    ASSERT_EQ(pair.first.post(wrong), 0);
    const uint64_t ids[] = {11, 12, 70, 71};
    for (const uint64_t id : ids) {
        const ibv_wc ended = pair.first.wait();
        EXPECT_EQ(ended.wr_id, id);
        EXPECT_EQ(ended.status, id == 11 ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(ended.qp_num, pair.to_first.qpn);
    }
    last.wr_id = 13;
    ASSERT_EQ(pair.first.post(last), 0) << "a failed QP takes requests";
    EXPECT_EQ(pair.first.wait().wr_id, 13U);
    ASSERT_EQ(pair.first.receive(8), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_WR_FLUSH_ERR);
}

TEST(VerbsFakeErrors, FullQueuesRefuse) {
    VerbsOptions small;
    small.max_send_wr = small.max_recv_wr = 2;
    VerbsPair pair(small);
    ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
    request.send_flags = 0;
    ASSERT_EQ(pair.first.post(request), 0);
    request.send_flags = IBV_SEND_SIGNALED;
    ASSERT_EQ(pair.first.post(request), 0);
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_send(pair.first.qp(), &request, &bad), ENOMEM) << "done, but not polled";
    EXPECT_EQ(bad, &request);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(pair.first.post(request), 0) << "one completion frees both slots";
    EXPECT_EQ(pair.first.receive(8), 0);
    EXPECT_EQ(pair.first.receive(8), 0);
    EXPECT_EQ(pair.first.receive(8), ENOMEM);
}

TEST(VerbsFakeErrors, AnOverrunQueueFailsItsQp) {
    VerbsOptions small;
    small.cqe = 1;
    VerbsPair pair(small);
    for (int i = 0; i < 2; ++i) {
        ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    }
    const ibv_async_event event = pair.first.event();
    EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
    EXPECT_EQ(event.element.cq, pair.first.cq());
    EXPECT_EQ(pair.first.state(), IBV_QPS_ERR);
}

TEST(VerbsFakeErrors, LimitsOfRequests) {
    VerbsPair pair;
    ibv_send_wr long_inline = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 65);
    long_inline.send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(pair.first.post(long_inline), EINVAL);
    ibv_sge three[3] = {};
    ibv_send_wr elements = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
    elements.sg_list = three;
    elements.num_sge = 3;
    EXPECT_EQ(pair.first.post(elements), EINVAL);
    EXPECT_EQ(pair.first.state(), IBV_QPS_RTS);
}

TEST(VerbsFakeErrors, ReadsAreLimitedByBothSides) {
    VerbsOptions none;
    none.reads = 0;
    VerbsPair without(none);
    EXPECT_EQ(end_of(without, without.first.request(IBV_WR_RDMA_READ, without.to_second, 8)),
              (Ending{IBV_WC_LOC_QP_OP_ERR, IBV_QPS_ERR, IBV_QPS_RTS}));
    VerbsOptions one;
    one.responder_reads = 1;
    VerbsPair pair({}, one);
    ibv_send_wr first = pair.first.request(IBV_WR_RDMA_READ, pair.to_second, 8);
    ibv_send_wr second = first;
    first.next = &second;
    EXPECT_EQ(end_of(pair, first), kRemoteInvalid) << "two at a time";
}

TEST(VerbsFakeErrors, StatesOfPosting) {
    VerbsEnd end;
    const VerbsAddress own = end.address();
    EXPECT_EQ(end.receive(8), EINVAL);
    EXPECT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, own, 8)), EINVAL);
    ASSERT_EQ(end.to_init(), 0);
    EXPECT_EQ(end.receive(8), 0);
    EXPECT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, own, 8)), EINVAL);
    ASSERT_EQ(end.to_rtr(own), 0);
    EXPECT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, own, 8)), EINVAL);
    ASSERT_EQ(end.to_rts(), 0);
    EXPECT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, own, 8)), 0);
}

TEST(VerbsFakeErrors, NobodyAnswersThoseWhoAreNotConnected) {
    VerbsEnd first;
    VerbsEnd second;
    first.connect(second.address());
    ASSERT_EQ(second.to_init(), 0);
    ASSERT_EQ(first.post(first.request(IBV_WR_RDMA_WRITE, second.address(), 8)), 0);
    EXPECT_EQ(first.status(), IBV_WC_RETRY_EXC_ERR);
}

TEST(VerbsFakeErrors, APeerMayBecomeReadyWhileItIsRetried) {
    VerbsEnd first;
    VerbsEnd second;
    first.connect(second.address());
    ASSERT_EQ(first.post(first.request(IBV_WR_RDMA_WRITE, second.address(), 8)), 0);
    EXPECT_FALSE(first.poll());
    ASSERT_EQ(second.to_init(), 0);
    ASSERT_EQ(second.to_rtr(first.address()), 0);
    EXPECT_EQ(first.status(), IBV_WC_SUCCESS) << "it receives before it may send";
    EXPECT_EQ(second.event().event_type, IBV_EVENT_COMM_EST);
}

TEST(VerbsFakeErrors, SequenceNumbersHaveToAgree) {
    VerbsEnd first;
    VerbsEnd second;
    VerbsAddress wrong = first.address();
    wrong.psn += 1;
    first.connect(second.address());
    second.connect(wrong);
    ASSERT_EQ(first.post(first.request(IBV_WR_RDMA_WRITE, second.address(), 8)), 0);
    EXPECT_EQ(first.status(), IBV_WC_RETRY_EXC_ERR);
}

TEST(VerbsFakeErrors, VersionsOfRoceHaveToAgree) {
    VerbsOptions v1;
    v1.gid_index = 2;
    VerbsPair pair({}, v1);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace pccl::fakes
