// SPDX-License-Identifier: Apache-2.0

// The functions of a net plug-in, whatever the version of its table.
//
// Each version has an adapter (table.cc), which reads its own structures. What a version lacks is
// filled in here: devices of version 6 are of type kHost, and so on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/abi/net_plugin/common.h"

namespace pccl::sys::net_plugin {

namespace net = abi::net_plugin;

/// Result of a plug-in's function.
using Code = abi::net_plugin::Result;

/// Properties of a device.
struct DeviceProperties {
    int number = 0;  // by which calls name it
    std::string name;
    std::string pci_path;  // in /sys; empty: none
    std::uint64_t guid = 0;
    int pointer_support = 0;  // bits abi::net_plugin::kPointerHost, ...
    bool is_reg_global = false;
    int megabits = 0;  // Mbit/s
    int port = 0;
    float latency_us = 0;  // 0: unknown
    int max_comms = 0;
    int max_recvs = 0;  // of one irecv
    abi::net_plugin::DeviceType type = abi::net_plugin::DeviceType::kHost;
    int type_version = 0;
    std::size_t max_bytes = abi::net_plugin::kMaxIntBytes;  // of one isend
    int max_multi_request = 1;                              // requests that one isend joins
    int rail = abi::net_plugin::kUndefined;
    int plane = abi::net_plugin::kUndefined;
};

/// Traffic that a process expects, in each direction.
struct Traffic {
    int peers = abi::net_plugin::kUndefined;           // with communicators at a time, at most
    int flows_per_peer = abi::net_plugin::kUndefined;  // communicators of one peer
};

/// One receive of a group.
struct GroupedRecv {
    void* data = nullptr;
    std::size_t bytes = 0;
    int tag = 0;
    void* mhandle = nullptr;
};

/// Table of a plug-in. Functions have the meaning of the ABI; null is passed where it is optional.
class Table {
   public:
    /// Receives of one irecv(), at most.
    static constexpr std::size_t kMostRecvs = 32;

    virtual ~Table() = default;
    [[nodiscard]] virtual int version() const = 0;
    /// Returns the plug-in's name; empty where it has none.
    [[nodiscard]] virtual std::string name() const = 0;
    /// Returns the name of a function that the table must have and lacks; null: none.
    [[nodiscard]] virtual const char* missing_function() const = 0;
    /// Returns how many requests of a communicator may be in flight.
    [[nodiscard]] virtual int max_requests() const = 0;

    virtual Code init(void** context, abi::net_plugin::Logger logger) const = 0;
    virtual Code devices(int* count) const = 0;
    virtual Code get_properties(int device, DeviceProperties* properties) const = 0;
    virtual Code listen(void* context, int device, void* handle, void** listen_comm) const = 0;
    virtual Code connect(void* context, int device, void* handle, void** send_comm) const = 0;
    virtual Code accept(void* listen_comm, void** recv_comm) const = 0;
    virtual Code reg_mr(void* comm, void* data, std::size_t bytes, int type,
                        void** mhandle) const = 0;
    virtual Code dereg_mr(void* comm, void* mhandle) const = 0;
    virtual Code isend(void* send_comm, void* data, std::size_t bytes, int tag, void* mhandle,
                       void** request) const = 0;
    /// Takes up to kMostRecvs receives.
    virtual Code irecv(void* recv_comm, std::span<const GroupedRecv> recvs,
                       void** request) const = 0;
    virtual Code test(void* request, int* done, int* sizes) const = 0;
    virtual Code close_send(void* comm) const = 0;
    virtual Code close_recv(void* comm) const = 0;
    virtual Code close_listen(void* comm) const = 0;
    /// Returns how many devices join() takes; 0: the plug-in does not join devices.
    [[nodiscard]] virtual std::size_t most_joined() const = 0;
    /// Makes a device that joins others, and returns its number (versions from 9 on).
    virtual Code join(std::span<const int> devices, int* joined) const = 0;
    /// Announces traffic to the plug-in. Does nothing in versions before 11.
    virtual Code set_attributes(void* context, const Traffic& traffic) const = 0;
    /// Does nothing in versions before 11.
    virtual Code finalize(void* context) const = 0;
};

/// Returns the adapter of a table that `symbol`, `ncclNetPlugin_v<version>`, refers to; `version`
/// is one of kOldestVersion to kNewestVersion.
[[nodiscard]] std::unique_ptr<Table> adapt(int version, const void* symbol);

}  // namespace pccl::sys::net_plugin
