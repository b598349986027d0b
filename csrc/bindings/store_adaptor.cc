#include "csrc/bindings/store_adaptor.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/interruptible.h"
#include "csrc/base/text.h"
#include "csrc/bindings/errors.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

constexpr std::chrono::milliseconds kPollInterval{5};
// How much sooner than asked a store may give up waiting.
constexpr Duration kEarly = std::chrono::milliseconds(20);
constexpr Duration kShortest = std::chrono::milliseconds(1);
constexpr Duration kLongest = std::chrono::hours(24 * 365);

class PythonStore final : public comm::Store {
   public:
    explicit PythonStore(py::object store) : store_(std::move(store)) {}

    ~PythonStore() override {
        const py::gil_scoped_acquire gil;
        store_.release().dec_ref();
    }
    PythonStore(const PythonStore&) = delete;
    PythonStore& operator=(const PythonStore&) = delete;

    Status set(const std::string& key, const std::string& value) override {
        return guarded("set", key, [&] { store_.attr("set")(key, py::bytes(value)); });
    }

    Result<std::string> get(const std::string& key, Deadline deadline) override {
        std::optional<std::string> value;
        while (!value) {
            const Status status = guarded("get", key, [&] { value = try_get(key, deadline); });
            if (value) break;
            if (deadline.remaining() < kEarly) {
                return Status::timeout(concat("nobody set '", key, "' in the rendezvous store"));
            }
            PCCL_TRY(status);
            system_clock().sleep_for(kPollInterval);
        }
        return *value;
    }

    Result<std::int64_t> add(const std::string& key, std::int64_t delta) override {
        std::int64_t sum = 0;
        PCCL_TRY(guarded("add to", key,
                         [&] { sum = store_.attr("add")(key, delta).cast<std::int64_t>(); }));
        return sum;
    }

    Status remove(const std::string& key) override {
        return guarded("delete", key, [&] {
            if (py::hasattr(store_, "delete_key")) store_.attr("delete_key")(key);
        });
    }

   private:
    template <typename Function>
    static Status guarded(const char* what, const std::string& key, Function function) {
        const py::gil_scoped_acquire gil;
        try {
            function();
            return Status::ok();
        } catch (const std::exception& error) {
            return Status::unavailable(
                concat("the rendezvous store failed to ", what, " '", key, "': ", error.what()));
        }
    }

    std::optional<std::string> try_get(const std::string& key, Deadline deadline) {
        // Torch's stores take no time at all for no limit.
        const Duration patience = std::clamp<Duration>(deadline.remaining(), kShortest, kLongest);
        const std::vector keys{key};
        if (patience == kShortest && py::hasattr(store_, "check")) {
            if (!store_.attr("check")(keys).cast<bool>()) return std::nullopt;
        } else if (py::hasattr(store_, "wait")) {
            store_.attr("wait")(keys, patience);
        }
        try {
            const py::object value = store_.attr("get")(key);
            if (value.is_none()) return std::nullopt;
            return value.cast<std::string>();
        } catch (py::error_already_set& error) {
            if (!error.matches(PyExc_KeyError)) throw;
            return std::nullopt;
        }
    }

    py::object store_;
};

}  // namespace

std::shared_ptr<comm::Store> adapt_store(py::object store) {
    return std::make_shared<PythonStore>(std::move(store));
}

std::shared_ptr<comm::Store> store_at(const py::object& rendezvous, Rank rank, int size,
                                      Deadline deadline) {
    if (rendezvous.is_none()) return nullptr;
    if (!py::isinstance<py::str>(rendezvous)) return adapt_store(rendezvous);
    const auto url = rendezvous.cast<std::string>();
    const auto open = [&](const Cancellation& cancellation) {
        return comm::open_store(url, rank, size, deadline.unless(cancellation.is_set()));
    };
    return released(
        [&] { return run_interruptibly("pccl-store-open", extension::check_signals, open); });
}

}  // namespace pccl::bindings
