// SPDX-License-Identifier: Apache-2.0

// Devices, ports, registrations and states of the fake libibverbs.

#include <sys/mman.h>

#include <algorithm>

#include "tests/cpp/fakes/verbs_end.h"

namespace pccl::fakes {
namespace {

TEST(VerbsFakeObjects, DevicesAreAsDescribed) {
    int devices = 0;
    ibv_device** list = ibv_get_device_list(&devices);
    ASSERT_EQ(devices, 4);
    EXPECT_EQ(list[4], nullptr);
    EXPECT_STREQ(ibv_get_device_name(list[0]), "mlx5_0");
    EXPECT_NE(ibv_get_device_guid(list[0]), ibv_get_device_guid(list[1]));
    EXPECT_EQ(list[0]->transport_type, IBV_TRANSPORT_IB);
    EXPECT_EQ(list[3]->transport_type, IBV_TRANSPORT_IWARP);
    ibv_free_device_list(list);
    const VerbsEnd end;
    ibv_device_attr attr{};
    ASSERT_EQ(ibv_query_device(end.context(), &attr), 0);
    EXPECT_EQ(attr.phys_port_cnt, 2);
    EXPECT_EQ(attr.max_qp_rd_atom, 16);
    ibv_device_attr_ex extended{};
    ASSERT_EQ(ibv_query_device_ex(end.context(), nullptr, &extended), 0);
    EXPECT_EQ(extended.orig_attr.max_sge, 30);
}

TEST(VerbsFakeObjects, PortsAreAsDescribed) {
    const VerbsEnd ethernet;
    ibv_port_attr port{};
    ASSERT_EQ(ibv_query_port(ethernet.context(), 2, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_ACTIVE);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    EXPECT_EQ(port.lid, 0);
    EXPECT_EQ(port.active_mtu, IBV_MTU_4096);
    EXPECT_NE(ibv_query_port(ethernet.context(), 3, &port), 0);
    ibv_gid_entry gids[16];
    ASSERT_EQ(ibv_query_gid_table(ethernet.context(), gids, 16, 0), 8);
    EXPECT_EQ(gids[6].gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V1));
    EXPECT_EQ(gids[7].gid_type, static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2));
    EXPECT_EQ(gids[7].port_num, 2U);
    const uint8_t address[] = {0xff, 0xff, 10, 77, 0, 2};
    EXPECT_TRUE(std::equal(std::begin(address), std::end(address), gids[7].gid.raw + 10));
    VerbsOptions on_ib;
    on_ib.device = "ib0";
    const VerbsEnd infiniband(on_ib);
    ASSERT_EQ(ibv_query_port(infiniband.context(), 1, &port), 0);
    EXPECT_EQ(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
    EXPECT_GT(port.lid, 0);
    VerbsOptions on_down;
    on_down.device = "siw0";
    const VerbsEnd down(on_down);
    ASSERT_EQ(ibv_query_port(down.context(), 1, &port), 0);
    EXPECT_EQ(port.state, IBV_PORT_DOWN);
}

TEST(VerbsFakeObjects, InfiniBandConnectsByLidAlone) {
    VerbsOptions on_ib;
    on_ib.device = "ib0";
    VerbsPair pair(on_ib, on_ib);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    VerbsEnd other(on_ib);
    ASSERT_EQ(other.to_init(), 0);
    ibv_qp_attr attr = other.receiving_from(pair.to_first);
    attr.ah_attr.is_global = 0;
    EXPECT_EQ(ibv_modify_qp(other.qp(), &attr, VerbsEnd::kRtr), 0);
}

TEST(VerbsFakeObjects, WhatIsUsedIsNotDestroyed) {
    VerbsOptions all;
    all.channel = all.shared_receives = true;
    const VerbsEnd end(all);
    EXPECT_EQ(ibv_destroy_cq(end.cq()), EBUSY);
    EXPECT_EQ(ibv_destroy_srq(end.srq()), EBUSY);
    EXPECT_EQ(ibv_dealloc_pd(end.pd()), EBUSY);
    EXPECT_EQ(ibv_destroy_comp_channel(end.channel()), EBUSY);
    EXPECT_EQ(ibv_close_device(end.context()), -1);
}

// The errno of a registration; 0 if it was made.
int registration(const VerbsEnd& end, void* at, size_t length, int access) {
    ibv_mr* mr = ibv_reg_mr(end.pd(), at, length, access);
    if (mr == nullptr) return errno;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    return 0;
}

TEST(VerbsFakeObjects, RegistrationsAreChecked) {
    VerbsEnd end;
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    EXPECT_EQ(registration(end, end.buffer(), 64, IBV_ACCESS_REMOTE_WRITE), EINVAL);
    EXPECT_EQ(registration(end, end.buffer(), 64, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
    EXPECT_EQ(registration(end, end.buffer(), 64, IBV_ACCESS_REMOTE_READ), 0);
    EXPECT_EQ(registration(end, end.buffer(), 64, kAllAccess | IBV_ACCESS_RELAXED_ORDERING), 0);
    void* pages =
        ::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_EQ(registration(end, pages, 3 * page, kAllAccess), 0);
    ::munmap(static_cast<char*>(pages) + page, page);
    EXPECT_EQ(registration(end, pages, 3 * page, kAllAccess), EFAULT) << "a hole";
    ::mprotect(pages, page, PROT_READ);
    EXPECT_EQ(registration(end, pages, page, kAllAccess), EFAULT) << "not writable";
    EXPECT_EQ(registration(end, pages, page, 0), 0);
    ::munmap(pages, page);
    ::munmap(static_cast<char*>(pages) + 2 * page, page);
}

TEST(VerbsFakeObjects, AddressesOfARegionMayDiffer) {
    VerbsPair pair;
    ibv_mr* mr =
        ibv_reg_mr_iova(pair.second.pd(), pair.second.buffer() + 4096, 4096, 0x10000, kAllAccess);
    ASSERT_NE(mr, nullptr);
    std::strcpy(pair.first.buffer(), "moved");
    ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 6);
    request.wr.rdma.remote_addr = 0x10000 + 8;
    request.wr.rdma.rkey = mr->rkey;
    ASSERT_EQ(pair.first.post(request), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_SUCCESS);
    EXPECT_STREQ(pair.second.buffer() + 4096 + 8, "moved");
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST(VerbsFakeObjects, RegistrationsAreLimited) {
    const VerbsEnd end;
    static char bytes[8192];
    ASSERT_EQ(fake_verbs_limit_memlock(64 * 1024 + 4096), 0);
    EXPECT_EQ(registration(end, bytes, 4096, 0), 0);
    EXPECT_EQ(registration(end, bytes, 4097, 0), ENOMEM);
    ASSERT_EQ(fake_verbs_limit_memlock(UINT64_MAX), 0);
    ASSERT_EQ(fake_verbs_refuse_registrations(1, EIO), 0);
    EXPECT_EQ(registration(end, bytes, 8, 0), 0);
    EXPECT_EQ(registration(end, bytes, 8, 0), EIO);
    ASSERT_EQ(fake_verbs_refuse_registrations(0, 0), 0);
    ASSERT_EQ(fake_verbs_limit_mrs(1), 0);
    EXPECT_EQ(registration(end, bytes, 8, 0), ENOMEM);
    ASSERT_EQ(fake_verbs_limit_mrs(65536), 0);
    EXPECT_EQ(registration(end, bytes, 8, 0), 0);
}

/// The errno of a registration of a dma-buf; 0 where it is possible.
int dmabuf_registration(const VerbsEnd& end, uint64_t offset, size_t length, uint64_t iova,
                        int fd) {
    ibv_mr* const mr = ibv_reg_dmabuf_mr(end.pd(), offset, length, iova, fd, kAllAccess);
    if (mr == nullptr) return errno;
    EXPECT_EQ(ibv_dereg_mr(mr), 0);
    return 0;
}

TEST(VerbsFakeObjects, DmaBuffersMayBeUnsupported) {
    const VerbsEnd end;
    EXPECT_EQ(dmabuf_registration(end, 0, 4096, 0, -1), EBADF)
        << "the way to ask whether it is supported";
    ASSERT_EQ(fake_verbs_set_dmabuf(0), 0);
    EXPECT_EQ(dmabuf_registration(end, 0, 4096, 0, -1), EOPNOTSUPP);
    ASSERT_EQ(fake_verbs_set_dmabuf(1), 0);
}

TEST(VerbsFakeObjects, DmaBuffersHaveBoundsAndOnePlace) {
    const VerbsEnd end;
    const int file = ::memfd_create("gpu", MFD_CLOEXEC);
    ASSERT_EQ(::ftruncate(file, 8192), 0);
    void* const mapped = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    const auto address = reinterpret_cast<uint64_t>(mapped);
    EXPECT_EQ(dmabuf_registration(end, 0, 8192, address, file), 0);
    EXPECT_EQ(dmabuf_registration(end, 100, 8092, address + 100, file), 0);
    EXPECT_EQ(dmabuf_registration(end, 100, 8093, address + 100, file), EINVAL);
    EXPECT_EQ(dmabuf_registration(end, 0, 4096, address + 4096, file), EINVAL);
    EXPECT_EQ(dmabuf_registration(end, 0, 4096, address, STDERR_FILENO), EINVAL) << "no dma-buf";
    ::munmap(mapped, 8192);
    ::close(file);
}

TEST(VerbsFakeObjects, MemoryOfGpusIsOutOfReachOfCpus) {
    VerbsPair pair;
    ASSERT_EQ(fake_verbs_set_gpu_memory(pair.first.buffer(), 4096), 0);
    EXPECT_EQ(registration(pair.first, pair.first.buffer() + 4095, 8, 0), EFAULT);
    EXPECT_EQ(registration(pair.first, pair.first.buffer() + 4096, 8, 0), 0);
    ASSERT_EQ(fake_verbs_set_peermem(1), 0);
    EXPECT_EQ(registration(pair.first, pair.first.buffer() + 4095, 8, 0), 0);
    ASSERT_EQ(fake_verbs_set_peermem(0), 0);
    ibv_send_wr request = pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 6);
    request.send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(pair.first.post(request), EFAULT);
    ASSERT_EQ(fake_verbs_set_gpu_memory(nullptr, 0), 0);
    EXPECT_EQ(pair.first.post(request), 0);
}

TEST(VerbsFakeObjects, QpsAreLimited) {
    const VerbsEnd end;
    ibv_qp_init_attr made{};
    made.send_cq = made.recv_cq = end.cq();
    made.qp_type = IBV_QPT_RC;
    made.cap.max_inline_data = 221;
    EXPECT_EQ(ibv_create_qp(end.pd(), &made), nullptr);
    EXPECT_EQ(errno, EINVAL);
    made.cap.max_inline_data = 220;
    ASSERT_EQ(fake_verbs_limit_qps(1), 0);
    EXPECT_EQ(ibv_create_qp(end.pd(), &made), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    ASSERT_EQ(fake_verbs_limit_qps(1024), 0);
    ibv_qp* qp = ibv_create_qp(end.pd(), &made);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(ibv_destroy_qp(qp), 0);
}

TEST(VerbsFakeObjects, TransitionsNeedAllTheirAttributes) {
    const struct {
        ibv_qp_state to;
        int mask;
    } steps[] = {{IBV_QPS_INIT, VerbsEnd::kInit},
                 {IBV_QPS_RTR, VerbsEnd::kRtr},
                 {IBV_QPS_RTS, VerbsEnd::kRts}};
    VerbsEnd end;
    for (const auto& step : steps) {
        ibv_qp_attr attr = end.receiving_from(end.address());
        attr.qp_state = step.to;
        attr.port_num = 1;
        for (int bit = 1; bit < 32; ++bit) {
            if ((step.mask & (1 << bit)) == 0) continue;
            EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, step.mask & ~(1 << bit)), EINVAL)
                << "without bit " << bit;
        }
        EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, step.mask | IBV_QP_QKEY), EINVAL);
        EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, step.mask), 0);
        EXPECT_EQ(end.state(), step.to);
    }
    VerbsEnd other;
    EXPECT_EQ(other.to_rts(), EINVAL) << "RESET to RTS";
    EXPECT_EQ(other.to_rtr(other.address()), EINVAL) << "RESET to RTR";
}

