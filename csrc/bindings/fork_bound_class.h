// SPDX-License-Identifier: Apache-2.0

// Classes whose objects belong to the process that made them.
#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>
#include <utility>

#include "csrc/bindings/errors.h"
#include "csrc/extension/documented.h"

namespace pccl::bindings {

// Returns a function that calls `function` if `self.check_usable()` is ok, and raises its error
// otherwise:

template <typename R, typename Self, typename... Args>
auto checked(R (*function)(Self, Args...)) {
    return [function](Self self, Args... args) -> R {
        throw_unless_ok(self.check_usable());
        return function(self, std::forward<Args>(args)...);
    };
}

template <typename R, typename T, typename... Args>
auto checked(R (T::*function)(Args...)) {
    return [function](T& self, Args... args) -> R {
        throw_unless_ok(self.check_usable());
        return (self.*function)(std::forward<Args>(args)...);
    };
}

template <typename R, typename T, typename... Args>
auto checked(R (T::*function)(Args...) const) {
    return [function](const T& self, Args... args) -> R {
        throw_unless_ok(self.check_usable());
        return (self.*function)(std::forward<Args>(args)...);
    };
}

/// Makes a checked function of a lambda without captures.
template <typename Lambda>
    requires std::is_class_v<Lambda>
auto checked(const Lambda& lambda) {
    return checked(+lambda);
}

/// Class whose members raise in a child of fork(), except those of anywhere().
template <typename... Parts>
class ForkBoundClass : public extension::Class<Parts...> {
    using Base = extension::Class<Parts...>;

   public:
    using Base::Base;

    template <typename Function, typename... Extra>
    ForkBoundClass& def(const char* name, Function function, const Extra&... extra) {
        Base::def(name, checked(function), extra...);
        return *this;
    }

    template <typename Getter>
    ForkBoundClass& def_property_readonly(const char* name, Getter getter) {
        Base::def_property_readonly(name, checked(getter));
        return *this;
    }

    /// Defines members that also work in a child: constants, functions that end or release
    /// something, and functions with a check of their own.
    Base& anywhere() { return *this; }
};

}  // namespace pccl::bindings
