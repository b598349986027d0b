// SPDX-License-Identifier: Apache-2.0

// Conversion of Status to the exceptions of pccl.errors. No other file converts them.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>
#include <utility>

#include <pccl/status.h>
#include "csrc/extension/gil.h"

namespace pccl::bindings {

/// Throws `status`. Requires the GIL. `session` is the p2p peer of the call; empty: none.
[[noreturn]] void throw_status(const Status& status, std::string_view session = {});

inline void throw_unless_ok(const Status& status, std::string_view session = {}) {
    if (!status.is_ok()) throw_status(status, session);
}

template <typename T>
[[nodiscard]] T value_or_throw(Result<T> result, std::string_view session = {}) {
    throw_unless_ok(result.status(), session);
    return std::move(result).value();
}

/// Calls `work` without the GIL, and returns its result. Takes the GIL again before it throws.
template <typename Work>
auto released(const Work& work, std::string_view session = {}) {
    auto result = [&] {
        const extension::ReleasedGil release;
        return work();
    }();
    return value_or_throw(std::move(result), session);
}

}  // namespace pccl::bindings
