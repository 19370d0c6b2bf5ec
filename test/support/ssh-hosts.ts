/** Hosts of a cluster for tests: real SSH servers with files of their own, and a bundle whose scripts do what kubeadm would, in files. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { applyCluster } from '../../src/app/cluster-apply.ts';
import { clusterPlan } from '../../src/app/cluster-plan.ts';
import type { PlannedCluster } from '../../src/machine/run/planned-cluster.ts';
import type { AppliedCluster } from '../../src/machine/run/follow-plan.ts';
import type { Context } from '../../src/core/context.ts';
import type { Report } from '../../src/core/events.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { openSsh, type Ssh, type SshHost } from '../../src/machine/ssh/ssh.ts';
import { never, noReport } from './context.ts';
import { cluster, documents } from './fleet-files.ts';
import { archiveOf, packageOf } from './packages.ts';
import { startSshd, type Sshd } from './sshd.ts';
import { tree } from './tree.ts';

export interface HostScene extends AsyncDisposable {
  readonly host: (name: string) => SshHost;
  /** Runs a script as root on a host. */
  readonly on: (name: string, script: string) => Promise<string>;
  /** Writes the file of the cluster: machines by name with what differs from a host that is as it should be. */
  readonly write: (machines: Readonly<Record<string, object>>, spec?: object) => Promise<void>;
  readonly plan: (options?: { readonly bundle?: string; readonly out?: string }) => Promise<PlannedCluster>;
  readonly apply: (options?: {
    readonly plan?: string;
    readonly signal?: AbortSignal;
    readonly report?: Report;
  }) => Promise<AppliedCluster>;
  /** For use cases: the user's own configuration of SSH, and the folder of the file, `paris.yaml`. */
  readonly context: Context;
  /** Ends all connections to a host. */
  readonly cut: (name: string) => void;
  /** Folder with what the scripts of the bundle do: `node-NAME`, `calls` and more. */
  readonly api: string;
  readonly calls: () => Promise<readonly string[]>;
  readonly at: (...path: readonly string[]) => string;
}

/** `api` is the folder of the nodes of the cluster, which all hosts share; a file `hold-NAME` in it stops the script that makes the node. */
function bundle(api: string): Buffer {
  const node = (role: string): string => `#!/bin/sh
set -e
name=$(hostname)
if grep -qs 'v1\\.34\\.3' ${api}/node-$name; then exec ./upgrade.sh "$@"; fi
echo "$(basename "$0") $name $*" >>${api}/calls
touch ${api}/began-$name
echo 'it has begun'
while [ -e ${api}/hold-$name ]; do sleep 0.05; done
if [ -e ${api}/warn-$name ]; then cat ${api}/warn-$name; fi
if [ -s ${api}/fail-$name ]; then cat ${api}/fail-$name >&2; exit 3; fi
if [ -e ${api}/fail-$name ]; then echo 'no such luck' >&2; exit 3; fi
mkdir -p /etc/kubernetes/pki /etc/kubernetes/manifests
echo 'authority of the cluster' >/etc/kubernetes/pki/ca.crt
touch /etc/kubernetes/kubelet.conf; rm -f /etc/kubernetes/curlew/attempt
role=${role}
if [ $role = join ]; then
  token=$(sed -n 's/.*"kubeadmToken": *"\\([^"]*\\)".*/\\1/p' ../input)
  rm "${api}/token-$token" || { echo 'wrong token' >&2; exit 4; }
  role=worker
else echo secret-conf >/etc/kubernetes/admin.conf; fi
cp ../input ${api}/input-$name
printf '{"name":"%s","joined":true,"answers":true,"ready":true,"role":"%s","kubelet":"v1.34.4"' $name $role >${api}/node-$name.part
if [ $role = control-plane ]; then printf ',"apiServer":"v1.34.4"' >>${api}/node-$name.part; fi
printf '}' >>${api}/node-$name.part
mv ${api}/node-$name.part ${api}/node-$name
if [ -e ${api}/fail-late-$name ]; then echo 'an add-on has failed' >&2; exit 4; fi
`;
  const tasks = `#!/bin/sh
case "$1 $2" in
  'cluster nodes')
    while [ -e ${api}/waits-for-status ]; do sleep 0.05; done
    hostname >>${api}/asked
    if [ -s ${api}/no-etcd ]; then cat ${api}/no-etcd >&2; exit 33; fi
    if [ -e ${api}/no-etcd ]; then echo 'error CLUSTER_FAILED: etcd does not answer: connect ECONNREFUSED 127.0.0.1:2379' >&2; exit 33; fi
    printf '{"machines":['; first=
    for file in ${api}/node-*; do printf '%s' "$first"; cat "$file"; first=,; done
    printf '],"members":[{"name":"p1","healthy":true}]'
    if [ -e ${api}/addons ]; then printf ',"addons":'; sh ${api}/addons; fi
    printf '}';;
  'join-token -o')
    token=abcdef.$(date +%N); touch ${api}/token-$token
    printf 'spec:\\n  kubernetes:\\n    kubeadmToken: "%s"\\n' $token >"$3";;
  'status --json')
    rm -f ${api}/waits-for-status
    if [ -e ${api}/health-$(hostname) ]; then cat ${api}/health-$(hostname)
    else echo '{"cluster":{"certificates":[{"name":"pki/apiserver.crt","expires":"2090-01-01T00:00:00.000Z"}]}}'; fi;;
  'load-images ')
    echo "load-images $(hostname)" >>${api}/calls
    if [ -e ${api}/full-$(hostname) ]; then echo 'error NO_SPACE: /var/lib/containerd has 12 MiB free' >&2; exit 14; fi;;
  'reset --yes')
    echo "reset $(hostname) $*" >>${api}/calls; touch ${api}/began-$(hostname)
    while [ -e ${api}/hold-$(hostname) ]; do sleep 0.05; done
    failed=${api}/failed-hooks-$(hostname)
    if [ -e $failed ] && [ "$3" != --keep-going ]; then echo 'a hook has failed' >&2; exit 20; fi
    rm -rf /etc/kubernetes
    if [ -e $failed ]; then cat $failed; exit 20; fi
    if [ -e ${api}/fail-reset-$(hostname) ]; then echo 'a hook has failed' >&2; exit 3; fi;;
  'node remove')
    echo "node remove $3" >>${api}/calls; touch ${api}/began-$3; echo 'it has begun'
    while [ -e ${api}/hold-$3 ]; do sleep 0.05; done
    rm ${api}/node-$3;;
  'node repair')
    echo "node repair $(hostname)" >>${api}/calls
    if [ ! -e ${api}/heals-$(hostname) ]; then echo 'kubernetes: containerd does not start' >&2; exit 20; fi
    sed -i 's/"ready":false/"ready":true/' ${api}/node-$(hostname);;
  'node drain')
    case "$*" in
      *--yes*) echo "node drain $3 $4 $5 $6" >>${api}/calls; touch ${api}/drained-$3;;
      *) if [ -e ${api}/drained-$3 ]; then echo '{"isCordoned":true,"pods":[]}'; exit 0; fi
        lost=; if [ -e ${api}/loses-$3 ]; then lost=$(cat ${api}/loses-$3); fi
        echo '{"isCordoned":false,"pods":["default/web"],"lost":['"$lost"']}'; exit 2;;
    esac;;
esac
`;
  const upgrade = `#!/bin/sh
name=$(hostname)
echo "upgrade.sh $name $*" >>${api}/calls
if [ -e ${api}/hold-$name ]; then echo 'kubeadm replaces etcd'; touch ${api}/no-etcd ${api}/began-$name; fi
while [ -e ${api}/hold-$name ]; do sleep 0.05; done
rm -f ${api}/no-etcd
sed -i 's/v1\\.34\\.3/v1.34.4/g' ${api}/node-$name
cp ../input ${api}/input-$name
if [ -s ${api}/fail-$name ]; then cat ${api}/fail-$name >&2; exit 3; fi
`;
  const { addon } = packageOf('kubernetes', '1.34.4', []);
  const script = (path: string, data: string) => ({ path, data, mode: 0o755 as const });
  return archiveOf([
    script('install.sh', node('control-plane')),
    script('join.sh', node('join')),
    script('upgrade.sh', upgrade),
    script('tasks.sh', tasks),
    { path: 'packages/kubernetes/1.34.4/addon.json', data: formatAddonJson(addon) },
  ]).bytes;
}

