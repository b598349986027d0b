// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/verbs_fabric.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/fakes/places.h"

namespace pccl::fakes {
namespace {

/// Folder that this process, not its children, removes at its end.
class Fabric {
   public:
    Fabric() {
        std::string folder = std::filesystem::temp_directory_path() / "pccl-verbs-XXXXXX";
        if (::mkdtemp(folder.data()) != nullptr) folder_ = folder;
    }
    ~Fabric() {
        std::error_code ignored;
        if (::getpid() == made_in_) std::filesystem::remove_all(folder_, ignored);
    }
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;
    [[nodiscard]] const std::string& folder() const { return folder_; }

   private:
    const pid_t made_in_ = ::getpid();
    std::string folder_;
};

}  // namespace

bool has_real_verbs() {
    const char* const kind = std::getenv("PCCL_TEST_RDMA");
    return kind != nullptr && std::string_view(kind) == "real";
}

std::string verbs_device(int index) {
    return (has_real_verbs() ? "rxe" : "mlx5_") + std::to_string(index);
}

bool use_fake_verbs() {
    if (has_real_verbs()) return false;
    static const Fabric fabric;
    ::setenv("PCCL_IBVERBS_LIBRARY", fake_verbs().c_str(), 1);
    const auto fakes = std::filesystem::path(fake_verbs()).parent_path().parent_path();
    const auto manager = fakes / "rdmacm/librdmacm.so.1";  // missing in builds without rdma_cm
    if (std::filesystem::exists(manager)) ::setenv("PCCL_RDMACM_LIBRARY", manager.c_str(), 1);
    ::setenv("FAKE_VERBS_FABRIC", fabric.folder().c_str(), 0);
    ::setenv("FAKE_VERBS_DEVICES", "mlx5_0,mlx5_1", 0);
    return true;
}

}  // namespace pccl::fakes
