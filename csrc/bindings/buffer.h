// Python objects that expose memory (numpy arrays, bytearrays, memoryviews, tensors of torch) as
// blocks.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl::bindings {

enum class Access { kRead, kWrite };

/// The memory of Python objects, held until the end. add() needs the GIL; the end takes it.
class Buffers {
   public:
    Buffers() = default;
    Buffers(Buffers&&) = default;
    Buffers& operator=(Buffers&&) = delete;
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    ~Buffers();

    /// The whole of a C-contiguous object. All objects must have one element type. Throws
    /// InvalidArgumentError.
    Block add(PyObject* object, Access access);
    /// From now on add() takes memory of its own in place of arrays that are read-only or strided,
    /// and notes why, instead of throwing: for collectives, in which others wait.
    void stand_in_for_refused() { stands_in_ = true; }
    /// Why the first of those was refused; ok: none was.
    [[nodiscard]] const Status& why_refused() const { return why_refused_; }
    void refuse(Status why) {
        if (why_refused_.is_ok()) why_refused_ = std::move(why);
    }
    /// Another object, which has the memory.
    void keep(pybind11::object object) { arrays_.push_back(std::move(object)); }
    /// Lets go of all objects. To be called with the GIL, which takes the destructor longer to take
    /// than this.
    void release();
    /// Memory of its own, of these bytes, for any type of elements.
    std::byte* make(std::size_t bytes);
    [[nodiscard]] DataType type() const { return type_.value_or(DataType::kBytes); }
    /// Throws UnsupportedError, which names the type of the elements, where it is none of ours.
    void check_reducible() const {
        if (type_ == DataType::kBytes) refuse_to_reduce();
    }

   private:
    struct Memory {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
        DataType type = DataType::kBytes;
    };

    /// A numpy array's, without a detour; nullopt for what has to go through the buffer protocol.
    static std::optional<Memory> memory_of_array(PyObject* object, Access access);
    Memory memory_of_view(PyObject* object, Access access);
    /// Of what has no buffer protocol, but a protocol of arrays (foreign_memory.h).
    std::optional<Memory> memory_of_foreign(PyObject* object, Access access);
    /// Memory of its own in place of an array that is refused; throws `why` where it stands in for
    /// none.
    Memory stand_in(std::size_t bytes, DataType type, Status why);
    Memory stand_in_for_view(PyObject* object, Status why);
    [[noreturn]] void refuse_to_reduce() const;

    std::vector<pybind11::object> arrays_;  // and what keeps the memory of others
    // On the heap each: what owns the memory may point into its Py_buffer.
    std::vector<std::unique_ptr<Py_buffer>> views_;
    std::vector<std::unique_ptr<std::byte[]>> own_;
    std::optional<DataType> type_;
    bool stands_in_ = false;
    Status why_refused_{};
};

}  // namespace pccl::bindings
