// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/foreign_memory.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/dlpack.h"
#include "csrc/bindings/element_type.h"
#include "csrc/bindings/errors.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

constexpr const char* kOld = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

std::string name_of(py::handle object) {
    std::string name = Py_TYPE(object.ptr())->tp_name;
    if (!py::hasattr(object, "dtype")) return name;
    return concat(name, " of dtype ", std::string(py::str(object.attr("dtype"))));
}

template <typename... Parts>
[[noreturn]] void refuse(py::handle object, const Parts&... parts) {
    throw_status(Status::invalid_argument(concat(name_of(object), " ", parts...)));
}

std::string strided(py::handle object) {
    return concat(name_of(object),
                  " is strided; pass x.contiguous() or numpy.ascontiguousarray(x), and copy the "
                  "result back");
}

std::size_t count_of(py::handle object, std::span<const std::int64_t> shape) {
    // for an element of any type
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 16;
    std::int64_t elements = 1;
    for (const std::int64_t length : shape) {
        if (length < 0 || (length > 0 && elements > kMost / length))
            refuse(object, "has a length of ", length, ", which no array has");
        elements *= length;
    }
    return static_cast<std::size_t>(elements);
}

/// Returns whether strides match a C-contiguous array. They are in units of `unit` per element.
/// Dimensions of length 1 may have any stride.
bool is_contiguous(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                   std::int64_t unit) {
    if (strides.empty() || std::ranges::find(shape, 0) != shape.end()) return true;
    if (strides.size() != shape.size()) return false;
    for (std::size_t i = strides.size(); i-- > 0; unit *= shape[i])
        if (shape[i] != 1 && strides[i] != unit) return false;
    return true;
}

// --- DLPack

std::optional<DataType> type_of(const dlpack::ElementType& type) {
    using dlpack::TypeCode;
    if (type.lanes != 1 || type.bits % 8 != 0) return std::nullopt;
    switch (type.code) {
        case TypeCode::kBfloat:
            return type.bits == 16 ? std::optional(DataType::kBfloat16) : std::nullopt;
        case TypeCode::kFloat8E4m3fn:
            return DataType::kFloat8E4m3;
        case TypeCode::kFloat8E5m2:
            return DataType::kFloat8E5m2;
        case TypeCode::kBool:
            return type_of_kind('b', type.bits / 8U);
        case TypeCode::kInt:
            return type_of_kind('i', type.bits / 8U);
        case TypeCode::kUint:
            return type_of_kind('u', type.bits / 8U);
        case TypeCode::kFloat:
            return type_of_kind('f', type.bits / 8U);
        case TypeCode::kComplex:
            return type_of_kind('c', type.bits / 8U);
    }
    return std::nullopt;
}

/// Returns the first line of Python's error text.
std::string words_of(const py::error_already_set& error) {
    const std::string words = py::str(error.value());
    return words.substr(0, words.find('\n'));
}

/// Returns a capsule of version 1 where the array supports it, since only that one reports
/// read-only memory.
py::object capsule_of(py::handle object) {
    const py::object export_array = object.attr("__dlpack__");
    try {
        return export_array(py::arg("max_version") = py::make_tuple(1, 0));
    } catch (const py::error_already_set& error) {
        if (!error.matches(PyExc_TypeError)) refuse(object, "gives no memory: ", words_of(error));
    }
    try {
        return export_array();
    } catch (const py::error_already_set& error) {
        refuse(object, "gives no memory: ", words_of(error));
    }
}

dlpack::DeviceType device_type_of(py::handle object) {
    try {
        const auto device = object.attr("__dlpack_device__")();
        return static_cast<dlpack::DeviceType>(py::int_(device[py::int_(0)]).cast<std::int32_t>());
    } catch (const py::error_already_set& error) {
        refuse(object, "gives no memory: ", words_of(error));
    }
}

void require_host_memory(py::handle object) {
    const auto type = device_type_of(object);
    if (type == dlpack::DeviceType::kCpu || type == dlpack::DeviceType::kCudaHost) return;
    refuse(object,
           "is in the memory of a device; pass a copy in host memory (x.cpu() of torch), "
           "or use torch.distributed or pccl.DeviceGroup");
}

