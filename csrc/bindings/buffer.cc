#include "csrc/bindings/buffer.h"

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

[[noreturn]] void refuse(PyObject* object, Access access) {
    PyErr_Clear();
    throw_status(Status::invalid_argument(
        concat("expected a C-contiguous ", access == Access::kWrite ? "writable " : "",
               "buffer such as a numpy array, got ", Py_TYPE(object)->tp_name,
               PyObject_CheckBuffer(object) != 0 ? " that is not" : "")));
}

}  // namespace

comm::Block Buffers::add(PyObject* object, Access access) {
    auto view = std::make_unique<Py_buffer>();
    const int writable = access == Access::kWrite ? PyBUF_WRITABLE : 0;
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | writable) != 0) {
        refuse(object, access);
    }
    views_.push_back(std::move(view));
    const Py_buffer& memory = *views_.back();
    const auto item_bytes = static_cast<std::size_t>(memory.itemsize);
    const DataType type = type_of(memory.format, item_bytes).value_or(DataType::kBytes);
    if (type_.value_or(type) != type) {
        throw_status(Status::invalid_argument(concat("expected buffers of one type, got ",
                                                     comm::to_string(*type_), " and ",
                                                     comm::to_string(type))));
    }
    type_ = type;
    return {static_cast<std::byte*>(memory.buf),
            static_cast<std::size_t>(memory.len) / size_of(type)};
}

Buffers::~Buffers() {
    if (views_.empty()) return;
    const pybind11::gil_scoped_acquire gil;
    for (const auto& view : views_) PyBuffer_Release(view.get());
}

}  // namespace pccl::bindings
