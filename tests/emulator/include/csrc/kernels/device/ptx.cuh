// SPDX-License-Identifier: Apache-2.0

// Stands in for the header of this name where kernels are compiled for the emulated GPU.
#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

#include "csrc/abi/device_program.h"
#include "csrc/abi/device_team.h"
#include "tests/emulator/include/cuda_runtime.h"

namespace pccl::kernels::device {

/// What is as wide as this is a packet of a tensor.
inline uint4 load_system(const uint4* from) {
    emulator::before_packet();
    return *from;
}
template <typename T>
T load_system(const T* from) {
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

inline std::uint32_t load_acquire(const std::uint32_t* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
inline void store_release(std::uint32_t* to, std::uint32_t value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}
inline void store_release_here(std::uint32_t* to, std::uint32_t value) { store_release(to, value); }
/// Kernels store so behind loads alone, which are done by then: C++ has only this for it.
template <typename T>
void store_relaxed(T* to, std::type_identity_t<T> value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/// A line as its halves, which travel whole. An entry line also means that what its sender's stream
/// held before the launch is there: that is a launch's doing, and the line's here.
struct Halves {
    std::uint64_t low;
    std::uint64_t high;
};
static_assert(sizeof(Halves) == sizeof(abi::LLLine));

inline void store_line(abi::LLLine* to, const abi::LLLine& line) {
    Halves halves;
    std::memcpy(&halves, &line, sizeof halves);
    auto* const there = reinterpret_cast<std::uint64_t*>(to);
    __atomic_store_n(there, halves.low, __ATOMIC_RELEASE);
    __atomic_store_n(there + 1, halves.high, __ATOMIC_RELEASE);
}

inline abi::LLLine load_line(const abi::LLLine* from) {
    const auto* const there = reinterpret_cast<const std::uint64_t*>(from);
    const Halves halves{__atomic_load_n(there, __ATOMIC_ACQUIRE),
                        __atomic_load_n(there + 1, __ATOMIC_ACQUIRE)};
    abi::LLLine line;
    std::memcpy(&line, &halves, sizeof line);
    return line;
}

inline constexpr int kNumberedPiece = sizeof(abi::LL128Line) / sizeof(uint4) - 1;

inline void store_halves(std::uint64_t* to, const uint4& bytes) {
    Halves halves;
    std::memcpy(&halves, &bytes, sizeof halves);
    __atomic_store_n(to, halves.low, __ATOMIC_RELAXED);
    __atomic_store_n(to + 1, halves.high, __ATOMIC_RELEASE);
}

/// Whole, since the piece with the number comes last.
inline void store_piece(abi::LL128Line* to, int piece, const uint4& bytes) {
    auto* const there = to == nullptr ? nullptr : reinterpret_cast<std::uint64_t*>(to) + 2 * piece;
    const bool is_last = piece == kNumberedPiece;
    if (there != nullptr && !is_last) store_halves(there, bytes);
    __syncwarp();
    if (there != nullptr && is_last) store_halves(there, bytes);
}

/// Every thread looks at the number, before it loads: threads load one after the other here. Of
/// lines that are torn, nothing else is there when the number is.
inline bool load_piece(const abi::LL128Line* from, int piece, std::uint32_t number, uint4& bytes) {
    const std::uint64_t both = number | static_cast<std::uint64_t>(number) << 32;
    const bool is_here = __atomic_load_n(&from->number, __ATOMIC_ACQUIRE) == both;
    const auto* const there = reinterpret_cast<const std::uint64_t*>(from) + 2 * piece;
    const Halves halves{__atomic_load_n(there, __ATOMIC_RELAXED),
                        __atomic_load_n(there + 1, __ATOMIC_RELAXED)};
    std::memcpy(&bytes, &halves, sizeof bytes);
    if (emulator::tears_ll128_lines() && piece != kNumberedPiece) bytes = {};
    return is_here;
}

using emulator::await_launch_ahead;
inline void allow_next_launch() {}

inline std::uint64_t global_timer_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count());
}

/// Who asks for the time waits for somebody: the others go on.
inline std::uint32_t cycles() {
    emulator::yield();
    return static_cast<std::uint32_t>(global_timer_ns());
}

}  // namespace pccl::kernels::device
