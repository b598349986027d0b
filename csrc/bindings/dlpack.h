// SPDX-License-Identifier: Apache-2.0

// Structs of DLPack (github.com/dmlc/dlpack), versions 0 and 1, to which the capsule of
// __dlpack__() points.
#pragma once

#include <cstdint>

namespace pccl::bindings::dlpack {

enum class DeviceType : std::int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };

enum class TypeCode : std::uint8_t {
    kInt = 0,
    kUint = 1,
    kFloat = 2,
    kBfloat = 4,
    kComplex = 5,
    kBool = 6,
    kFloat8E4m3fn = 10,
    kFloat8E5m2 = 12,
};

struct DlpackDevice {
    DeviceType type;
    std::int32_t number;
};

struct ElementType {
    TypeCode code;
    std::uint8_t bits;
    std::uint16_t lanes;  // of vectors; otherwise 1
};

struct Tensor {
    void* data;
    DlpackDevice device;
    std::int32_t dimensions;
    ElementType type;
    const std::int64_t* shape;
    const std::int64_t* strides;  // in elements; null: C-contiguous
    std::uint64_t byte_offset;
};

/// Content of a capsule named "dltensor".
struct ManagedTensor {
    Tensor tensor;
    void* context;
    void (*deleter)(ManagedTensor*);
};

inline constexpr std::uint64_t kReadOnly = 1;

/// Content of a capsule named "dltensor_versioned".
struct VersionedTensor {
    std::uint32_t major;
    std::uint32_t minor;
    void* context;
    void (*deleter)(VersionedTensor*);
    std::uint64_t flags;
    Tensor tensor;
};

}  // namespace pccl::bindings::dlpack
