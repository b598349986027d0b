// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/gpu_backend.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/scope_exit.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/device/device_group.h"
#include "csrc/device/gpu_path.h"
#include "csrc/extension/signals.h"
#include "csrc/torch/compat.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/gil.h"
#include "csrc/torch/timeouts.h"

namespace pccl::backend {

namespace {

c10::impl::VirtualGuardImpl streams_of(const at::Device& device) {
    return c10::impl::VirtualGuardImpl(device.type());
}

/// Keeps the memory of `staging` until `stream` has done its work so far.
void keep_until(const TensorStaging& staging, const c10::Stream& stream) {
    const auto streams = streams_of(stream.device());
    staging.for_each([&](const at::Tensor& tensor) {
        streams.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
    });
}

/// Messages and their memory.
struct Staged {
    std::vector<device::PeerMessage> sends;
    std::vector<device::PeerMessage> receives;
    TensorStaging staging;

    explicit Staged(std::span<const GpuMessage> messages) {
        staging.set_repeats(TensorStaging::Repeats::kRefused);
        for (const GpuMessage& message : messages) {
            const at::Tensor memory = message.is_sent ? staging.readable(message.tensor)
                                                      : staging.writable(message.tensor);
            (message.is_sent ? sends : receives)
                .push_back({.peer = message.peer,
                            .data = static_cast<std::byte*>(memory.data_ptr()),
                            .bytes = memory.nbytes()});
        }
        throw_unless_ok("pccl:recv", staging.why_refused());
    }
};

/// Returns whether the GPU has done the work or has failed.
bool is_over(const GpuTimer& timer) {
    try {
        return timer.is_over();
    } catch (const c10::Error&) {
        return true;
    }
}

/// Returns the time on the GPU, or the host's measurement where the GPU has none.
std::chrono::duration<float> active_duration(const GpuTimer& timer, TimePoint finished) {
    try {
        return timer.elapsed();
    } catch (const c10::Error&) {
        return finished - timer.issued();
    }
}

std::function<Status(const Status&)> explanation_by(
    const std::weak_ptr<const comm::CommunicatorImpl>& communicator) {
    return [communicator](const Status& why) {
        const auto known = communicator.lock();
        return known == nullptr ? why : known->explained(why);
    };
}

/// Callback of waits for other ranks: returns an error to end the wait.
class Interruption {
   public:
    Interruption(const std::atomic<bool>& is_aborted,
                 std::weak_ptr<const comm::CommunicatorImpl> communicator)
        : is_aborted_(is_aborted), communicator_(std::move(communicator)) {}

    Status operator()() {
        if (is_aborted_) return Status::aborted("abort was called");
        PCCL_TRY(extension::check_signals());
        if (!next_survey_.passed()) return Status::ok();
        next_survey_ = Deadline::after(kBetweenSurveys);
        return look_for_lost();
    }

   private:
    static constexpr std::chrono::milliseconds kBetweenSurveys{2000};
    static constexpr std::chrono::milliseconds kSurveyTimeout{300};

    /// Finds ranks that have died without notice.
    [[nodiscard]] Status look_for_lost() const {
        const auto known = communicator_.lock();
        if (known == nullptr) return Status::ok();
        const auto peers = known->survey(kSurveyTimeout);
        PCCL_TRY(peers.status());
        for (const comm::SurveyedPeer& peer : *peers)
            if (peer.state == comm::SurveyedPeer::Liveness::kGone)
                return Status::peer_lost(peer.rank, peer.detail);
        return Status::ok();
    }

