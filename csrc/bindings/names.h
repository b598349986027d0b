// SPDX-License-Identifier: Apache-2.0

// Enumerators by their names in Python.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/schedule/schedule.h"

namespace pccl::bindings {

/// Returns the enumerator, up to `last`, that prints as `name`. Throws InvalidArgumentError "... is
/// no <what>; there are ...".
template <typename Enum>
Enum named(const std::string& name, Enum last, const char* what) {
    std::string all;
    for (int i = 0; i <= static_cast<int>(last); ++i) {
        const auto text = to_string(static_cast<Enum>(i));
        if (text == name) return static_cast<Enum>(i);
        all += concat(all.empty() ? "" : ", ", text);
    }
    throw_status(
        Status::invalid_argument(concat("'", name, "' is no ", what, "; there are ", all)));
}

/// Returns, for example, "0 3 1".
inline std::string spaced(const std::vector<int>& numbers) {
    std::string text;
    for (const int number : numbers) text += concat(text.empty() ? "" : " ", number);
    return text;
}

inline schedule::CollectiveKind kind_of(const std::string& name) {
    if (const auto kind = schedule::collective_named(name)) return *kind;
    throw_status(Status::invalid_argument(
        concat("'", name, "' is no collective; there are ", schedule::names_of_collectives())));
}

}  // namespace pccl::bindings
