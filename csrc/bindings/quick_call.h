// SPDX-License-Identifier: Apache-2.0

// Collectives without pybind11's dispatch, which takes about as long as a small collective, and
// twice as long with named arguments.
//
// make_quick() replaces a method of pybind11 by one with CPython's fast calling convention. It
// forwards calls that it does not support to pybind11: wrong names, numbers or types of arguments.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/call.h"

namespace pccl::bindings {

/// Conversion of a positional argument, or its default. nullopt forwards the call to pybind11.
template <typename T>
struct QuickArgument;

template <>
struct QuickArgument<const pybind11::object&> {
    static std::optional<pybind11::object> read(PyObject* given) {
        if (given == nullptr) return std::nullopt;
        return pybind11::reinterpret_borrow<pybind11::object>(given);
    }
};

template <>
struct QuickArgument<int> {
    static std::optional<int> read(PyObject* given) {
        if (given == nullptr || !PyLong_CheckExact(given)) return std::nullopt;
        int overflow = 0;
        const long value = PyLong_AsLongAndOverflow(given, &overflow);
        if (overflow != 0 || !std::in_range<int>(value)) return std::nullopt;
        return static_cast<int>(value);
    }
};
static_assert(std::is_same_v<Rank, int>);

template <>
struct QuickArgument<const Reducing&> {
    static std::optional<Reducing> read(PyObject* given) {
        if (given == nullptr) return Reducing{};
        if (!PyUnicode_CheckExact(given)) return std::nullopt;
        return Reducing{.op = op_of(pybind11::reinterpret_borrow<pybind11::str>(given))};
    }
};

/// An optional integer argument.
template <int Default>
struct Or;

template <int Default>
struct QuickArgument<Or<Default>> {
    static std::optional<int> read(PyObject* given) {
        return given == nullptr ? Default : QuickArgument<int>::read(given);
    }
};

template <>
struct QuickArgument<bool> {
    static std::optional<bool> read(PyObject* given) {
        if (given == nullptr || given == Py_False) return false;
        if (given == Py_True) return true;
        return std::nullopt;
    }
};

/// Conversion of seconds.
template <>
struct QuickArgument<std::optional<double>> {
    static std::optional<std::optional<double>> read(PyObject* given) {
        if (given == nullptr || given == Py_None) return std::optional<double>();
        if (PyFloat_CheckExact(given)) return PyFloat_AS_DOUBLE(given);
        const std::optional<int> whole = QuickArgument<int>::read(given);
        if (!whole) return std::nullopt;
        return std::optional<double>(*whole);
    }
};

/// Returns the names of a method's first `positional` parameters after self, and of those of
/// CallOptions; null: not present. `signature` is like "($self, x, root=0, *, async_op=False,
/// timeout=None)". The names live forever, and are interned, as the keywords of calls are.
[[nodiscard]] std::vector<PyObject*> names_in(std::string_view signature, std::size_t positional);

template <typename Result, typename Class, typename... Arguments>
Class class_of(Result (Class::*)(Arguments...));

template <auto Method, typename... Arguments>
class QuickCall {
    using Self = decltype(class_of(Method));

   public:
    static void replace(pybind11::handle type, const char* name) {
        general = pybind11::object(type.attr(name)).release().ptr();
        const auto found = names_in(signature(), kPositional);
        std::ranges::copy(found, names.begin());
        static const std::string doc = documentation(name);  // the definition points into it
        static PyMethodDef definition{
            .ml_name = name,
            .ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
            .ml_flags = METH_FASTCALL | METH_KEYWORDS,
            .ml_doc = doc.c_str()};
        auto* const class_object = reinterpret_cast<PyTypeObject*>(type.ptr());
        type.attr(name) = pybind11::reinterpret_steal<pybind11::object>(
            PyDescr_NewMethod(class_object, &definition));
    }

   private:
    static constexpr std::size_t kPositional = sizeof...(Arguments);
    /// The positional arguments, async_op and timeout.
    using Places = std::array<PyObject*, kPositional + 2>;

    static std::string signature() {
        return pybind11::str(pybind11::handle(general).attr("__text_signature__"));
    }
    /// Returns pybind11's documentation with "$" before self, by which CPython recognises that a
    /// bound method takes no self.
    static std::string documentation(const char* name) {
        const std::string text = pybind11::str(pybind11::handle(general).attr("__doc__"));
        return concat(name, "($", signature().substr(1), "\n--\n\n", text);
    }

    /// Returns null before __init__, and where pybind11 must search several bases.
    static Self* called_of(PyObject* self) {
        auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self);
        if (!instance->simple_layout) return nullptr;
        return static_cast<Self*>(instance->simple_value_holder[0]);
    }

    static PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* keywords) {
        Self* const called = called_of(self);
        const auto positional = static_cast<std::size_t>(count);
        if (called == nullptr || positional > kPositional)
            return call_general(self, arguments, positional, keywords);
        Places given{};
        std::copy_n(arguments, positional, given.begin());
        std::optional<PyObject*> result;
        if (place(arguments + positional, keywords, given))
            result = try_call(*called, given, std::index_sequence_for<Arguments...>());
        return result ? *result : call_general(self, arguments, positional, keywords);
    }

    /// Returns false where a keyword is unknown or repeats a positional argument.
    static bool place(PyObject* const* values, PyObject* keywords, Places& given) {
        const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
        for (Py_ssize_t i = 0; i < count; ++i) {
            const auto* const name = std::ranges::find(names, PyTuple_GET_ITEM(keywords, i));
            if (name == names.end()) return false;
            PyObject*& one = given[static_cast<std::size_t>(name - names.begin())];
            if (one != nullptr) return false;
            one = values[i];
        }
        return true;
    }

    template <std::size_t... Index>
    static std::optional<PyObject*> try_call(Self& called, const Places& given,
                                             std::index_sequence<Index...> /*all*/) {
        try {
            [[maybe_unused]] const auto read =
                std::tuple(QuickArgument<Arguments>::read(given[Index])...);
            const auto async_op = QuickArgument<bool>::read(given[kPositional]);
            const auto timeout = QuickArgument<std::optional<double>>::read(given[kPositional + 1]);
            if (!(std::get<Index>(read).has_value() && ... && (async_op && timeout)))
                return std::nullopt;
            return (called.*Method)(*std::get<Index>(read)..., CallOptions{*async_op, *timeout})
                .release()
                .ptr();
        } catch (pybind11::error_already_set& error) {
            error.restore();
        } catch (const std::exception& error) {
            PyErr_SetString(PyExc_RuntimeError, error.what());
        }
        return nullptr;
    }

    static PyObject* call_general(PyObject* self, PyObject* const* arguments,
                                  std::size_t positional, PyObject* keywords) {
        const std::size_t named =
            keywords == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(keywords));
        std::vector<PyObject*> all{self};
        all.insert(all.end(), arguments, arguments + positional + named);
        return PyObject_Vectorcall(general, all.data(), positional + 1, keywords);
    }

    static inline PyObject* general = nullptr;  // never released, like the class
    static inline Places names{};
};

/// Replaces the method `name`, which pybind11 made of `Method`. It takes `Arguments` and
/// CallOptions.
template <auto Method, typename... Arguments>
void make_quick(pybind11::handle type, const char* name) {
    QuickCall<Method, Arguments...>::replace(type, name);
}

}  // namespace pccl::bindings
