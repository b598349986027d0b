// SPDX-License-Identifier: Apache-2.0

// Former names that Python programs may still use for one release.
#pragma once

#include <pybind11/pybind11.h>

#include <string_view>

#include "csrc/base/text/text.h"

namespace pccl::extension {

/// Raises a DeprecationWarning where `given` is a former name of the protocol `name`. `level` is
/// the number of Python frames between this function and the call at fault, as for warnings.warn().
inline void warn_of_former_protocol(std::string_view given, std::string_view name, int level = 1) {
    if (given == name) return;
    const auto text = concat("protocol '", given, "' is now called '", name, "'");
    if (PyErr_WarnEx(PyExc_DeprecationWarning, text.c_str(), level) != 0)
        throw pybind11::error_already_set();
}

}  // namespace pccl::extension
