// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/net_plugin/table.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

#include "csrc/abi/net_plugin/v10.h"
#include "csrc/abi/net_plugin/v11.h"
#include "csrc/abi/net_plugin/v12.h"
#include "csrc/abi/net_plugin/v6.h"
#include "csrc/abi/net_plugin/v7.h"
#include "csrc/abi/net_plugin/v8.h"
#include "csrc/abi/net_plugin/v9.h"

namespace pccl::sys::net_plugin {
namespace {

#define PCCL_NET_VERSION(number, ...)                  \
    struct V##number {                                 \
        static constexpr int kVersion = number;        \
        using Net = net::v##number::Net;               \
        using Properties = net::v##number::Properties; \
        __VA_ARGS__                                    \
    };
PCCL_NET_VERSION(6)
PCCL_NET_VERSION(7)
PCCL_NET_VERSION(8)
#define PCCL_NET_JOINED(number)                          \
    using VirtualDevice = net::v##number::VirtualDevice; \
    static constexpr std::size_t kMostJoined = net::v##number::kMaxDevicesPerNic;
#define PCCL_NET_CONTEXT(number)                           \
    using Config = net::v##number::Config;                 \
    using CommAttributes = net::v##number::CommAttributes; \
    using Attributes = net::v##number::Attributes;
PCCL_NET_VERSION(9, PCCL_NET_JOINED(9))
PCCL_NET_VERSION(10, PCCL_NET_JOINED(10) using Config = net::v10::Config;)
PCCL_NET_VERSION(11, PCCL_NET_JOINED(11) PCCL_NET_CONTEXT(11))
PCCL_NET_VERSION(12, PCCL_NET_JOINED(12) PCCL_NET_CONTEXT(12))
#undef PCCL_NET_CONTEXT
#undef PCCL_NET_JOINED
#undef PCCL_NET_VERSION

/// Events of a plug-in for NCCL's profiler have no reader here.
Code ignore_event(void** /*event*/, int /*type*/, void* /*parent*/, std::int64_t /*plugin*/,
                  void* /*data*/) {
    return Code::kSuccess;
}

std::string text_of(const char* text) { return text == nullptr ? std::string() : text; }

template <typename V>
class TableOf final : public Table {
   public:
    explicit TableOf(const typename V::Net& net) : net_(net) {}

    [[nodiscard]] int version() const override { return V::kVersion; }
    [[nodiscard]] std::string name() const override { return text_of(net_.name); }
    [[nodiscard]] const char* missing_function() const override;
    [[nodiscard]] int max_requests() const override {
        return V::kVersion == 6 ? net::kMaxRequestsV6 : net::kMaxRequests;
    }

