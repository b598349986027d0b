// Event: what asynchronous operations return.

#include <pybind11/stl.h>

#include <chrono>
#include <utility>

#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/event.h"

namespace pccl::bindings {

namespace py = pybind11;

namespace {

double seconds_of(TimePoint point) {
    return std::chrono::duration<double>(point.time_since_epoch()).count();
}

Deadline deadline_after(std::optional<double> seconds) {
    if (!seconds) return Deadline::never();
    return Deadline::after(
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds)));
}

py::dict times_of(const comm::Event& event) {
    const comm::Timing timing = event.record();
    py::dict times;
    times["issued"] = seconds_of(timing.issued);
    times["started"] = seconds_of(timing.started);
    times["finished"] =
        event.is_done() ? py::object(py::float_(seconds_of(timing.finished))) : py::none();
    return times;
}

}  // namespace

void Discarded::put(Buffers buffers) {
    const std::lock_guard lock(mutex_);
    buffers_.push_back(std::move(buffers));
}

void Discarded::clear() {
    std::vector<Buffers> buffers;
    const std::lock_guard lock(mutex_);
    buffers.swap(buffers_);
}

void hold_until_done(const comm::Event& event, Buffers buffers,
                     std::shared_ptr<Discarded> discarded) {
    auto held = std::make_shared<Buffers>(std::move(buffers));
    event.on_done([held, discarded = std::move(discarded)](const Status&) {
        discarded->put(std::move(*held));
    });
}

void wait_for(const comm::Event& event, std::optional<double> seconds) {
    Status status;
    {
        const py::gil_scoped_release released;
        status = event.wait(deadline_after(seconds));
    }
    throw_unless_ok(status);
}

void bind_event(extension::Module& module) {
    extension::Class<comm::Event>(module, "Event")
        .def("wait", &wait_for, py::arg("timeout") = py::none())
        .def("flush",
             [](const comm::Event& event) {
                 throw_unless_ok([&] {
                     const py::gil_scoped_release released;
                     return event.flush();
                 }());
             })
        .def("is_done", &comm::Event::is_done)
        .def("record", &times_of)
        .def_property_readonly("source", [](const comm::Event& event) -> std::optional<int> {
            const Rank source = event.source();
            if (source == kNoRank) return std::nullopt;
            return source;
        });
}

}  // namespace pccl::bindings
