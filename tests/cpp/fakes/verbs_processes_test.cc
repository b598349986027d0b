// SPDX-License-Identifier: Apache-2.0

// The fake libibverbs between processes.

#include "tests/cpp/fakes/verbs_processes.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <csignal>

#include "tests/cpp/fakes/verbs_end.h"
#include "tests/fakes/threads_after_fork.h"

namespace pccl::fakes {
namespace {

constexpr uint32_t kLong = 60'000;

TEST(VerbsFakeProcesses, WriteReadAndAtomics) {
    run_both(
        [](const Peer& peer) {
            VerbsEnd end;
            const VerbsAddress other = peer.connect(end);
            std::memset(end.buffer(), 'w', kLong);
            ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, other, kLong)), 0);
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
            peer.meet();
            peer.meet();
            ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_READ, other, kLong)), 0);
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
            EXPECT_EQ(std::string(end.buffer(), kLong), std::string(kLong, 'r'));
            ibv_send_wr add = end.request(IBV_WR_ATOMIC_FETCH_AND_ADD, other, 8, kLong);
            add.wr.atomic.compare_add = 3;
            ASSERT_EQ(end.post(add), 0);
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
            peer.meet();
        },
        [](const Peer& peer) {
            VerbsEnd end;
            peer.connect(end);
            peer.meet();
            EXPECT_EQ(std::string(end.buffer(), kLong), std::string(kLong, 'w'));
            std::memset(end.buffer(), 'r', kLong);
            peer.meet();
            peer.meet();
            EXPECT_EQ(*reinterpret_cast<uint64_t*>(end.buffer() + kLong), 3U);
        });
}

TEST(VerbsFakeProcesses, SendAndImmediateOfEitherSide) {
    const ProcessBody side = [](const Peer& peer) {
        VerbsEnd end;
        ASSERT_EQ(end.to_init(), 0);
        ASSERT_EQ(end.receive(8192, 8192, 1), 0);
        ASSERT_EQ(end.receive(0, 0, 2), 0);
        const VerbsAddress other = peer.connect(end);
        std::memset(end.buffer(), 's', 8192);
        ASSERT_EQ(end.post(end.request(IBV_WR_SEND, other, 8192)), 0);
        ibv_send_wr immediate = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, other, 0);
        immediate.num_sge = 0;
        ASSERT_EQ(end.post(immediate), 0);
        for (int i = 0; i < 4; ++i) {
            const ibv_wc done = end.wait();
            EXPECT_EQ(done.status, IBV_WC_SUCCESS);
            if (done.wr_id != 1 || done.opcode != IBV_WC_RECV) continue;
            EXPECT_EQ(std::string(end.buffer() + 8192, 8192), std::string(8192, 's'));
        }
        peer.meet();
    };
    run_both(side, side);
}

TEST(VerbsFakeProcesses, ReceiverPostsLaterAndDeliversItself) {
    run_both(
        [](const Peer& peer) {
            VerbsEnd end;
            const VerbsAddress other = peer.connect(end);
            std::strcpy(end.buffer(), "parked");
            ASSERT_EQ(end.post(end.request(IBV_WR_SEND, other, 7)), 0);
            EXPECT_FALSE(end.poll());
            peer.meet();
            peer.meet();  // makes no call of verbs meanwhile
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
        },
        [](const Peer& peer) {
            VerbsEnd end;
            peer.connect(end);
            peer.meet();
            ASSERT_EQ(end.receive(64), 0);
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
            EXPECT_STREQ(end.buffer(), "parked");
            peer.meet();
        });
}