    const std::atomic<bool>& is_aborted_;
    const std::weak_ptr<const comm::CommunicatorImpl> communicator_;
    Deadline next_survey_ = Deadline::after(kBetweenSurveys);
};

/// Runs the hook on a thread that it may block.
void report(const std::shared_ptr<WorkObserver>& observer, c10d::OpType type,
            std::uint64_t sequence, const GpuTimer& timer) {
    const TimePoint now = system_clock().now();
    auto info = std::make_shared<c10d::WorkInfo>(type, sequence, timer.issued(), now,
                                                 active_duration(timer, now));
    observer->runner().run([observer, info] { observer->work_finished([&] { return info; }); });
}

}  // namespace

template <typename Body>
GpuBackend::WorkPtr GpuBackend::issue(const Request& request, const at::Device& device,
                                      StreamRole channel, Body body) {
    const std::lock_guard lock(mutex_);
    const c10::OptionalDeviceGuard on_device(device);
    const auto group = group_on(device, request.title);
    const c10::Stream callers = streams_of(device).getStream(device);
    const c10::Stream stream = request.async ? own_stream(device, channel) : callers;
    if (request.async) {
        c10::Event issued(device.type());
        issued.record(callers);
        issued.block(stream);
    }
    std::optional<c10::StreamGuard> on_stream;
    if (request.async) on_stream.emplace(stream);
    auto work = c10::make_intrusive<GpuWork>(options_.rank, request, group);
    const bool is_timed = options_.observer->wants_times() &&
                          !group->is_captured(native_handle(streams_of(device), stream));
    if (is_timed) work->start_timer(stream);
    body(*group, stream);
    work->launched(stream);
    if (is_timed && options_.observer->has_hook()) watch(request, work->timer());
    return work;
}

GpuBackend::WorkPtr GpuBackend::launch(const Request& request, std::span<Call> calls) {
    const at::Device device = calls.front().device();
    return issue(request, device, StreamRole::kCollectives,
                 [&](auto& group, const c10::Stream& on) {
                     void* const stream = native_handle(streams_of(device), on);
                     std::vector<Collective> collectives;
                     for (const Call& call : calls) collectives.push_back(call.collective());
                     throw_unless_ok(
                         request.title,
                         group.launch_all(collectives, stream,
                                          {.timeout = timeout_of(request.timeout, request.title)}));
                     for (Call& call : calls) {
                         throw_unless_ok(request.title, call.staging().finish());
                         if (request.async) keep_until(call.staging(), on);
                     }
                 });
}

GpuBackend::WorkPtr GpuBackend::exchange(const Request& request,
                                         std::span<const GpuMessage> messages) {
    const at::Device device = messages.front().tensor.device();
    const bool is_sending = std::ranges::all_of(messages, &GpuMessage::is_sent);
    const StreamRole channel = is_sending ? StreamRole::kSends : StreamRole::kReceives;
    return issue(request, device, channel, [&](auto& group, const c10::Stream& on) {
        const Staged staged(messages);
        throw_unless_ok(request.title,
                        group.exchange({.sends = staged.sends, .receives = staged.receives},
                                       native_handle(streams_of(device), on)));
        throw_unless_ok(request.title, staged.staging.finish());
        keep_until(staged.staging, on);
    });
}

void GpuBackend::watch(const Request& request, const std::shared_ptr<GpuTimer>& timer) {
    if (!poller_) {
        const auto prepare = [group = group_.load()] { static_cast<void>(group->adopt_thread()); };
        poller_.reset(new Poller(PollerOptions{.name = "pccl-gpu-works", .prepare = prepare}));
    }
    options_.observer->work_started();
    const auto notify = [timer, observer = options_.observer, type = request.type,
                         sequence = request.sequence] { report(observer, type, sequence, *timer); };
    poller_->watch({.is_over = [timer] { return is_over(*timer); }, .notify = notify});
}

void GpuBackend::check_process() const {
    if (made_in_.is_child())
        throw_status("pccl:connect",
                     Status::unavailable("a process does not share its GPUs with one that it "
                                         "forked; start processes with spawn"));
}

bool GpuBackend::connect(const at::Device& device) {
    check_process();
    if (route_ == TensorRoute::kUnknown) {
        const auto released = without_gil();
        const std::lock_guard lock(mutex_);
        const c10::OptionalDeviceGuard on_device(device);
        if (route_ == TensorRoute::kUnknown) make_group(device);
    }
    return route_ == TensorRoute::kKernels;
}

void GpuBackend::announce(const at::Tensor& tensor) {
    if (tensor.numel() == 0 || !connect(tensor.device())) return;
    const c10::OptionalDeviceGuard on_device(tensor.device());
    const Status announced = group_.load()->announce(tensor.const_data_ptr());
    // Memory that cannot be shared takes part through memory that can.
    if (announced.code() != StatusCode::kUnsupported) throw_unless_ok("pccl:allocate", announced);
}

void GpuBackend::synchronize() {
    check_process();
    const std::lock_guard lock(mutex_);
    if (group_.load() == nullptr) return;
    const auto streams = streams_of(*device_);
    streams.synchronizeStream(streams.getStream(*device_));
    const auto& own = streams_[static_cast<std::size_t>(StreamRole::kCollectives)];
    if (own) streams.synchronizeStream(*own);
    throw_unless_ok("pccl:barrier", group_.load()->health());
}

Status GpuBackend::health() const {
    const auto group = group_.load();
    return group == nullptr ? Status::ok() : group->health();
}

void GpuBackend::choose_from(const std::shared_ptr<const schedule::Catalogue>& catalogue) {
    const std::lock_guard lock(mutex_);
    if (const auto group = group_.load()) group->choose_from(catalogue);
}

Status GpuBackend::record_timeline(std::size_t most) {
    const std::lock_guard lock(mutex_);
    timed_steps_ = most;
    const auto group = group_.load();
    return group == nullptr ? Status::ok() : group->record_timeline(most);
}

Result<schedule::TimedSteps> GpuBackend::take_timeline() {
    const std::lock_guard lock(mutex_);
    timed_steps_ = 0;
    const auto group = group_.load();
    if (group == nullptr) return schedule::TimedSteps{};
    return group->take_timeline();
}

void GpuBackend::set_timeout(std::chrono::milliseconds timeout) {
    timeout_ = timeout;
    if (const auto group = group_.load()) group->set_timeout(timeout);
}

std::shared_ptr<device::DeviceGroupImpl> GpuBackend::group_on(const at::Device& device,
                                                              const char* title) {
    auto group = group_.load();
    if (group == nullptr) return make_group(device);
    TORCH_CHECK_VALUE(*device_ == device, title, ": this rank's group is on ", *device_,
                      ", the tensors are on ", device);
    return group;
}

device::DeviceGroupImplOptions GpuBackend::group_options(const at::Device& device) {
    const auto communicator = options_.communicator.lock();
    // The prefix separates the entries of earlier rendezvous.
    return {.rank = options_.rank,
            .size = options_.size,
            .store = bootstrap::prefixed(options_.store, std::to_string(++rendezvous_count_)),
            .name = options_.name,
            .global_ranks = options_.global_ranks,
            .device = device.index(),
            .timeout = timeout_.load(),
            .driver = nullptr,
            .peer_access = process_config().gpu_peer_access,
            .host_kernels = process_config().gpu_host_kernels,
            .preferences = options_.preferences,
            .algorithms = options_.algorithms,
            .catalogue = communicator == nullptr ? schedule::built_in() : communicator->catalogue(),
            .explain = explanation_by(options_.communicator)};
}

std::shared_ptr<device::DeviceGroupImpl> GpuBackend::make_group(const at::Device& device) {
    TORCH_CHECK(!is_connecting_,
                "a signal handler may only abort a group whose GPUs are connecting");
    is_connecting_ = true;
    const ScopeExit met([this] { is_connecting_ = false; });
    const auto released = without_gil();
    auto made = device::create_interruptibly(group_options(device),
                                             Interruption(is_aborted_, options_.communicator));
    if (made.status().code() == StatusCode::kUnsupported) {
        log(LogLevel::kWarning, "CUDA tensors go through host memory: ", made.status().message());
        route_ = TensorRoute::kHost;
        return nullptr;
    }
    if (!made.is_ok())
        throw_status("pccl:connect", explanation_by(options_.communicator)(made.status()));
    device_ = device;
    group_ = std::move(*made);
    if (const std::string& why = group_.load()->why_path(); !why.empty())
        log(LogLevel::kInfo, "kernels of CUDA tensors meet ",
            device::place_of(group_.load()->path()), ": ", why);
    if (is_aborted_) group_.load()->abort();
    if (timed_steps_ > 0)
        throw_unless_ok("pccl:record_timeline", group_.load()->record_timeline(timed_steps_));
    route_ = TensorRoute::kKernels;
    return group_.load();
}

c10::Stream GpuBackend::own_stream(const at::Device& device, StreamRole channel) {
    auto& stream = streams_[static_cast<std::size_t>(channel)];
    if (!stream) stream = streams_of(device).getStreamFromGlobalPool(device, true);
    return *stream;
}

void GpuBackend::abort() {
    is_aborted_ = true;
    // Does not take the lock: a launch may hold it while it waits for peers.
    if (const auto group = group_.load()) group->abort();
}

void GpuBackend::close() {
    const std::lock_guard lock(mutex_);
    is_aborted_ = is_connecting_;
    const auto group = group_.load();
    if (group == nullptr) return;
    const c10::OptionalDeviceGuard on_device(device_);
    // Does not synchronise the device: another group's kernel there may wait for work that comes
    // after this.
    static_cast<void>(group->await_launches(Deadline::after(timeout_.load())));
    if (group->has_given_up())
        log(LogLevel::kError, "a group of GPUs ends with results undone: ", health().message());
    poller_.reset();
    group_.store(nullptr);
    route_ = TensorRoute::kUnknown;
    streams_.fill(std::nullopt);
}

}  // namespace pccl::backend
