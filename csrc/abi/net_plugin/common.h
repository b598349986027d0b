// SPDX-License-Identifier: Apache-2.0

// Types that all versions of the ABI of NCCL's net plug-ins share.
//
// A plug-in is a library that exports a table of functions per version, `ncclNetPlugin_v6` to
// `ncclNetPlugin_v12`. Tables and properties differ between versions (v6.h to v12.h), and a table
// of one version is never read as that of another. tests/netplugin/check_abi.sh compares these
// declarations with NCCL's headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pccl::abi::net_plugin {

inline constexpr int kOldestVersion = 6;
inline constexpr int kNewestVersion = 12;

/// Bytes of a handle. A plug-in keeps state in it between two calls with the same handle.
inline constexpr std::size_t kHandleBytes = 128;

/// Requests in flight per communicator.
inline constexpr int kMaxRequests = 32;
inline constexpr int kMaxRequestsV6 = 8;

/// Longest transfer through sizes of type int (versions 6 to 8), and of the newer ones.
inline constexpr std::size_t kMaxIntBytes = std::size_t{1} << 30U;
inline constexpr std::size_t kMaxBytes = std::size_t{1} << 40U;

/// In `*request` of irecv: the caller may never test this request (version 9 and newer).
inline constexpr std::uintptr_t kOptionalRecvCompletion = 1;

/// Value of traffic classes, rails, planes and attributes that nobody has set.
inline constexpr int kUndefined = -1;

/// Bits of ptr_support, and types of registered memory.
inline constexpr int kPointerHost = 1;
inline constexpr int kPointerCuda = 2;
inline constexpr int kPointerDmaBuf = 4;

enum class Result : std::int32_t {
    kSuccess = 0,
    kUnhandledCudaError = 1,
    kSystemError = 2,
    kInternalError = 3,
    kInvalidArgument = 4,
    kInvalidUsage = 5,
    kRemoteError = 6,
    kInProgress = 7,
    kTimeout = 8,
};

enum class LogLevel : std::int32_t { kNone, kVersion, kWarn, kInfo, kAbort, kTrace };

/// Subsystems of a line of the log: bits of `flags`.
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogAll = ~0UL;

/// Prints one line; the arguments are those of printf().
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

using ProfilerCallback = Result (*)(void** event, int type, void* parent, std::int64_t plugin,
                                    void* data);

/// Who consumes received data: the host, or a kernel that unpacks fragments. The others belong to
/// another interface of NCCL.
enum class DeviceType : std::int32_t {
    kHost = 0,
    kUnpack = 1,
    kGinProxy = 2,
    kGinGdaki = 3,
    kGinGpi = 4,
};
inline constexpr int kUnpackVersion = 7;

/// Result of connect and accept of version 7 and newer, for kernels.
struct DeviceHandle {
    DeviceType type;
    int version;
    void* handle;
    std::size_t size;
    int needs_proxy_progress;
};
static_assert(sizeof(DeviceHandle) == 32 && offsetof(DeviceHandle, handle) == 8);

// Functions whose type is the same in each version that has them. Each returns immediately.

using GetDevices = Result (*)(int* devices);
/// Sets `*recv_comm` to null until the peer has connected.
using AcceptV6 = Result (*)(void* listen_comm, void** recv_comm);
using AcceptV7 = Result (*)(void* listen_comm, void** recv_comm, DeviceHandle** device_handle);
using RegMrInt = Result (*)(void* comm, void* data, int size, int type, void** mhandle);
using RegMr = Result (*)(void* comm, void* data, std::size_t size, int type, void** mhandle);
using RegMrDmaBuf = Result (*)(void* comm, void* data, std::size_t size, int type,
                               std::uint64_t offset, int fd, void** mhandle);
using DeregMr = Result (*)(void* comm, void* mhandle);
/// isend and irecv set `*request` to null where the caller has to call again.
using IsendInt = Result (*)(void* send_comm, void* data, int size, int tag, void* mhandle,
                            void** request);
using IrecvInt = Result (*)(void* recv_comm, int n, void** data, int* sizes, int* tags,
                            void** mhandles, void** request);
using Isend = Result (*)(void* send_comm, void* data, std::size_t size, int tag, void* mhandle,
                         void* profiler_parent, void** request);
using Irecv = Result (*)(void* recv_comm, int n, void** data, std::size_t* sizes, int* tags,
                         void** mhandles, void** profiler_parents, void** request);
using Iflush = Result (*)(void* recv_comm, int n, void** data, int* sizes, void** mhandles,
                          void** request);
/// `sizes`, where not null, has an entry per grouped receive.
using Test = Result (*)(void* request, int* done, int* sizes);
using CloseComm = Result (*)(void* comm);
using GetDeviceMr = Result (*)(void* comm, void* mhandle, void** device_mhandle);
using IrecvConsumed = Result (*)(void* recv_comm, int n, void* request);

}  // namespace pccl::abi::net_plugin
