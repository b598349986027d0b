// SPDX-License-Identifier: Apache-2.0

// Version 10 of NCCL's net plug-in ABI: the table `ncclNetPlugin_v10`.
#pragma once

#include "csrc/abi/net_plugin/common.h"

namespace pccl::abi::net_plugin::v10 {

inline constexpr int kMaxDevicesPerNic = 4;

/// Devices that one virtual device joins.
struct VirtualDevice {
    int count;
    int devices[kMaxDevicesPerNic];  // NOLINT(modernize-avoid-c-arrays)
};
static_assert(sizeof(VirtualDevice) == 20);

struct Config {
    int traffic_class;  // or kUndefined
};

struct Properties {
    const char* name;
    const char* pci_path;  // of the device in /sys, or null
    std::uint64_t guid;    // of the chip: ports of one card have the same
    int ptr_support;       // kPointerHost, ...
    int reg_is_global;     // a registration holds for all communicators
    int force_flush;       // iflush after each receive into memory of a GPU
    int speed;             // Mbit/s
    int port;
    float latency;  // us; 0 where unknown
    int max_comms;
    int max_recvs;  // of one irecv
    DeviceType device_type;
    int device_version;
    VirtualDevice joined;
    std::size_t max_p2p_bytes;   // of one isend
    std::size_t max_coll_bytes;  // of one collective of the network
};
static_assert(sizeof(Properties) == 104 && offsetof(Properties, joined) == 64);
static_assert(offsetof(Properties, max_p2p_bytes) == 88);

struct Net {
    const char* name;
    Result (*init)(Logger logger, ProfilerCallback profiler);
    GetDevices devices;
    Result (*get_properties)(int device, Properties* properties);
    Result (*listen)(int device, void* handle, void** listen_comm);
    Result (*connect)(int device, Config* config, void* handle, void** send_comm,
                      DeviceHandle** device_handle);
    AcceptV7 accept;
    RegMr reg_mr;
    RegMrDmaBuf reg_mr_dma_buf;
    DeregMr dereg_mr;
    Isend isend;
    Irecv irecv;
    Iflush iflush;
    Test test;
    CloseComm close_send;
    CloseComm close_recv;
    CloseComm close_listen;
    GetDeviceMr get_device_mr;
    IrecvConsumed irecv_consumed;
    Result (*make_virtual_device)(int* device, VirtualDevice* joined);
};
static_assert(sizeof(Net) == 160 && offsetof(Net, make_virtual_device) == 152);

}  // namespace pccl::abi::net_plugin::v10