TEST(VerbsFakeObjects, PeersAreLookedUpByTheirAddress) {
    VerbsEnd end;
    ASSERT_EQ(end.to_init(), 0);
    const ibv_qp_attr right = end.receiving_from(end.address());
    ibv_qp_attr attr = right;
    attr.ah_attr.grh.dgid = {};
    EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, VerbsEnd::kRtr), EINVAL);
    attr = right;
    attr.ah_attr.grh.dgid.raw[15] = 200;
    EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, VerbsEnd::kRtr), ETIMEDOUT)
        << "nobody has this address";
    attr = right;
    attr.ah_attr.grh.sgid_index = 1;
    EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, VerbsEnd::kRtr), ENETUNREACH)
        << "IPv4 from a link-local GID";
    attr = right;
    attr.ah_attr.is_global = 0;
    EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, VerbsEnd::kRtr), EINVAL) << "RoCE needs a GID";
    attr = right;
    attr.max_dest_rd_atomic = 17;
    EXPECT_EQ(ibv_modify_qp(end.qp(), &attr, VerbsEnd::kRtr), EINVAL);
    EXPECT_EQ(end.state(), IBV_QPS_INIT);
    VerbsOptions on_small;
    on_small.device = "mlx5_1";
    VerbsEnd small(on_small);
    ASSERT_EQ(small.to_init(), 0);
    attr = small.receiving_from(small.address());
    attr.path_mtu = IBV_MTU_2048;
    EXPECT_EQ(ibv_modify_qp(small.qp(), &attr, VerbsEnd::kRtr), EINVAL) << "above the active MTU";
}

TEST(VerbsFakeObjects, AResetForgetsCompletions) {
    VerbsPair pair;
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    ASSERT_EQ(ibv_modify_qp(pair.first.qp(), &reset, IBV_QP_STATE), 0);
    EXPECT_FALSE(pair.first.poll());
    pair.first.connect(pair.to_second);
    ASSERT_EQ(pair.first.post(pair.first.request(IBV_WR_RDMA_WRITE, pair.to_second, 8)), 0);
    EXPECT_EQ(pair.first.status(), IBV_WC_RETRY_EXC_ERR) << "the peer expects later numbers";
}

}  // namespace
}  // namespace pccl::fakes
