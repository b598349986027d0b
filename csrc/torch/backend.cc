// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/backend.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/rendezvous/prefix_store.h"
#include "csrc/extension/signals.h"
#include "csrc/runtime/transports.h"
#include "csrc/torch/arguments.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/gil.h"
#include "csrc/torch/store_adaptor.h"
#include "csrc/torch/timeouts.h"

namespace pccl::backend {

namespace {

transport::TransportFlags transports_of(const PcclOptions& options) {
    auto flags = runtime::transports_named(options.transports);
    throw_unless_ok("pccl.Options.transports", flags.status());
    return *flags;
}

std::vector<Rank> ranks_in_network(const PcclOptions& options) {
    if (options.network == nullptr) return {};
    const std::vector<std::uint64_t>& ranks = options.global_ranks_in_group;
    return {ranks.begin(), ranks.end()};
}

std::shared_ptr<comm::CommunicatorImpl> connect(const PcclBackend::StorePtr& store, Rank rank,
                                                int size, const PcclOptions& options) {
    const auto released = without_gil();
    auto communicator = comm::CommunicatorImpl::create(
        {.rank = rank,
         .size = size,
         .store = adapt_store(store),
         .name = options.group_name.empty() ? "default" : options.group_name,
         .timeout = options.timeout,
         .transports = transports_of(options),
         .algorithm = options.algorithm,
         .runtime = nullptr,
         .global_ranks = options.global_ranks_in_group,
         .interrupted = extension::check_signals,
         .gpu = options.gpu,
         .network = options.network,
         .network_ranks = ranks_in_network(options),
         .switches_phases = options.switches_phases});
    throw_unless_ok("pccl:init", communicator.status());
    return std::move(*communicator);
}

}  // namespace

struct PcclBackend::Split {
    Split(std::vector<int> of, std::string named, const c10::intrusive_ptr<PcclBackend>& child)
        : ranks(std::move(of)), name(std::move(named)), backend(child) {}

