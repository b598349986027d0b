#!/usr/bin/env bash
# The retry count of a queue pair (retry_cnt, 3 bits) of rdma_rxe.
#
# Kernel:  Linux 6.1 of Debian 12 (6.1.0-57), rdma-core 44, pyverbs 44; in QEMU (TCG), whose root is this machine's, read-only.
# Guess:   7 stands for seven retries, as the InfiniBand specification has it: only the count of receiver-not-ready retries
#          (rnr_retry) has a value, 7, for "endless".
# Seen:    a write to a queue pair that is not there ends with status 12 (transport retry counter exceeded) where the count
#          is 6, and has no completion after 20 s where it is 7, which NCCL and UCX set by default: a peer that is gone
#          must be found by other means.
# Needs:   as root, apt-get install qemu-system-x86 busybox-static cpio kmod python3-pyverbs ibverbs-providers iproute2
# Exit:    0 as seen, 1 it has changed, 77 it cannot run here (the reason is printed).
set -euo pipefail
for tool in qemu-system-x86_64 busybox cpio /sbin/modprobe /usr/lib/python3/dist-packages/pyverbs; do
    [ -e "$tool" ] || command -v "$tool" >/dev/null || { echo "not run: $tool is missing"; exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends:/ { print $2; exit }')
version=${kernel#linux-image-}
(cd "$scratch" && apt-get download -o APT::Sandbox::User=root -qq "$kernel") || { echo "not run: no $kernel"; exit 77; }
mkdir -p "$scratch"/{package,initrd/{bin,modules,new}}
dpkg-deb --fsys-tarfile "$scratch"/linux-image-*.deb | tar -x -C "$scratch/package" ./boot ./lib/modules
/sbin/depmod -b "$scratch/package" "$version"
for name in virtio_pci 9p 9pnet_virtio crc32_generic rdma_rxe ib_uverbs dummy; do
    /sbin/modprobe -d "$scratch/package" -S "$version" --show-depends "$name"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' | while read -r file; do
    cp "$file" "$scratch/initrd/modules/"
    basename "$file" >>"$scratch/initrd/modules/order"
done
cp "$(command -v busybox)" "$scratch/initrd/bin/"

cat >"$scratch/write.py" <<'PYTHON'
import sys, time
from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import *
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, SendWR

context = Context(name="rxe0")
pd, cq = PD(context), CQ(context, 16)
mr = MR(pd, 64, IBV_ACCESS_LOCAL_WRITE)
for count in (6, 7):
    qp = QP(pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_recv_wr=1)), QPAttr(port_num=1))
    route = GlobalRoute(dgid=context.query_gid(1, 1), sgid_index=1)
    attr = QPAttr(port_num=1)
    attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
    attr.dest_qp_num, attr.path_mtu, attr.min_rnr_timer = 0xABCDE, IBV_MTU_1024, 12  # no such queue pair
    attr.timeout, attr.retry_cnt, attr.rnr_retry = 10, count, 7  # 4 ms
    qp.to_rts(attr)
    request = SendWR(num_sge=1, sg=[SGE(mr.buf, 8, mr.lkey)], opcode=IBV_WR_RDMA_WRITE)
    request.set_wr_rdma(1, 0x1000)
    qp.post_send(request)
    begun, found = time.monotonic(), []
    while not found and time.monotonic() < begun + 20:
        found = cq.poll(1)[1]
    print(f"RESULT {count} {found[0].status if found else 'none'} {time.monotonic() - begun:.1f}", flush=True)
PYTHON
cat >"$scratch/initrd/init" <<INIT
#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev
/bin/busybox mount -t proc p /proc; /bin/busybox mount -t sysfs s /sys; /bin/busybox mount -t devtmpfs d /dev
while read -r file; do /bin/busybox insmod /modules/\$file; done </modules/order
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro root /new
for f in proc sys dev; do /bin/busybox mount --bind /\$f /new/\$f; done
/bin/busybox chroot /new /bin/bash -c 'PATH=/usr/sbin:/usr/bin:/sbin:/bin
ip link add d0 type dummy; ip link set d0 up; ip addr add 10.77.0.1/24 dev d0
rdma link add rxe0 type rxe netdev d0; sleep 1
/usr/bin/python3 -B $scratch/write.py'
echo o >/proc/sysrq-trigger; /bin/busybox sleep 60
INIT
chmod +x "$scratch/initrd/init"
(cd "$scratch/initrd" && find . | cpio -o -H newc --quiet) | gzip -1 >"$scratch/initrd.gz"
timeout 180 qemu-system-x86_64 -accel tcg -cpu max -m 1024 -nographic -no-reboot -net none \
    -kernel "$scratch/package/boot/vmlinuz-$version" -initrd "$scratch/initrd.gz" -append "console=ttyS0 quiet panic=-1" \
    -fsdev "local,id=r,path=/,security_model=none,readonly=on,multidevs=remap" \
    -device virtio-9p-pci,fsdev=r,mount_tag=root </dev/null | tr -d '\r' >"$scratch/console" || true
grep -o 'RESULT [67] [a-z0-9]* [0-9.]*' "$scratch/console" | tee "$scratch/results"
[ -s "$scratch/results" ] || { tail -5 "$scratch/console"; echo "not run: the machine printed no result"; exit 77; }
echo "kernel $version: retry counts 6 and 7"
grep -q '^RESULT 6 12 ' "$scratch/results" && grep -q '^RESULT 7 none ' "$scratch/results"
