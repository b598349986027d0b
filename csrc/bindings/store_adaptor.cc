// SPDX-License-Identifier: Apache-2.0
#include "csrc/bindings/store_adaptor.h"

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pccl/store.h>
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/base/threads/interruptible.h"
#include "csrc/bindings/errors.h"
#include "csrc/bootstrap/published_store.h"
#include "csrc/bootstrap/rendezvous/bounded_store.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/extension/gil.h"
#include "csrc/extension/signals.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

// Tolerance for stores that time out early.
constexpr Duration kEarly = std::chrono::milliseconds(20);
constexpr Duration kShortest = std::chrono::milliseconds(1);
constexpr Duration kLongest = std::chrono::hours(24 * 365);

class PythonStore final : public Store {
   public:
    explicit PythonStore(py::object store) : store_(std::move(store)) {}

    ~PythonStore() override {
        const extension::HeldGil gil;
        store_.release().dec_ref();
    }
    PythonStore(const PythonStore&) = delete;
    PythonStore& operator=(const PythonStore&) = delete;

    Status set(const std::string& key, const std::string& value) override {
        return guarded("set", key, [&] { store_.attr("set")(key, py::bytes(value)); });
    }

    Result<std::string> get(const std::string& key, Deadline deadline) override {
        std::optional<std::string> value;
        const TimePoint begun = system_clock().now();
        while (!value) {
            const Status status = guarded("get", key, [&] { value = try_get(key, deadline); });
            if (value) break;
            PCCL_TRY(status);
            if (deadline.remaining() < kEarly) {
                return Status::timeout(concat("nobody set '", key, "' in the rendezvous store"));
            }
            const Duration waited = system_clock().now() - begun;
            system_clock().sleep_for(
                std::min(deadline.remaining(), bootstrap::pause_after(waited)));
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

    [[nodiscard]] std::string server() const override {
        std::string host;
        // torch's stores have these attributes; other stores may not.
        static_cast<void>(guarded("name", "its host", [&] {
            py::object store = store_;
            for (int depth = 0; depth < kMostNested && py::hasattr(store, "underlying_store");
                 ++depth)
                store = store.attr("underlying_store");
            if (py::hasattr(store, "host")) {
                const py::object name = store.attr("host");
                if (py::isinstance<py::str>(name)) host = name.cast<std::string>();
            }
        }));
        return host;
    }

   private:
    static constexpr int kMostNested = 8;

    template <typename Function>
    static Status guarded(const char* what, const std::string& key, Function function) {
        const extension::HeldGil gil;
        try {
            function();
            return Status::ok();
        } catch (const std::exception& error) {
            return Status::unavailable(
                concat("the rendezvous store failed to ", what, " '", key, "': ", error.what()));
        }
    }

    std::optional<std::string> try_get(const std::string& key, Deadline deadline) {
        const std::vector keys{key};
        if (py::hasattr(store_, "check")) {  // wait() of torch logs each timeout
            if (!store_.attr("check")(keys).cast<bool>()) return std::nullopt;
        } else if (py::hasattr(store_, "wait") && !await(keys, deadline)) {
            return std::nullopt;
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

    /// Calls the store's wait(), which raises an exception of any type at its timeout. An exception
    /// before that, and a lost connection, are the store's failure.
    bool await(const std::vector<std::string>& keys, Deadline deadline) {
        try {
            store_.attr("wait")(keys,
                                std::clamp<Duration>(deadline.remaining(), kShortest, kLongest));
            return true;
        } catch (const py::error_already_set& error) {
            if (deadline.remaining() >= kEarly || error.matches(PyExc_ConnectionError)) throw;
            return false;
        }
    }

    py::object store_;
};

std::shared_ptr<Store> open(const std::string& url, const RankAndSize& place, Deadline deadline,
                            StoreContent content) {
    const auto attempt = [&](const Cancellation& cancellation) {
        return open_store(url, place.rank, place.world_size, deadline.unless(cancellation.is_set()),
                          content);
    };
    return released(
        [&] { return run_interruptibly("pccl-store-open", extension::check_signals, attempt); });
}

bool is_of_process(const py::object& rendezvous) {
    if (!py::isinstance<py::str>(rendezvous)) return false;
    const auto text = rendezvous.cast<std::string>();
    return text == "env://" || text == "auto";
}

py::module_ launchers() { return py::module_::import("pccl.launchers.meeting"); }

/// Joins the store of this process's launcher, which Python describes by a URL, by a store object,
/// or by the addresses and the secret of a published store.
std::shared_ptr<Store> join_launcher(const Meeting& meeting, Deadline deadline) {
    const double patience =
        std::chrono::duration<double>(std::min<Duration>(deadline.remaining(), kLongest)).count();
    const py::object where = launchers().attr("meeting_point")(meeting.rendezvous, patience);
    if (py::isinstance<py::str>(where))
        return open(where.cast<std::string>(), meeting.place, deadline, StoreContent::kAny);
    if (!py::isinstance<py::tuple>(where)) return adapt_store(where);
    const auto [addresses, secret] = where.cast<std::pair<std::vector<std::string>, std::string>>();
    const auto attempt = [&](const Cancellation& cancellation) {
        return bootstrap::join_published_store(addresses, secret,
                                               deadline.unless(cancellation.is_set()));
    };
    return released(
        [&] { return run_interruptibly("pccl-store-open", extension::check_signals, attempt); });
}

/// A process has one such store for each kind of rendezvous, at which its groups meet one after the
/// other, as with torch.
std::shared_ptr<Store> store_of_process(const Meeting& meeting, Deadline deadline) {
    static auto& stores = *new std::map<std::string, std::shared_ptr<Store>>;  // guarded by the GIL
    const auto kind = meeting.rendezvous.cast<std::string>();
    if (stores[kind] == nullptr) {
        auto joined = join_launcher(meeting, deadline);
        stores[kind] = std::move(joined);
    }
    return stores[kind];
}

/// Returns the prefix for all groups of this name, or for one of them.
std::string part_of_process(const std::string& group, StoreContent content) {
    if (content == StoreContent::kAny) return group;
    static auto& groups = *new std::map<std::string, int>;  // guarded by the GIL
    const auto attempt = launchers().attr("attempt")().cast<std::string>();
    return concat("once/", attempt, "/", group, "/", ++groups[group]);
}

}  // namespace

std::shared_ptr<Store> adapt_store(py::object store) {
    for (const char* const method : {"set", "get", "add"})
        if (!py::hasattr(store, method))
            throw_status(Status::invalid_argument(concat(
                "rendezvous=", py::repr(store).cast<std::string>(),
                " is no store; give 'auto', 'tcp://host:port', 'file:///path', 'env://', or an "
                "object with set, get and add, such as a store of torch.distributed")));
    return std::make_shared<PythonStore>(std::move(store));
}

Meeting meeting_of(const py::object& rendezvous, std::optional<Rank> rank,
                   std::optional<int> world_size) {
    if (!rendezvous.is_none() && !py::isinstance<py::str>(rendezvous))
        return {.place = {rank.value_or(0), world_size.value_or(1)}, .rendezvous = rendezvous};
    const py::tuple found = launchers().attr("resolve")(rendezvous, rank, world_size);
    log(LogLevel::kDebug, "rendezvous: ", found[3].cast<std::string>());
    return {.place = {found[0].cast<Rank>(), found[1].cast<int>()}, .rendezvous = found[2]};
}

std::shared_ptr<Store> store_at(const Meeting& meeting, const std::string& group, Deadline deadline,
                                StoreContent content) {
    if (meeting.rendezvous.is_none()) return nullptr;
    if (is_of_process(meeting.rendezvous))
        return bootstrap::prefixed(store_of_process(meeting, deadline),
                                   part_of_process(group, content));
    if (!py::isinstance<py::str>(meeting.rendezvous)) return adapt_store(meeting.rendezvous);
    return open(meeting.rendezvous.cast<std::string>(), meeting.place, deadline, content);
}

}  // namespace pccl::bindings