    std::vector<int> ranks;
    std::string name;
    c10::weak_intrusive_ptr<PcclBackend> backend;
};

PcclBackend::PcclBackend(const StorePtr& store, Rank rank, int size,
                         c10::intrusive_ptr<PcclOptions> options)
    : Backend(rank, size),
      options_(std::move(options)),
      communicator_(connect(store, rank, size, *options_)),
      gpu_({.store = bootstrap::prefixed(communicator_->store(), "gpu"),
            .name = communicator_->name(),
            .global_ranks = options_->global_ranks_in_group,
            .rank = rank,
            .size = size,
            .timeout = options_->timeout,
            .algorithms = options_->algorithms(),
            .preferences = options_->preferences(),
            .observer = observer_,
            .communicator = communicator_}) {
    init();
    record_from_beginning();
}

PcclBackend::PcclBackend(std::shared_ptr<comm::CommunicatorImpl> communicator,
                         std::shared_ptr<Store> store, c10::intrusive_ptr<PcclOptions> options)
    : Backend(communicator->rank(), communicator->size()),
      options_(std::move(options)),
      communicator_(std::move(communicator)),
      gpu_({.store = std::move(store),
            .name = communicator_->name(),
            .global_ranks = options_->global_ranks_in_group,
            .rank = communicator_->rank(),
            .size = communicator_->size(),
            .timeout = options_->timeout,
            .algorithms = options_->algorithms(),
            .preferences = options_->preferences(),
            .observer = observer_,
            .communicator = communicator_}) {
    init();
    record_from_beginning();
}

void PcclBackend::record_from_beginning() {
    if (options_->timeline > 0)
        throw_unless_ok("pccl:record_timeline", record_timeline(options_->timeline));
}

PcclBackend::~PcclBackend() {
    const auto released = without_gil();
    end();
    communicator_.reset();
}

c10::intrusive_ptr<c10d::Backend::Options> PcclBackend::getBackendOptions() {
    // split_group modifies the result, so it must be a copy of the options.
    return c10::make_intrusive<PcclOptions>(*options_);
}

TensorStaging::StagingPlace PcclBackend::place_of(const at::Tensor& tensor) {
    const bool is_direct = !tensor.defined() || !tensor.is_cuda() || gpu_.connect(tensor.device());
    return is_direct ? TensorStaging::StagingPlace::kDevice : TensorStaging::StagingPlace::kHost;
}

Call::Sample PcclBackend::sample(const at::Tensor& tensor) { return {tensor, place_of(tensor)}; }

PcclBackend::WorkPtr PcclBackend::perform(Request request, Call call) {
    return perform_all(std::move(request), {&call, 1});
}

PcclBackend::WorkPtr PcclBackend::perform_all(Request request, std::span<Call> calls) {
    request.sequence = ++sequence_;
    return recorded(request, [&] { return issue_all(request, calls); });
}

ProfiledGroup PcclBackend::profiled_group() const {
    return {.name = getGroupUid(),
            .description = getGroupDesc(),
            .rank = rank_,
            .size = size_,
            .global_ranks = options_->global_ranks_in_group};
}

PcclBackend::WorkPtr PcclBackend::issue_all(Request& request, std::span<Call> calls) {
    check_devices(calls);
    if (!calls.empty() && !calls.front().is_on_host()) return launch_all(request, calls);
    const auto work = make_work(request);
    const bool is_whole =
        std::ranges::all_of(calls, [](const Call& call) { return call.pieces() == 1; });
    if (!request.async && is_whole) {
        run_all(*work, calls, request);
        return work;
    }
    submit_all(*work, calls, request);
    if (!request.async) {
        work->wait(kNoTimeout);
        return work;
    }
    return issued(work);
}

void PcclBackend::check_devices(std::span<const Call> calls) {
    for (const Call& call : calls) check_one_device(calls.front().device(), call.device());
}

PcclBackend::WorkPtr PcclBackend::launch_all(const Request& request, std::span<Call> calls) {
    return issued(gpu_.launch(request, calls));
}

void PcclBackend::run_all(PcclWork& work, std::span<Call> calls, const Request& request) {
    const auto timeout = timeout_of(request.timeout, request.title);
    Status status;
    for (Call& call : calls) {
        status = call.staging().own_reason(communicator_->run(call.piece(0), timeout));
        if (!status.is_ok()) break;
    }
    if (status.is_ok()) {
        for (Call& call : calls) {
            status = work.finish_stage(call.staging(), call.may_fail_alone());
            if (!status.is_ok()) break;
        }
    }
    work.finish_now(status);
    if (!status.is_ok()) std::rethrow_exception(work.exception());
}

void PcclBackend::submit_all(PcclWork& work, std::span<Call> calls, const Request& request) {
    const auto timeout = timeout_of(request.timeout, request.title);
    std::vector<Event> events;
    std::vector<PcclWork::StagedMemory> stages;
    events.reserve(calls.size());
    stages.reserve(calls.size());
    Status status;
    for (Call& call : calls) {
        for (std::size_t piece = 0; piece < call.pieces() && status.is_ok(); ++piece) {
            auto event = communicator_->submit(call.piece(piece), timeout);
            status = event.status();
            if (status.is_ok()) events.push_back(std::move(*event));
        }
        const bool may_fail_alone = call.may_fail_alone();
        stages.push_back({std::move(call.staging()), may_fail_alone});
        if (!status.is_ok()) break;
    }
    // Even after a failure, submitted operations need their memory until they are done.
    work.finish_after(std::move(events), std::move(stages), status);
    throw_if_refused(request.title, status);
}

c10::intrusive_ptr<PcclWork> PcclBackend::make_work(Request& request) {
    return c10::make_intrusive<PcclWork>(rank_, request, observer_, communicator_);
}

PcclBackend::WorkPtr PcclBackend::issued(WorkPtr work) {
    check_process();
    const std::lock_guard lock(mutex_);
    if (window_) window_->works.push_back(work);
    return work;
}

void PcclBackend::startCoalescing() {
    check_process();
    const std::lock_guard lock(mutex_);
    window_.emplace();
}

PcclBackend::WorkPtr PcclBackend::endCoalescing() {
    check_process();
    CoalescingWindow window;
    {
        const std::lock_guard lock(mutex_);
        TORCH_CHECK(window_.has_value(), "endCoalescing without startCoalescing");
        window = std::move(*window_);
        window_.reset();
    }
    if (!window.messages.empty()) window.works.push_back(exchange(window.messages));
    if (window.works.size() == 1) return window.works.front();
    return c10::make_intrusive<BatchWork>(rank_, std::move(window.works));
}

std::vector<Prediction> PcclBackend::explain(const std::string& collective, std::size_t bytes) {
    auto ways = communicator_->explain(collective_called(collective), bytes);
    throw_unless_ok("pccl:explain", ways.status());
    return std::move(*ways);
}

std::shared_ptr<const device::DeviceGroupImpl> PcclBackend::gpus_to_explain() const {
    auto group = gpu_.group();
    if (group != nullptr) return group;
    throw_status(
        "pccl:explain",
        gpu_.goes_through_host()
            ? Status::unsupported("the GPUs of this group do not reach each other: CUDA "
                                  "tensors go through the memory of the host, as CPU "
                                  "tensors, which explain without device= describes")
            : Status::unavailable("the GPUs of this group are not connected: run a collective "
                                  "of CUDA tensors before"));
}

void PcclBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) {
    constexpr std::string_view kTitle = "pccl:monitored_barrier";
    const auto given = timeout_of(options.timeout, kTitle);
    ++sequence_;
    throw_unless_ok(kTitle, communicator_->monitored_barrier(
                                given.value_or(communicator_->timeout()), wait_all_ranks));
}

