// SPDX-License-Identifier: Apache-2.0

// Version 12 of NCCL's net plug-in ABI: the table `ncclNetPlugin_v12`.
#pragma once

#include "csrc/abi/net_plugin/common.h"

namespace pccl::abi::net_plugin::v12 {

inline constexpr int kMaxDevicesPerNic = 8;

/// Devices that one virtual device joins.
struct VirtualDevice {
    int count;
    int devices[kMaxDevicesPerNic];  // NOLINT(modernize-avoid-c-arrays)
};
static_assert(sizeof(VirtualDevice) == 36);

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
    int max_multi_request_size;  // requests that one isend joins
    std::int16_t rail;           // or kUndefined
    std::int16_t plane;          // or kUndefined
};
static_assert(sizeof(Properties) == 128 && offsetof(Properties, joined) == 64);
static_assert(offsetof(Properties, max_p2p_bytes) == 104 && offsetof(Properties, plane) == 126);

/// Traffic that the caller expects over communicators of one direction; kUndefined where unknown.
struct CommAttributes {
    std::int32_t max_concurrent_peers;
    std::int32_t min_concurrent_peers;
    std::int32_t max_flows_per_peer;
    std::int32_t min_flows_per_peer;
};

struct Attributes {
    CommAttributes send;
    CommAttributes recv;
    std::uint32_t operation;
    std::uint32_t algorithm;
    std::uint32_t protocol;
};
static_assert(sizeof(Attributes) == 44 && offsetof(Attributes, operation) == 32);

struct Net {
    const char* name;
    /// `*context` belongs to one communicator of the caller, of which `comm` is the number.
    Result (*init)(void** context, std::uint64_t comm, Config* config, Logger logger,
                   ProfilerCallback profiler);
    GetDevices devices;
    Result (*get_properties)(int device, Properties* properties);
    Result (*listen)(void* context, int device, void* handle, void** listen_comm);
    Result (*connect)(void* context, int device, void* handle, void** send_comm,
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
    Result (*finalize)(void* context);
    Result (*set_net_attributes)(void* context, Attributes* attributes);
};
static_assert(sizeof(Net) == 176 && offsetof(Net, set_net_attributes) == 168);

}  // namespace pccl::abi::net_plugin::v12
