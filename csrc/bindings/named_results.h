// SPDX-License-Identifier: Apache-2.0

// Named tuples of pccl.results.named, for calls that return several values.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "csrc/bootstrap/layout.h"

namespace pccl::bindings {

/// Returns pccl.results.named.<name>(values...). Requires the GIL.
template <typename... Values>
pybind11::object named_result(const char* name, const Values&... values) {
    return pybind11::module_::import("pccl.results.named").attr(name)(values...);
}

inline pybind11::object to_python(const bootstrap::LinksCountedOn& found) {
    return named_result("LinksCountedOn", found.links, found.order, found.ring_count,
                        found.costs_from, found.costs, found.helpers);
}

}  // namespace pccl::bindings
