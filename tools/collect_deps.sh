#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Copies the Debian headers and libraries that the build needs into build/deps, for a machine that has
# neither them nor a network:
#
#   tools/collect_deps.sh                                  here
#   pip install . --no-build-isolation -Ccmake.define.PCCL_DEPS_DIR=$PWD/build/deps      there
#
# libcrypto and libpugixml come as static libraries, so that the result needs none of that machine.
set -euo pipefail
cd "$(dirname "$0")/.."

target=build/deps
packages=(libspdlog-dev libfmt-dev nlohmann-json3-dev libssl-dev libpugixml-dev libgtest-dev
    libgmock-dev libibverbs-dev)

rm -rf "$target"
mkdir -p "$target/include" "$target/lib"

# What a package put below /usr/include; a folder named for the machine is flattened.
copy_headers() {
    dpkg-query -L "$1" | grep '^/usr/include/.*\.[a-z]*$' | while read -r file; do
        [ -f "$file" ] || continue
        local inside=${file#/usr/include/}
        install -D -m 644 "$file" "$target/include/${inside#"$(gcc -print-multiarch)"/}"
    done
}

for package in "${packages[@]}"; do
    dpkg-query -W "$package" >/dev/null || { echo "missing: apt-get install $package" >&2; exit 1; }
    copy_headers "$package"
done
for library in libcrypto.a libpugixml.a libgtest.a libgtest_main.a libgmock.a libgmock_main.a; do
    cp "$(gcc -print-file-name="$library")" "$target/lib/"
done
# Of PyTorch's own tests.
if expecttest=$(.venv/bin/python -c 'import expecttest; print(expecttest.__path__[0])' 2>/dev/null); then
    mkdir -p "$target/python"
    cp -r "$expecttest" "$target/python/"
fi
strip --strip-debug "$target"/lib/*.a
echo "$target: $(du -sh "$target" | cut -f1)"
