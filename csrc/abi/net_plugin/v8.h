// SPDX-License-Identifier: Apache-2.0

// Version 8 of NCCL's net plug-in ABI: the table `ncclNetPlugin_v8`.
#pragma once

#include "csrc/abi/net_plugin/common.h"

namespace pccl::abi::net_plugin::v8 {

struct Properties {
    const char* name;
    const char* pci_path;  // of the device in /sys, or null
    std::uint64_t guid;    // of the chip: ports of one card have the same
    int ptr_support;       // kPointerHost, ...
    int reg_is_global;     // a registration holds for all communicators
    int speed;             // Mbit/s
    int port;
    float latency;  // us; 0 where unknown
    int max_comms;
    int max_recvs;  // of one irecv
    DeviceType device_type;
    int device_version;
};
static_assert(sizeof(Properties) == 64 && offsetof(Properties, speed) == 32);
static_assert(offsetof(Properties, device_type) == 52);

struct Net {
    const char* name;
    Result (*init)(Logger logger);
    GetDevices devices;
    Result (*get_properties)(int device, Properties* properties);
    Result (*listen)(int device, void* handle, void** listen_comm);
    Result (*connect)(int device, void* handle, void** send_comm, DeviceHandle** device_handle);
    AcceptV7 accept;
    RegMr reg_mr;
    RegMrDmaBuf reg_mr_dma_buf;
    DeregMr dereg_mr;
    IsendInt isend;
    IrecvInt irecv;
    Iflush iflush;
    Test test;
    CloseComm close_send;
    CloseComm close_recv;
    CloseComm close_listen;
    GetDeviceMr get_device_mr;
    IrecvConsumed irecv_consumed;
};
static_assert(sizeof(Net) == 152 && offsetof(Net, irecv_consumed) == 144);

}  // namespace pccl::abi::net_plugin::v8
