// Functions of libraries that are opened when they are needed.
#pragma once

#include <dlfcn.h>

namespace pccl::sys {

/// False where `library` has none of that name.
template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

}  // namespace pccl::sys
