// SPDX-License-Identifier: Apache-2.0

// Stands in for libpmix, with the functions that the library calls. Ranks meet in the files of
// FAKE_PMIX_FOLDER; FAKE_PMIX_SIZE is the size of the job. FAKE_PMIX_FAULT names what goes wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

// Types of pmix_common.h, which this file does not need to be built.
constexpr std::uint16_t kBool = 1;
constexpr std::uint16_t kString = 3;
constexpr std::uint16_t kUint32 = 14;
constexpr std::uint32_t kWildcard = 0xfffffffe;
constexpr int kNotFound = -46;
constexpr int kUnreachable = -25;
constexpr unsigned kPause = 2000;  // microseconds

struct Process {
    std::array<char, 256> nspace{};
    std::uint32_t rank = 0;
};

struct Value {
    std::uint16_t type = 0;
    union {
        bool flag;
        std::uint32_t uint32;
        char* string;
        std::array<std::uint64_t, 3> whole;
    } data{};
};

struct Info {
    std::array<char, 512> key{};
    std::uint32_t flags = 0;
    Value value;
};

static_assert(sizeof(Value) == 32 && sizeof(Info) == 552);

std::string setting(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

bool fails(std::string_view fault) { return setting("FAKE_PMIX_FAULT") == fault; }

[[noreturn]] void hang() {
    for (;;) ::pause();
}

std::string in_folder(const std::string& file) { return setting("FAKE_PMIX_FOLDER") + "/" + file; }

bool exists(const std::string& path) {
    struct stat facts {};
    return ::stat(path.c_str(), &facts) == 0;
}

/// Writes a file that is complete as soon as it exists.
void write(const std::string& name, std::string_view text) {
    const std::string path = in_folder(name);
    const std::string draft = path + ".draft-" + setting("PMIX_RANK");
    std::ofstream(draft) << text;
    std::rename(draft.c_str(), path.c_str());
}

Value* text_value(std::string_view text) {
    auto* const value = new Value{.type = kString};
    value->data.string = ::strndup(text.data(), text.size());
    return value;
}

}  // namespace

extern "C" {

int PMIx_Init(Process* own, const Info* /*infos*/, std::size_t /*count*/) {
    if (fails("init")) return kUnreachable;
    if (fails("hang-init")) hang();
    const std::string name = setting("PMIX_NAMESPACE");
    name.copy(own->nspace.data(), own->nspace.size() - 1);
    own->rank = static_cast<std::uint32_t>(std::stoul(setting("PMIX_RANK")));
    return 0;
}

int PMIx_Put(std::uint8_t /*scope*/, const char* key, const Value* value) {
    if (value->type != kString) return kNotFound;
    write("value-" + setting("PMIX_RANK") + "-" + key, value->data.string);
    return 0;
}

int PMIx_Commit() { return 0; }

int PMIx_Fence(const Process* job, std::size_t count, const Info* infos, std::size_t infos_count) {
    if (count != 1 || job->rank != kWildcard) return kNotFound;
    if (infos_count != 1 || std::strcmp(infos->key.data(), "pmix.collect") != 0 ||
        infos->value.type != kBool || !infos->value.data.flag)
        return kNotFound;
    if (fails("hang-fence")) hang();
    write("fence-" + setting("PMIX_RANK"), "");
    for (int rank = 0; rank < std::stoi(setting("FAKE_PMIX_SIZE")); ++rank)
        while (!exists(in_folder("fence-" + std::to_string(rank)))) ::usleep(kPause);
    return 0;
}

int PMIx_Get(const Process* process, const char* key, const Info* /*infos*/, std::size_t /*count*/,
             Value** found) {
    if (std::strcmp(key, "pmix.job.size") == 0) {
        *found = new Value{.type = kUint32};
        (*found)->data.uint32 = static_cast<std::uint32_t>(std::stoul(setting("FAKE_PMIX_SIZE")));
        return 0;
    }
    if (fails("no-value")) return kNotFound;
    if (fails("null")) return 0;
    if (fails("garbage")) return *found = text_value("\xff\xfe"), 0;
    if (fails("other-text")) return *found = text_value("hello"), 0;
    if (fails("type")) return *found = new Value{.type = kBool}, 0;
    std::ifstream file(in_folder("value-" + std::to_string(process->rank) + "-" + key));
    if (!file.is_open()) return kNotFound;
    *found = text_value(std::string(std::istreambuf_iterator<char>(file), {}));
    return 0;
}

int PMIx_Finalize(const Info* /*infos*/, std::size_t /*count*/) {
    write("finalized-" + setting("PMIX_RANK"), "");
    return 0;
}

const char* PMIx_Error_string(int status) {
    return status == kUnreachable ? "UNREACHABLE" : "NOT-FOUND";
}

}  // extern "C"
