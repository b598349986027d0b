// Memory of objects that have neither numpy's class nor the buffer protocol, by the two protocols
// of arrays: DLPack (__dlpack__; torch, jax, cupy) and __array_interface__ (numpy's, in Python).
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <optional>
#include <string>

#include "csrc/abi/datatype.h"

namespace pccl::bindings {

/// The whole of an array in host memory.
struct ForeignMemory {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    DataType type = DataType::kBytes;
    bool is_writable = false;
    std::string complaint;   // why it cannot be used: it is not C-contiguous; empty: it can
    pybind11::object owner;  // keeps the memory
};

/// Of `object`, by __dlpack__(); nullopt where it has none. Throws InvalidArgumentError for memory
/// of a device, and elements that PCCL does not know, saying what to pass instead.
[[nodiscard]] std::optional<ForeignMemory> memory_by_dlpack(pybind11::handle object);

/// Likewise, by __array_interface__ (version 3).
[[nodiscard]] std::optional<ForeignMemory> memory_by_array_interface(pybind11::handle object);

}  // namespace pccl::bindings
