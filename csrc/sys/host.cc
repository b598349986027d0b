#include "csrc/sys/host.h"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "csrc/base/text.h"

namespace pccl::sys {

Result<std::string> host_identity() {
    std::string boot;
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    if (!std::getline(file, boot) || boot.empty())
        return Status::unavailable("cannot read /proc/sys/kernel/random/boot_id");
    struct stat network {};
    if (::stat("/proc/self/ns/net", &network) != 0)
        return Status::from_errno(errno, "cannot examine /proc/self/ns/net");
    return concat(boot, ".", network.st_ino);
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
