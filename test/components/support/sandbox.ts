/** Trials in a sandbox: whether this machine can have one, and the ways that a hook could take out of it. */
import { execa } from 'execa';
import { join } from 'node:path';
import { missing } from '../../support/needs.ts';
import { ROOT } from './programs.ts';

export const SCRIPTS = join(ROOT, 'scripts');
export const uid = process.geteuid?.() ?? -1;
/** A trial of b.tar.gz. */
export const INSTALL = ['install', '--bundle', 'b.tar.gz', '--root', 'root'];

/** Why there can be none here; undefined when there can. */
export async function noSandbox(): Promise<string | undefined> {
  if (uid !== 0) return 'needs root, whose powers are to be taken away';
  const { exitCode, stderr } = await execa('bash', [join(SCRIPTS, 'confine.sh'), '--check'], { reject: false });
  return exitCode === 0 ? missing('python3', 'ipcs', 'setpriv') : stderr;
}

export interface Attempt {
  readonly title: string;
  /** A line of bash; status 0 means that it got out. */
  readonly line: string;
}

const PY = 'python3 -I -c';

/** All of them; files of the machine are named by secrets that are in no view of it. */
export function attempts(of: {
  readonly home: string;
  readonly secret: string;
  readonly port: number;
  readonly name: string;
  readonly pid: number;
}): readonly Attempt[] {
  const { home, secret, port, name, pid } = of;
  const libc = 'import ctypes,os,sys; c=ctypes.CDLL(None,use_errno=True)';
  return [
    { title: 'the kubeconfig of the home', line: `cat ~/.kube/config || cat ${home}/.kube/config` },
    { title: 'the kubeconfig of the environment', line: 'cat "$KUBECONFIG"' },
    { title: 'the kubeconfig by its path', line: `grep -q token /opt/${name}/admin.conf` },
    { title: 'secrets of the environment', line: 'env | grep -q hunter2' },
    {
      title: 'secrets in the environment of others',
      line: 'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -v SEEN_ | grep -q hunter2',
    },
    { title: 'other people’s files in /tmp', line: `ls ${secret}` },
    {
      title: 'a chroot that is broken out of',
      line: `${PY} 'import os
os.mkdir("/opt/cell"); d=os.open("/",os.O_RDONLY); os.chroot("/opt/cell"); os.fchdir(d)
for i in range(64): os.chdir("..")
os.chroot("."); os.stat("${secret}")'`,
    },
    { title: 'the root of the first process', line: `ls /proc/1/root${secret}` },
    { title: 'files of the first process', line: 'for f in /proc/1/fd/*; do readlink "$f" && exit 0; done; exit 1' },
    { title: 'the folder that pivot_root has used', line: '[ -n "$(ls -A /dev/.old)" ]' },
    { title: 'kernel settings', line: 'cat /proc/sys/kernel/hostname >/proc/sys/kernel/hostname' },
    { title: 'kernel settings, mounted anew', line: 'mount -t proc proc /mnt && echo >/mnt/sysrq-trigger' },
    {
      title: 'kernel settings, made writable',
      line: 'mount -o remount,rw /proc || mount -o remount,bind,rw /proc || umount /proc/kcore',
    },
    { title: 'the host name', line: 'hostname curlew-sandbox-test' },
    {
      title: 'the host name of a user namespace',
      line: 'unshare --user --map-root-user --uts hostname curlew-sandbox-test',
    },
    { title: 'a user namespace', line: 'unshare --user --map-root-user true || unshare --user true' },
    { title: 'another mount namespace', line: 'unshare --mount true' },
    { title: 'the namespaces of others', line: 'nsenter --target 1 --mount true' },
    { title: 'mounting', line: 'mount -t tmpfs tmpfs /mnt || mount --bind / /mnt || mount --make-rshared /' },
    { title: 'a disk', line: 'for d in sda vda nvme0n1 dm-0 loop0; do head -c 1 /dev/$d && exit 0; done; exit 1' },
    {
      title: 'a device node of one’s own',
      line: 'for d in "b 254 0" "b 8 0" "c 1 1" "c 10 237"; do mknod /opt/disk $d && exit 0; mknod /dev/shm/disk $d && exit 0; done; exit 1',
    },
    { title: 'memory', line: `head -c 1 /dev/mem || head -c 4096 /proc/kcore | grep -q .` },
    {
      title: '/sys',
      line: 'echo 1 >/sys/kernel/uevent_helper || echo 0 >/sys/module/printk/parameters/time || touch /sys/x',
    },
    { title: 'the trigger of sysrq', line: '{ echo h >/proc/sysrq-trigger; } && ! [ -c /proc/sysrq-trigger ]' },
    {
      title: 'cgroups',
      line: 'mkdir /sys/fs/cgroup/x || echo 1 >/sys/fs/cgroup/cgroup.freeze || mount -t cgroup2 none /mnt',
    },
    {
      title: 'a kernel module',
      line: `modprobe dummy || ${PY} '${libc}; n=313 if os.uname().machine=="x86_64" else 273; sys.exit(0 if c.syscall(n,0,b"",0)==0 or ctypes.get_errno() not in (1,38) else 1)'`,
    },
    {
      title: 'the kernel itself',
      line: `${PY} '${libc}; n=246 if os.uname().machine=="x86_64" else 104; sys.exit(0 if c.syscall(n,0,0,None,0)==0 or ctypes.get_errno() not in (1,38) else 1)'`,
    },
    { title: 'the clock', line: 'date -s @$(date +%s)' },
    {
      title: 'a process of the machine',
      line: `kill -0 ${pid} || [ -e /proc/${pid}/comm ] && [ "$(cat /proc/${pid}/comm)" = node ]`,
    },
    { title: 'tracing the first process', line: `${PY} '${libc}; sys.exit(0 if c.ptrace(16,1,0,0)==0 else 1)'` },
    { title: 'ending the first process', line: 'kill -KILL 1; sleep 0.05; exit 1' },
    {
      title: 'a file by its handle',
      line: `${PY} '${libc}
class H(ctypes.Structure): _fields_=[("n",ctypes.c_uint),("t",ctypes.c_int),("b",ctypes.c_ubyte*64)]
h=H(8,1); h.b[0]=2; d=os.open("/var/lib/curlew",os.O_RDONLY)
sys.exit(0 if c.open_by_handle_at(d,ctypes.byref(h),0)>=0 else 1)'`,
    },
    { title: 'a listener on TCP', line: `${PY} 'import socket; socket.create_connection(("127.0.0.1",${port}),3)'` },
    {
      title: 'an abstract Unix socket',
      line: `${PY} 'import socket; socket.socket(socket.AF_UNIX).connect("\\0${name}".ljust(108,"\\0"))'`,
    },
    {
      title: 'a Unix socket of the machine',
      line: `${PY} 'import socket; socket.socket(socket.AF_UNIX).connect("/run/${name}.sock")'`,
    },
    { title: 'another network', line: `[ "$(ls /sys/class/net)" != lo ] || [ "$(wc -l </proc/net/route)" -gt 1 ]` },
    { title: 'shared memory of the machine', line: `cat /dev/shm/${name}` },
    { title: 'messages of System V', line: `ipcs -m | grep -q 0x00c0ffee` },
    { title: 'a raw socket', line: `${PY} 'import socket; socket.socket(socket.AF_PACKET,socket.SOCK_RAW)'` },
    {
      title: 'descriptors of whoever has started curlew',
      line: 'for n in 4 5 6 7 8 9 10 11 12 20; do { cat <&$n; } 2>/dev/null && exit 0; ls /proc/self/fd/$n/ && exit 0; done; exit 1',
    },
    {
      title: 'records that decide what is run',
      line: 'echo {} >"$(ls -d /var/lib/curlew/runs/*)/request.json" || mv /var/lib/curlew/runs /var/lib/curlew/x',
    },
  ];
}
