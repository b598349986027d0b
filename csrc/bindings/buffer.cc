// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/buffer.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "csrc/base/text/text.h"
#include "csrc/base/writable.h"
#include "csrc/bindings/element_type.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/foreign_memory.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/extension/gil.h"

namespace pccl::bindings {

namespace {

// Returns whether the class is exactly numpy's. It is found by name, so that this module works
// without numpy.
bool is_numpy_array(PyObject* object) {
    static const PyTypeObject* known = nullptr;  // guarded by the GIL
    if (Py_TYPE(object) == known) return true;
    if (std::strcmp(Py_TYPE(object)->tp_name, "numpy.ndarray") != 0) return false;
    known = Py_TYPE(object);
    return true;
}

constexpr int kFirstExtension = 256;  // in numpy: types from extensions

std::optional<DataType> extension_of(PyObject* array) {
    const std::string name = pybind11::str(pybind11::handle(array).attr("dtype").attr("name"));
    return type_of_extension(name);
}

/// Returns, for example, "numpy.ndarray of dtype >f4" or "memoryview of format O".
std::string described(PyObject* object, const char* format) {
    const pybind11::handle handle(object);
    const std::string_view code = format == nullptr ? "" : format;
    const std::string name = Py_TYPE(object)->tp_name;
    if (!pybind11::hasattr(handle, "dtype"))
        return code.empty() ? name : concat(name, " of format ", code);
    const std::string dtype = pybind11::str(handle.attr("dtype"));
    return concat(name, " of dtype ", dtype, code.ends_with('g') ? " (longdouble)" : "");
}

/// Returns why an object with the buffer protocol provides no buffer, in its own words.
std::string reason(PyObject* object, const pybind11::error_already_set& error) {
    if (PyObject_CheckBuffer(object) == 0) return {};
    const std::string words = pybind11::str(error.value());
    std::string text = concat(": ", words.substr(0, words.find('\n')));
    // This concerns times, and types that extend numpy.
    if (words.starts_with("cannot include dtype")) {
        const std::string bytes = pybind11::str(pybind11::handle(object).attr("itemsize"));
        text += concat("; send x.view('i", bytes, "')");
    }
    return text;
}

/// Returns advice on an object to pass instead of one without a usable buffer; empty: none.
std::string_view remedy(PyObject* object, Access access) {
    using pybind11::detail::npy_api;
    if (PyObject_CheckBuffer(object) == 0)
        return "; pass a numpy array that you keep: a = numpy.asarray(x)";
    if (PyBytes_Check(object)) return "; it is read-only: pass bytearray(x)";
    if (!is_numpy_array(object)) return {};
    const int flags = pybind11::detail::array_proxy(object)->flags;
    if ((flags & npy_api::NPY_ARRAY_C_CONTIGUOUS_) == 0)
        return access == Access::kWrite
                   ? "; it is strided: pass numpy.ascontiguousarray(x), and copy the result back"
                   : "; it is strided: pass numpy.ascontiguousarray(x)";
    if (access == Access::kWrite && (flags & npy_api::NPY_ARRAY_WRITEABLE_) == 0)
        return "; it is read-only: pass x.copy()";
    return {};
}

/// Converts and clears Python's error.
Status refusal(PyObject* object, Access access) {
    const pybind11::error_already_set error;
    const std::string_view instead = remedy(object, access);
    return Status::invalid_argument(
        concat("expected a C-contiguous ", access == Access::kWrite ? "writable " : "",
               "buffer such as a numpy array, got ", described(object, nullptr),
               instead.empty() ? reason(object, error) : std::string(instead)));
}

DataType type_of_view(PyObject* object, const Py_buffer& view) {
    const auto type = type_of_format(view.format, static_cast<std::size_t>(view.itemsize));
    if (type.is_ok()) return *type;
    throw_status(Status::invalid_argument(
        concat(described(object, view.format), " ", type.status().message())));
}

}  // namespace

Block Buffers::add(PyObject* object, Access access) {
    std::optional<BufferMemory> memory = memory_of_array(object, access);
    if (memory)
        arrays_.push_back(pybind11::reinterpret_borrow<pybind11::object>(object));
    else
        memory = memory_of_foreign(object, access);
    if (!memory) memory = memory_of_view(object, access);
    if (type_.value_or(memory->type) != memory->type) {
        throw_status(Status::invalid_argument(concat("expected buffers of one type, got ",
                                                     pccl::to_string(*type_), " and ",
                                                     pccl::to_string(memory->type))));
    }
    type_ = memory->type;
    return {memory->data, memory->bytes / size_of(memory->type)};
}

std::byte* Buffers::make(std::size_t bytes) {
    if (std::byte* const memory = try_to_make(bytes)) return memory;
    return fall_short(Status::resource_exhausted(
        concat("this process has no ", bytes, " bytes of memory for a copy of a buffer")));
}

std::byte* Buffers::try_to_make(std::size_t bytes) {
    own_.emplace_back(new (std::nothrow) std::byte[bytes]);
    return own_.back().get();
}

std::byte* Buffers::fall_short(Status why) {
    if (!stands_in_) throw_status(why);
    refuse(std::move(why));
    is_short_ = true;
    return make_unit();
}

// numpy's buffer protocol takes longer than a small collective, so this avoids it.
std::optional<Buffers::BufferMemory> Buffers::memory_of_array(PyObject* object, Access access) {
    using pybind11::detail::npy_api;
    if (!is_numpy_array(object)) return std::nullopt;
    const auto* const array = pybind11::detail::array_proxy(object);
    const auto* const descriptor = pybind11::detail::array_descriptor_proxy(array->descr);
    auto type = type_of_number(descriptor->type_num);
    if (!type && descriptor->type_num >= kFirstExtension) type = extension_of(object);
    const int needed = npy_api::NPY_ARRAY_C_CONTIGUOUS_ |
                       (access == Access::kWrite ? npy_api::NPY_ARRAY_WRITEABLE_ : 0);
    const bool is_native = descriptor->byteorder != '>';
    if (!type || !is_native || (array->flags & needed) != needed) return std::nullopt;
    std::size_t bytes = size_of(*type);
    for (int i = 0; i < array->nd; ++i) bytes *= static_cast<std::size_t>(array->dimensions[i]);
    return BufferMemory{reinterpret_cast<std::byte*>(array->data), bytes, *type};
}

std::optional<Buffers::BufferMemory> Buffers::memory_of_foreign(PyObject* object, Access access) {
    if (PyObject_CheckBuffer(object) != 0) return std::nullopt;
    auto found = memory_by_dlpack(object);
    if (!found) found = memory_by_array_interface(object);
    if (!found) return std::nullopt;
    if (!found->complaint.empty())
        return stand_in(found->bytes, found->type, Status::invalid_argument(found->complaint));
    // torch's tensors do not report a read-only mapping.
    const bool is_refused = access == Access::kWrite &&
                            !(found->is_writable && is_writable({found->data, found->bytes}));
    if (is_refused)
        return stand_in(found->bytes, found->type,
                        Status::invalid_argument(concat("expected a writable buffer, got ",
                                                        described(object, nullptr),
                                                        "; it is read-only: pass a copy")));
    arrays_.push_back(std::move(found->owner));
    return BufferMemory{found->data, found->bytes, found->type};
}

Buffers::BufferMemory Buffers::memory_of_view(PyObject* object, Access access) {
    auto view = std::make_unique<Py_buffer>();
    const int writable = access == Access::kWrite ? PyBUF_WRITABLE : 0;
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | writable) != 0)
        return stand_in_for_view(object, refusal(object, access));
    views_.push_back(std::move(view));
    const Py_buffer& memory = *views_.back();
    const DataType type = type_of_view(object, memory);
    return {static_cast<std::byte*>(memory.buf), static_cast<std::size_t>(memory.len), type};
}

