/** Names that every shell, and every machine that add-ons are made for, has. */

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}

/** Builtins of bash and words of its language. */
export const SHELL_WORDS: ReadonlySet<string> = words(`
alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs disown do done
echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs kill
let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source suspend test
then time times trap true type typeset ulimit umask unalias unset until wait while
`);

/** Programs of the base systems, and those that Kubernetes nodes have. */
export const PROGRAMS: ReadonlySet<string> = words(`
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

/** Variables that bash, the login or the machine sets. */
export const SHELL_VARIABLES: ReadonlySet<string> = words(`
BASH BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_ENV BASH_LINENO BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO
BASH_VERSION CDPATH COLUMNS DIRSTACK EDITOR EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTFILE HOME HOSTNAME
HOSTTYPE HTTPS_PROXY HTTP_PROXY IFS LANG LANGUAGE LC_ALL LC_CTYPE LD_LIBRARY_PATH LINENO LINES LOGNAME MACHTYPE MAIL
NO_COLOR NO_PROXY OLDPWD OPTARG OPTERR OPTIND OSTYPE PAGER PATH PIPESTATUS PPID PS1 PS2 PS3 PS4 PWD RANDOM REPLY SECONDS
SHELL SHELLOPTS SHLVL SRANDOM SUDO_COMMAND SUDO_GID SUDO_UID SUDO_USER TERM TMPDIR TZ UID USER XDG_CONFIG_HOME
XDG_RUNTIME_DIR
`);
