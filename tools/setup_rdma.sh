#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Makes what tools/rdma_machine.py boots, in build/rdma: vmlinux and initrd.gz of Debian's kernel, whose module
# rdma_rxe is an RDMA device in software, the PyPI package ibverbs in python/, for tests of a foreign peer, and NIXL in
# nixl/ (without it, its tests are skipped).
# Installs QEMU and rdma-core's tools and tests. What is there already is left alone.
#
#   tools/setup_rdma.sh           all of it; exits with 77 and prints why where something cannot be had
#   tools/setup_rdma.sh check     installs and fetches nothing: exits with 77 and prints what is missing
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/debian_packages.sh
source tools/debian_packages.sh

folder=$PWD/build/rdma
# A change of this script or of init makes vmlinux and initrd.gz anew.
recipe=$(sha256sum tools/rdma/init "$0" | sha256sum | cut -c 1-16)
packages=(
    busybox-static cpio ibverbs-providers ibverbs-utils iproute2 kmod perftest python3-pyverbs qemu-system-x86
    rdmacm-utils util-linux
)
modules=(
    virtio_pci virtio_net virtio_console 9p 9pnet_virtio overlay crc32_generic rdma_rxe ib_uverbs rdma_ucm ib_umad
    dummy veth sch_netem
)

cannot() { say "no machine for RDMA tests: $*"; exit 77; }

is_made() { [ "$(cat "$folder/recipe" 2>/dev/null)" = "$recipe" ] && [ -d "$folder/python/ibverbs" ]; }

[ "$(uname -m)" = x86_64 ] || cannot "it is one for x86-64, and this is $(uname -m)"

if [ "${1:-}" = check ]; then
    missing=()
    for name in "${packages[@]}"; do
        is_installed "$name" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] || cannot "not installed: ${missing[*]} (tools/setup_rdma.sh installs them)"
    is_made || cannot "build/rdma is not made, or by an older recipe (tools/setup_rdma.sh makes it)"
    exit
fi

command -v apt-get dpkg-deb >/dev/null || cannot "its packages are Debian's, and there is no apt-get"
(install_packages "${packages[@]}") || cannot "Debian packages cannot be installed"
is_made && exit

# The package linux-image-amd64 is empty: it depends on the newest kernel.
kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends:/ { print $2; exit }')
[ -n "$kernel" ] || cannot "apt knows no linux-image-amd64"
version=${kernel#linux-image-}
rm -f "$folder/recipe"
scratch=$folder/unpacked
rm -rf "$scratch"
mkdir -p "$scratch/package" "$folder/io"
trap 'rm -rf "$scratch"' EXIT

say "apt-get download $kernel"
(cd "$scratch" && apt-get download -o APT::Sandbox::User=root -qq "$kernel") || cannot "$kernel cannot be downloaded"
say "unpacking $kernel"
dpkg-deb --fsys-tarfile "$scratch"/linux-image-*.deb | tar -x -C "$scratch/package" ./boot ./lib/modules
depmod -b "$scratch/package" "$version"

# QEMU starts the ELF file within the compressed image directly, 4 s sooner than the image.
python3 - "$scratch/package/boot/vmlinuz-$version" "$folder/vmlinux" <<'PYTHON'
import lzma
import sys
from pathlib import Path

image = Path(sys.argv[1]).read_bytes()
begin = image.find(b"\xfd7zXZ\x00")
kernel = lzma.LZMADecompressor().decompress(image[begin:]) if begin >= 0 else b""
Path(sys.argv[2]).write_bytes(kernel if kernel.startswith(b"\x7fELF") else image)
PYTHON

files=$scratch/initrd
mkdir -p "$files"/{bin,modules,proc,sys,dev,ro,rw,new,boot}
cp /bin/busybox "$files/bin/"
cp tools/rdma/init "$files/init"
chmod +x "$files/init"
for name in "${modules[@]}"; do
    /sbin/modprobe -d "$scratch/package" -S "$version" --show-depends "$name" || cannot "$kernel has no module $name"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$scratch/modules"
while read -r file; do
    cp "$file" "$files/modules/"
    basename "$file"
done <"$scratch/modules" >"$files/modules/order"
(cd "$files" && find . | cpio -o -H newc --quiet) | gzip -1 >"$folder/initrd.gz"

say "pip install ibverbs"
.venv/bin/python -m pip install --quiet --no-deps --upgrade --target "$folder/python" ibverbs==2026.10.22 ||
    cannot "the PyPI package ibverbs cannot be installed"
say "pip install nixl nixl-cu12"
.venv/bin/python -m pip install --quiet --no-deps --upgrade --target "$folder/nixl" nixl nixl-cu12 ||
    say "goes on without NIXL: its tests are skipped"
echo "$version" >"$folder/kernel"
echo "$recipe" >"$folder/recipe"
say "done: $(cat "$folder/kernel") in build/rdma"