Buffers::BufferMemory Buffers::stand_in(std::size_t bytes, DataType type, Status why) {
    std::byte* const memory = stands_in_ ? try_to_make(bytes) : nullptr;
    if (memory == nullptr) return {fall_short(std::move(why)), bytes, type};
    refuse(std::move(why));
    return {memory, bytes, type};
}

Buffers::BufferMemory Buffers::stand_in_for_view(PyObject* object, Status why) {
    auto view = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(object, view.get(), PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
        PyErr_Clear();
        throw_status(why);
    }
    views_.push_back(std::move(view));
    const Py_buffer& memory = *views_.back();
    return stand_in(static_cast<std::size_t>(memory.len), type_of_view(object, memory),
                    std::move(why));
}

void Buffers::refuse_to_reduce() const {
    const Py_buffer& first = *views_.front();
    throw_status(Status::unsupported(
        concat(described(first.obj, first.format),
               " can be moved, and not reduced: PCCL reduces bool, integers, float16, float32, "
               "float64, complex64 and complex128")));
}

Buffers::~Buffers() {
    if (views_.empty() && arrays_.empty()) return;
    const extension::HeldGil gil;
    release();
}

void Buffers::release() {
    arrays_.clear();
    for (const auto& view : views_) PyBuffer_Release(view.get());
    views_.clear();
}

}  // namespace pccl::bindings