TEST(VerbsFakeProcesses, ChannelsWakeSleepers) {
    run_both(
        [](const Peer& peer) {
            VerbsEnd end;
            const VerbsAddress other = peer.connect(end);
            peer.meet();
            fake_verbs_rule late{};
            late.effect = FAKE_VERBS_DELAY;
            late.ms = 50;
            ASSERT_GT(fake_verbs_add_rule(&late), 0);
            ASSERT_EQ(end.post(end.request(IBV_WR_SEND, other, 7)), 0);
            peer.meet();  // sleeps as well: the timer of the receiver delivers it
            EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
        },
        [](const Peer& peer) {
            VerbsOptions sleeping;
            sleeping.channel = true;
            VerbsEnd end(sleeping);
            peer.connect(end);
            ASSERT_EQ(end.receive(64), 0);
            ASSERT_EQ(ibv_req_notify_cq(end.cq(), 0), 0);
            peer.meet();
            ibv_cq* cq = nullptr;
            void* given = nullptr;
            ASSERT_EQ(ibv_get_cq_event(end.channel(), &cq, &given), 0);
            EXPECT_EQ(cq, end.cq());
            ibv_ack_cq_events(cq, 1);
            EXPECT_EQ(end.poll()->status, IBV_WC_SUCCESS);
            peer.meet();
        });
}

TEST(VerbsFakeProcesses, AKilledPeerDoesNotAnswer) {
    TwoProcesses both(
        [](const Peer& peer) {
            VerbsEnd end;
            const VerbsAddress other = peer.connect(end);
            ASSERT_EQ(end.receive(8, 0, 50), 0);
            peer.meet();
            peer.wait_for_end();
            ibv_send_wr last = end.request(IBV_WR_RDMA_WRITE_WITH_IMM, other, 0);
            ibv_send_wr first = end.request(IBV_WR_RDMA_WRITE, other, 8);
            first.wr_id = 1;
            last.wr_id = 2;
            first.next = &last;
            ASSERT_EQ(end.post(first), 0);
            EXPECT_EQ(end.wait().status, IBV_WC_RETRY_EXC_ERR);
            EXPECT_EQ(end.wait().wr_id, 2U);
            const ibv_wc flushed = end.wait();
            EXPECT_EQ(flushed.wr_id, 50U);
            EXPECT_EQ(flushed.status, IBV_WC_WR_FLUSH_ERR);
        },
        [](const Peer& peer) {
            VerbsEnd end;
            peer.connect(end);
            peer.meet();
            ::raise(SIGKILL);
        });
    EXPECT_EQ(both.join_second(), -SIGKILL);
    EXPECT_EQ(both.join_first(), 0);
}

TEST(VerbsFakeProcesses, APeerMayBeKilledInTheMiddle) {
    for (unsigned round = 0; round < 5; ++round) {
        TwoProcesses both(
            [round](const Peer& peer) {
                VerbsEnd end;
                const VerbsAddress other = peer.connect(end);
                ibv_wc_status last = IBV_WC_SUCCESS;
                for (unsigned sent = 0; last == IBV_WC_SUCCESS; ++sent) {
                    if (sent == 50 * round) peer.meet();
                    ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, other, kLong)), 0);
                    last = end.status();
                }
                EXPECT_EQ(last, IBV_WC_RETRY_EXC_ERR) << ibv_wc_status_str(last);
            },
            [](const Peer& peer) {
                VerbsEnd end;
                const VerbsAddress other = peer.connect(end);
                std::thread killer([&peer] {
                    peer.meet();
                    ::raise(SIGKILL);
                });
                for (;;) {
                    end.post(end.request(IBV_WR_RDMA_WRITE, other, kLong));
                    static_cast<void>(end.poll());
                }
            });
        EXPECT_EQ(both.join_second(), -SIGKILL);
        EXPECT_EQ(both.join_first(), 0);
    }
}

TEST(VerbsFakeProcesses, PortEventsReachAll) {
    run_both(
        [](const Peer& peer) {
            VerbsEnd end;
            const VerbsAddress other = peer.connect(end);
            ASSERT_EQ(fake_verbs_set_port("mlx5_0", 1, 0), 0);
            EXPECT_EQ(end.event().event_type, IBV_EVENT_PORT_ERR);
            ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, other, 8)), 0);
            EXPECT_EQ(end.status(), IBV_WC_RETRY_EXC_ERR);
            peer.meet();
        },
        [](const Peer& peer) {
            VerbsEnd end;
            peer.connect(end);
            const ibv_async_event event = end.event();
            EXPECT_EQ(event.event_type, IBV_EVENT_PORT_ERR);
            EXPECT_EQ(event.element.port_num, 1);
            peer.meet();
        });
}

