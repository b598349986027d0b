// SPDX-License-Identifier: Apache-2.0

// Bindings of Event, the result of asynchronous operations.

#include <pybind11/stl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/event.h"
#include "csrc/bindings/seconds.h"
#include "csrc/extension/gil.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

/// Queue of finished operations, for a Python thread that runs users' callbacks. A thread that
/// finishes an operation must not take the GIL, and so cannot call Python.
class DoneQueue {
   public:
    DoneQueue();

    /// Returns an eventfd, which is readable while numbers are queued. The queue owns it.
    [[nodiscard]] int descriptor() const { return fd_.get(); }
    /// Queues a number. Thread-safe; does not require the GIL.
    void put(std::uint64_t number);
    /// Returns all numbers since the last call, in order of arrival.
    [[nodiscard]] std::vector<std::uint64_t> take();

   private:
    const UniqueFd fd_;
    std::mutex mutex_;
    std::vector<std::uint64_t> numbers_;  // guarded by mutex_
};

DoneQueue::DoneQueue() : fd_(::eventfd(0, EFD_CLOEXEC)) {
    if (!fd_.is_open())
        throw_status(Status(StatusCode::kResourceExhausted,
                            concat("no descriptor for callbacks: ", std::strerror(errno))));
}

void DoneQueue::put(std::uint64_t number) {
    {
        const std::lock_guard lock(mutex_);
        numbers_.push_back(number);
    }
    constexpr std::uint64_t kOne = 1;
    // The write blocks only at 2^64 - 2 pending numbers.
    static_cast<void>(::write(fd_.get(), &kOne, sizeof kOne));
}

std::vector<std::uint64_t> DoneQueue::take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(numbers_, {});
}

double seconds_of(TimePoint point) {
    return std::chrono::duration<double>(point.time_since_epoch()).count();
}

py::dict times_of(const Event& event) {
    const Timing timing = event.record();
    py::dict times;
    times["issued"] = seconds_of(timing.issued);
    times["started"] = seconds_of(timing.started);
    times["finished"] =
        event.is_done() ? py::object(py::float_(seconds_of(timing.finished))) : py::none();
    return times;
}

}  // namespace

void DeferredReleases::put(HeldBuffers& held) {
    const std::lock_guard lock(mutex_);
    // Set first: a thread that finds the buffers already taken then finds them here.
    has_any_.store(true);
    if (BuffersPtr left = held.take()) buffers_.push_back(std::move(left));
}

void DeferredReleases::clear() {
    if (!has_any_.load()) return;
    std::vector<BuffersPtr> buffers;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    buffers.swap(buffers_);
    has_any_.store(false);
}

std::shared_ptr<HeldBuffers> hold_until_done(const Event& event, BuffersPtr buffers,
                                             std::shared_ptr<DeferredReleases> deferred) {
    auto held = std::make_shared<HeldBuffers>(std::move(buffers), std::move(deferred));
    event.on_done([held](const Status&) { held->release_later(); });
    return held;
}

Status wait_for(const Event& event, std::optional<double> seconds) {
    const Deadline deadline = deadline_after(seconds);
    const extension::ReleasedGil released;
    return event.wait(deadline);
}

void PyEvent::wait(OptionalSeconds seconds) const {
    const Status status = wait_for(event_, seconds);
    static_cast<void>(is_done());
    throw_unless_ok(status);
}

void PyEvent::flush() const {
    throw_unless_ok([this] {
        const extension::ReleasedGil released;
        return event_.flush();
    }());
}

bool PyEvent::is_done() const {
    if (!event_.is_done()) return false;
    held_->release();
    return true;
}

namespace {

py::module_ callbacks() { return py::module_::import("pccl.communicator.callbacks"); }

/// Queues `number` once `event` is done, which may be immediately.
void expect(const std::shared_ptr<DoneQueue>& self, const PyEvent& event, std::uint64_t number) {
    const extension::ReleasedGil released;
    (*event).on_done([queue = self, number](const Status&) { queue->put(number); });
}

void bind_done_queue(extension::Module& module) {
    extension::Class<DoneQueue, std::shared_ptr<DoneQueue>>(module, "DoneQueue")
        .def_init([] { return std::make_shared<DoneQueue>(); })
        .def_property_readonly("descriptor", &DoneQueue::descriptor)
        .def("expect", &expect, py::arg("event"), py::arg("number"))
        .def("take", &DoneQueue::take);
}

}  // namespace

void bind_event(extension::Module& module) {
    extension::Class<PyEvent>(module, "Event")
        .def("wait", &PyEvent::wait, py::arg("timeout") = py::none())
        .def("flush", &PyEvent::flush)
        .def("is_done", &PyEvent::is_done)
        .def("__repr__",
             [](const PyEvent& event) {
                 if (!(*event).is_done()) return std::string("<pccl.Event in flight>");
                 const Status status = (*event).status();
                 return status.is_ok() ? std::string("<pccl.Event done>")
                                       : concat("<pccl.Event failed: ", status.message(), ">");
             })
        .def(
            "add_done_callback",
            [](const py::object& self, const py::object& callback) {
                callbacks().attr("add")(self, callback);
            },
            py::arg("callback"))
        .def("__await__", [](const py::object& self) { return callbacks().attr("wait")(self); })
        .def("record", [](const PyEvent& event) { return times_of(*event); })
        .def_property_readonly("source", [](const PyEvent& event) -> std::optional<int> {
            const Rank source = (*event).source();
            if (source == kNoRank) return std::nullopt;
            return source;
        });
    bind_done_queue(module);
}

}  // namespace pccl::bindings
