// SPDX-License-Identifier: Apache-2.0

// What tests inject into the fake libibverbs.

#include <fcntl.h>

#include "tests/cpp/fakes/verbs_end.h"

namespace pccl::fakes {
namespace {

class VerbsFakeControl : public ::testing::Test {
   protected:
    ~VerbsFakeControl() override { fake_verbs_remove_rule(0); }

    static int add(const fake_verbs_rule& rule) {
        const int number = fake_verbs_add_rule(&rule);
        EXPECT_GT(number, 0);
        return number;
    }
    static void write(VerbsPair& pair, int times = 1) {
        for (int i = 0; i < times; ++i) {
            ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
        }
    }
};

TEST_F(VerbsFakeControl, RequestsFailWithAnyStatus) {
    for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
        VerbsPair pair;
        fake_verbs_rule rule{};
        rule.effect = FAKE_VERBS_FAIL;
        rule.qp = pair.to_first.qpn;
        rule.opcode = IBV_WR_RDMA_WRITE + 1;
        rule.skip = 1;
        rule.count = 1;
        rule.status = status;
        rule.vendor_err = 0x42;
        const int number = add(rule);
        std::strcpy(pair.first.buffer(), "x");
        write(pair, 3);
        EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS) << "it skips one";
        const ibv_wc failed = pair.first.wait();
        EXPECT_EQ(failed.status, status);
        EXPECT_EQ(failed.vendor_err, 0x42U);
        EXPECT_EQ(pair.first.status(), IBV_WC_WR_FLUSH_ERR);
        EXPECT_EQ(fake_verbs_remove_rule(number), 0);
    }
}

TEST_F(VerbsFakeControl, RulesApplyToPortsOfDevices) {
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_FAIL;
    rule.status = IBV_WC_FATAL_ERR;
    std::strcpy(rule.device, "mlx5_0");
    rule.port = 2;
    add(rule);
    VerbsPair on_first;
    write(on_first);
    EXPECT_EQ(on_first.first.status(), IBV_WC_SUCCESS);
    VerbsOptions second;
    second.port = 2;
    VerbsPair on_second(second, second);
    write(on_second);
    EXPECT_EQ(on_second.first.status(), IBV_WC_FATAL_ERR);
}

TEST_F(VerbsFakeControl, TheLastPieceIsLost) {
    VerbsPair pair;
    ASSERT_EQ(pair.second.receive(0), 0);
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_LOSE_LAST;
    rule.opcode = IBV_WR_RDMA_WRITE_WITH_IMM + 1;
    add(rule);
    std::strcpy(pair.first.buffer(), "arrived");
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE_WITH_IMM, pair.to_second, 8)),
              0);
    EXPECT_EQ(pair.first.status(), IBV_WC_RETRY_EXC_ERR);
    EXPECT_STREQ(pair.second.buffer(), "arrived");
    EXPECT_FALSE(pair.second.poll());
}

TEST_F(VerbsFakeControl, AnAnswerIsHeld) {
    VerbsPair pair;
    ASSERT_EQ(pair.second.receive(0), 0);
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_HOLD_ANSWER;
    rule.opcode = IBV_WR_RDMA_WRITE_WITH_IMM + 1;
    const int number = add(rule);
    std::strcpy(pair.first.buffer(), "arrived");
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE_WITH_IMM, pair.to_second, 8)),
              0);
    EXPECT_STREQ(pair.second.buffer(), "arrived");
    EXPECT_EQ(pair.second.status(), IBV_WC_SUCCESS);
    EXPECT_FALSE(pair.first.poll());
    EXPECT_EQ(fake_verbs_remove_rule(number), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_FALSE(pair.second.poll()) << "it is delivered once";
}

TEST_F(VerbsFakeControl, AnswersAreLost) {
    VerbsPair pair;
    ASSERT_EQ(pair.second.receive(0), 0);
    fake_verbs_rule held{};
    held.effect = FAKE_VERBS_STALL;
    held.count = 1;
    const int number = add(held);
    fake_verbs_rule lost{};
    lost.effect = FAKE_VERBS_LOSE_ANSWERS;
    lost.operations = 2;
    lost.count = 1;
    add(lost);
    write(pair, 2);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE_WITH_IMM, pair.to_second, 0)),
              0);
    write(pair);
    EXPECT_EQ(fake_verbs_remove_rule(number), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(pair.first.status(), IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(pair.second.status(), IBV_WC_SUCCESS) << "the immediate arrived";
    EXPECT_EQ(pair.first.status(), IBV_WC_WR_FLUSH_ERR) << "though the requester does not see it";
    EXPECT_EQ(pair.first.status(), IBV_WC_WR_FLUSH_ERR);
}

TEST_F(VerbsFakeControl, RulesApplyToRequestsWithoutBytes) {
    VerbsPair pair;
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_FAIL;
    rule.status = IBV_WC_FATAL_ERR;
    rule.empty = 1;
    add(rule);
    write(pair);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 0)), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_FATAL_ERR);
}