export async function hostScene(...names: readonly string[]): Promise<HostScene> {
  const box = await tree();
  const api = box.at('api');
  await mkdir(api);
  await writeFile(box.at('b.tar.gz'), bundle(api));
  const hosts = new Map<string, Sshd>();
  const clients = new Map<string, Ssh>();
  for (const name of names) {
    const server = await startSshd(box.at(name), { hostname: name });
    hosts.set(name, server);
    clients.set(name, openSsh({ PATH: process.env['PATH'], HOME: box.path }, { config: server.config }));
  }
  // The user's own configuration: a key for each port.
  const keys = [...hosts.keys()].map((name) => `IdentityFile "${box.at(name, 'client')}"`);
  await writeFile(box.at('config'), `${keys.join('\n')}\nIdentitiesOnly yes\n`);
  await writeFile(box.at('ssh'), `#!/bin/sh\nexec /usr/bin/ssh -F '${box.at('config')}' "$@"\n`, { mode: 0o755 });
  const server = (name: string): Sshd => {
    const host = hosts.get(name);
    if (host === undefined) throw new Error(`no host ${name}`);
    return host;
  };
  const context = {
    signal: never,
    report: noReport,
    env: { PATH: `${box.path}:${process.env['PATH']}`, HOME: box.path },
    cwd: box.path,
  };
  return {
    host: (name) => server(name).host,
    on: async (name, script) => {
      const run = clients.get(name)?.run(server(name).host, { script, limitMs: 20_000, signal: never });
      return (await run) ?? '';
    },
    write: async (machines, spec = {}) => {
      const list = Object.entries(machines).map(([name, more]) => {
        const { address, user, port, hostKey } = hosts.get(name)?.host ?? {
          address: '127.0.0.9',
          hostKey: `SHA256:${'A'.repeat(43)}`,
        };
        return { name, role: 'worker', address, ssh: { user, port, hostKey }, ...more };
      });
      await writeFile(
        box.at('paris.yaml'),
        documents(cluster('paris', {}, { kubernetes: { version: 'v1.34.4' }, machines: list, ...spec })),
      );
    },
    plan: async (options = {}) => clusterPlan({ files: ['paris.yaml'], ...options }, context),
    apply: async ({ plan, signal = never, report = noReport } = {}) =>
      applyCluster({ files: ['paris.yaml'], bundle: 'b.tar.gz', plan }, { ...context, signal, report }),
    context,
    cut: (name) => server(name).cut(),
    api,
    calls: async () => (await readFile(`${api}/calls`, 'utf8').catch(() => '')).trim().split('\n'),
    at: box.at,
    [Symbol.asyncDispose]: async () => {
      for (const one of clients.values()) await one[Symbol.asyncDispose]();
      for (const one of hosts.values()) await one[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}
