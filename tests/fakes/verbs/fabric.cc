// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/fabric.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include "tests/fakes/verbs/processes.h"

namespace pccl::fake_verbs {

namespace {

constexpr uint64_t kMagic = 0x5043434c56425332;

std::atomic<Fabric*> joined{nullptr};
Index own_process = kNone;
std::string* own_folder = new std::string;  // NOLINT(cert-err58-cpp): outlives every thread
std::mutex* joining = new std::mutex;       // NOLINT(cert-err58-cpp)

[[noreturn]] void stop(const char* what) {
    std::fprintf(stderr, "fake libibverbs: %s: %s\n", what, std::strerror(errno));
    std::abort();
}

void initialise(Fabric& made) {
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&made.mutex, &attributes);
    made.next_look.store(kNever);
    made.heap_end = (sizeof(Fabric) + 4095) / 4096 * 4096;
    made.next_pd = 1;
    made.next_wake = 1;
    made.magic = kMagic;
}

// A file of the folder; or one without a name, for this process and nobody else.
Fabric* map_fabric() {
    const char* folder = std::getenv("FAKE_VERBS_FABRIC");
    *own_folder = folder != nullptr ? folder : "";
    int file = -1;
    if (own_folder->empty()) {
        file = ::memfd_create("fake_verbs", MFD_CLOEXEC);
    } else {
        ::mkdir(own_folder->c_str(), 0777);
        file = ::open((*own_folder + "/fabric").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    }
    if (file < 0) stop("cannot open the fabric of FAKE_VERBS_FABRIC");
    if (::flock(file, LOCK_EX) != 0) stop("cannot lock the fabric");
    if (::ftruncate(file, static_cast<off_t>(kFabricBytes)) != 0) stop("cannot size the fabric");
    void* mapped =
        ::mmap(nullptr, kFabricBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    if (mapped == MAP_FAILED) stop("cannot map the fabric");
    auto* made = static_cast<Fabric*>(mapped);
    if (made->magic != kMagic) initialise(*made);
    ::flock(file, LOCK_UN);
    ::close(file);
    return made;
}

void forget_parent() {
    joined.store(nullptr);
    own_process = kNone;
    new (joining) std::mutex;
}

int heap_class(uint64_t bytes) {
    int power = 6;
    while ((uint64_t{1} << power) < bytes) ++power;
    return power;
}

}  // namespace

Fabric& fabric() {
    Fabric* known = joined.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    const std::lock_guard hold(*joining);
    known = joined.load();
    if (known != nullptr) return *known;
    static const int registered = ::pthread_atfork(nullptr, nullptr, forget_parent);
    static_cast<void>(registered);
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // others copy from this process
    known = map_fabric();
    own_process = join_process(*known);
    if (own_process == kNone) stop("too many processes are in the fabric");
    joined.store(known, std::memory_order_release);
    return *known;
}

SharedProcess& this_process() { return fabric().processes[this_process_index()]; }

Index this_process_index() {
    fabric();
    return own_process;
}

const std::string& fabric_folder() { return *own_folder; }

bool is_own_process(Index process) {
    return joined.load(std::memory_order_acquire) != nullptr && process == own_process;
}

Lock::Lock() { lock_fabric(fabric()); }

Lock::~Lock() { ::pthread_mutex_unlock(&fabric().mutex); }

uint64_t allocate(uint64_t bytes) {
    Fabric& all = fabric();
    const int power = heap_class(bytes);
    const uint64_t again = all.heap_free[power];
    if (again != 0) {
        all.heap_free[power] = *at<uint64_t>(again);
        return again;
    }
    const uint64_t size = uint64_t{1} << power;
    if (all.heap_end + size > kFabricBytes) return 0;
    all.heap_end += size;
    return all.heap_end - size;
}

void release(uint64_t offset, uint64_t bytes) {
    if (offset == 0) return;
    Fabric& all = fabric();
    const int power = heap_class(bytes);
    *at<uint64_t>(offset) = all.heap_free[power];
    all.heap_free[power] = offset;
}

void count(uint64_t& counter, uint64_t by) {
    std::atomic_ref<uint64_t>(counter).fetch_add(by, std::memory_order_relaxed);
}

void discount(uint64_t& counter, uint64_t by) {
    std::atomic_ref<uint64_t>(counter).fetch_sub(by, std::memory_order_relaxed);
}

uint64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t environment_number(const char* name, uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given != nullptr && *given != '\0' ? std::strtoull(given, nullptr, 10) : otherwise;
}

void complain(const char* format, ...) {
    static const bool verbose = environment_number("FAKE_VERBS_VERBOSE", 0) != 0;
    if (!verbose) return;
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "fake libibverbs [%d]: %s\n", static_cast<int>(::getpid()), line);
}

}  // namespace pccl::fake_verbs
