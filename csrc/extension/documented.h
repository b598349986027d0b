// SPDX-License-Identifier: Apache-2.0

// Wrappers of pybind11's modules and classes. Their functions and members have the docstrings and
// signatures of the stub, so that inspect.signature() works. pybind11 copies the texts. Functions
// refuse objects whose __init__ has not run, and report wrong arguments in one line.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/extension/argument_errors.h"
#include "csrc/extension/docstrings.h"

namespace pccl::extension {

class Module : public pybind11::module_ {
   public:
    explicit Module(const pybind11::module_& module) : pybind11::module_(module) {
        options_.disable_function_signatures();
        doc() = docstring_of("");
    }

    template <typename Function, typename... Extra>
    void def(const char* name, Function&& function, const Extra&... extra) {
        pybind11::module_::def(name, std::forward<Function>(function), extra...,
                               docstring_of(name));
        ArgumentErrors::explain_in(this->attr(name));
    }

   private:
    pybind11::options options_;  // apply until the module's end
};

/// Throws TypeError. It replaces pybind11's allocation of an unset value for an object without one,
/// which __new__ alone makes, or a subclass that has not called __init__ yet.
template <typename Type>
void* refuse_without_value(std::size_t /*nbytes*/) {
    const auto* const info = pybind11::detail::get_type_info(typeid(Type));
    throw pybind11::type_error(concat(info->type->tp_name,
                                      ".__init__() has not run: call it before anything else of "
                                      "the object, in a subclass by super().__init__()"));
}

/// `Parts` are those of pybind11::class_: the type, its bases, its holder.
template <typename... Parts>
class Class : public pybind11::class_<Parts...> {
    using Base = pybind11::class_<Parts...>;

   public:
    Class(Module& module, const char* name)
        : Base(pybind11::handle(module.ptr()), name, docstring_of(name)) {
        using Type = std::tuple_element_t<0, std::tuple<Parts...>>;
        pybind11::detail::get_type_info(typeid(Type))->operator_new = &refuse_without_value<Type>;
        refuse_pickling();
    }

    /// `make` is an argument of pybind11::init().
    template <typename Function, typename... Extra>
    Class& def_init(Function&& make, const Extra&... extra) {
        Base::def(pybind11::init(std::forward<Function>(make)), extra..., text_of("__init__"));
        return explained("__init__");
    }

    template <typename Function, typename... Extra>
    Class& def(const char* name, Function&& function, const Extra&... extra) {
        Base::def(name, std::forward<Function>(function), extra..., text_of(name));
        return explained(name);
    }

    template <typename Function, typename... Extra>
    Class& def_static(const char* name, Function&& function, const Extra&... extra) {
        Base::def_static(name, std::forward<Function>(function), extra..., text_of(name));
        return explained(name);
    }

    template <typename Getter>
    Class& def_property_readonly(const char* name, const Getter& getter) {
        Base::def_property_readonly(name, getter, text_of(name));
        return *this;
    }

    template <typename Getter, typename Setter>
    Class& def_property(const char* name, const Getter& getter, const Setter& setter) {
        Base::def_property(name, getter, setter, text_of(name));
        return settable(name);
    }

    template <typename Member>
    Class& def_readonly(const char* name, Member member) {
        Base::def_readonly(name, member, text_of(name));
        return *this;
    }

    template <typename Member>
    Class& def_readwrite(const char* name, Member member) {
        Base::def_readwrite(name, member, text_of(name));
        return settable(name);
    }

    /// Makes a lone call of __new__ throw an error that names `instead`. Classes with a base of
    /// another library need this, since its methods would accept an object without a value.
    /// Subclasses define their own __new__.
    Class& refuse_new(const std::string& instead) {
        auto* const refusing = reinterpret_cast<PyTypeObject*>(this->ptr());
        const auto make = [refusing, instead](const pybind11::type& of, const pybind11::args& given,
                                              const pybind11::kwargs& named) {
            if (of.ptr() == reinterpret_cast<PyObject*>(refusing))
                throw pybind11::type_error(
                    concat(refusing->tp_name, ".__new__() alone makes no object: call ", instead));
            PyObject* const fresh = refusing->tp_new(reinterpret_cast<PyTypeObject*>(of.ptr()),
                                                     given.ptr(), named.ptr());
            if (fresh == nullptr) throw pybind11::error_already_set();
            return pybind11::reinterpret_steal<pybind11::object>(fresh);
        };
        const pybind11::cpp_function function(make, pybind11::name("__new__"));
        const auto method =
            pybind11::reinterpret_steal<pybind11::object>(PyStaticMethod_New(function.ptr()));
        // An attribute would intercept calls of the class, too.
        if (!method || PyDict_SetItemString(refusing->tp_dict, "__new__", method.ptr()) != 0)
            throw pybind11::error_already_set();
        PyType_Modified(refusing);
        return *this;
    }

   private:
    Class& explained(const char* name) {
        ArgumentErrors::explain_in(this->attr(name));
        return *this;
    }

    Class& settable(const char* name) {
        ArgumentErrors::explain_in(this->attr(name).attr("fset"));
        return *this;
    }

    /// Makes pickling throw TypeError. The __reduce__ of object calls pybind11's base class, which
    /// aborts the process.
    void refuse_pickling() {
        const auto refuse = [](pybind11::handle self) -> pybind11::object {
            const std::string name = Py_TYPE(self.ptr())->tp_name;
            throw pybind11::type_error(concat("cannot pickle or copy ", name, " objects"));
        };
        this->attr("__reduce__") = pybind11::cpp_function(refuse, pybind11::name("__reduce__"),
                                                          pybind11::is_method(*this));
    }

    [[nodiscard]] const char* text_of(const char* member) const {
        const auto name = this->attr("__name__").template cast<std::string>();
        return docstring_of(concat(name, '.', member));
    }
};

}  // namespace pccl::extension
