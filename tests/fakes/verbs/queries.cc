// SPDX-License-Identifier: Apache-2.0

// What devices and ports are, as a ConnectX has it, or as rdma_rxe where the name begins like that.

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fakes/verbs/devices.h"
#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/limits.h"

namespace pccl::fake_verbs {

namespace {

void fill_attributes(ibv_context* context, ibv_device_attr& attributes) {
    const Device& device = *of(context).device;
    attributes = {};
    std::snprintf(attributes.fw_ver, sizeof attributes.fw_ver, "%s",
                  is_soft(device) ? "" : "22.77.1000");
    attributes.node_guid = ibv_get_device_guid(context->device);
    attributes.sys_image_guid = attributes.node_guid;
    attributes.max_mr_size = UINT64_MAX;
    attributes.page_size_cap = 0xfffffffffffff000;
    attributes.vendor_id = is_soft(device) ? 0xffffff : 0x02c9;
    attributes.vendor_part_id = is_soft(device) ? 0 : 4129;
    attributes.max_qp = static_cast<int>(this_process().qp_limit);
    attributes.max_qp_wr = kMaxRequests;
    attributes.device_cap_flags =
        IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN;
    attributes.max_sge = kMaxSge;
    attributes.max_sge_rd = kMaxSge;
    attributes.max_cq = static_cast<int>(kMaxCqs);
    attributes.max_cqe = kMaxCqe;
    attributes.max_mr = static_cast<int>(std::min(this_process().mr_limit, kMaxMrs - 1));
    attributes.max_pd = 65536;
    attributes.max_qp_rd_atom = kMaxReads;
    attributes.max_qp_init_rd_atom = kMaxReads;
    attributes.max_res_rd_atom = kMaxReads * attributes.max_qp;
    attributes.atomic_cap = IBV_ATOMIC_HCA;
    attributes.max_ah = 65536;
    attributes.max_srq = static_cast<int>(kMaxSrqs);
    attributes.max_srq_wr = kMaxRequests;
    attributes.max_srq_sge = kMaxSge;
    attributes.max_pkeys = 1;
    attributes.local_ca_ack_delay = 16;
    attributes.phys_port_cnt = static_cast<uint8_t>(device.ports);
}

void fill_port(const Device& device, const SharedPort& port, ibv_port_attr& attributes) {
    attributes = {};
    attributes.state = port.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes.max_mtu = IBV_MTU_4096;
    attributes.active_mtu = port.mtu;
    attributes.gid_tbl_len = kGids;
    attributes.port_cap_flags = IBV_PORT_CM_SUP;
    if (!port.infiniband) attributes.port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
    attributes.max_msg_sz = 0x40000000;
    attributes.pkey_tbl_len = 1;
    attributes.lid = port.lid;
    attributes.sm_lid = port.infiniband ? 1 : 0;
    attributes.max_vl_num = 1;
    attributes.active_width = device.width;
    attributes.active_speed = device.speed;
    attributes.phys_state = port.up ? 5 : 3;
    attributes.link_layer = port.infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
}

ibv_gid_type type_of(const SharedPort& port, uint32_t index) {
    if (port.infiniband) return IBV_GID_TYPE_IB;
    return index % 2 == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
}

}  // namespace

int query_port(ibv_context* context, uint8_t number, ibv_port_attr* attributes, size_t length) {
    const Lock lock;
    const SharedPort* port = find_port_of(context, number);
    if (port == nullptr) return EINVAL;
    ibv_port_attr whole;
    fill_port(*of(context).device, *port, whole);
    std::memcpy(attributes, &whole, std::min(length, sizeof whole));
    return 0;
}

int query_device(ibv_context* context, const ibv_query_device_ex_input* /*input*/,
                 ibv_device_attr_ex* attributes, size_t length) {
    ibv_device_attr_ex whole{};
    const Lock lock;
    fill_attributes(context, whole.orig_attr);
    whole.device_cap_flags_ex = whole.orig_attr.device_cap_flags;
    whole.completion_timestamp_mask = UINT64_MAX;
    whole.hca_core_clock = 1'000'000;
    whole.phys_port_cnt_ex = whole.orig_attr.phys_port_cnt;
    std::memcpy(attributes, &whole, std::min(length, sizeof whole));
    return 0;
}

}  // namespace pccl::fake_verbs

using namespace pccl::fake_verbs;  // NOLINT(google-build-using-namespace)

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
    const Lock lock;
    fill_attributes(context, *attributes);
    return 0;
}

// Called by programs that know no verbs_context: they have the members up to link_layer.
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
    return query_port(context, port, reinterpret_cast<ibv_port_attr*>(attributes),
                      offsetof(ibv_port_attr, flags));
}

int ibv_query_gid(ibv_context* context, uint8_t number, int index, ibv_gid* gid) {
    ibv_gid_entry entry{};
    const int error =
        _ibv_query_gid_ex(context, number, static_cast<uint32_t>(index), &entry, 0, sizeof entry);
    if (error != 0) {
        errno = error;
        return -1;
    }
    *gid = entry.gid;
    return 0;
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t number, uint32_t index, ibv_gid_entry* entry,
                      uint32_t flags, size_t length) {
    const Lock lock;
    const SharedPort* port = find_port_of(context, number);
    if (port == nullptr || index >= kGids) return EINVAL;
    if (flags != 0) return EOPNOTSUPP;
    const ibv_gid_entry whole{port->gids[index], index, number,
                              static_cast<uint32_t>(type_of(*port, index)), 0};
    std::memcpy(entry, &whole, std::min(length, sizeof whole));
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t most,
                             uint32_t flags, size_t length) {
    size_t written = 0;
    for (uint32_t port = 1; port <= static_cast<uint32_t>(of(context).device->ports); ++port) {
        for (uint32_t index = 0; index < kGids; ++index) {
            if (written == most) return -EINVAL;
            auto* to = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<char*>(entries) +
                                                        written * length);
            const int error = _ibv_query_gid_ex(context, port, index, to, flags, length);
            if (error != 0) return -error;
            ++written;
        }
    }
    return static_cast<ssize_t>(written);
}

// Of libibverbs' private interface, which ibv_devinfo uses: 0 is IB or RoCE v1, 1 is RoCE v2.
extern "C" int ibv_query_gid_type(ibv_context* context, uint8_t number, unsigned int index,
                                  int* type) {
    const Lock lock;
    const SharedPort* port = find_port_of(context, number);
    if (port == nullptr || index >= kGids) {
        errno = EINVAL;
        return -1;
    }
    *type = type_of(*port, index) == IBV_GID_TYPE_ROCE_V2 ? 1 : 0;
    return 0;
}

int ibv_query_pkey(ibv_context* context, uint8_t port, int index, __be16* key) {
    const Lock lock;
    if (find_port_of(context, port) == nullptr || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *key = htons(0xffff);
    return 0;
}

int ibv_get_pkey_index(ibv_context* /*context*/, uint8_t /*port*/, __be16 key) {
    return key == htons(0xffff) ? 0 : -1;
}
