// SPDX-License-Identifier: Apache-2.0

// Memory of objects that are neither numpy arrays nor support the buffer protocol, by the two array
// protocols: DLPack (__dlpack__; torch, jax, cupy) and __array_interface__ (numpy's, in Python).
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <string>

#include <pccl/types.h>

namespace pccl::bindings {

/// The whole memory of an array on the host.
struct ForeignMemory {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    DataType type = DataType::kBytes;
    bool is_writable = false;
    std::string complaint;   // why it is unusable (not C-contiguous); empty: usable
    pybind11::object owner;  // keeps the memory alive
};

/// Returns the memory of `object` by __dlpack__(); nullopt where it has none. Throws
/// InvalidArgumentError, with an alternative, for device memory and for unsupported element types.
[[nodiscard]] std::optional<ForeignMemory> memory_by_dlpack(pybind11::handle object);

/// Returns the memory by __array_interface__ (version 3); otherwise as memory_by_dlpack().
[[nodiscard]] std::optional<ForeignMemory> memory_by_array_interface(pybind11::handle object);

}  // namespace pccl::bindings
