/** Compares what the scripts of an add-on use with what exists here. Pure. */
import type { AddonVersion } from '../core/ref.ts';
import type { Place } from '../core/diagnostic.ts';
import { upperSnake } from '../spec/variable-names.ts';
import { placesIn, type AddFinding } from './finding.ts';
import { BIN_PROGRAMS, KURL_VERBS } from './compatibility/programs.ts';
import type { Row } from './compatibility/rows.ts';
import type { PathUse, ScriptFacts } from './script-facts.ts';

/** The same for all add-ons of a repository. */
export interface Knowledge {
  /** The compatibility table. */
  readonly functions: ReadonlyMap<string, Row>;
  readonly variables: ReadonlyMap<string, Row>;
  /** Other names that the library provides to hooks. */
  readonly libraryFunctions: ReadonlySet<string>;
  readonly libraryVariables: ReadonlySet<string>;
  /** Defined or set by any add-on of the repository: all share one shell. */
  readonly addonFunctions: ReadonlySet<string>;
  readonly addonVariables: ReadonlySet<string>;
  /** Prefixes of the variables that settings become. */
  readonly prefixes: readonly string[];
  /** Defined or set by scripts of the repository outside add-ons. */
  readonly repositoryFunctions: ReadonlyMap<string, string>;
  readonly repositoryVariables: ReadonlyMap<string, string>;
}

export interface CheckedScript {
  /** Path for messages. */
  readonly shown: string;
  readonly text: string;
  readonly facts: ScriptFacts;
}

interface CheckedAddon extends AddonVersion {
  readonly shown: string;
  /** Scripts that run in the shell of the hooks, and templates that it expands. */
  readonly scripts: readonly CheckedScript[];
  /** All other scripts; names that they define count. */
  readonly others: readonly ScriptFacts[];
  /** Paths relative to its folder. */
  readonly files: ReadonlySet<string>;
  /** Files that a build adds; a folder includes all its files. */
  readonly built: readonly string[];
}

export interface Uses {
  /** Functions of the library that work as in kURL. */
  readonly functions: readonly string[];
  readonly variables: readonly string[];
}

/** Adds findings for what is missing or differs, and returns what works. */
export function checkAddon(addon: CheckedAddon, knowledge: Knowledge, add: AddFinding): Uses {
  const all = [...addon.scripts.map(({ facts }) => facts), ...addon.others];
  const union = (of: (facts: ScriptFacts) => Iterable<string>): ReadonlySet<string> =>
    new Set(all.flatMap((facts) => [...of(facts)]));
  const own: Own = {
    functions: union((facts) => facts.functions),
    assigned: union((facts) => facts.assigned),
    tested: union((facts) => facts.tested),
    programs: new Set([...addon.built, ...addon.files].map((path) => path.slice(path.lastIndexOf('/') + 1))),
  };
  const [functions, variables] = [new Set<string>(), new Set<string>()];
  const seen = new Set<string>();
  for (const { shown, text, facts } of addon.scripts) {
    const places = placesIn(shown, text);
    const once = (key: string): boolean => !seen.has(key) && seen.add(key) !== undefined;
    for (const [name, offset] of facts.calls) {
      if (once(`f ${name}`) && checkCall(name, places(offset, name.length), own, knowledge, add)) functions.add(name);
    }
    for (const [name, offset] of facts.programs) {
      if (once(`p ${name}`)) checkProgram(name, places(offset, 1), add);
    }
    for (const [name, { offset, guarded }] of facts.reads) {
      if (!once(`v ${name}`)) continue;
      const place = places(offset, name.length + 1);
      if (checkRead(name, guarded, place, own, knowledge, add)) variables.add(name);
    }
  }
  checkPaths(addon, add);
  return { functions: [...functions].toSorted(), variables: [...variables].toSorted() };
}

interface Own {
  readonly functions: ReadonlySet<string>;
  readonly assigned: ReadonlySet<string>;
  readonly tested: ReadonlySet<string>;
  readonly programs: ReadonlySet<string>;
}

/** Whether it is a function of the library that works. */
function checkCall(name: string, place: Place, own: Own, knowledge: Knowledge, add: AddFinding): boolean {
  if (own.functions.has(name)) return false;
  const row = knowledge.functions.get(name);
  if (row !== undefined) {
    if (row.status !== 'same') add('differs', 'function', name, row.note, place);
    return row.status === 'same';
  }
  if (knowledge.libraryFunctions.has(name)) return true;
  if (SHELL_WORDS.has(name) || PROGRAMS.has(name) || own.tested.has(name) || own.programs.has(name)) return false;
  if (knowledge.addonFunctions.has(name)) return false;
  const defined = knowledge.repositoryFunctions.get(name);
  if (defined !== undefined) {
    add('missing', 'function', name, `${defined} of the repository defines it; nothing here does`, place);
  } else if (/_|[a-z][A-Z]/.test(name)) {
    add('missing', 'function', name, 'nothing defines it', place);
  } else {
    add('note', 'program', name, 'a program that must be on the machine', place);
  }
  return false;
}

