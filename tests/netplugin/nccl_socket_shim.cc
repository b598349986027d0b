// SPDX-License-Identifier: Apache-2.0

// What NCCL's socket transport takes from the rest of NCCL, for a plug-in of it alone: settings
// from the environment, no log but warnings, no GPU. tests/netplugin/nccl_socket.sh compiles it
// against NCCL's headers.

#include <cuda_runtime.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "debug.h"

int ncclDebugLevel = NCCL_LOG_WARN;
std::uint64_t ncclDebugMask = 0;
thread_local int ncclDebugNoWarn = 0;

void ncclDebugLogInternal(ncclDebugLogLevel level, unsigned long /*flags*/, const char* /*file*/,
                          const char* /*function*/, int /*line*/, const char* format, ...) {
    if (level != NCCL_LOG_WARN) return;
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
}

void ncclSetThreadName(std::thread& /*thread*/, const char* /*format*/, ...) {}
void ncclInitEnv() {}
const char* ncclEnvPluginGetEnv(const char* name) { return std::getenv(name); }
std::int64_t ncclParamSetCpuStackSize() { return 0; }
extern "C" bool ncclParamIsCacheDisabled() { return false; }

extern "C" {
cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t /*error*/) { return "no GPU"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* /*value*/, cudaDeviceAttr /*attribute*/, int /*device*/) {
    return cudaErrorNotSupported;
}
cudaError_t cudaDeviceGetPCIBusId(char* /*text*/, int /*bytes*/, int /*device*/) {
    return cudaErrorNotSupported;
}
cudaError_t cudaHostGetDevicePointer(void** /*device*/, void* /*host*/, unsigned /*flags*/) {
    return cudaErrorNotSupported;
}
cudaError_t cudaHostRegister(void* /*host*/, std::size_t /*bytes*/, unsigned /*flags*/) {
    return cudaErrorNotSupported;
}
cudaError_t cudaHostUnregister(void* /*host*/) { return cudaErrorNotSupported; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* /*mode*/) {
    return cudaSuccess;
}
}
