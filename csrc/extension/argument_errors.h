// SPDX-License-Identifier: Apache-2.0

// One-line errors for wrong arguments, which contain the argument, its value and the expected one.
// They replace the list of C++ signatures that pybind11 prints.
//
// The entry point of a function is replaced by one that calls it and examines its error. A
// successful call thus costs one more jump, and a failing one still has all its arguments.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

namespace pccl::extension {

class ArgumentErrors {
   public:
    /// Replaces the entry point of `function`, which pybind11 made, or of a method of a class. All
    /// its overloads are covered.
    static void explain_in(pybind11::handle function) {
        PyObject* bare = function.ptr();
        if (PyInstanceMethod_Check(bare) != 0) bare = PyInstanceMethod_GET_FUNCTION(bare);
        if (PyCFunction_Check(bare) == 0) return;  // None, for a property that cannot be set
        PyMethodDef& definition = *reinterpret_cast<PyCFunctionObject*>(bare)->m_ml;
        if ((definition.ml_flags & METH_FASTCALL) != 0) {
            replace(definition, fast_entry, &call_fast);
        } else {  // pybind11 before 3.0.2
            replace(definition, entry, &call);
        }
    }

   private:
    using FastEntry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    using Entry = PyObject* (*)(PyObject*, PyObject*, PyObject*);

    template <typename Function>
    static void replace(PyMethodDef& definition, Function& kept, Function explained) {
        const auto found =
            reinterpret_cast<Function>(reinterpret_cast<void (*)()>(definition.ml_meth));
        if (found == explained) return;
        kept = found;  // all functions of pybind11 share it
        definition.ml_meth = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(explained));
    }

    static PyObject* call_fast(PyObject* self, PyObject* const* arguments, Py_ssize_t count,
                               PyObject* names) {
        PyObject* const result = fast_entry(self, arguments, count, names);
        if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0)
            explain([&] { return given(arguments, PyVectorcall_NARGS(count), names); });
        return result;
    }

    static PyObject* call(PyObject* self, PyObject* arguments, PyObject* named) {
        PyObject* const result = entry(self, arguments, named);
        if (result == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0)
            explain([&] {
                return pybind11::make_tuple(
                    pybind11::handle(arguments),
                    named == nullptr ? pybind11::object(pybind11::dict())
                                     : pybind11::reinterpret_borrow<pybind11::object>(named));
            });
        return result;
    }

    /// Returns the positional and the named arguments.
    static pybind11::tuple given(PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
        pybind11::list positional;
        for (Py_ssize_t i = 0; i < count; ++i) positional.append(pybind11::handle(arguments[i]));
        pybind11::dict named;
        const Py_ssize_t all = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
        for (Py_ssize_t i = 0; i < all; ++i)
            named[PyTuple_GET_ITEM(names, i)] = pybind11::handle(arguments[count + i]);
        return pybind11::make_tuple(pybind11::tuple(positional), named);
    }

    /// Replaces the current error if it is pybind11's own. If that fails, the error stays.
    template <typename Given>
    static void explain(const Given& arguments) {
        pybind11::error_scope error;  // restored at the end
        try {
            const std::string text = pybind11::str(pybind11::handle(error.value));
            if (text.find("The following argument types are supported") == std::string::npos)
                return;
            const pybind11::tuple all = arguments();
            pybind11::object better = pybind11::module_::import("pccl._internal.arguments")
                                          .attr("refusal")(text, all[0], all[1]);
            Py_XDECREF(std::exchange(error.value, better.release().ptr()));
        } catch (const pybind11::error_already_set&) {
            return;
        }
    }

    static inline FastEntry fast_entry = nullptr;
    static inline Entry entry = nullptr;
};

}  // namespace pccl::extension