/** Reports a program in `bin/` that differs from kURL's; `call` is its name, for `kurl` followed by a verb. */
function checkProgram(call: string, place: Place, add: AddFinding): void {
  const [name] = call.split(' ', 1);
  const verb = KURL_VERBS.find((one) => `${call} `.startsWith(`kurl ${one.name} `));
  const row = verb ?? BIN_PROGRAMS.find((one) => one.name === name);
  if (row === undefined || row.status === 'same') return;
  const works = row.name === 'yamltobash' || verb?.status === 'differs';
  const hint = works ? undefined : "put kURL's own program into bin of the install folder, where it takes precedence";
  const shown = verb === undefined ? call : `kurl ${verb.name}`;
  add('differs', 'program', `bin/${shown}`, row.note, place, hint);
}

/** Whether it is a variable that has the same value as in kURL. */
function checkRead(
  name: string,
  guarded: boolean,
  place: Place,
  own: Own,
  knowledge: Knowledge,
  add: AddFinding,
): boolean {
  // Lowercase names are local to the script; shellcheck checks them better.
  if (!/^[A-Z][A-Z0-9_]*$/.test(name) || own.assigned.has(name)) return false;
  const row = knowledge.variables.get(name);
  if (row !== undefined) {
    const what = row.status === 'absent' && !row.note.startsWith('empty') ? `not set: ${row.note}` : row.note;
    if (row.status !== 'same') add('differs', 'variable', name, what, place);
    return row.status === 'same';
  }
  if (SHELL_VARIABLES.has(name) || knowledge.addonVariables.has(name)) return false;
  if (knowledge.libraryVariables.has(name)) return true;
  if (guarded) return false;
  const set = knowledge.repositoryVariables.get(name);
  if (set !== undefined) add('missing', 'variable', name, `${set} of the repository sets it; nothing here does`, place);
  else if (!knowledge.prefixes.some((prefix) => name.startsWith(prefix))) {
    add('note', 'variable', name, 'nothing sets it: it is empty unless the caller sets it', place);
  }
  return false;
}

/** The prefix of the variables of an add-on's settings. */
export function settingPrefix(name: string): string {
  return `${upperSnake(name)}_`;
}

function checkPaths({ name, version, shown, scripts, files, built }: CheckedAddon, add: AddFinding): void {
  const folders = foldersOf(files);
  const uses = scripts.flatMap(({ shown: file, text, facts }) =>
    facts.paths.flatMap((use) => {
      const path = ownPath(use.parts, name, version);
      return path === undefined ? [] : [{ path, use, file, text }];
    }),
  );
  const excused = uses.filter(({ use }) => use.role === 'made' || use.role === 'tested').map(({ path }) => path);
  const reported = new Set<string>();
  for (const { path, use, file, text } of uses) {
    if (use.role === 'made' || use.role === 'tested' || reported.has(path)) continue;
    const exists = path === '' || files.has(path) || folders.has(path);
    if (exists || [...excused, ...built].some((one) => path === one || path.startsWith(`${one}/`))) continue;
    reported.add(path);
    add('missing', 'file', path, `a hook reads it, but it is not in ${shown}`, placesIn(file, text)(use.offset, 1));
  }
}

function foldersOf(files: ReadonlySet<string>): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const file of files) {
    for (let at = file.lastIndexOf('/'); at > 0; at = file.lastIndexOf('/', at - 1)) folders.add(file.slice(0, at));
  }
  return folders;
}

