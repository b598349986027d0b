// SPDX-License-Identifier: Apache-2.0

// The tables that NCCL looks for, one for each version of the interface. A process of NCCL uses
// the newest one that it has.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "csrc/abi/net_plugin/common.h"
#include "csrc/abi/net_plugin/v10.h"
#include "csrc/abi/net_plugin/v11.h"
#include "csrc/abi/net_plugin/v12.h"
#include "csrc/abi/net_plugin/v6.h"
#include "csrc/abi/net_plugin/v7.h"
#include "csrc/abi/net_plugin/v8.h"
#include "csrc/abi/net_plugin/v9.h"
#include "plugins/nccl/nccl_log.h"
#include "plugins/nccl/plugin.h"

namespace pccl::nccl {
namespace {

namespace abi = pccl::abi::net_plugin;
using NcclResult = abi::Result;

constexpr const char* kName = "PCCL";
constexpr int kMaxComms = 65536;

NcclResult code_of(StatusCode code) {
    switch (code) {
        case StatusCode::kOk:
            return NcclResult::kSuccess;
        case StatusCode::kInvalidArgument:
        case StatusCode::kUnsupported:
            return NcclResult::kInvalidArgument;
        case StatusCode::kMismatch:
            return NcclResult::kInvalidUsage;
        case StatusCode::kPeerLost:
        case StatusCode::kTimeout:
            return NcclResult::kRemoteError;
        case StatusCode::kInternal:
            return NcclResult::kInternalError;
        default:
            return NcclResult::kSystemError;
    }
}

/// Logs an error, for the user of NCCL, who sees only the code otherwise.
NcclResult report(const Status& status) {
    if (status.is_ok()) return NcclResult::kSuccess;
    nccl_log().warn(status.message());
    return code_of(status.code());
}

NcclResult refuse(std::string_view why) {
    return report(Status::invalid_argument(std::string(why)));
}

template <typename Object>
NcclResult hand_over(Result<std::unique_ptr<Object>> made, void** target) {
    if (!made.is_ok()) return report(made.status());
    *target = made->release();
    return NcclResult::kSuccess;
}

NcclResult init(abi::Logger logger) {
    nccl_log().set(logger);
    return report(Plugin::of_process().init());
}

NcclResult init(abi::Logger logger, abi::ProfilerCallback /*profiler*/) { return init(logger); }

template <typename Config>
NcclResult init(void** context, std::uint64_t /*comm*/, Config* /*config*/, abi::Logger logger,
                abi::ProfilerCallback /*profiler*/) {
    *context = nullptr;
    return init(logger);
}

NcclResult devices(int* count) {
    *count = 1;
    return NcclResult::kSuccess;
}

bool is_ours(int device) { return device == 0; }

template <typename Properties>
NcclResult get_properties(int device, Properties* properties) {
    if (!is_ours(device)) return refuse("there is one device, of index 0");
    const NetworkDevice& network = Plugin::of_process().device();
    *properties = {};
    properties->name = network.name.c_str();
    properties->pci_path = network.pci_path.empty() ? nullptr : network.pci_path.c_str();
    properties->ptr_support = abi::kPointerHost;
    properties->speed = network.megabits;
    properties->max_comms = kMaxComms;
    properties->max_recvs = 1;
    if constexpr (requires { properties->device_type; }) {
        properties->device_type = abi::DeviceType::kHost;
        properties->device_version = abi::kUndefined;
    }
    if constexpr (requires { properties->joined; }) {
        properties->joined.count = 1;
        properties->joined.devices[0] = device;
        properties->max_p2p_bytes = abi::kMaxBytes;
        properties->max_coll_bytes = abi::kMaxBytes;
    }
    if constexpr (requires { properties->max_multi_request_size; })
        properties->max_multi_request_size = 1;
    if constexpr (requires { properties->rail; }) {
        properties->rail = abi::kUndefined;
        properties->plane = abi::kUndefined;
    }
    return NcclResult::kSuccess;
}

NcclResult listen(int device, void* handle, void** listen_comm) {
    if (!is_ours(device)) return refuse("there is one device, of index 0");
    return hand_over(Plugin::of_process().listen(handle), listen_comm);
}

NcclResult listen(void* /*context*/, int device, void* handle, void** listen_comm) {
    return listen(device, handle, listen_comm);
}

NcclResult connect(int device, void* handle, void** send_comm) {
    *send_comm = nullptr;
    if (!is_ours(device)) return refuse("there is one device, of index 0");
    return hand_over(Plugin::of_process().connect(handle), send_comm);
}

NcclResult connect(int device, void* handle, void** send_comm,
                   abi::DeviceHandle** /*device_handle*/) {
    return connect(device, handle, send_comm);
}

NcclResult connect(int device, abi::v10::Config* /*config*/, void* handle, void** send_comm,
                   abi::DeviceHandle** /*device_handle*/) {
    return connect(device, handle, send_comm);
}

NcclResult connect(void* /*context*/, int device, void* handle, void** send_comm,
                   abi::DeviceHandle** /*device_handle*/) {
    return connect(device, handle, send_comm);
}

NcclResult accept(void* listen_comm, void** recv_comm) {
    *recv_comm = nullptr;
    return hand_over(static_cast<ListenComm*>(listen_comm)->accept(), recv_comm);
}

NcclResult accept(void* listen_comm, void** recv_comm, abi::DeviceHandle** /*device_handle*/) {
    return accept(listen_comm, recv_comm);
}

template <typename Size>
NcclResult reg_mr(void* /*comm*/, void* /*data*/, Size /*size*/, int type, void** mhandle) {
    *mhandle = nullptr;
    if (type == abi::kPointerHost) return NcclResult::kSuccess;
    return refuse("memory of GPUs is not registered: the device has host pointers only");
}

NcclResult dereg_mr(void* /*comm*/, void* /*mhandle*/) { return NcclResult::kSuccess; }

NcclResult hand_over(const Result<Request*>& posted, void** request) {
    *request = nullptr;
    if (!posted.is_ok()) return report(posted.status());
    *request = *posted;
    return NcclResult::kSuccess;
}

NcclResult send_bytes(void* send_comm, void* data, std::size_t size, void** request) {
    return hand_over(
        static_cast<SendComm*>(send_comm)->isend({static_cast<const std::byte*>(data), size}),
        request);
}

NcclResult receive_bytes(void* recv_comm, int n, void** data, std::size_t size, void** request) {
    if (n != 1) return refuse("a receive has one buffer: max_recvs is 1");
    return hand_over(
        static_cast<RecvComm*>(recv_comm)->irecv({static_cast<std::byte*>(data[0]), size}),
        request);
}

NcclResult isend(void* send_comm, void* data, int size, int /*tag*/, void* /*mhandle*/,
                 void** request) {
    if (size < 0) return refuse("the size of a message is negative");
    return send_bytes(send_comm, data, static_cast<std::size_t>(size), request);
}

NcclResult isend(void* send_comm, void* data, std::size_t size, int /*tag*/, void* /*mhandle*/,
                 void** request) {
    return send_bytes(send_comm, data, size, request);
}

NcclResult isend(void* send_comm, void* data, std::size_t size, int /*tag*/, void* /*mhandle*/,
                 void* /*profiler_parent*/, void** request) {
    return send_bytes(send_comm, data, size, request);
}

NcclResult irecv(void* recv_comm, int n, void** data, int* sizes, int* /*tags*/,
                 void** /*mhandles*/, void** request) {
    if (n != 1 || sizes[0] < 0) return refuse("a receive has one buffer, of no negative size");
    return receive_bytes(recv_comm, n, data, static_cast<std::size_t>(sizes[0]), request);
}

NcclResult irecv(void* recv_comm, int n, void** data, std::size_t* sizes, int* /*tags*/,
                 void** /*mhandles*/, void** request) {
    return receive_bytes(recv_comm, n, data, sizes[0], request);
}

NcclResult irecv(void* recv_comm, int n, void** data, std::size_t* sizes, int* /*tags*/,
                 void** /*mhandles*/, void** /*profiler_parents*/, void** request) {
    return receive_bytes(recv_comm, n, data, sizes[0], request);
}

/// Nothing is left to flush in host memory: a null request has ended.
NcclResult iflush(void* /*recv_comm*/, int /*n*/, void** /*data*/, int* /*sizes*/,
                  void** /*mhandles*/, void** request) {
    *request = nullptr;
    return NcclResult::kSuccess;
}

NcclResult test(void* request, int* done, int* sizes) {
    *done = 0;
    if (request == nullptr) return refuse("there is no request to test");
    const auto ended = Communicator::test(*static_cast<Request*>(request));
    if (!ended.is_ok()) return report(ended.status());
    if (!*ended) return NcclResult::kSuccess;
    *done = 1;
    if (sizes != nullptr) *sizes = static_cast<int>(**ended);
    return NcclResult::kSuccess;
}

NcclResult close_send(void* comm) {
    const std::unique_ptr<SendComm> closed(static_cast<SendComm*>(comm));
    closed->finish();
    return NcclResult::kSuccess;
}

NcclResult close_recv(void* comm) {
    delete static_cast<RecvComm*>(comm);
    return NcclResult::kSuccess;
}

NcclResult close_listen(void* comm) {
    delete static_cast<ListenComm*>(comm);
    return NcclResult::kSuccess;
}

NcclResult finalize(void* /*context*/) {
    Plugin::of_process().finalize();
    return NcclResult::kSuccess;
}

/// Returns the table of a version: of functions with several types, each member takes its own.
template <typename Net>
constexpr Net table() {
    Net net{};
    net.name = kName;
    net.init = init;
    net.devices = devices;
    net.get_properties = get_properties;
    net.listen = listen;
    net.connect = connect;
    net.accept = accept;
    net.reg_mr = reg_mr;
    net.dereg_mr = dereg_mr;
    net.isend = isend;
    net.irecv = irecv;
    net.iflush = iflush;
    net.test = test;
    net.close_send = close_send;
    net.close_recv = close_recv;
    net.close_listen = close_listen;
    if constexpr (requires { net.finalize; }) net.finalize = finalize;
    return net;
}

}  // namespace
}  // namespace pccl::nccl

// NOLINTBEGIN(readability-identifier-naming): the names that NCCL looks for
#define PCCL_NET_TABLE(version)                                         \
    extern "C" __attribute__((visibility("default")))                   \
    const pccl::abi::net_plugin::version::Net ncclNetPlugin_##version = \
        pccl::nccl::table<pccl::abi::net_plugin::version::Net>()

PCCL_NET_TABLE(v6);
PCCL_NET_TABLE(v7);
PCCL_NET_TABLE(v8);
PCCL_NET_TABLE(v9);
PCCL_NET_TABLE(v10);
PCCL_NET_TABLE(v11);
PCCL_NET_TABLE(v12);
// NOLINTEND(readability-identifier-naming)
