// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/store_adaptor.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/bounded_store.h"

namespace pccl::backend {

namespace {

template <typename Function>
Status guarded(const char* what, const std::string& key, Function function) {
    try {
        function();
        return Status::ok();
    } catch (const c10::Error& error) {
        return Status::unavailable(concat("the rendezvous store failed to ", what, " '", key,
                                          "': ", error.what_without_backtrace()));
    } catch (const std::exception& error) {
        return Status::unavailable(
            concat("the rendezvous store failed to ", what, " '", key, "': ", error.what()));
    }
}

class StoreAdaptor final : public Store {
   public:
    explicit StoreAdaptor(c10::intrusive_ptr<c10d::Store> store)
        : store_(std::move(store)), looks_in_one_trip_(is_tcp(*store_)) {}

    Status set(const std::string& key, const std::string& value) override {
        return guarded("set", key, [&] { store_->set(key, value); });
    }

    Result<std::string> get(const std::string& key, Deadline deadline) override {
        std::optional<std::string> value;
        const TimePoint begun = system_clock().now();
        for (;;) {
            PCCL_TRY(guarded("get", key, [&] { value = look(key); }));
            if (value) return *value;
            if (deadline.passed())
                return Status::timeout(concat("nobody set '", key, "' in the rendezvous store"));
            const Duration waited = system_clock().now() - begun;
            system_clock().sleep_for(
                std::min(deadline.remaining(), bootstrap::pause_after(waited)));
        }
    }

    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        std::int64_t sum = 0;
        PCCL_TRY(guarded("add to", key, [&] { sum = store_->add(key, delta); }));
        return sum;
    }

    Status remove(const std::string& key) override {
        return guarded("delete", key, [&] { store_->deleteKey(key); });
    }

    [[nodiscard]] std::string server() const override {
        c10::intrusive_ptr<c10d::Store> inner = store_;
        if (auto* const prefixed = dynamic_cast<c10d::PrefixStore*>(inner.get()))
            inner = prefixed->getUnderlyingNonPrefixStore();
        const auto* const tcp = dynamic_cast<const c10d::TCPStore*>(inner.get());
        return tcp == nullptr ? std::string() : tcp->getHost();
    }

   private:
    static bool is_tcp(c10d::Store& store) {
        auto* const prefixed = dynamic_cast<c10d::PrefixStore*>(&store);
        if (prefixed == nullptr) return dynamic_cast<c10d::TCPStore*>(&store) != nullptr;
        const auto underlying = prefixed->getUnderlyingNonPrefixStore();
        return dynamic_cast<c10d::TCPStore*>(underlying.get()) != nullptr;
    }

    /// Looks a key up without waiting.
    std::optional<std::string> look(const std::string& key) {
        if (looks_in_one_trip_) return look_in_one_trip(key);
        if (!store_->check({key})) return std::nullopt;
        return store_->get_to_str(key);
    }

    /// Looks a key up with one request, whereas check() and get() take three. compareSet() changes
    /// nothing, because no value equals the expected one, and returns the expected one for a
    /// missing key.
    std::optional<std::string> look_in_one_trip(const std::string& key) {
        static const std::vector<std::uint8_t> none{'p', 'c', 'c', 'l', ' ', 'n', 'o', 'n', 'e'};
        const std::vector<std::uint8_t> found = store_->compareSet(key, none, none);
        if (found == none) return std::nullopt;
        return std::string(found.begin(), found.end());
    }

    c10::intrusive_ptr<c10d::Store> store_;
    const bool looks_in_one_trip_;
};

}  // namespace

std::shared_ptr<Store> adapt_store(c10::intrusive_ptr<c10d::Store> store) {
    return std::make_shared<StoreAdaptor>(std::move(store));
}

}  // namespace pccl::backend
