#include "csrc/bindings/buffer.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>

#include "csrc/base/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/comm/arithmetic.h"

namespace pccl::bindings {

namespace {

std::optional<DataType> signed_type(std::size_t bytes) {
    switch (bytes) {
        case 1:
            return DataType::kInt8;
        case 2:
            return DataType::kInt16;
        case 4:
            return DataType::kInt32;
        case 8:
            return DataType::kInt64;
        default:
            return std::nullopt;
    }
}

std::optional<DataType> unsigned_type(std::size_t bytes) {
    switch (bytes) {
        case 1:
            return DataType::kUint8;
        case 2:
            return DataType::kUint16;
        case 4:
            return DataType::kUint32;
        case 8:
            return DataType::kUint64;
        default:
            return std::nullopt;
    }
}

// Codes of the struct module, and numpy's Z for complex. Those that are none of ours move as bytes.
std::optional<DataType> type_of(const char* format, std::size_t item_bytes) {
    if (format == nullptr) return DataType::kUint8;
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (std::strcmp(format, "Zf") == 0) return DataType::kComplex64;
    if (std::strcmp(format, "Zd") == 0) return DataType::kComplex128;
    if (std::strlen(format) != 1) return std::nullopt;
    switch (*format) {
        case '?':
            return DataType::kBool;
        case 'e':
            return DataType::kFloat16;
        case 'f':
            return DataType::kFloat32;
        case 'd':
            return DataType::kFloat64;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
            return signed_type(item_bytes);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
            return unsigned_type(item_bytes);
        default:
            return std::nullopt;
    }
}

constexpr int kNumpyHalf = 23;  // pybind11 does not name it

// The type numbers of numpy's C API that name one of ours.
std::optional<DataType> type_of_number(int number) {
    using pybind11::detail::npy_api;
    switch (number) {
        case npy_api::NPY_BOOL_:
            return DataType::kBool;
        case kNumpyHalf:
            return DataType::kFloat16;
        case npy_api::NPY_FLOAT_:
            return DataType::kFloat32;
        case npy_api::NPY_DOUBLE_:
            return DataType::kFloat64;
        case npy_api::NPY_CFLOAT_:
            return DataType::kComplex64;
        case npy_api::NPY_CDOUBLE_:
            return DataType::kComplex128;
        case npy_api::NPY_BYTE_:
        case npy_api::NPY_SHORT_:
            return signed_type(number == npy_api::NPY_BYTE_ ? 1 : 2);
        case npy_api::NPY_UBYTE_:
        case npy_api::NPY_USHORT_:
            return unsigned_type(number == npy_api::NPY_UBYTE_ ? 1 : 2);
        case npy_api::NPY_INT_:
            return signed_type(sizeof(int));
        case npy_api::NPY_UINT_:
            return unsigned_type(sizeof(unsigned));
        case npy_api::NPY_LONG_:
        case npy_api::NPY_LONGLONG_:
            return signed_type(number == npy_api::NPY_LONG_ ? sizeof(long) : sizeof(long long));
        case npy_api::NPY_ULONG_:
        case npy_api::NPY_ULONGLONG_:
            return unsigned_type(number == npy_api::NPY_ULONG_ ? sizeof(long) : sizeof(long long));
        default:
            return std::nullopt;
    }
}

// Exactly numpy's class, found by name: this module works without numpy.
bool is_numpy_array(PyObject* object) {
    static const PyTypeObject* known = nullptr;  // guarded by the GIL
    if (Py_TYPE(object) == known) return true;
    if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") != 0) return false;
    known = Py_TYPE(object);
    return true;
}

[[noreturn]] void refuse(PyObject* object, Access access) {
    PyErr_Clear();
    throw_status(Status::invalid_argument(
        concat("expected a C-contiguous ", access == Access::kWrite ? "writable " : "",
               "buffer such as a numpy array, got ", Py_TYPE(object)->tp_name,
               PyObject_CheckBuffer(object) != 0 ? " that is not" : "")));
}

}  // namespace

comm::Block Buffers::add(PyObject* object, Access access) {
    std::optional<Memory> memory = memory_of_array(object, access);
    if (memory)
        arrays_.push_back(pybind11::reinterpret_borrow<pybind11::object>(object));
    else
        memory = memory_of_view(object, access);
    if (type_.value_or(memory->type) != memory->type) {
        throw_status(Status::invalid_argument(concat("expected buffers of one type, got ",
                                                     comm::to_string(*type_), " and ",
                                                     comm::to_string(memory->type))));
    }
    type_ = memory->type;
    return {memory->data, memory->bytes / size_of(memory->type)};
}

// The buffer protocol takes numpy longer than a small collective takes.
auto Buffers::memory_of_array(PyObject* object, Access access) -> std::optional<Memory> {
    using pybind11::detail::npy_api;
    if (!is_numpy_array(object)) return std::nullopt;
    const auto* const array = pybind11::detail::array_proxy(object);
    const auto* const descriptor = pybind11::detail::array_descriptor_proxy(array->descr);
    const auto type = type_of_number(descriptor->type_num);
    const int needed = npy_api::NPY_ARRAY_C_CONTIGUOUS_ |
                       (access == Access::kWrite ? npy_api::NPY_ARRAY_WRITEABLE_ : 0);
    const bool is_native = descriptor->byteorder != '>';
    if (!type || !is_native || (array->flags & needed) != needed) return std::nullopt;
    std::size_t bytes = size_of(*type);
    for (int i = 0; i < array->nd; ++i) bytes *= static_cast<std::size_t>(array->dimensions[i]);
    return Memory{reinterpret_cast<std::byte*>(array->data), bytes, *type};
}

auto Buffers::memory_of_view(PyObject* object, Access access) -> Memory {
    auto view = std::make_unique<Py_buffer>();
    const int writable = access == Access::kWrite ? PyBUF_WRITABLE : 0;
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | writable) != 0) {
        refuse(object, access);
    }
    views_.push_back(std::move(view));
    const Py_buffer& memory = *views_.back();
    const auto item_bytes = static_cast<std::size_t>(memory.itemsize);
    const DataType type = type_of(memory.format, item_bytes).value_or(DataType::kBytes);
    return {static_cast<std::byte*>(memory.buf), static_cast<std::size_t>(memory.len), type};
}

Buffers::~Buffers() {
    if (views_.empty() && arrays_.empty()) return;
    const pybind11::gil_scoped_acquire gil;
    arrays_.clear();
    for (const auto& view : views_) PyBuffer_Release(view.get());
}

}  // namespace pccl::bindings
