// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/netplugin/rules.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace pccl::fakes::netplugin {
namespace {

/// Writes where no memory is: this ends the process also where SIGSEGV is blocked.
void crash() {
    volatile std::uintptr_t address = 8;
    *reinterpret_cast<volatile int*>(address) = 1;
}

}  // namespace

Rules& Rules::of_process() {
    static auto* const rules = new Rules;
    return *rules;
}

Rules::Rules() {
    const char* const text = std::getenv("PCCL_TEST_NET_PLUGIN");
    set(text == nullptr ? "" : text);
}

void Rules::set(std::string_view text) {
    const std::lock_guard lock(mutex_);
    rules_.clear();
    calls_.clear();
    ++generation_;
    while (!text.empty()) {
        const std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        const auto equals = item.find('=');
        if (equals != std::string_view::npos)
            rules_[std::string(item.substr(0, equals))] = item.substr(equals + 1);
    }
    const auto seed = rules_.find("seed");
    random_.seed(seed == rules_.end() ? 1U
                                      : static_cast<unsigned>(std::atol(seed->second.c_str())));
}

long Rules::calls(const std::string& call) {
    const std::lock_guard lock(mutex_);
    return calls_[call];
}

long Rules::number(const std::string& key, long otherwise) {
    const std::lock_guard lock(mutex_);
    const auto found = rules_.find(key);
    return found == rules_.end() ? otherwise : std::atol(found->second.c_str());
}

Rules::Point Rules::point_in(const std::string& text) {
    const auto colon = text.find(':');
    if (colon == std::string::npos) return {.call = text};
    return {.call = text.substr(0, colon), .at = std::atol(text.substr(colon + 1).c_str())};
}

bool Rules::is_at(const char* rule, const std::string& call, long count) {
    const auto found = rules_.find(rule);
    if (found == rules_.end()) return false;
    const Point point = point_in(found->second);
    return point.call == call && count >= point.at;
}

Act Rules::decide(const std::string& call, bool may_be_null) {
    std::unique_lock lock(mutex_);
    const long count = ++calls_[call];
    if (is_at("crash", call, count)) crash();
    if (is_at("exit", call, count)) std::exit(3);
    const std::uint64_t generation = generation_;
    while (is_at("block", call, count) && generation == generation_) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        lock.lock();
    }
    if (is_at("fail", call, count)) return Act::kFail;
    const auto null = rules_.find("null");
    if (!may_be_null || null == rules_.end()) return Act::kWork;
    return static_cast<long>(random_() % 100) < std::atol(null->second.c_str()) ? Act::kReturnNull
                                                                                : Act::kWork;
}

}  // namespace pccl::fakes::netplugin
