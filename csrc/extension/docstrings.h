// The docstrings of an extension module, which are written in its stub, python/pccl/<module>.pyi.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace pccl::extension {

struct Docstring {
    std::string_view name;  // inside the module: "Communicator.all_reduce"; "" is the module itself
    const char* text;       // of a function: "all_reduce(self, x)\n--\n\n", then what it says
};

/// In the order of names. Each module has its own, which cmake/make_docstrings.py makes of its
/// stub.
std::span<const Docstring> table();

/// Static memory; null where the stub says nothing.
inline const char* docstring_of(std::string_view name) {
    const auto all = table();
    const auto found = std::ranges::lower_bound(all, name, {}, &Docstring::name);
    return found != all.end() && found->name == name ? found->text : nullptr;
}

}  // namespace pccl::extension
