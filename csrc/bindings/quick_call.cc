// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/quick_call.h"

#include <ranges>

namespace pccl::bindings {
namespace {

std::vector<std::string> parameters_of(std::string_view signature) {
    std::vector<std::string> names;
    const std::string_view inside = signature.substr(1, signature.rfind(')') - 1);
    for (const auto parameter : std::views::split(inside, std::string_view(", "))) {
        const std::string_view text(parameter.begin(), parameter.end());
        names.emplace_back(text.substr(0, text.find('=')));
    }
    return names;
}

PyObject* interned(const std::string& name) {
    PyObject* const text = PyUnicode_InternFromString(name.c_str());
    if (text == nullptr) throw pybind11::error_already_set();
    return text;
}

}  // namespace

std::vector<PyObject*> names_in(std::string_view signature, std::size_t positional) {
    const std::vector<std::string> parameters = parameters_of(signature);
    std::vector<PyObject*> names;
    for (std::size_t i = 1; i <= positional; ++i) names.push_back(interned(parameters.at(i)));
    for (const std::string option : {"async_op", "timeout"}) {
        const bool is_known = std::ranges::find(parameters, option) != parameters.end();
        names.push_back(is_known ? interned(option) : nullptr);
    }
    return names;
}

}  // namespace pccl::bindings
