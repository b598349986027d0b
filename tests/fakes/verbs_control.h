// SPDX-License-Identifier: Apache-2.0

// Functions by which tests watch and disturb the fake libibverbs, which is opened by name.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "tests/fakes/places.h"
#include "tests/fakes/verbs/control.h"
#include "tests/fakes/verbs_fabric.h"

namespace pccl::fakes {

/// Returns a function of tests/fakes/verbs/control.h.
template <typename Function>
Function* fake_verbs_function(const char* name) {
    void* const library = ::dlopen(fake_verbs().c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function*>(found);
}

/// Returns function fake_verbs_<name> of the fake, which is looked up once.
#define PCCL_FAKE_VERBS(name)                                                  \
    ([] {                                                                      \
        static auto* const function =                                          \
            ::pccl::fakes::fake_verbs_function<decltype(::fake_verbs_##name)>( \
                "fake_verbs_" #name);                                          \
        return function;                                                       \
    }())

/// Returns what this process has done since reset_fake_counters(), and what it has now.
inline fake_verbs_counters fake_counters() {
    fake_verbs_counters counters{};
    PCCL_FAKE_VERBS(read_counters)(0, &counters);
    return counters;
}
inline void reset_fake_counters() { PCCL_FAKE_VERBS(reset_counters)(); }

/// Rule of the fake, for as long as it lives.
class FakeVerbsRule {
   public:
    explicit FakeVerbsRule(const fake_verbs_rule& rule)
        : number_(PCCL_FAKE_VERBS(add_rule)(&rule)) {}
    ~FakeVerbsRule() { end(); }
    FakeVerbsRule(const FakeVerbsRule&) = delete;
    FakeVerbsRule& operator=(const FakeVerbsRule&) = delete;

    [[nodiscard]] bool is_valid() const { return number_ > 0; }
    void end() {
        if (number_ > 0) PCCL_FAKE_VERBS(remove_rule)(number_);
        number_ = 0;
    }

   private:
    int number_;
};

}  // namespace pccl::fakes
