/** The steps of a plan on hosts over SSH. */
import type { Context } from '../../core/context.ts';
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { fieldsOf, printableJson } from '../../core/json.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import { readFound, writeStateFile } from '../../platform/files/state-file.ts';
import type { KeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { SshError } from '../ssh/ssh.ts';
import type { Phase, Step } from '../cluster.ts';
import { taintText } from '../marks.ts';
import { isFirstWith, OWN_SETTINGS, settingsAfter } from '../settings.ts';
import type { WrittenCluster, WrittenHost } from './cluster-file.ts';
import { kubeadmSettingsOf as digestsOf } from './kubeadm-settings.ts';
import { reached } from './provided-hosts.ts';
import { REMOTE, type ClusterLook } from './look.ts';
import { createProvided, deleteProvided, verdictOf } from './provider.ts';
import { runCommand, sendBundle, type BundleFile, type Remote, type RemoteCommand } from './remote.ts';

const SHORT_MS = 60_000;
/** kubeadm may upload the certificates of control planes first. */
const TOKEN_MS = 5 * 60_000;
const KUBECONFIG_LIMIT = 16 << 20;
/** Steps of `curlew node remove`, besides the drain, which an upgrade has, too. */
const REMOVAL: ReadonlySet<Phase> = new Set(['mark', 'remove-member', 'delete-node']);
/** Phases on the host of a machine, or by its provider, also while it leaves. */
const OTHERS: ReadonlySet<Phase> = new Set(['images', 'repair', 'reset', 'create', 'delete']);

/** Steps of `./upgrade.sh`. */
const UPGRADE: ReadonlySet<Phase> = new Set(['snapshot', 'drain', 'upgrade', 'uncordon']);

/** A warning of a run of curlew about a title of `--ignore` that no check of its machine has: another machine may have it. */
const NO_CHECK = '--ignore: no check has the title ';

/** Failures of SSH by which a machine is still starting; its user and keys come last. */
const STARTING: ReadonlySet<string> = new Set(['unreachable', 'cut', 'late', 'denied', 'sudo']);
const START = { firstMs: 500, maxMs: 5000, limitMs: 300_000 };

export interface Scene {
  readonly cluster: WrittenCluster;
  readonly look: ClusterLook;
  readonly remote: Remote;
  /** By the name of the host that runs something. */
  readonly turns: KeyedMutex;
  readonly ignore: readonly string[];
  /** How many runs have had `ignore`, and how many of them have warned that no check has a title. */
  readonly passed: { runs: number; readonly unknown: Map<string, number> };
  readonly file: () => Promise<BundleFile>;
  /** Brings an add-on of the cluster to a version. */
  readonly move: (step: Step) => Promise<void>;
  readonly report: Context['report'];
}

/** The work of its command as a whole, for people: `./upgrade.sh` saves etcd, drains, upgrades and uncordons. */
export function ranPhase({ phase }: Step): Phase {
  return UPGRADE.has(phase) ? 'upgrade' : phase;
}

/** Returns whether it has made a new machine. */
export async function perform(scene: Scene, step: Step): Promise<boolean> {
  const { cluster, look, remote, ignore, file, report } = scene;
  const { host: name = '', phase, to } = step;
  const host = [...look.hosts, ...look.extras].find((one) => one.host.name === name)?.host;
  const node = look.seen.machines.find((one) => one.name === name);
  const shown = ranPhase(step);
  const id = `${shown} ${step.addon ?? name}`;
  const flags = ignore.flatMap((title) => ['--ignore', title]);
  const { unknown } = scene.passed;
  const limit = drainLimit(host);
  const run = async (
    at: WrittenHost,
    command: readonly string[],
    more: Pick<RemoteCommand, 'cluster' | 'input' | 'settings' | 'request'> = {},
  ) => {
    const about = { name: runName(cluster, step, leaves), command, ...more };
    const line = (text: string): void => {
      report({ type: 'step-log', id, text });
      // Such as APIs in use that the next version does not have.
      const [, warning] = /^warning: (.+)$/.exec(text) ?? [];
      if (warning?.startsWith(NO_CHECK) === true) unknown.set(warning, (unknown.get(warning) ?? 0) + 1);
      else if (warning !== undefined) report({ type: 'note', level: 'warning', text: `${at.name}: ${warning}` });
    };
    if (command.includes('--ignore')) scene.passed.runs += 1;
    // A host has one run at a time, and a control plane may have several nodes to remove.
    return scene.turns.run([at.name], async () => runCommand(remote, at.ssh, { ...about, line }), remote);
  };
  // One command does all of it, and is repeated as a whole.
  const leaves = !OTHERS.has(phase) && (host === undefined || node?.leaving === true || REMOVAL.has(phase));
  let isNew = false;
  const act = async (): Promise<void> => {
    if (phase === 'addon') return scene.move(step);
    if (leaves) {
      const speaker = await speakerFor(scene, name);
      return run(speaker, ['./tasks.sh', 'node', 'remove', name, ...limit, '--yes']);
    }
    if (host === undefined) throw new CurlewError('UNSUPPORTED', `cannot ${phase} ${name}: its host is unknown`);
    const { labels = {} } = host.machine;
    const words = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
    const installFlags = [
      'airgap',
      'installer-spec-file=../input',
      ...(words.length === 0 ? [] : [`labels=${words.join(',')}`]),
    ];
    switch (phase) {
      case 'create': {
        const isMissing = look.hosts.some((one) => one.host === host && one.exists === false);
        isNew = await createHost(remote, host, isMissing);
        return undefined;
      }
      case 'delete':
        return host.provided && deleteProvided(host.provided.by, host.provided.wanted, remote.signal);
      case 'images': {
        const bundle = await file();
        const sent = (bytes: number): void => report({ type: 'step-progress', id, bytes, total: bundle.size });
        const { facts } = look.hosts.find((one) => one.host === host) ?? {};
        if (facts?.bundle !== bundle.digest) await sendBundle(remote, host.ssh, { file: bundle, sent });
        if (node?.joined !== true || to === undefined) return undefined;
        return run(host, ['sh', '-c', './tasks.sh load-images && touch .images']);
      }
      case 'init':
        return run(host, ['./install.sh', ...flags, ...installFlags], {
          cluster: cluster.name,
          ...fileOf(scene, host, 'init'),
        });
      case 'join': {
        const token = await joinSettings(scene, host);
        return run(host, ['./join.sh', ...flags, ...installFlags], {
          cluster: cluster.name,
          ...fileOf(scene, host, 'join'),
          input: settingsOf(scene, host, token),
        });
      }
      case 'snapshot':
      case 'drain':
      case 'upgrade':
      case 'uncordon':
      case 'configure': {
        // It saves etcd, drains and uncordons by itself. The first control plane brings the cluster what it gets.
        const script = leads(scene, step) ? './install.sh' : './upgrade.sh';
        const words = [script, ...flags, ...limit, 'airgap', 'installer-spec-file=../input'];
        return run(host, words, fileOf(scene, host, 'upgrade'));
      }
      case 'repair':
        return run(host, ['./tasks.sh', 'node', 'repair']);
      case 'reset':
        // The packages of the bundle were moved to where the reset removes them.
        return run(host, ['sh', '-c', './tasks.sh reset --yes && rm -f .digest ../unfinished ../settings']);
      case 'label': {
        const speaker = look.speaker ?? (await speakerFor(scene, name));
        const marks = [
          ...words.map((text) => `label ${text}`),
          ...(host.machine.taints ?? []).map((one) => `taint ${taintText(one)}`),
        ];
        const about = { script: LABEL, operands: [name, ...marks], limitMs: SHORT_MS, signal: remote.signal };
        await remote.ssh.run(speaker.ssh, about);
        return undefined;
      }
      case 'mark':
      case 'remove-member':
      case 'delete-node':
        throw new CurlewError('UNSUPPORTED', `cannot ${phase} ${name} over SSH`);
    }
  };
  await reportStep(
    report,
    { id, title: [step.host, shown, step.addon, to].filter((part) => part !== undefined).join(' ') },
    act,
    () => 'done',
  );
  return isNew;
}

/**
 * Ends once its SSH server answers, and returns whether the machine is new. What its provider says of a new one is recorded there: one
 * that was only stopped has its own record, if any.
 */
async function createHost(remote: Remote, host: WrittenHost, isMissing: boolean): Promise<boolean> {
  if (host.provided === undefined)
    throw new CurlewError('UNSUPPORTED', `cannot create ${host.name}: it has no provider`);
  const { by, wanted } = host.provided;
  const { signal } = remote;
  const made = await createProvided(by, wanted, signal);
  const there = reached(host, made);
  let isNew = isMissing;
  const attempt = async (): Promise<SshError | undefined> => {
    try {
      isNew = (await recordBirth(remote, there, { outdated: made.outdated, isNew })) || isNew;
      return undefined;
    } catch (error) {
      if (error instanceof SshError && STARTING.has(error.problem)) return error;
      throw error;
    }
  };
  const failure = await repeatUntil(attempt, (error) => error === undefined, { ...START, signal });
  if (failure !== undefined) throw failure;
  return isNew;
}

/**
 * `$3`: the machine is known to be new. A host without the folder is, too: its creation was cut while its provider
 * had no address of it. Once there is one, no creation is planned, and the machine counts as one that was there before.
 */
const BORN = `if [ -z "$3" ] && [ -e "$1" ]; then exit 0; fi
rm -f "$1/born"; if [ -n "$2" ]; then umask 077; mkdir -p "$1" && echo "$2 $(date +%s)" >"$1/born" || exit 70; fi
echo new`;

/**
 * Records on a new machine what its provider called outdated already: see `verdictOf`. Returns whether the machine is new. Throws
 * `SshError`.
 */
async function recordBirth(
  { ssh, signal }: Remote,
  host: WrittenHost,
  { outdated, isNew }: { readonly outdated: string | undefined; readonly isNew: boolean },
): Promise<boolean> {
  const mark = outdated === undefined || host.provided === undefined ? '' : verdictOf(host.provided.wanted, outdated);
  const operands = [REMOTE, mark, isNew ? 'new' : ''];
  return (await ssh.run(host.ssh, { script: BORN, operands, limitMs: SHORT_MS, signal })).trim() === 'new';
}

/**
 * Records what a provider has said of new machines only after it had made them, or in other words. What it says once they have joined may
 * be about something that is newer than they are.
 */
export async function recordBirths(
  remote: Remote,
  look: ClusterLook,
  { born, report }: { readonly born: ReadonlySet<string>; readonly report: Context['report'] },
): Promise<void> {
  const joined = new Set(look.seen.machines.flatMap((one) => (one.joined ? one.name : [])));
  const late = look.hosts.filter(({ host: { name, provided }, facts, outdated }) => {
    if (facts === undefined || provided === undefined || outdated === undefined || joined.has(name)) return false;
    return born.has(name) && facts.born?.mark !== verdictOf(provided.wanted, outdated);
  });
  for (const { host, outdated } of late) {
    try {
      await recordBirth(remote, host, { outdated, isNew: true });
    } catch (error) {
      if (!(error instanceof SshError) || remote.signal.aborted) throw error;
      const text = `${host.name}: cannot record that it was called outdated when it was new, so the next apply replaces it: ${error.reason}`;
      report({ type: 'note', level: 'warning', text });
    }
  }
}

/** Each run is named by its command: whoever follows the run may see it at another of its phases than the one with which it began. */
function runName({ version }: WrittenCluster, { host = '', phase, to = '' }: Step, leaves: boolean): string {
  if (leaves) return `remove ${host}`;
  return UPGRADE.has(phase) ? `upgrade ${host} ${version}` : `${phase} ${host} ${to}`.trim();
}

/** `None` leaves it to the command. */
export function drainLimit(host: WrittenHost | undefined): readonly string[] {
  const { timeout = 'None' } = host?.machine.drain ?? {};
  return timeout === 'None' ? [] : ['--drain-timeout', timeout];
}

/** A control plane that can say something about another node. Without curlew on any of them, one gets the bundle. */
async function speakerFor({ look, remote, file }: Scene, about: string): Promise<WrittenHost> {
  const { speaker, hosts } = look;
  if (speaker !== undefined && speaker.name !== about) return speaker;
  const others = hosts.filter(({ host: { name, role }, facts }) => {
    return role === 'control-plane' && name !== about && facts?.isControlPlane === true;
  });
  const controlPlane = others.find(({ facts }) => facts?.bundle !== undefined) ?? others[0];
  if (controlPlane === undefined)
    throw new CurlewError('CLUSTER_FAILED', `no other control plane answers for ${about}`);
  const { host, facts } = controlPlane;
  if (facts?.bundle === undefined) await sendBundle(remote, host.ssh, { file: await file(), sent: () => undefined });
  return host;
}

/** Whether the cluster has not yet what the step brings to this control plane: an install does that, wherever the first one was. */
function leads({ cluster, look: { seen } }: Scene, { host, phase, to }: Step): boolean {
  const control = seen.machines.filter(({ joined, role }) => joined && role === 'control-plane');
  if (!control.some(({ name }) => name === host)) return false;
  if (phase === 'configure') return isFirstWith(digestsOf(cluster.installer), control);
  return to !== undefined && control.every(({ apiServer }) => apiServer !== to);
}

/** The settings of the file that a run on a host gets. */
function fileOf(
  scene: Scene,
  host: WrittenHost,
  phase: Parameters<typeof settingsAfter>[0],
): Required<Pick<RemoteCommand, 'input' | 'settings' | 'request'>> {
  const input = settingsOf(scene, host);
  // A node that is there gets labels by a step of their own.
  const { labels = {} } = phase === 'upgrade' ? {} : host.machine;
  const request = hexOf(digestOf(canonicalJson([input, labels]))).slice(0, 16);
  return { input, settings: recordOf(scene, host, phase), request };
}

/** For the host, one line; none where it is not known what it has then. */
function recordOf(
  { cluster, look: { seen } }: Scene,
  { name }: WrittenHost,
  phase: Parameters<typeof settingsAfter>[0],
): string {
  const own = seen.machines.find((one) => one.name === name)?.settings;
  const others = seen.machines.filter((one) => one.joined && one.role === 'control-plane' && one.name !== name);
  const after = settingsAfter(phase, digestsOf(cluster.installer), { own, others });
  return after === undefined ? '' : JSON.stringify(after);
}

/** The settings of a host as an installer spec; JSON is YAML. A machine that joins takes most of Kubernetes' from its cluster. */
function settingsOf({ cluster }: Scene, { machine }: WrittenHost, token?: Readonly<Record<string, unknown>>): string {
  const { installer, name } = cluster;
  const taints = (machine.taints ?? []).map(taintText);
  const settings = fieldsOf(installer['kubernetes']);
  const own = Object.fromEntries(Object.entries(settings).filter(([key]) => OWN_SETTINGS.includes(key)));
  const kubernetes = {
    ...(token === undefined ? settings : { ...token, ...own }),
    ...(taints.length > 0 && { nodeTaints: taints.join(',') }),
  };
  const spec = { ...installer, kubernetes };
  return printableJson({ apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata: { name }, spec });
}

/** Both are set again where a node has them already. */
const LABEL = `export KUBECONFIG=/etc/kubernetes/admin.conf; node=$1; shift
for mark; do kubectl "\${mark%% *}" node "$node" "\${mark#* }" --overwrite >/dev/null || exit; done`;

const TOKEN = `cd "$1/bundle" || exit 70
file=../$2; shift 2
trap 'rm -f "$file"' EXIT
./tasks.sh join-token -o "$file" "$@" >&2 && cat "$file"`;

/** The secret goes from one host to the other through this process alone. */
async function joinSettings(scene: Scene, host: WrittenHost): Promise<Readonly<Record<string, unknown>>> {
  const { remote, ignore, report } = scene;
  const { ssh, signal } = remote;
  const speaker = await speakerFor(scene, host.name);
  const isControl = host.role === 'control-plane';
  const operands = [REMOTE, `join-${host.name}.yaml`, ...(isControl ? ['--control-plane'] : [])];
  const make = async (): Promise<string> =>
    ssh.run(speaker.ssh, { script: TOKEN, operands, limitMs: TOKEN_MS, signal });
  let text: string;
  try {
    text = await make();
  } catch (error) {
    if (!(error instanceof SshError) || error.problem !== 'status' || !isControl) throw error;
    // The certificates are kept for two hours. Where join-token cannot upload them, as by an earlier bundle, a run of install does.
    const flags = ignore.flatMap((title) => ['--ignore', title]);
    await runCommand(remote, speaker.ssh, {
      name: `certificates ${speaker.name}`,
      command: ['./install.sh', ...flags, 'airgap', 'installer-spec-file=../input'],
      ...fileOf(scene, speaker, 'upgrade'),
      line: (line) => report({ type: 'step-log', id: `join ${host.name}`, text: line }),
    });
    text = await make();
  }
  const { spec } = fieldsOf(readYaml('join.yaml', text).value);
  return fieldsOf(fieldsOf(spec)['kubernetes']);
}

/** For other commands on the cluster; a file that exists is left as it is. */
export async function keepKubeconfig(
  { ssh, signal }: Remote,
  { kubeconfig }: WrittenCluster,
  speaker: WrittenHost,
): Promise<void> {
  if ((await readFound(kubeconfig, KUBECONFIG_LIMIT)) !== undefined) return;
  const script = 'cat /etc/kubernetes/admin.conf';
  await writeStateFile(kubeconfig, await ssh.run(speaker.ssh, { script, limitMs: SHORT_MS, signal }));
}
