// SPDX-License-Identifier: Apache-2.0

// Blocks over the memory of Python objects (numpy arrays, bytearrays, memoryviews, tensors of
// torch).
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl::bindings {

enum class Access { kRead, kWrite };

/// Memory of Python objects, which it keeps alive. add() requires the GIL; the destructor takes it.
class Buffers {
   public:
    Buffers() = default;
    Buffers(Buffers&&) = default;
    Buffers& operator=(Buffers&&) = delete;
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    ~Buffers();

    /// Returns the whole memory of a C-contiguous object. All objects must have one element type.
    /// Throws InvalidArgumentError.
    Block add(PyObject* object, Access access);
    /// Makes add() replace read-only or strided arrays by memory of its own, and record the error
    /// instead of throwing it. Collectives need this, because other ranks wait in them.
    void stand_in_for_refused() { stands_in_ = true; }
    /// Returns the error of the first refused array; ok: none was refused.
    [[nodiscard]] const Status& why_refused() const { return why_refused_; }
    void refuse(Status why) {
        if (why_refused_.is_ok()) why_refused_ = std::move(why);
    }
    /// Keeps another object, which owns the memory.
    void keep(pybind11::object object) { arrays_.push_back(std::move(object)); }
    /// Releases all objects. Requires the GIL; this is cheaper than to let the destructor take it.
    void release();
    /// Returns `bytes` bytes of own memory, aligned for any element type. If there is not so much,
    /// the error is kResourceExhausted, which is recorded instead of thrown as that of a refused
    /// array: then only make_unit()'s bytes are there.
    std::byte* make(std::size_t bytes);
    /// Returns own memory for one element of any type.
    std::byte* make_unit() { return own_.emplace_back(new std::byte[kLongestElement]).get(); }
    /// Returns whether own memory is shorter than the blocks that add() has returned.
    [[nodiscard]] bool is_short() const { return is_short_; }
    [[nodiscard]] DataType type() const { return type_.value_or(DataType::kBytes); }
    /// Throws UnsupportedError, with the name of the element type, where PCCL does not support that
    /// type.
    void check_reducible() const {
        if (type_ == DataType::kBytes) refuse_to_reduce();
    }

   private:
    static constexpr std::size_t kLongestElement = 16;  // complex128

    struct BufferMemory {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        DataType type = DataType::kBytes;
    };

    /// Returns a numpy array's memory by numpy's C API; nullopt for objects that require the buffer
    /// protocol.
    static std::optional<BufferMemory> memory_of_array(PyObject* object, Access access);
    BufferMemory memory_of_view(PyObject* object, Access access);
    /// Returns the memory of an object without the buffer protocol, but with an array protocol
    /// (foreign_memory.h).
    std::optional<BufferMemory> memory_of_foreign(PyObject* object, Access access);
    /// Returns own memory in place of a refused array. Throws `why` unless stand_in_for_refused()
    /// was called.
    BufferMemory stand_in(std::size_t bytes, DataType type, Status why);
    /// Returns `bytes` bytes of own memory; null if there is not so much.
    std::byte* try_to_make(std::size_t bytes);
    /// Refuses an array for lack of memory. Throws `why` unless stand_in_for_refused() was called.
    std::byte* fall_short(Status why);
    BufferMemory stand_in_for_view(PyObject* object, Status why);
    [[noreturn]] void refuse_to_reduce() const;

    std::vector<pybind11::object> arrays_;  // and objects that keep the memory of others
    // Allocated separately: the memory's owner may hold a pointer to its Py_buffer.
    std::vector<std::unique_ptr<Py_buffer>> views_;
    std::vector<std::unique_ptr<std::byte[]>> own_;
    std::optional<DataType> type_;
    bool stands_in_ = false;
    bool is_short_ = false;
    Status why_refused_{};
};

}  // namespace pccl::bindings