    Code init(void** context, net::Logger logger) const override {
        if constexpr (V::kVersion >= 11) {
            typename V::Config config{net::kUndefined};
            return net_.init(context, 1, &config, logger, &ignore_event);
        } else if constexpr (V::kVersion == 10) {
            return net_.init(logger, &ignore_event);
        } else {
            return net_.init(logger);
        }
    }
    Code devices(int* count) const override { return net_.devices(count); }
    Code get_properties(int device, DeviceProperties* properties) const override;
    Code listen(void* context, int device, void* handle, void** listen_comm) const override {
        if constexpr (V::kVersion >= 11) {
            return net_.listen(context, device, handle, listen_comm);
        } else {
            static_cast<void>(context);
            return net_.listen(device, handle, listen_comm);
        }
    }
    Code connect(void* context, int device, void* handle, void** send_comm) const override;
    Code accept(void* listen_comm, void** recv_comm) const override {
        if constexpr (V::kVersion == 6) {
            return net_.accept(listen_comm, recv_comm);
        } else {
            // Some plug-ins write through the pointer without a check.
            net::DeviceHandle handle{};
            net::DeviceHandle* given = &handle;
            return net_.accept(listen_comm, recv_comm, &given);
        }
    }
    Code reg_mr(void* comm, void* data, std::size_t bytes, int type,
                void** mhandle) const override {
        if constexpr (V::kVersion < 8) {
            if (bytes > net::kMaxIntBytes) return Code::kInvalidArgument;
            return net_.reg_mr(comm, data, static_cast<int>(bytes), type, mhandle);
        } else {
            return net_.reg_mr(comm, data, bytes, type, mhandle);
        }
    }
    Code dereg_mr(void* comm, void* mhandle) const override { return net_.dereg_mr(comm, mhandle); }
    Code isend(void* send_comm, void* data, std::size_t bytes, int tag, void* mhandle,
               void** request) const override {
        if constexpr (V::kVersion < 9) {
            if (bytes > net::kMaxIntBytes) return Code::kInvalidArgument;
            return net_.isend(send_comm, data, static_cast<int>(bytes), tag, mhandle, request);
        } else if constexpr (V::kVersion == 9) {
            return net_.isend(send_comm, data, bytes, tag, mhandle, request);
        } else {
            return net_.isend(send_comm, data, bytes, tag, mhandle, nullptr, request);
        }
    }
    Code irecv(void* recv_comm, std::span<const GroupedRecv> recvs, void** request) const override;
    Code test(void* request, int* done, int* sizes) const override {
        return net_.test(request, done, sizes);
    }
    Code close_send(void* comm) const override { return net_.close_send(comm); }
    Code close_recv(void* comm) const override { return net_.close_recv(comm); }
    Code close_listen(void* comm) const override { return net_.close_listen(comm); }
    [[nodiscard]] std::size_t most_joined() const override {
        if constexpr (V::kVersion >= 9)
            return net_.make_virtual_device == nullptr ? 0 : V::kMostJoined;
        else
            return 0;
    }
    Code join(std::span<const int> devices, int* joined) const override {
        if (devices.size() > most_joined()) return Code::kInvalidArgument;
        if constexpr (V::kVersion >= 9) {
            typename V::VirtualDevice parts{};
            parts.count = static_cast<int>(devices.size());
            std::ranges::copy(devices, std::begin(parts.devices));
            return net_.make_virtual_device(joined, &parts);
        } else {
            return Code::kInvalidArgument;
        }
    }
    Code set_attributes(void* context, const Traffic& traffic) const override;
    Code finalize(void* context) const override {
        if constexpr (V::kVersion >= 11) {
            return net_.finalize == nullptr ? Code::kSuccess : net_.finalize(context);
        } else {
            static_cast<void>(context);
            return Code::kSuccess;
        }
    }

