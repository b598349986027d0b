#include "csrc/torch/store_adaptor.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "csrc/base/text.h"

namespace pccl::backend {

namespace {

// Looking often at first and less often later costs little of either time.
Duration pause_after(Duration waited) {
    return std::clamp<Duration>(waited / 8, std::chrono::milliseconds(1),
                                std::chrono::milliseconds(200));
}

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

class StoreAdaptor final : public bootstrap::Store {
   public:
    explicit StoreAdaptor(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}

    Status set(const std::string& key, const std::string& value) override {
        return guarded("set", key, [&] { store_->set(key, value); });
    }

    Result<std::string> get(const std::string& key, Deadline deadline) override {
        std::string value;
        const TimePoint begun = system_clock().now();
        for (;;) {
            bool is_there = false;
            PCCL_TRY(guarded("get", key, [&] {
                is_there = store_->check({key});
                if (is_there) value = store_->get_to_str(key);
            }));
            if (is_there) return value;
            if (deadline.passed())
                return Status::timeout(concat("nobody set '", key, "' in the rendezvous store"));
            const Duration waited = system_clock().now() - begun;
            system_clock().sleep_for(std::min(deadline.remaining(), pause_after(waited)));
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

   private:
    c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace

std::shared_ptr<bootstrap::Store> adapt_store(c10::intrusive_ptr<c10d::Store> store) {
    return std::make_shared<StoreAdaptor>(std::move(store));
}

}  // namespace pccl::backend
