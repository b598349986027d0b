// SPDX-License-Identifier: Apache-2.0

// Lookup of functions in libraries that are opened at run time.
#pragma once

#include <dlfcn.h>

namespace pccl::sys {

/// Finds a function by name; false where `library` has none of that name.
template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

}  // namespace pccl::sys