/** A path below the add-on's own folder, or undefined if it is outside or unknown. */
export function ownPath(parts: PathUse['parts'], name: string, version: string): string | undefined {
  const ownVersion = `${upperSnake(name)}_VERSION`;
  let path = '';
  for (const part of parts) {
    if (part.kind === 'unknown') return undefined;
    if (part.kind === 'text') path += part.text;
    else if (part.name === 'DIR') path += '.';
    else if (part.name === ownVersion) path += version;
    else return undefined;
  }
  const plain = path.replaceAll(/\/+/g, '/').replace(/^\.\//, '').replace(/\/$/, '');
  const prefix = `addons/${name}/${version}`;
  if (plain === prefix) return '';
  const below = plain.startsWith(`${prefix}/`) ? plain.slice(prefix.length + 1) : undefined;
  return below === undefined || below.split('/').some((one) => one === '..' || one === '.') ? undefined : below;
}

function wordSet(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Builtins and reserved words of bash. */
export const SHELL_WORDS: ReadonlySet<string> = wordSet(`
alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs disown do done
echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs kill
let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test
then time times trap true type typeset ulimit umask unalias unset until wait while
`);

/** Programs of base systems and of Kubernetes nodes. */
export const PROGRAMS: ReadonlySet<string> = wordSet(`
addgroup adduser apparmor_parser apt apt-cache apt-get apt-key apt-mark arch arping awk b2sum base32 base64 basename bash
bc blkid blockdev bridge bunzip2 bzip2 cat chattr chcon chgrp chmod chown chpasswd chroot chronyc chrt cksum clear cmp
column comm conntrack containerd cp cpio createrepo crictl crontab csplit ctr curl cut date dc dd debconf-set-selections
deluser depmod df diff dig dir dirname dmesg dmidecode dmsetup dnf docker dpkg dpkg-deb dpkg-query dracut du e2fsck egrep
envsubst env ethtool etcdctl expand expr factor fallocate fgrep file find findmnt fio firewall-cmd flock fmt fold free
fsck fuser fusermount gawk getcap getconf getenforce getent getfacl git gpg grep groupadd groupdel groupmod groups
grub2-mkconfig grubby gunzip gzip head helm helmfile host hostid hostname hostnamectl hwclock iconv id ifconfig insmod
install invoke-rc.d ionice iostat ip ip6tables ip6tables-restore ip6tables-save ipcalc ipset iptables iptables-restore
iptables-save ipvsadm iscsiadm jobs join journalctl jq kill killall kmod kubeadm kubectl kubectl-kots kubelet kustomize
last ldconfig ldd less link ln locale localectl localedef logger login loginctl logname logrotate losetup ls lsattr lsblk
lscpu lsmod lsof lspci lsb_release lvcreate lvdisplay lvextend lvm lvremove lvs make md5sum mkdir mkfifo mkfs mkfs.ext4
mkfs.xfs mknod mkswap mktemp modinfo modprobe mokutil more mount mountpoint mv named nano nc netstat networkctl nft nice
nl nmcli nohup nproc nsenter nslookup ntpdate ntpq numfmt od openssl openvt parted partprobe passwd paste patch perl pgrep
pidof ping ping6 pkill pmap podman pr printenv ps ptx pvcreate pvdisplay pvremove pvs pwdx python python2 python3 readlink
realpath reboot rename renice reset resolvectl resolvconf restorecon rev rm rmdir rmmod route rpm rpmkeys rsync runc
runcon run-parts runuser scp screen script sed semanage semodule sefcontext_compile seq service sestatus setcap
setenforce setfacl setpriv setsebool setsid sfdisk sgdisk sh sha1sum sha224sum sha256sum sha384sum sha512sum shred
shuf shutdown skopeo sleep socat sort split ss ssh ssh-keygen sshd stat stdbuf strace strings stty su subscription-manager
sudo sum swapoff swapon sync sysctl systemctl systemd-analyze systemd-cat systemd-detect-virt systemd-run
systemd-tmpfiles tac tail tar taskset tc tcpdump tee telnet test timedatectl timeout top touch tr traceroute truncate
tsort tty tune2fs udevadm ufw umount uname unexpand uniq unlink unshare unxz unzip update-alternatives
update-ca-certificates update-ca-trust update-grub update-initramfs update-rc.d uptime useradd userdel usermod users
uuidgen vgchange vgcreate vgdisplay vgremove vgs vgscan vi vim visudo vmstat w wall watch wc wget whereis which who whoami
wipefs xargs xfs_growfs xfs_info xfs_repair xxd xz xzcat yes yq yum yum-config-manager yumdownloader zcat zgrep zip zypper
pvscan lvscan lvchange lvconvert lvresize systemd-resolve update-crypto-policies containerd-shim-runc-v2 buildctl nerdctl
sonobuoy velero antctl weave calicoctl cilium rados rbd ceph mc cmctl kubectl-preflight kubectl-support_bundle
`);

/** Variables that bash, the login session or the machine sets. */
const SHELL_VARIABLES: ReadonlySet<string> = wordSet(`
BASH BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_ENV BASH_LINENO BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO
BASH_VERSION CDPATH COLUMNS DIRSTACK EDITOR EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTFILE HOME HOSTNAME
HOSTTYPE HTTPS_PROXY HTTP_PROXY IFS LANG LANGUAGE LC_ALL LC_CTYPE LD_LIBRARY_PATH LINENO LINES LOGNAME MACHTYPE MAIL
NO_COLOR NO_PROXY OLDPWD OPTARG OPTERR OPTIND OSTYPE PAGER PATH PIPESTATUS PPID PS1 PS2 PS3 PS4 PWD RANDOM REPLY SECONDS
SHELL SHELLOPTS SHLVL SRANDOM SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER TERM TMPDIR TZ UID USER XDG_CONFIG_HOME
XDG_RUNTIME_DIR
`);
