// SPDX-License-Identifier: Apache-2.0

// Compiles only if csrc/abi/net_plugin and NCCL's headers agree (check_abi.sh).

#include <net.h>

#include <cstddef>
#include <type_traits>

#include "csrc/abi/net_plugin/common.h"
#include "csrc/abi/net_plugin/v10.h"
#include "csrc/abi/net_plugin/v11.h"
#include "csrc/abi/net_plugin/v12.h"
#include "csrc/abi/net_plugin/v6.h"
#include "csrc/abi/net_plugin/v7.h"
#include "csrc/abi/net_plugin/v8.h"
#include "csrc/abi/net_plugin/v9.h"

namespace {

namespace ours = pccl::abi::net_plugin;

template <typename A, typename B>
struct Same {
    static constexpr bool kNumbers = (std::is_integral_v<A> || std::is_enum_v<A>) &&
                                     (std::is_integral_v<B> || std::is_enum_v<B>);
    static constexpr bool kFloats = std::is_floating_point_v<A> && std::is_floating_point_v<B>;
    static constexpr bool kClasses = std::is_class_v<A> && std::is_class_v<B>;
    static constexpr bool kArrays = std::is_array_v<A> && std::is_array_v<B>;
    static constexpr bool value =
        sizeof(A) == sizeof(B) && (kNumbers || kFloats || kClasses || kArrays);
};
template <typename A, typename B>
struct Same<A*, B*> {
    static constexpr bool value =
        std::is_pointer_v<A> == std::is_pointer_v<B> && (std::is_void_v<A> == std::is_void_v<B>);
};
// Strings are const only on one side.
template <>
struct Same<const char*, char*> : std::true_type {};
template <typename R, typename... As, typename S, typename... Bs>
struct Same<R (*)(As...), S (*)(Bs...)> {
    static constexpr bool kCount = sizeof...(As) == sizeof...(Bs);
    template <bool kEqual, typename Dummy = void>
    struct All : std::false_type {};
    template <typename Dummy>
    struct All<true, Dummy> : std::bool_constant<(Same<As, Bs>::value && ...)> {};
    static constexpr bool value = Same<R, S>::value && All<kCount>::value;
};
template <typename R, typename... As, typename S, typename... Bs>
struct Same<R (*)(As..., ...), S (*)(Bs..., ...)> : Same<R (*)(As...), S (*)(Bs...)> {};
template <>
struct Same<void, void> : std::true_type {};

#define FIELD(a, ours_name, b, theirs_name)                                                 \
    static_assert(offsetof(a, ours_name) == offsetof(b, theirs_name), #b "." #theirs_name); \
    static_assert(Same<decltype(a::ours_name), decltype(b::theirs_name)>::value,            \
                  #b "." #theirs_name)

FIELD(ours::DeviceHandle, type, ncclNetDeviceHandle_t, netDeviceType);
FIELD(ours::DeviceHandle, version, ncclNetDeviceHandle_t, netDeviceVersion);
FIELD(ours::DeviceHandle, handle, ncclNetDeviceHandle_t, handle);
FIELD(ours::DeviceHandle, size, ncclNetDeviceHandle_t, size);
FIELD(ours::DeviceHandle, needs_proxy_progress, ncclNetDeviceHandle_t, needsProxyProgress);
static_assert(sizeof(ours::DeviceHandle) == sizeof(ncclNetDeviceHandle_t));
static_assert(Same<ours::Logger, ncclDebugLogger_t>::value);
static_assert(Same<ours::ProfilerCallback, ncclProfilerCallback_t>::value);
static_assert(static_cast<int>(ours::Result::kRemoteError) == ncclRemoteError);
static_assert(static_cast<int>(ours::LogLevel::kTrace) == NCCL_LOG_TRACE);
static_assert(static_cast<int>(ours::DeviceType::kUnpack) == NCCL_NET_DEVICE_UNPACK);
static_assert(ours::kUnpackVersion == NCCL_NET_DEVICE_UNPACK_VERSION);
static_assert(ours::kHandleBytes == NCCL_NET_HANDLE_MAXSIZE);
static_assert(ours::kMaxRequests == NCCL_NET_MAX_REQUESTS);
static_assert(ours::kMaxBytes == NCCL_MAX_NET_SIZE_BYTES);
static_assert(ours::kOptionalRecvCompletion == NCCL_NET_OPTIONAL_RECV_COMPLETION);
static_assert(ours::kPointerHost == NCCL_PTR_HOST && ours::kPointerCuda == NCCL_PTR_CUDA);
static_assert(ours::kPointerDmaBuf == NCCL_PTR_DMABUF);
static_assert(ours::kLogInit == NCCL_INIT && ours::kLogNet == NCCL_NET);

#define SIZES(v)                                                                     \
    static_assert(sizeof(ours::v::Properties) == sizeof(ncclNetProperties_##v##_t)); \
    static_assert(sizeof(ours::v::Net) == sizeof(ncclNet_##v##_t))
#define PROPERTY(v, a, b) FIELD(ours::v::Properties, a, ncclNetProperties_##v##_t, b)
#define FUNCTION(v, a, b) FIELD(ours::v::Net, a, ncclNet_##v##_t, b)

#define V6(v)                                   \
    SIZES(v);                                   \
    PROPERTY(v, name, name);                    \
    PROPERTY(v, pci_path, pciPath);             \
    PROPERTY(v, guid, guid);                    \
    PROPERTY(v, ptr_support, ptrSupport);       \
    PROPERTY(v, speed, speed);                  \
    PROPERTY(v, port, port);                    \
    PROPERTY(v, latency, latency);              \
    PROPERTY(v, max_comms, maxComms);           \
    PROPERTY(v, max_recvs, maxRecvs);           \
    FUNCTION(v, name, name);                    \
    FUNCTION(v, init, init);                    \
    FUNCTION(v, devices, devices);              \
    FUNCTION(v, get_properties, getProperties); \
    FUNCTION(v, listen, listen);                \
    FUNCTION(v, connect, connect);              \
    FUNCTION(v, accept, accept);                \
    FUNCTION(v, reg_mr, regMr);                 \
    FUNCTION(v, reg_mr_dma_buf, regMrDmaBuf);   \
    FUNCTION(v, dereg_mr, deregMr);             \
    FUNCTION(v, isend, isend);                  \
    FUNCTION(v, irecv, irecv);                  \
    FUNCTION(v, iflush, iflush);                \
    FUNCTION(v, test, test);                    \
    FUNCTION(v, close_send, closeSend);         \
    FUNCTION(v, close_recv, closeRecv);         \
    FUNCTION(v, close_listen, closeListen)
#define V7(v)                                      \
    V6(v);                                         \
    PROPERTY(v, device_type, netDeviceType);       \
    PROPERTY(v, device_version, netDeviceVersion); \
    FUNCTION(v, get_device_mr, getDeviceMr);       \
    FUNCTION(v, irecv_consumed, irecvConsumed)
#define V8(v) \
    V7(v);    \
    PROPERTY(v, reg_is_global, regIsGlobal)
#define V9(v)                                                                             \
    V8(v);                                                                                \
    static_assert(sizeof(ours::v::VirtualDevice) == sizeof(ncclNetVDeviceProps_##v##_t)); \
    FIELD(ours::v::VirtualDevice, count, ncclNetVDeviceProps_##v##_t, ndevs);             \
    FIELD(ours::v::VirtualDevice, devices, ncclNetVDeviceProps_##v##_t, devs);            \
    PROPERTY(v, force_flush, forceFlush);                                                 \
    PROPERTY(v, joined, vProps);                                                          \
    PROPERTY(v, max_p2p_bytes, maxP2pBytes);                                              \
    PROPERTY(v, max_coll_bytes, maxCollBytes);                                            \
    FUNCTION(v, make_virtual_device, makeVDevice)
#define V10(v)                                                                   \
    V9(v);                                                                       \
    static_assert(sizeof(ours::v::Config) == sizeof(ncclNetCommConfig_##v##_t)); \
    FIELD(ours::v::Config, traffic_class, ncclNetCommConfig_##v##_t, trafficClass)
#define ATTRIBUTE(v, a, b) FIELD(ours::v::CommAttributes, a, ncclNetCommAttr_##v##_t, b)
#define V11(v)                                                                         \
    V10(v);                                                                            \
    PROPERTY(v, max_multi_request_size, maxMultiRequestSize);                          \
    static_assert(sizeof(ours::v::Attributes) == sizeof(ncclNetAttr_##v##_t));         \
    static_assert(sizeof(ours::v::CommAttributes) == sizeof(ncclNetCommAttr_##v##_t)); \
    ATTRIBUTE(v, max_concurrent_peers, maxConcurrentPeers);                            \
    ATTRIBUTE(v, min_concurrent_peers, minConcurrentPeers);                            \
    ATTRIBUTE(v, max_flows_per_peer, maxFlowsPerPeer);                                 \
    ATTRIBUTE(v, min_flows_per_peer, minFlowsPerPeer);                                 \
    FIELD(ours::v::Attributes, send, ncclNetAttr_##v##_t, sendCommAttr);               \
    FIELD(ours::v::Attributes, recv, ncclNetAttr_##v##_t, recvCommAttr);               \
    FIELD(ours::v::Attributes, operation, ncclNetAttr_##v##_t, op);                    \
    FIELD(ours::v::Attributes, algorithm, ncclNetAttr_##v##_t, algo);                  \
    FIELD(ours::v::Attributes, protocol, ncclNetAttr_##v##_t, proto);                  \
    FUNCTION(v, finalize, finalize);                                                   \
    FUNCTION(v, set_net_attributes, setNetAttr)
#define V12(v)                 \
    V11(v);                    \
    PROPERTY(v, rail, railId); \
    PROPERTY(v, plane, planeId)

#ifdef HAS_V6
V6(v6);
#endif
#ifdef HAS_V7
V7(v7);
#endif
#ifdef HAS_V8
V8(v8);
#endif
#ifdef HAS_V9
V9(v9);
#endif
#ifdef HAS_V10
V10(v10);
#endif
#ifdef HAS_V11
V11(v11);
#endif
#ifdef HAS_V12
V12(v12);
#endif

}  // namespace