std::uint64_t PcclBackend::getSequenceNumberForGroup() { return sequence_; }

void PcclBackend::registerOnCompletionHook(WorkObserver::Hook&& hook) {
    TORCH_CHECK(onCompletionHook_ == nullptr, "a completion hook is registered already");
    onCompletionHook_ = hook;
    observer_->set_hook(std::move(hook));
}

c10::intrusive_ptr<c10d::Backend> PcclBackend::split(const StorePtr& store,
                                                     const std::vector<int>& ranks,
                                                     const c10::intrusive_ptr<Options>& options) {
    const auto mine = std::ranges::find(ranks, rank_);
    if (mine == ranks.end()) return nullptr;
    check_process();
    const std::lock_guard lock(split_mutex_);
    if (last_split_ && last_split_->ranks == ranks && last_split_->name == options->group_name) {
        if (auto child = last_split_->backend.lock()) return child;
    }
    auto child = c10::make_intrusive<PcclBackend>(store, static_cast<Rank>(mine - ranks.begin()),
                                                  static_cast<int>(ranks.size()),
                                                  child_options(ranks, *options));
    last_split_ = std::make_unique<Split>(ranks, options->group_name, child);
    return child;
}

c10::intrusive_ptr<c10d::Backend> PcclBackend::shrink(const std::vector<std::int64_t>& excluded,
                                                      int /*flags*/,
                                                      const c10::intrusive_ptr<Options>& options) {
    check_process();
    const auto released = without_gil();
    const std::vector<Rank> ranks(excluded.begin(), excluded.end());
    std::vector<int> staying;
    for (Rank rank = 0; rank < size_; ++rank)
        if (std::ranges::find(ranks, rank) == ranks.end()) staying.push_back(rank);
    const auto child = child_options(staying, options ? *options : *options_);
    const auto* const given = dynamic_cast<const PcclOptions*>(options.get());
    const ShrinkOptions wanted{.timeout = child->timeout,
                               .least = given ? given->least : options_->least};
    throw_unless_ok("pccl:shrink", communicator_->check_shrink(ranks, wanted));
    communicator_->abort(Status::aborted("this group is being shrunk"));
    gpu_.abort();
    auto shrunk = communicator_->shrink(ranks, wanted);
    throw_unless_ok("pccl:shrink", shrunk.status());
    std::string name = "shrunk";
    for (const Rank rank : ranks) name += concat("-", rank);
    return c10::make_intrusive<PcclBackend>(std::move(*shrunk), gpu_.store_for(name), child);
}

