// SPDX-License-Identifier: Apache-2.0

// The exported tables of the strict plug-in. PCCL_TEST_NET_VERSION, where it is defined, is the
// only version that this library has.

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>

#include "csrc/abi/net_plugin/v10.h"
#include "csrc/abi/net_plugin/v11.h"
#include "csrc/abi/net_plugin/v12.h"
#include "csrc/abi/net_plugin/v6.h"
#include "csrc/abi/net_plugin/v7.h"
#include "csrc/abi/net_plugin/v8.h"
#include "csrc/abi/net_plugin/v9.h"
#include "tests/fakes/netplugin/comms.h"
#include "tests/fakes/netplugin/rules.h"

namespace pccl::fakes::netplugin {
namespace {

constexpr const char* kName = "PcclStrict";
constexpr int kMegabits = 100'000;
constexpr int kMostGrouped = 8;

/// A context of versions 11 and newer; init() of older ones has none.
constexpr char kContext = 'c';
void* context() { return const_cast<char*>(&kContext); }

template <int kVersion>
constexpr int kMostRequests = kVersion == 6 ? net::kMaxRequestsV6 : net::kMaxRequests;

/// Runs a call unless the rules have another act for it.
template <typename Body>
Code act(const char* call, Body body) {
    return Rules::of_process().decide(call) == Act::kFail ? Code::kSystemError : body();
}

/// Likewise for calls that may return null in `*result`.
template <typename Body>
Code act_or_null(const char* call, void** result, Body body) {
    *result = nullptr;
    const Act decided = Rules::of_process().decide(call, true);
    if (decided == Act::kFail) return Code::kSystemError;
    return decided == Act::kReturnNull ? Code::kSuccess : body();
}

Code start(net::Logger logger) {
    return act("init", [&] {
        Engine::of_process().log_to(logger);
        return Code::kSuccess;
    });
}

int device_count() { return static_cast<int>(Rules::of_process().number("devices", 2)); }

Code devices(int* count) {
    return act("devices", [&] {
        *count = device_count();
        return Code::kSuccess;
    });
}

int rail_of(int device) {
    const auto base = static_cast<int>(Rules::of_process().number("rails", -1));
    return base < 0 ? device : base - device;
}

template <int kVersion, typename Properties>
Code get_properties(int device, Properties* properties) {
    return act("getProperties", [&] {
        static constexpr std::array kNames{"strict0", "strict1", "strict2", "strict3"};
        Rules& rules = Rules::of_process();
        const std::vector<int> parts = Engine::of_process().parts_of(device, device_count());
        if (parts.empty()) return Engine::of_process().forbid("getProperties of no device");
        *properties = {};
        properties->name = parts.size() > 1
                               ? "joined"
                               : kNames.at(static_cast<std::size_t>(device) % kNames.size());
        properties->guid = 0x1000 + static_cast<std::uint64_t>(parts[0] / rules.number("ports", 1));
        properties->ptr_support = static_cast<int>(rules.number("pointers", net::kPointerHost));
        properties->speed = kMegabits * static_cast<int>(parts.size());
        properties->port = device + 1;
        properties->max_comms = 65536;
        properties->max_recvs = kMostGrouped;
        if constexpr (kVersion >= 7) {
            properties->device_type = static_cast<net::DeviceType>(rules.number("type", 0));
            properties->device_version = net::kUnpackVersion;
        }
        if constexpr (kVersion >= 9) {
            properties->joined.count = static_cast<int>(parts.size());
            std::ranges::copy(parts, std::begin(properties->joined.devices));
            properties->max_p2p_bytes = net::kMaxBytes;
            properties->max_coll_bytes = net::kMaxBytes;
        }
        if constexpr (kVersion >= 11) properties->max_multi_request_size = 1;
        if constexpr (kVersion >= 12) {
            properties->rail = static_cast<std::int16_t>(rail_of(device));
            properties->plane = net::kUndefined;
        }
        return Code::kSuccess;
    });
}

bool is_device(int device) {
    return !Engine::of_process().parts_of(device, device_count()).empty();
}

Code listen_at(int device, int rail, void* handle, void** listen_comm) {
    return act("listen", [&] {
        if (!is_device(device)) return Engine::of_process().forbid("listen at no device");
        if (Rules::of_process().number("no_comm", 0) != 0) return Code::kSuccess;
        const auto overrun = static_cast<std::size_t>(Rules::of_process().number("overrun", 0));
        std::memset(handle, 0x5A, net::kHandleBytes + 40 * overrun);
        return Engine::of_process().listen(handle, {.device = device, .rail = rail}, listen_comm);
    });
}

Code connect_from(int device, int rail, void* handle, void** send_comm) {
    return act_or_null("connect", send_comm, [&] {
        if (!is_device(device)) return Engine::of_process().forbid("connect at no device");
        return Engine::of_process().connect(handle, {.device = device, .rail = rail}, send_comm);
    });
}

Code listen(int device, void* handle, void** listen_comm) {
    return listen_at(device, net::kUndefined, handle, listen_comm);
}
Code connect(int device, void* handle, void** send_comm) {
    return connect_from(device, net::kUndefined, handle, send_comm);
}

Code accept(void* listen_comm, void** recv_comm) {
    return act_or_null("accept", recv_comm,
                       [&] { return Engine::of_process().accept(listen_comm, recv_comm); });
}

/// Writes the handle for kernels through the pointer without a check, as some plug-ins do.
Code accept_v7(void* listen_comm, void** recv_comm, net::DeviceHandle** device_handle) {
    (*device_handle)->type = net::DeviceType::kHost;
    return accept(listen_comm, recv_comm);
}

Code reg_mr(void* comm, void* data, std::size_t bytes, int type, void** mhandle) {
    return act("regMr",
               [&] { return Engine::of_process().reg_mr(comm, data, bytes, type, mhandle); });
}
Code reg_mr_int(void* comm, void* data, int bytes, int type, void** mhandle) {
    return reg_mr(comm, data, static_cast<std::size_t>(bytes), type, mhandle);
}

Code dereg_mr(void* comm, void* mhandle) {
    return act("deregMr", [&] { return Engine::of_process().dereg_mr(comm, mhandle); });
}

template <int kVersion, typename Size>
Code isend(void* comm, void* data, Size bytes, int tag, void* mhandle, void** request) {
    return act_or_null("isend", request, [&] {
        const Entry entry{.data = static_cast<std::byte*>(data),
                          .bytes = static_cast<std::size_t>(bytes),
                          .tag = tag};
        return Engine::of_process().isend(comm, entry, mhandle, request, kMostRequests<kVersion>);
    });
}
template <int kVersion>
Code isend_v10(void* comm, void* data, std::size_t bytes, int tag, void* mhandle, void* /*parent*/,
               void** request) {
    return isend<kVersion, std::size_t>(comm, data, bytes, tag, mhandle, request);
}

template <int kVersion, typename Size>
Code irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
           void** request) {
    return act_or_null("irecv", request, [&] {
        if (n < 1 || n > kMostGrouped) return Code::kInvalidArgument;
        std::vector<Entry> entries;
        for (int i = 0; i < n; ++i)
            entries.push_back({.data = static_cast<std::byte*>(data[i]),
                               .bytes = static_cast<std::size_t>(sizes[i]),
                               .tag = tags[i]});
        return Engine::of_process().irecv(comm, std::move(entries), mhandles, request,
                                          kMostRequests<kVersion>);
    });
}
template <int kVersion>
Code irecv_v10(void* comm, int n, void** data, std::size_t* sizes, int* tags, void** mhandles,
               void** /*parents*/, void** request) {
    return irecv<kVersion, std::size_t>(comm, n, data, sizes, tags, mhandles, request);
}

/// All memory is the host's, where nothing is left to flush.
Code iflush(void* /*comm*/, int /*n*/, void** /*data*/, int* /*sizes*/, void** /*mhandles*/,
            void** request) {
    *request = nullptr;
    return Engine::of_process().forbid("iflush is called for memory of the host");
}

template <typename VirtualDevice>
Code make_virtual_device(int* joined, VirtualDevice* parts) {
    return act("makeVDevice", [&] {
        const int most = static_cast<int>(std::size(parts->devices));
        if (parts->count < 0 || parts->count > most) return Code::kInvalidArgument;
        return Engine::of_process().join({parts->devices, parts->devices + parts->count},
                                         device_count(), joined);
    });
}

Code test(void* request, int* done, int* sizes) {
    return act("test", [&] { return Engine::of_process().test(request, done, sizes); });
}

Code close_send(void* comm) {
    return act("closeSend", [&] { return Engine::of_process().close(comm, Role::kSend); });
}
Code close_recv(void* comm) {
    return act("closeRecv", [&] { return Engine::of_process().close(comm, Role::kRecv); });
}
Code close_listen(void* comm) {
    return act("closeListen", [&] { return Engine::of_process().close(comm, Role::kListen); });
}

/// Fills in what has the same type in all versions.
template <int kVersion, typename Net, typename Properties>
Net common() {
    Net table{};
    table.name = kName;
    table.devices = &devices;
    table.get_properties = &get_properties<kVersion, Properties>;
    table.dereg_mr = &dereg_mr;
    table.iflush = &iflush;
    table.test = &test;
    table.close_send = &close_send;
    table.close_recv = &close_recv;
    table.close_listen = &close_listen;
    if constexpr (kVersion == 6)
        table.accept = &accept;
    else
        table.accept = &accept_v7;
    if constexpr (kVersion < 8)
        table.reg_mr = &reg_mr_int;
    else
        table.reg_mr = &reg_mr;
    if constexpr (kVersion < 9) {
        table.isend = &isend<kVersion, int>;
        table.irecv = &irecv<kVersion, int>;
    } else if constexpr (kVersion == 9) {
        table.isend = &isend<kVersion, std::size_t>;
        table.irecv = &irecv<kVersion, std::size_t>;
    } else {
        table.isend = &isend_v10<kVersion>;
        table.irecv = &irecv_v10<kVersion>;
    }
    if constexpr (kVersion >= 9)
        table.make_virtual_device = &make_virtual_device<decltype(Properties::joined)>;
    if constexpr (kVersion < 10) table.init = &start;
    if constexpr (kVersion < 11) table.listen = &listen;
    if constexpr (kVersion == 6) table.connect = &connect;
    if constexpr (kVersion > 6 && kVersion < 10)
        table.connect = [](int device, void* handle, void** send_comm, net::DeviceHandle**) {
            return connect(device, handle, send_comm);
        };
    return table;
}

[[maybe_unused]] net::v10::Net table_v10() {
    auto table = common<10, net::v10::Net, net::v10::Properties>();
    table.init = [](net::Logger logger, net::ProfilerCallback) { return start(logger); };
    table.connect = [](int device, net::v10::Config* config, void* handle, void** send_comm,
                       net::DeviceHandle**) {
        return config == nullptr ? Code::kInvalidArgument : connect(device, handle, send_comm);
    };
    return table;
}

/// Versions with contexts.
template <int kVersion, typename Net, typename Properties, typename Config>
Net newest() {
    auto table = common<kVersion, Net, Properties>();
    table.init = [](void** made, std::uint64_t, Config* config, net::Logger logger,
                    net::ProfilerCallback) {
        if (config == nullptr) return Code::kInvalidArgument;
        *made = context();
        return start(logger);
    };
    table.listen = [](void* given, int device, void* handle, void** listen_comm) {
        const int rail = kVersion >= 12 ? rail_of(device) : net::kUndefined;
        return given == context() ? listen_at(device, rail, handle, listen_comm)
                                  : Code::kInvalidArgument;
    };
    table.connect = [](void* given, int device, void* handle, void** send_comm,
                       net::DeviceHandle**) {
        const int rail = kVersion >= 12 ? rail_of(device) : net::kUndefined;
        return given == context() ? connect_from(device, rail, handle, send_comm)
                                  : Code::kInvalidArgument;
    };
    table.set_net_attributes = [](void* given, auto* attributes) {
        if (given != context()) return Code::kInvalidArgument;
        return act("setNetAttr", [&] {
            return Engine::of_process().expect(attributes->send.max_concurrent_peers,
                                               attributes->send.max_flows_per_peer);
        });
    };
    table.finalize = [](void* given) {
        return given == context() ? Code::kSuccess : Code::kInvalidArgument;
    };
    return table;
}

}  // namespace
}  // namespace pccl::fakes::netplugin

