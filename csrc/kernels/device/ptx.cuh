// SPDX-License-Identifier: Apache-2.0

// Wrappers of single PTX instructions that CUDA C++ does not expose.
#pragma once

#include <cstdint>

#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"

namespace pccl::kernels::device {

// Relaxed accesses at system scope: this multiprocessor's L1, which is not coherent with other
// GPUs, never serves them.

__device__ __forceinline__ uint4 load_system(const uint4* from) {
    uint4 value;
    asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(from)
                 : "memory");
    return value;
}

__device__ __forceinline__ std::uint64_t load_system(const std::uint64_t* from) {
    std::uint64_t value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ std::uint32_t load_system(const std::uint32_t* from) {
    std::uint32_t value;
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ std::uint16_t load_system(const std::uint16_t* from) {
    std::uint16_t value;
    asm volatile("ld.relaxed.sys.global.u16 %0, [%1];" : "=h"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ std::uint8_t load_system(const std::uint8_t* from) {
    std::uint32_t value;
    asm volatile("ld.relaxed.sys.global.u8 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return static_cast<std::uint8_t>(value);
}

__device__ __forceinline__ std::uint32_t load_acquire(const std::uint32_t* from) {
    std::uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
    return value;
}

__device__ __forceinline__ void store_release(std::uint32_t* to, std::uint32_t value) {
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

/// Stores for other blocks of this GPU; does not wait for stores to peers.
__device__ __forceinline__ void store_release_here(std::uint32_t* to, std::uint32_t value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void store_relaxed(std::uint32_t* to, std::uint32_t value) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void store_relaxed(std::uint64_t* to, std::uint64_t value) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}

/// Stores a line. Each half travels whole; a reader may get only one half of the line.
__device__ __forceinline__ void store_line(abi::LLLine* to, const abi::LLLine& line) {
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(line.low),
                 "r"(line.low_epoch), "r"(line.high), "r"(line.high_epoch)
                 : "memory");
}

__device__ __forceinline__ abi::LLLine load_line(const abi::LLLine* from) {
    abi::LLLine line;
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(line.low), "=r"(line.low_epoch), "=r"(line.high), "=r"(line.high_epoch)
                 : "l"(from)
                 : "memory");
    return line;
}

/// Index of the 16 bytes of an LL128 line that contain its number.
inline constexpr int kNumberedPiece = sizeof(abi::LL128Line) / sizeof(uint4) - 1;

/// Stores 16 bytes of an LL128 line, which travel with those of the seven neighbour threads: a
/// whole warp calls it together. `to` is null for threads with no data.
__device__ __forceinline__ void store_piece(abi::LL128Line* to, int piece, const uint4& bytes) {
    __syncwarp();
    if (to == nullptr) return;
    asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                     reinterpret_cast<uint4*>(to) + piece),
                 "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
                 : "memory");
}

/// Loads 16 bytes of an LL128 line together with the seven neighbour threads. Returns whether this
/// thread's part of the line has arrived; the line has arrived when all eight return true.
__device__ __forceinline__ bool load_piece(const abi::LL128Line* from, int piece,
                                           std::uint32_t number, uint4& bytes) {
    asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(bytes.x), "=r"(bytes.y), "=r"(bytes.z), "=r"(bytes.w)
                 : "l"(reinterpret_cast<const uint4*>(from) + piece)
                 : "memory");
    return piece != kNumberedPiece || (bytes.z == number && bytes.w == number);
}

// Programmatic dependent launch (CUDA C++ Programming Guide, 4.5): a kernel starts on the GPU while
// the previous one in its stream ends. GPUs before sm_90 do not support it.

/// Returns when the previous launch has ended and its writes are visible. Kernels begin with it.
__device__ __forceinline__ void await_launch_ahead() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next launch start once a thread of each block has called this or the block has ended.
/// The next launch takes multiprocessors that others may wait for, so only a block that waits for
/// no further rank calls it.
__device__ __forceinline__ void allow_next_launch() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns the cycle counter of this multiprocessor; it wraps.
__device__ __forceinline__ std::uint32_t cycles() {
    std::uint32_t now;
    asm volatile("mov.u32 %0, %clock;" : "=r"(now));
    return now;
}

__device__ __forceinline__ std::uint64_t global_timer_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

}  // namespace pccl::kernels::device