ForeignMemory memory_of(py::handle object, const dlpack::Tensor& tensor) {
    const auto type = type_of(tensor.type);
    if (!type)
        refuse(object,
               "has elements of a type that PCCL does not support; send them as bytes, "
               "x.view('u1') or x.view(torch.uint8)");
    const auto dimensions = static_cast<std::size_t>(tensor.dimensions);
    const std::span shape(tensor.shape, dimensions);
    const std::span strides(tensor.strides, tensor.strides == nullptr ? 0 : dimensions);
    return {.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset,
            .bytes = count_of(object, shape) * size_of(*type),
            .type = *type,
            .is_writable = true,
            .complaint = is_contiguous(shape, strides, 1) ? "" : strided(object),
            .owner = {}};
}

// --- __array_interface__

/// Fields of the user's object, any of which may be missing or malformed.
struct ArrayInterface {
    std::string type;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;  // in bytes; empty: C-contiguous
    std::uintptr_t address = 0;
    bool is_read_only = false;
};

ArrayInterface interface_of(py::handle object) {
    try {
        const py::dict given = object.attr("__array_interface__");
        ArrayInterface found;
        found.type = py::str(given["typestr"]);
        found.shape = given["shape"].cast<std::vector<std::int64_t>>();
        if (given.contains("strides") && !given["strides"].is_none())
            found.strides = given["strides"].cast<std::vector<std::int64_t>>();
        std::tie(found.address, found.is_read_only) =
            given["data"].cast<std::pair<std::uintptr_t, bool>>();
        return found;
    } catch (const std::exception&) {
        refuse(object,
               "has an __array_interface__ without address, type or shape; pass "
               "numpy.asarray(x)");
    }
}

/// Parses "<f4": byte order, kind, bytes per element.
DataType type_of(py::handle object, const std::string& code) {
    const bool is_plain = code.size() >= 3 && code.size() <= 4;
    if (is_plain && code.front() == '>' && code[2] != '1')
        refuse(object,
               "is not in this machine's byte order; send x.astype(x.dtype.newbyteorder('="
               "'))");
    std::size_t bytes = 0;
    for (const char digit : std::string_view(code).substr(is_plain ? 2 : code.size()))
        bytes = bytes * 10 + static_cast<std::size_t>(digit - '0');
    const auto type = is_plain ? type_of_kind(code[1], bytes) : std::nullopt;
    if (!type)
        refuse(object, "has elements of type '", code,
               "', which PCCL does not support; send them as bytes");
    return *type;
}

}  // namespace

std::optional<ForeignMemory> memory_by_dlpack(py::handle object) {
    if (!py::hasattr(object, "__dlpack__") || !py::hasattr(object, "__dlpack_device__"))
        return std::nullopt;
    require_host_memory(object);
    py::object capsule = capsule_of(object);
    // The capsule keeps the memory alive and releases it at its end, because no consumer has taken
    // it over.
    if (PyCapsule_IsValid(capsule.ptr(), kVersioned) != 0) {
        const auto* const managed = static_cast<const dlpack::VersionedTensor*>(
            PyCapsule_GetPointer(capsule.ptr(), kVersioned));
        if (managed->major != 1)
            refuse(object, "uses version ", managed->major, " of DLPack; PCCL supports version 1");
        ForeignMemory memory = memory_of(object, managed->tensor);
        memory.is_writable = (managed->flags & dlpack::kReadOnly) == 0;
        memory.owner = std::move(capsule);
        return memory;
    }
    if (PyCapsule_IsValid(capsule.ptr(), kOld) == 0)
        refuse(object, "returns an object that is no capsule of DLPack");
    ForeignMemory memory = memory_of(
        object, static_cast<const dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kOld))
                    ->tensor);
    memory.owner = std::move(capsule);
    return memory;
}

std::optional<ForeignMemory> memory_by_array_interface(py::handle object) {
    if (!py::hasattr(object, "__array_interface__")) return std::nullopt;
    const ArrayInterface given = interface_of(object);
    const DataType type = type_of(object, given.type);
    const auto unit = static_cast<std::int64_t>(size_of(type));
    const bool is_usable = is_contiguous(given.shape, given.strides, unit);
    return ForeignMemory{.data = std::bit_cast<std::byte*>(given.address),
                         .bytes = count_of(object, given.shape) * size_of(type),
                         .type = type,
                         .is_writable = !given.is_read_only,
                         .complaint = is_usable ? "" : strided(object),
                         .owner = py::reinterpret_borrow<py::object>(object)};
}

}  // namespace pccl::bindings
