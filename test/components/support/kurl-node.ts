/**
 * A machine of its own for whole runs: it has the programs of this one, and all that is changed on it lies in a folder. Its
 * services, containerd among them, are started by an init of a few lines; it says that it is Ubuntu 22.04.
 */
import { execa } from 'execa';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Outcome } from '../../support/curlew.ts';
import { tree, writeTree } from '../../support/tree.ts';
import { startDaemon } from './daemon.ts';
import { oracle, ROOT } from './programs.ts';

export interface KurlNode extends AsyncDisposable {
  /** Runs a line of bash there as root, and hands back what it said, whatever its status. */
  readonly outcome: (line: string) => Promise<Outcome>;
  /** The same, but it must succeed: standard output, without the last line end. */
  readonly run: (line: string) => Promise<string>;
}

export interface NodeOptions {
  readonly name: string;
  /** Folder of `containerd` and `ctr`; those in PATH when it is left out. */
  readonly containerd: string | undefined;
  /** Path of the kubeconfig that `kubeadm init` makes. */
  readonly kubeconfig: string;
}

/** Knows the services that have a file in /etc/units with their command. A service answers or has ended when it is told so. */
const INIT = `hostname "$1"
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -p /var/lib/containerd && mount -t tmpfs tmpfs /var/lib/containerd
mkfifo /run/units
declare -A pids
touch /mnt/share/ready
while read -r unit answer; do
  if [ -n "\${pids[$unit]-}" ]; then kill "\${pids[$unit]}"; wait "\${pids[$unit]}"; fi
  setsid bash -c "exec $(cat "/etc/units/$unit")" >>"/var/log/$unit.log" 2>&1 &
  pids[$unit]=$!
  echo $! >"/run/$unit.pid"
  while [ "$unit" = containerd ] && kill -0 "\${pids[$unit]}" && ! timeout 5 ctr version >/dev/null 2>&1; do sleep 0.05; done
  echo done >"$answer"
done <>/run/units`;

/** The root of such a machine, with /mnt/share; of this machine it has the devices. */
const VIEW = `source "$0"
overlay_view "$1"
mount_now
mounts_made
view="$1/.overlay/view"
for folder in proc sys dev; do mkdir -p "$view/$folder"; mount --rbind "/$folder" "$view/$folder"; done
mkdir -p "$view/mnt/share"
mount --bind "$2" "$view/mnt/share"
shift 2
exec chroot "$view" "$@"`;

const SYSTEMCTL = `#!/bin/bash
word="$1" unit="\${!#}"
pid="$(cat "/run/$unit.pid" 2>/dev/null)"
case "$word" in
  start | restart)
    [ -e "/etc/units/$unit" ] || exit 5
    mkfifo "/run/answer-$$"
    echo "$unit /run/answer-$$" >/run/units
    read -r _ <"/run/answer-$$" && rm "/run/answer-$$"
    ;;
  show) echo "MainPID=\${pid:-0}" ;;
  is-active | -q) [ -n "$pid" ] && kill -0 "$pid" ;;
  cat) [ -e "/etc/units/$unit" ] ;;
esac
`;

/**
 * The part of kubeadm's work that others look at: where the cluster is, the authority of its certificates, one of them, the network
 * of its pods.
 */
const KUBEADM = `#!/bin/bash
set -eu
echo "$*" >>/root/kubeadm
case "$1" in
  init)
    mkdir -p /etc/kubernetes/pki
    [ -e /etc/kubernetes/pki/ca.crt ] || openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=kubernetes \\
      -keyout /etc/kubernetes/pki/ca.key -out /etc/kubernetes/pki/ca.crt 2>/dev/null
    [ -e /etc/kubernetes/pki/apiserver-kubelet-client.crt ] || openssl req -x509 -newkey rsa:2048 -nodes -days 30 \\
      -subj /CN=kube-apiserver-kubelet-client -keyout /etc/kubernetes/pki/apiserver-kubelet-client.key \\
      -out /etc/kubernetes/pki/apiserver-kubelet-client.crt 2>/dev/null
    install -m 0600 /mnt/share/admin.conf /etc/kubernetes/admin.conf
    if [ "\${2-}" = --pod-network-cidr ]; then
      mkdir -p /etc/kubernetes/manifests
      printf '    - --cluster-cidr=%s\\n' "$3" >/etc/kubernetes/manifests/kube-controller-manager.yaml
    fi
    ;;
esac
`;

async function programsFor({ containerd }: NodeOptions): Promise<Readonly<Record<string, string>>> {
  const tools = await Promise.all(
    [oracle('../api-server/kubectl'), oracle('kustomize')].map(
      async (path) => [basename(path), await realpath(path)] as const,
    ),
  );
  const runtime =
    containerd === undefined ? [] : ['containerd', 'ctr'].map((name) => [name, join(containerd, name)] as const);
  const links = [...tools, ...runtime].map(([name, path]) => [
    `usr/local/bin/${name}`,
    `#!/bin/sh\nexec '${path}' "$@"\n`,
  ]);
  return {
    ...(Object.fromEntries(links) as Record<string, string>),
    'usr/local/bin/systemctl': SYSTEMCTL,
    'usr/local/bin/kubeadm': KUBEADM,
    'usr/local/bin/kubelet': '#!/bin/sh\necho Kubernetes v1.34.4\n',
    'etc/units/containerd': `containerd\n`,
    'etc/units/nfs-utils': 'sleep infinity\n',
    'etc/os-release': 'ID=ubuntu\nVERSION_ID="22.04"\nPRETTY_NAME="Ubuntu 22.04"\n',
  };
}

export async function startNode(options: NodeOptions): Promise<KurlNode> {
  const box = await tree();
  await mkdir(box.at('share'));
  await writeTree(box.at('share'), { 'admin.conf': await readFile(options.kubeconfig) });
  await writeTree(box.at('root/host'), await programsFor(options));
  const view = ['bash', '-euc', VIEW, join(ROOT, 'scripts/overlay-view.sh'), box.at('root'), box.at('share')];
  const apart = ['--mount', '--propagation', 'private', '--pid', '--uts', '--fork', '--kill-child'];
  const daemon = await startDaemon({
    command: 'setpriv',
    // Whatever becomes of this process, the node does not outlive it.
    args: ['--pdeathsig', 'KILL', 'unshare', ...apart, ...view, 'bash', '-c', INIT, 'init', options.name],
    logFile: box.at('log'),
    ready: async () => (await readFile(box.at('share/ready')).catch(() => undefined)) !== undefined,
  });
  const init = Number((await readFile(`/proc/${daemon.pid}/task/${daemon.pid}/children`, 'utf8')).trim());
  const outcome = async (line: string): Promise<Outcome> => within(init, line);
  return {
    outcome,
    run: async (line) => {
      const { exitCode, stdout, stderr } = await outcome(line);
      if (exitCode !== 0) throw new Error(`${line}: status ${exitCode}\n${stdout}\n${stderr}`);
      return stdout;
    },
    [Symbol.asyncDispose]: async () => {
      // Everything on the node ends with it.
      process.kill(init, 'SIGKILL');
      await daemon[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

async function within(init: number, line: string): Promise<Outcome> {
  const into = ['--target', String(init), '--mount', '--pid', '--uts', '--root', '--wd'];
  const { exitCode, stdout, stderr } = await execa('nsenter', [...into, 'bash', '-euo', 'pipefail', '-c', line], {
    env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LC_ALL: 'C.UTF-8' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  return { exitCode: exitCode ?? 255, stdout, stderr };
}
