// SPDX-License-Identifier: Apache-2.0

// Version 6 of NCCL's net plug-in ABI: the table `ncclNetPlugin_v6`.
#pragma once

#include "csrc/abi/net_plugin/common.h"

namespace pccl::abi::net_plugin::v6 {

struct Properties {
    const char* name;
    const char* pci_path;  // of the device in /sys, or null
    std::uint64_t guid;    // of the chip: ports of one card have the same
    int ptr_support;       // kPointerHost, ...
    int speed;             // Mbit/s
    int port;
    float latency;  // us; 0 where unknown
    int max_comms;
    int max_recvs;  // of one irecv
};
static_assert(sizeof(Properties) == 48 && offsetof(Properties, max_recvs) == 44);

struct Net {
    const char* name;
    Result (*init)(Logger logger);
    GetDevices devices;
    Result (*get_properties)(int device, Properties* properties);
    Result (*listen)(int device, void* handle, void** listen_comm);
    /// Sets `*send_comm` to null until the connection exists.
    Result (*connect)(int device, void* handle, void** send_comm);
    AcceptV6 accept;
    RegMrInt reg_mr;
    RegMrDmaBuf reg_mr_dma_buf;
    DeregMr dereg_mr;
    IsendInt isend;
    IrecvInt irecv;
    Iflush iflush;
    Test test;
    CloseComm close_send;
    CloseComm close_recv;
    CloseComm close_listen;
};
static_assert(sizeof(Net) == 136 && offsetof(Net, close_listen) == 128);

}  // namespace pccl::abi::net_plugin::v6
