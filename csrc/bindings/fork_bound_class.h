// Classes whose objects are of the process that made them.
#pragma once

#include <pybind11/pybind11.h>

#include <type_traits>
#include <utility>

#include "csrc/bindings/errors.h"
#include "csrc/extension/documented.h"

namespace pccl::bindings {

// What calls `function` once `self.check_usable()` is ok, and raises what it is otherwise:

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

/// Of a lambda that captures nothing.
template <typename Lambda>
    requires std::is_class_v<Lambda>
auto checked(const Lambda& lambda) {
    return checked(+lambda);
}

/// All members raise in a child of fork(), but for those of anywhere().
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

    /// For members that a child has as well: what never changes, what ends or lets go of something,
    /// and what looks for itself.
    Base& anywhere() { return *this; }
};

}  // namespace pccl::bindings
