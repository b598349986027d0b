#include "csrc/sys/host.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>

#include "csrc/base/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {

Result<std::string> host_identity() {
    constexpr std::size_t kUuid = 36;
    PCCL_ASSIGN_OR_RETURN(const std::string boot,
                          read_start("/proc/sys/kernel/random/boot_id", kUuid));
    struct stat network {};
    if (::stat("/proc/self/ns/net", &network) != 0)
        return Status::from_errno(errno, "cannot examine /proc/self/ns/net");
    return concat(boot, ".", network.st_ino);
}

namespace {

/// "AMD EPYC 9V74 80-Core Processor", or the architecture where the kernel does not say.
std::string processor_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 1);
    utsname system{};
    return ::uname(&system) == 0 ? system.machine : "unknown";
}

/// Lower case; every run of other characters than letters and digits is one hyphen.
std::string as_file_name(const std::string& text) {
    std::string name;
    for (const char c : text) {
        const auto lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        const bool plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
        if (plain)
            name += lower;
        else if (!name.empty() && name.back() != '-')
            name += '-';
    }
    return name;
}

}  // namespace

std::string machine_name() {
    return as_file_name(concat(processor_model(), " ", ::sysconf(_SC_NPROCESSORS_ONLN)));
}

std::size_t most_descriptors() {
    constexpr std::size_t kUsual = 1024;
    rlimit files{};
    return ::getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur : kUsual;
}

CoreSet usable_cores() {
    CoreSet cores;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
    for (std::size_t core = 0; core < std::min<std::size_t>(cores.size(), CPU_SETSIZE); ++core)
        cores[core] = CPU_ISSET(core, &set);
    return cores;
}

}  // namespace pccl::sys