namespace fake = pccl::fakes::netplugin;
namespace net = pccl::abi::net_plugin;

// NOLINTBEGIN(bugprone-throwing-static-initialization)
extern "C" {

#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 6
net::v6::Net ncclNetPlugin_v6 = fake::common<6, net::v6::Net, net::v6::Properties>();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 7
net::v7::Net ncclNetPlugin_v7 = fake::common<7, net::v7::Net, net::v7::Properties>();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 8
net::v8::Net ncclNetPlugin_v8 = fake::common<8, net::v8::Net, net::v8::Properties>();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 9
net::v9::Net ncclNetPlugin_v9 = fake::common<9, net::v9::Net, net::v9::Properties>();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 10
net::v10::Net ncclNetPlugin_v10 = fake::table_v10();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 11
net::v11::Net ncclNetPlugin_v11 =
    fake::newest<11, net::v11::Net, net::v11::Properties, net::v11::Config>();
#endif
#if !defined(PCCL_TEST_NET_VERSION) || PCCL_TEST_NET_VERSION == 12
net::v12::Net ncclNetPlugin_v12 =
    fake::newest<12, net::v12::Net, net::v12::Properties, net::v12::Config>();
#endif
// NOLINTEND(bugprone-throwing-static-initialization)

/// Replaces the rules of this process (rules.h).
void pccl_strict_set(const char* rules) { fake::Rules::of_process().set(rules); }
/// Returns how often a function was called since the rules were set.
long pccl_strict_calls(const char* call) { return fake::Rules::of_process().calls(call); }
/// Returns the number of communicators, those that connect among them.
long pccl_strict_communicators() { return fake::Engine::of_process().communicators(); }
/// Returns the bytes of messages that a device has sent.
long pccl_strict_sent(int device) { return fake::Engine::of_process().sent(device); }
/// Returns how often the ABI was violated so far.
long pccl_strict_violations() { return fake::Engine::of_process().violations(); }

}  // extern "C"
