#include "csrc/torch/store_adaptor.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "csrc/base/text.h"

namespace pccl::backend {

namespace {

using std::chrono::milliseconds;

// torch's clients overflow on huge timeouts, and take zero for "their default".
constexpr milliseconds kLongest = std::chrono::hours(24 * 365);

milliseconds timeout_until(Deadline deadline) {
    const Duration left = deadline.remaining();
    return std::clamp(std::chrono::ceil<milliseconds>(std::min<Duration>(left, kLongest)),
                      milliseconds(1), kLongest);
}

template <typename Function>
Status guarded(const char* what, const std::string& key, Function function) {
    try {
        function();
        return Status::ok();
    } catch (const std::exception& error) {
        return Status::unavailable(
            concat("the rendezvous store failed to ", what, " '", key, "': ", error.what()));
    }
}

class StoreAdaptor final : public comm::Store {
   public:
    explicit StoreAdaptor(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

    Status set(const std::string& key, const std::string& value) override {
        return guarded("set", key, [&] { store_->set(key, value); });
    }

    Result<std::string> get(const std::string& key, Deadline deadline) override {
        std::string value;
        const Status status = guarded("get", key, [&] {
            store_->wait({key}, timeout_until(deadline));
            value = store_->get_to_str(key);
        });
        if (status.is_ok()) return value;
        if (deadline.passed()) return Status::timeout(status.message());
        return status;
    }

    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        std::int64_t sum = 0;
        PCCL_TRY(guarded("add to", key, [&] { sum = store_->add(key, delta); }));
        return sum;
    }

    Status remove(const std::string& key) override {
        return guarded("delete", key, [&] { store_->deleteKey(key); });
    }

   private:
    c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::shared_ptr<comm::Store> adapt_store(c10::intrusive_ptr<c10d::Store> store) {
    return std::make_shared<StoreAdaptor>(std::move(store));
}

}  // namespace pccl::backend