TEST(VerbsFakeProcesses, WhatAKilledProcessLeftIsRemoved) {
    const FabricFolder folder;
    const auto use = [&folder](bool kill) {
        return ForkedChild([&folder, kill] {
            ::setenv("FAKE_VERBS_FABRIC", folder.path().c_str(), 1);
            VerbsOptions sleeping;
            sleeping.channel = true;
            const VerbsEnd end(sleeping);
            if (kill) ::raise(SIGKILL);
            return end.qp() != nullptr && end.qp()->handle == 0 ? 0 : 1;
        });
    };
    ForkedChild killed = use(true);
    EXPECT_EQ(killed.join(), -SIGKILL);
    ForkedChild later = use(false);
    EXPECT_EQ(later.join(), 0) << "its QP has the place of the one that was removed";
}

TEST(VerbsFakeProcesses, AChildOfForkTouchesNothing) {
    VerbsPair pair;
    ForkedChild child([&pair] {
        ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
        return pair.first.post(request) == EINVAL && !pair.first.poll() ? 0 : 1;
    });
    EXPECT_EQ(child.join(), 0);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
}

// Whether page numbers can be read: without the right to, they are 0.
bool sees_page_numbers() {
    const int file = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t entry = 0;
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const auto offset =
        static_cast<off_t>(reinterpret_cast<uint64_t>(&entry) / page * sizeof entry);
    const bool read = ::pread(file, &entry, sizeof entry, offset) == sizeof entry;
    ::close(file);
    return read && (entry << 9) != 0;
}

TEST(VerbsFakeProcesses, MemoryThatIsMappedAnewIsFound) {
    if (!sees_page_numbers())
        GTEST_SKIP() << "page numbers are hidden from processes without CAP_SYS_ADMIN";
    ForkedChild child([] {
        ::setenv("FAKE_VERBS_GUARD", "1", 1);
        constexpr size_t kBytes = 1 << 20;
        VerbsPair pair;
        void* memory =
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ibv_mr* mr = ibv_reg_mr(pair.second.pd(), memory, kBytes, kAllAccess);
        const auto write = [&] {
            ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8);
            request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(memory) + 128;
            request.wr.rdma.rkey = mr->rkey;
            EXPECT_EQ(pair.first.post(request), 0);
            return pair.first.status();
        };
        std::memset(memory, 1, kBytes);
        EXPECT_EQ(write(), IBV_WC_SUCCESS);
        std::memset(memory, 2, kBytes);
        EXPECT_EQ(write(), IBV_WC_SUCCESS);
        ::munmap(memory, kBytes);
        EXPECT_EQ(::mmap(memory, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                  memory);
        std::memset(memory, 3, kBytes);
        EXPECT_EQ(write(), IBV_WC_REM_ACCESS_ERR)
            << "the address has other pages than were registered";
        EXPECT_EQ(ibv_dereg_mr(mr), 0);
        ::munmap(memory, kBytes);
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(child.join(), 0);
}

TEST(VerbsFakeProcesses, HostsHaveAddressesOfTheirOwn) {
    const auto first = [](const Peer& peer) {
        VerbsEnd end;
        const VerbsAddress other = peer.connect(end);
        EXPECT_EQ(end.address().gid.raw[13], 77);
        EXPECT_EQ(other.gid.raw[13], 78);
        ASSERT_EQ(end.post(end.request(IBV_WR_RDMA_WRITE, other, 8)), 0);
        EXPECT_EQ(end.status(), IBV_WC_SUCCESS);
        peer.meet();
    };
    run_both(first, [](const Peer& peer) {
        ::setenv("FAKE_VERBS_HOST", "1", 1);
        VerbsEnd end;
        peer.connect(end);
        ASSERT_EQ(fake_verbs_set_port("mlx5_0", 2, 0), 0) << "its own, not that of the other host";
        peer.meet();
    });
}

}  // namespace
}  // namespace pccl::fakes