   private:
    const typename V::Net& net_;
};

template <typename V>
const char* TableOf<V>::missing_function() const {
    const std::array<std::pair<bool, const char*>, 14> functions{{
        {net_.init != nullptr, "init"},
        {net_.devices != nullptr, "devices"},
        {net_.get_properties != nullptr, "getProperties"},
        {net_.listen != nullptr, "listen"},
        {net_.connect != nullptr, "connect"},
        {net_.accept != nullptr, "accept"},
        {net_.reg_mr != nullptr, "regMr"},
        {net_.dereg_mr != nullptr, "deregMr"},
        {net_.isend != nullptr, "isend"},
        {net_.irecv != nullptr, "irecv"},
        {net_.test != nullptr, "test"},
        {net_.close_send != nullptr, "closeSend"},
        {net_.close_recv != nullptr, "closeRecv"},
        {net_.close_listen != nullptr, "closeListen"},
    }};
    for (const auto& [is_there, name] : functions)
        if (!is_there) return name;
    return nullptr;
}

template <typename V>
Code TableOf<V>::set_attributes(void* context, const Traffic& traffic) const {
    if constexpr (V::kVersion >= 11) {
        constexpr auto kUnknown = static_cast<std::uint32_t>(net::kUndefined);
        const typename V::CommAttributes each{.max_concurrent_peers = traffic.peers,
                                              .min_concurrent_peers = net::kUndefined,
                                              .max_flows_per_peer = traffic.flows_per_peer,
                                              .min_flows_per_peer = traffic.flows_per_peer};
        typename V::Attributes attributes{.send = each,
                                          .recv = each,
                                          .operation = kUnknown,
                                          .algorithm = kUnknown,
                                          .protocol = kUnknown};
        if (net_.set_net_attributes == nullptr) return Code::kSuccess;
        return net_.set_net_attributes(context, &attributes);
    } else {
        static_cast<void>(context);
        static_cast<void>(traffic);
        return Code::kSuccess;
    }
}

template <typename V>
Code TableOf<V>::get_properties(int device, DeviceProperties* properties) const {
    typename V::Properties theirs{};
    const Code code = net_.get_properties(device, &theirs);
    if (code != Code::kSuccess) return code;
    properties->number = device;
    properties->name = text_of(theirs.name);
    properties->pci_path = text_of(theirs.pci_path);
    properties->guid = theirs.guid;
    properties->pointer_support = theirs.ptr_support;
    properties->megabits = theirs.speed;
    properties->port = theirs.port;
    properties->latency_us = theirs.latency;
    properties->max_comms = theirs.max_comms;
    properties->max_recvs = theirs.max_recvs;
    if constexpr (V::kVersion >= 7) {
        properties->type = theirs.device_type;
        properties->type_version = theirs.device_version;
    }
    if constexpr (V::kVersion >= 8) properties->is_reg_global = theirs.reg_is_global != 0;
    if constexpr (V::kVersion >= 9) properties->max_bytes = theirs.max_p2p_bytes;
    if constexpr (V::kVersion >= 11) properties->max_multi_request = theirs.max_multi_request_size;
    if constexpr (V::kVersion >= 12) {
        properties->rail = theirs.rail;
        properties->plane = theirs.plane;
    }
    return code;
}

template <typename V>
Code TableOf<V>::connect(void* context, int device, void* handle, void** send_comm) const {
    if constexpr (V::kVersion == 6) {
        return net_.connect(device, handle, send_comm);
    } else {
        net::DeviceHandle device_handle{};
        net::DeviceHandle* given = &device_handle;
        if constexpr (V::kVersion < 10) {
            return net_.connect(device, handle, send_comm, &given);
        } else if constexpr (V::kVersion == 10) {
            typename V::Config config{net::kUndefined};
            return net_.connect(device, &config, handle, send_comm, &given);
        } else {
            return net_.connect(context, device, handle, send_comm, &given);
        }
    }
}

template <typename V>
Code TableOf<V>::irecv(void* recv_comm, std::span<const GroupedRecv> recvs, void** request) const {
    using Size = std::conditional_t<(V::kVersion < 9), int, std::size_t>;
    std::array<void*, kMostRecvs> data{};
    std::array<Size, kMostRecvs> sizes{};
    std::array<int, kMostRecvs> tags{};
    std::array<void*, kMostRecvs> mhandles{};
    if (recvs.size() > kMostRecvs) return Code::kInvalidArgument;
    for (std::size_t i = 0; i < recvs.size(); ++i) {
        if (V::kVersion < 9 && recvs[i].bytes > net::kMaxIntBytes) return Code::kInvalidArgument;
        data[i] = recvs[i].data;
        sizes[i] = static_cast<Size>(recvs[i].bytes);
        tags[i] = recvs[i].tag;
        mhandles[i] = recvs[i].mhandle;
    }
    const int count = static_cast<int>(recvs.size());
    if constexpr (V::kVersion < 10) {
        return net_.irecv(recv_comm, count, data.data(), sizes.data(), tags.data(), mhandles.data(),
                          request);
    } else {
        std::array<void*, kMostRecvs> parents{};
        return net_.irecv(recv_comm, count, data.data(), sizes.data(), tags.data(), mhandles.data(),
                          parents.data(), request);
    }
}

template <typename V>
std::unique_ptr<Table> table_of(const void* symbol) {
    return std::make_unique<TableOf<V>>(*static_cast<const typename V::Net*>(symbol));
}

}  // namespace

std::unique_ptr<Table> adapt(int version, const void* symbol) {
    constexpr std::array kAdapters{&table_of<V6>,  &table_of<V7>,  &table_of<V8>, &table_of<V9>,
                                   &table_of<V10>, &table_of<V11>, &table_of<V12>};
    static_assert(kAdapters.size() == net::kNewestVersion - net::kOldestVersion + 1);
    return kAdapters.at(static_cast<std::size_t>(version - net::kOldestVersion))(symbol);
}

}  // namespace pccl::sys::net_plugin
