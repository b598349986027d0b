// SPDX-License-Identifier: Apache-2.0

// Docstrings of an extension module, which are written in its stub: python/pccl/<module>.pyi,
// or the files of the folder python/pccl/<module>.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace pccl::extension {

struct Docstring {
    std::string_view name;  // in the module: "Communicator.all_reduce"; "" is the module itself
    const char* text;       // of a function: "all_reduce(self, x)\n--\n\n", then the text
};

/// Returns the docstrings, sorted by name. Each module has its own, which cmake/make_docstrings.py
/// generates from its stub.
std::span<const Docstring> table();

/// Returns static memory; null where the stub has no docstring.
inline const char* docstring_of(std::string_view name) {
    const auto all = table();
    const auto found = std::ranges::lower_bound(all, name, {}, &Docstring::name);
    return found != all.end() && found->name == name ? found->text : nullptr;
}

}  // namespace pccl::extension
