// Status -> the exceptions of pccl.errors: the one place where it happens.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "csrc/base/status.h"

namespace pccl::bindings {

/// Needs the GIL.
[[noreturn]] void throw_status(const Status& status);

inline void throw_unless_ok(const Status& status) {
    if (!status.is_ok()) throw_status(status);
}

template <typename T>
[[nodiscard]] T value_or_throw(Result<T> result) {
    throw_unless_ok(result.status());
    return std::move(result).value();
}

/// What `work` gives, called without the GIL; it comes back before anything is thrown.
template <typename Work>
auto released(const Work& work) {
    auto result = [&] {
        const pybind11::gil_scoped_release release;
        return work();
    }();
    return value_or_throw(std::move(result));
}

}  // namespace pccl::bindings