TEST_F(VerbsFakeControl, RequestsAreDelayed) {
    VerbsPair pair;
    VerbsPair other;
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_DELAY;
    rule.qp = pair.to_first.qpn;
    rule.count = 1;
    rule.operations = 2;
    add(rule);
    write(pair, 2);
    write(other);
    EXPECT_EQ(other.first.status(), IBV_WC_SUCCESS);
    EXPECT_FALSE(pair.first.poll());
    write(other);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    rule.operations = 0;
    rule.ms = 5;
    rule.jitter_ms = 10;
    rule.seed = 7;
    add(rule);
    write(pair);
    EXPECT_FALSE(pair.first.poll());
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS) << "after some milliseconds";
}

TEST_F(VerbsFakeControl, QpsAreReordered) {
    VerbsPair early;
    VerbsPair late;
    fake_verbs_rule rule{};
    rule.effect = FAKE_VERBS_HOLD_FOR;
    rule.qp = early.to_first.qpn;
    rule.other_qp = late.to_first.qpn;
    rule.operations = 1;
    rule.count = 1;
    add(rule);
    write(early);
    EXPECT_FALSE(early.first.poll());
    write(late);
    EXPECT_EQ(late.first.status(), IBV_WC_SUCCESS);
    EXPECT_EQ(early.first.poll()->status, IBV_WC_SUCCESS);
}

TEST_F(VerbsFakeControl, PortsGoDownAndUp) {
    VerbsPair pair;
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 0), 0);
    EXPECT_EQ(pair.first.event().event_type, IBV_EVENT_PORT_ERR);
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(pair.first.context(), 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
    write(pair);
    EXPECT_FALSE(pair.first.poll());
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 1), 0);
    EXPECT_EQ(pair.first.event().event_type, IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS) << "it came back in time";
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 0), 0);
    write(pair);
    EXPECT_EQ(pair.first.status(), IBV_WC_RETRY_EXC_ERR);
    ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 1), 0);
    EXPECT_EQ(fake_verbs_set_port("mlx5_9", 1, 1), ENODEV);
}

TEST_F(VerbsFakeControl, DevicesFail) {
    VerbsOptions other;
    other.device = "mlx5_1";
    VerbsPair pair(other, other);
    ASSERT_EQ(fake_verbs_device_fatal("mlx5_1"), 0);
    EXPECT_EQ(pair.first.event().event_type, IBV_EVENT_DEVICE_FATAL);
    EXPECT_EQ(pair.first.state(), IBV_QPS_ERR);
    EXPECT_EQ(ibv_alloc_pd(pair.first.context()), nullptr);
    EXPECT_EQ(errno, EIO);
}

TEST_F(VerbsFakeControl, AddressesChange) {
    VerbsPair pair;
    ASSERT_EQ(fake_verbs_change_gid("mlx5_0", 2, 0x0a4d0909), 0);
    EXPECT_EQ(pair.first.event().event_type, IBV_EVENT_GID_CHANGE);
    ibv_gid gid{};
    ASSERT_EQ(ibv_query_gid(pair.first.context(), 2, 3, &gid), 0);
    EXPECT_EQ(gid.raw[14], 9);
    ASSERT_EQ(fake_verbs_change_gid("mlx5_0", 2, 0x0a4d0002), 0);
}

TEST_F(VerbsFakeControl, EventsAreReadWithoutBlocking) {
    VerbsPair pair;
    ::fcntl(pair.first.context()->async_fd, F_SETFL, O_NONBLOCK);
    ibv_async_event event{};
    EXPECT_EQ(ibv_get_async_event(pair.first.context(), &event), -1);
    EXPECT_EQ(errno, EAGAIN);
}

TEST_F(VerbsFakeControl, TimeInsideIsMeasured) {
    VerbsPair pair;
    ASSERT_EQ(fake_verbs_reset_counters(), 0);
    for (const int how : {FAKE_VERBS_TIME_CPU, FAKE_VERBS_TIME_TICKS}) {
        fake_verbs_counters before{};
        fake_verbs_counters after{};
        ASSERT_EQ(fake_verbs_measure_time(how), 0);
        ASSERT_EQ(fake_verbs_read_counters(0, &before), 0);
        write(pair);
        EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
        ASSERT_EQ(fake_verbs_measure_time(FAKE_VERBS_TIME_OFF), 0);
        ASSERT_EQ(fake_verbs_read_counters(0, &after), 0);
        EXPECT_GT(after.inside_ns, before.inside_ns);
    }
    EXPECT_EQ(fake_verbs_measure_time(9), EINVAL);
}

TEST_F(VerbsFakeControl, WhatExistsIsCounted) {
    fake_verbs_counters before{};
    fake_verbs_counters during{};
    ASSERT_EQ(fake_verbs_read_counters(0, &before), 0);
    {
        const VerbsEnd end;
        ASSERT_EQ(fake_verbs_read_counters(::getpid(), &during), 0);
    }
    EXPECT_EQ(during.qps, before.qps + 1);
    EXPECT_EQ(during.cqs, before.cqs + 1);
    EXPECT_EQ(during.mrs, before.mrs + 1);
    EXPECT_EQ(during.pinned, before.pinned + 64 * 1024);
    ASSERT_EQ(fake_verbs_read_counters(0, &during), 0);
    EXPECT_EQ(during.pinned, before.pinned);
    EXPECT_EQ(fake_verbs_read_counters(1, &during), ESRCH);
}

}  // namespace
}  // namespace pccl::fakes
