/** Brings the machines of a cluster to what its file says, over SSH: looks, does what waits for nothing, and looks again. */
import { resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { reportStep } from '../core/events.ts';
import { fieldsOf, jsonIn, printableJson } from '../core/json.ts';
import { useCase } from '../core/request.ts';
import { readYaml } from '../formats/yaml/yaml.ts';
import type { Phase, Step } from '../machine/cluster.ts';
import { hashFile } from '../platform/files/hash-file.ts';
import { readFound, writeStateFile } from '../platform/files/state-file.ts';
import { eachLimited } from '../platform/limit/each.ts';
import { CLUSTER_APPLY } from '../requests/cluster.ts';
import { openSsh, SshError } from '../ssh/ssh.ts';
import { bundleFacts, planOf, type PlannedCluster } from './cluster-plan.ts';
import { readHosts, type WrittenCluster, type WrittenHost } from '../machine/run/cluster-file.ts';
import { lookAt, REMOTE, type ClusterLook } from '../machine/run/look.ts';
import { lockHosts, operatorOf, runCommand, sendBundle, type BundleFile, type Remote } from '../machine/run/remote.ts';

export interface AppliedCluster extends PlannedCluster {
  readonly done: readonly { readonly host: string; readonly phase: Phase }[];
  readonly failed: readonly { readonly host: string; readonly phase: Phase; readonly reason: string }[];
}

const AT_ONCE = 8;
const SHORT_MS = 60_000;
const PLAN_LIMIT = 16 << 20;

/**
 * Continues what an attempt before it, also of another operator, has begun. `BUSY` while another operator applies it, `PLAN_CHANGED` if the
 * plan of `plan` is no longer what would be done. Failures of hosts are in the result.
 */
export const applyCluster = useCase(CLUSTER_APPLY, async (request, context: Context): Promise<AppliedCluster> => {
  const { files, ignore = [] } = request;
  const cluster = await readHosts(files, 'apply', context);
  const bundle = await bundleFacts(request.bundle, context);
  const path = resolve(context.cwd, request.bundle);
  await using ssh = openSsh(context.env);
  let look = await lookAt(cluster, { ssh, bundle }, context);
  let plan = planOf(cluster, look, bundle);
  if (request.plan !== undefined) await requireSame(request.plan, plan, context);
  const done: AppliedCluster['done'][number][] = [];
  const failed: AppliedCluster['failed'][number][] = [];
  if (plan.steps.length === 0) return { ...plan, done, failed };
  // Every operator of this cluster has these hosts.
  const control = look.hosts.filter(({ host, facts }) => host.role === 'control-plane' && facts !== undefined);
  const first = control.map(({ host }) => host.ssh);
  await using lock = await lockHosts({ ssh, signal: context.signal }, first, {
    owner: operatorOf(context.env),
    doing: `apply ${cluster.name}`,
  });
  const inside = { ...context, signal: lock.signal };
  const remote = { ssh, signal: lock.signal };
  let whole: Promise<BundleFile> | undefined;
  const file = async (): Promise<BundleFile> =>
    (whole ??= hashFile(path, { signal: lock.signal }).then(({ size, digest }) => {
      return { path, digest: bundle.digest, size, whole: digest };
    }));
  // Another operator may have changed something before the lock was taken.
  look = await lookAt(cluster, { ssh, bundle }, inside);
  plan = planOf(cluster, look, bundle);
  if (request.plan !== undefined) await requireSame(request.plan, plan, context);
  for (;;) {
    const ready = plan.steps.filter(({ waits }) => waits.length === 0);
    if (ready.length === 0 || failed.length > 0) break;
    const scene: Scene = { cluster, look, remote, ignore, file, report: context.report };
    await eachLimited(
      ready,
      async (step) => {
        const { host = cluster.name, phase, to } = step;
        try {
          if (done.some((one) => one.host === host && one.phase === phase))
            throw new CurlewError(
              'CLUSTER_FAILED',
              'it has ended without a failure, and changed nothing that can be seen',
            );
          await perform(scene, step);
          done.push({ host, phase });
        } catch (error) {
          if (!(error instanceof CurlewError) || lock.signal.aborted) throw error;
          failed.push({ host, phase, reason: error instanceof SshError ? error.reason : error.message });
          context.report({ type: 'note', level: 'warning', text: `${host}: ${phase} ${to ?? ''} has failed` });
        }
      },
      { width: AT_ONCE, signal: lock.signal },
    );
    look = await lookAt(cluster, { ssh, bundle }, inside);
    plan = planOf(cluster, look, bundle);
  }
  if (look.speaker !== undefined) await keepKubeconfig(remote, cluster, look.speaker);
  return { ...plan, done, failed };
});

interface Scene {
  readonly cluster: WrittenCluster;
  readonly look: ClusterLook;
  readonly remote: Remote;
  readonly ignore: readonly string[];
  readonly file: () => Promise<BundleFile>;
  readonly report: Context['report'];
}

async function requireSame(path: string, plan: PlannedCluster, { cwd }: Context): Promise<void> {
  const text = await readFound(resolve(cwd, path), PLAN_LIMIT);
  if (text === undefined)
    throw new CurlewError('NOT_FOUND', `cannot read ${path}: it does not exist`, { hint: 'check the name' });
  const { format, cluster, digest } = fieldsOf(jsonIn(text.toString('utf8')));
  if (format !== 1 || typeof digest !== 'string')
    throw new CurlewError('USAGE', `cannot apply ${path}: it is not a plan of curlew cluster plan`, {
      hint: 'make it with --out',
    });
  if (cluster === plan.cluster && digest === plan.digest) return;
  throw new CurlewError(
    'PLAN_CHANGED',
    `cannot apply ${path}: the file, the bundle, or the machines have changed since`,
    {
      hint: 'plan again with the same options, and look at what differs',
    },
  );
}

async function perform(scene: Scene, step: Step): Promise<void> {
  const { cluster, look, remote, ignore, file, report } = scene;
  const { host: name = '', phase, to } = step;
  const host = cluster.machines.find((one) => one.name === name);
  const node = look.seen.machines.find((one) => one.name === name);
  const id = `${phase} ${name}`;
  const flags = ignore.flatMap((title) => ['--ignore', title]);
  const run = async (
    at: WrittenHost,
    command: readonly string[],
    more: { readonly cluster?: string; readonly input?: string } = {},
  ) =>
    runCommand(remote, at.ssh, {
      name: [phase, name, to].join(' '),
      command,
      line: (text) => report({ type: 'step-log', id, text }),
      ...more,
    });
  const act = async (): Promise<void> => {
    if (host === undefined || node?.leaving === true) {
      const speaker = speakerOf(look, name);
      return run(speaker, ['./tasks.sh', 'node', 'remove', name, '--yes']);
    }
    const { labels = {} } = host.machine;
    const words = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
    const given = [
      'airgap',
      'installer-spec-file=../input',
      ...(words.length === 0 ? [] : [`labels=${words.join(',')}`]),
    ];
    switch (phase) {
      case 'images': {
        const bundle = await file();
        return sendBundle(remote, host.ssh, {
          file: bundle,
          sent: (bytes) => report({ type: 'step-progress', id, bytes, total: bundle.size }),
        });
      }
      case 'init':
        return run(host, ['./install.sh', ...flags, ...given], {
          cluster: cluster.name,
          input: settingsOf(scene, host),
        });
      case 'join': {
        const token = await joinSettings(scene, host);
        return run(host, ['./join.sh', ...flags, ...given], {
          cluster: cluster.name,
          input: settingsOf(scene, host, token),
        });
      }
      case 'snapshot':
      case 'drain':
      case 'upgrade':
      case 'uncordon':
        // It saves etcd, drains and uncordons by itself.
        return run(host, ['./upgrade.sh', ...flags, 'airgap', 'installer-spec-file=../input'], {
          input: settingsOf(scene, host),
        });
      case 'addon':
      case 'mark':
      case 'remove-member':
      case 'reset':
      case 'delete-node':
        throw new CurlewError('UNSUPPORTED', `cannot ${phase} ${name} over SSH`);
    }
  };
  await reportStep(report, { id, title: [name, phase, to].join(' ') }, act, () => 'done');
}

/** A control plane that can say something about another node. */
function speakerOf({ speaker, hosts }: ClusterLook, about: string): WrittenHost {
  const other = [
    speaker,
    ...hosts.map(({ host, facts }) => {
      return host.role === 'control-plane' && facts?.isControlPlane === true ? host : undefined;
    }),
  ];
  const found = other.find((one) => one !== undefined && one.name !== about);
  if (found !== undefined) return found;
  throw new CurlewError('CLUSTER_FAILED', `no other control plane answers for ${about}`);
}

/** The settings of a host as an installer spec; JSON is YAML. A machine that joins takes those of Kubernetes from its cluster. */
function settingsOf({ cluster }: Scene, { machine }: WrittenHost, token?: Readonly<Record<string, unknown>>): string {
  const { installer, name } = cluster;
  const taints = (machine.taints ?? []).map(({ key, value = '', effect }) => `${key}=${value}:${effect}`);
  const kubernetes = {
    ...(token ?? fieldsOf(installer['kubernetes'])),
    ...(taints.length > 0 && { nodeTaints: taints.join(',') }),
  };
  const spec = { ...installer, kubernetes };
  return printableJson({ apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata: { name }, spec });
}

const TOKEN = `cd "$1/bundle" || exit 70
file=../$2; shift 2
trap 'rm -f "$file"' EXIT
./tasks.sh join-token -o "$file" "$@" >&2 && cat "$file"`;

/** The secret goes from one host to the other through this process alone. */
async function joinSettings(scene: Scene, host: WrittenHost): Promise<Readonly<Record<string, unknown>>> {
  const { look, remote, ignore, report } = scene;
  const { ssh, signal } = remote;
  const speaker = speakerOf(look, host.name);
  const isControl = host.role === 'control-plane';
  const operands = [REMOTE, `join-${host.name}.yaml`, ...(isControl ? ['--control-plane'] : [])];
  const make = async (): Promise<string> =>
    ssh.run(speaker.ssh, { script: TOKEN, operands, limitMs: SHORT_MS, signal });
  let text: string;
  try {
    text = await make();
  } catch (error) {
    if (!(error instanceof SshError) || error.problem !== 'status' || !isControl) throw error;
    // The certificates are kept for two hours; a run of install uploads them again.
    const flags = ignore.flatMap((title) => ['--ignore', title]);
    await runCommand(remote, speaker.ssh, {
      name: `certificates ${speaker.name}`,
      command: ['./install.sh', ...flags, 'airgap', 'installer-spec-file=../input'],
      input: settingsOf(scene, speaker),
      line: (line) => report({ type: 'step-log', id: `join ${host.name}`, text: line }),
    });
    text = await make();
  }
  const { spec } = fieldsOf(readYaml('join.yaml', text).value);
  return fieldsOf(fieldsOf(spec)['kubernetes']);
}

/** For other commands on the cluster; a file that exists is left as it is. */
async function keepKubeconfig(
  { ssh, signal }: Remote,
  { kubeconfig }: WrittenCluster,
  speaker: WrittenHost,
): Promise<void> {
  if ((await readFound(kubeconfig, PLAN_LIMIT)) !== undefined) return;
  const script = 'cat /etc/kubernetes/admin.conf';
  await writeStateFile(kubeconfig, await ssh.run(speaker.ssh, { script, limitMs: SHORT_MS, signal }));
}