c10::intrusive_ptr<PcclOptions> PcclBackend::child_options(const std::vector<int>& ranks,
                                                           const Options& wanted) const {
    auto options = c10::make_intrusive<PcclOptions>(*options_);
    options->switches_phases = false;
    options->timeout = limit_of(wanted.timeout, "pccl:split");
    options->group_name = wanted.group_name;
    options->group_desc = wanted.group_desc;
    options->global_ranks_in_group.clear();
    for (const int rank : ranks) {
        options->global_ranks_in_group.push_back(
            options_->global_ranks_in_group.at(static_cast<std::size_t>(rank)));
    }
    return options;
}

Result<capsule::VerifiedCapsule> PcclBackend::load_capsule(
    const Result<capsule::CapsuleFile>& file, const std::optional<std::string>& sizes) {
    static const Result<capsule::CapsuleFile> refused = Status::unsupported(
        "it switches phases of the network, which a pccl.Communicator does, no process group of "
        "torch");
    const Result<capsule::VerifiedCapsule> own =
        file.is_ok() ? file->for_ranks(getSize()) : Result<capsule::VerifiedCapsule>(file.status());
    const bool switches = own.is_ok() && own->switches_phases();
    PCCL_ASSIGN_OR_RETURN(capsule::VerifiedCapsule loaded,
                          communicator_->load(switches ? refused : file, sizes));
    gpu_.choose_from(communicator_->catalogue());
    return loaded;
}

Status PcclBackend::unload_capsule(const std::string& name) {
    PCCL_TRY(communicator_->unload(name));
    gpu_.choose_from(communicator_->catalogue());
    return Status::ok();
}

Status PcclBackend::record_timeline(std::size_t most) {
    PCCL_TRY(communicator_->record_timeline(most));
    return gpu_.record_timeline(most);
}

Result<schedule::TimedSteps> PcclBackend::take_timeline() {
    PCCL_ASSIGN_OR_RETURN(schedule::TimedSteps taken, communicator_->take_timeline());
    PCCL_ASSIGN_OR_RETURN(const schedule::TimedSteps gpu, gpu_.take_timeline());
    taken.steps.insert(taken.steps.end(), gpu.steps.begin(), gpu.steps.end());
    taken.lost += gpu.lost;
    taken.clock_error = gpu.clock_error;
    return taken;
}

at::Tensor PcclBackend::allocateTensor(long size, at::TensorOptions options) {
    const at::Tensor tensor = at::empty({size}, options);
    check_tensor(tensor);
    TORCH_CHECK_VALUE(tensor.is_cuda(), "PCCL allocates tensors of CUDA devices, not of ",
                      tensor.device());
    gpu_.announce(tensor);
    return tensor;
}

void PcclBackend::setTimeout(std::chrono::milliseconds timeout) {
    options_->timeout = limit_of(timeout, "pccl:set_timeout");
    communicator_->set_timeout(options_->timeout);
    gpu_.set_timeout(options_->timeout);
}

c10d::ErrorType PcclBackend::getError() {
    Status status = communicator_->check_process();
    if (status.is_ok()) status = gpu_.health();
    if (status.is_ok()) status = communicator_->health();
    switch (status.code()) {
        case StatusCode::kOk:
            return c10d::ErrorType::SUCCESS;
        case StatusCode::kTimeout:
            return c10d::ErrorType::TIMEOUT;
        case StatusCode::kPeerLost:
            return c10d::ErrorType::REMOTE_ERROR;
        default:
            return c10d::ErrorType::COMM_ERROR;
    }
}

void PcclBackend::abort() {
    if (!communicator_->check_process().is_ok()) return;
    const auto released = without_gil();
    gpu_.abort();
    communicator_->abort(Status::aborted("abort was called on this process group"));
}

void PcclBackend::shutdown() {
    const auto released = without_gil();
    end();
}

void PcclBackend::check_process() const { throw_unless_ok("pccl", communicator_->check_process()); }

void PcclBackend::end() {
    if (!communicator_->check_process().is_ok()) return;
    gpu_.close();
    // An exception here would keep torch from ending the other groups; the error is in the log.
    static_cast<void>(communicator_->shutdown());
    if (!observer_->runner().drain(Deadline::after(communicator_->timeout())))
        log(LogLevel::kWarning,
            "a process group was shut down while one of its callbacks still runs");
}

}  // namespace pccl::backend
