// Collectives with positional arguments alone, as most calls are, without pybind11's dispatch,
// which takes about as long as a small collective.
//
// make_quick() puts a method of CPython's fast calling convention in place of one that pybind11
// made, and leaves to that one what it does not take itself: keywords, and arguments of the wrong
// number or type.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/bindings/call.h"

namespace pccl::bindings {

/// How a positional argument is read, or replaced where it is missing; nullopt leaves the call to
/// pybind11.
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
struct QuickArgument<const Reducing&> {
    static std::optional<Reducing> read(PyObject* given) {
        if (given == nullptr) return Reducing{};
        if (!PyUnicode_CheckExact(given)) return std::nullopt;
        return Reducing{.op = op_of(pybind11::reinterpret_borrow<pybind11::str>(given))};
    }
};

template <>
struct QuickArgument<Rank> {
    static std::optional<Rank> read(PyObject* given) {
        if (given == nullptr) return kDefaultRoot;
        if (!PyLong_CheckExact(given)) return std::nullopt;
        int overflow = 0;
        const long value = PyLong_AsLongAndOverflow(given, &overflow);
        if (overflow != 0 || !std::in_range<Rank>(value)) return std::nullopt;
        return static_cast<Rank>(value);
    }
};

template <typename Result, typename Class, typename... Arguments>
Class class_of(Result (Class::*)(Arguments...));

template <auto Method, typename... Arguments>
class QuickCall {
    using Self = decltype(class_of(Method));

   public:
    static void replace(pybind11::handle type, const char* name) {
        general = pybind11::object(type.attr(name)).release().ptr();
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
    using Given = std::array<PyObject*, sizeof...(Arguments)>;

    /// What pybind11 was given, but for "$" before self, which is how CPython finds that a bound
    /// method takes it no more.
    static std::string documentation(const char* name) {
        const pybind11::handle method(general);
        const std::string signature = pybind11::str(method.attr("__text_signature__"));
        const std::string text = pybind11::str(method.attr("__doc__"));
        return concat(name, "($", signature.substr(1), "\n--\n\n", text);
    }

    static PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                          PyObject* keywords) {
        auto* const instance = reinterpret_cast<pybind11::detail::instance*>(self);
        auto* const called = instance->get_value_and_holder().template value_ptr<Self>();
        const auto positional = static_cast<std::size_t>(count);
        if (called == nullptr || keywords != nullptr || positional > sizeof...(Arguments))
            return call_general(self, arguments, positional, keywords);
        Given given{};
        std::copy_n(arguments, positional, given.begin());
        std::optional<PyObject*> result =
            try_call(*called, given, std::index_sequence_for<Arguments...>());
        return result ? *result : call_general(self, arguments, positional, keywords);
    }

    template <std::size_t... Index>
    static std::optional<PyObject*> try_call(Self& called, [[maybe_unused]] const Given& given,
                                             std::index_sequence<Index...> /*all*/) {
        try {
            [[maybe_unused]] const auto read =
                std::tuple(QuickArgument<Arguments>::read(given[Index])...);
            if (!(std::get<Index>(read).has_value() && ...)) return std::nullopt;
            return (called.*Method)(*std::get<Index>(read)..., CallOptions{}).release().ptr();
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

    static inline PyObject* general = nullptr;  // for good, as the class
};

/// In place of the method `name` that pybind11 made of `Method`, which takes `Arguments` and
/// CallOptions.
template <auto Method, typename... Arguments>
void make_quick(pybind11::handle type, const char* name) {
    QuickCall<Method, Arguments...>::replace(type, name);
}

}  // namespace pccl::bindings
