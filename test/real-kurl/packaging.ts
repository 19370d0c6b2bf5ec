/** Lint, plan and build over a repository in kURL's manner, by the command itself. */
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Diagnostic } from '../../src/core/diagnostic.ts';
import { findAddons, type AddonFolder } from '../../src/manifest/find-addons.ts';
import type { BuildPlan } from '../../src/build/plan.ts';
import { formatRef } from '../../src/core/ref.ts';
import { BUILT_MAIN as main } from '../support/built.ts';
import { curlew } from '../support/curlew.ts';
import { existsSync } from 'node:fs';
import type { Outcome } from './report.ts';
import { startStandIns } from './stand-ins.ts';

export interface Repository {
  readonly root: string;
  /** All versions of the add-ons that are looked at, in the order of names and versions. */
  readonly versions: readonly AddonFolder[];
  /** The newest version of each. */
  readonly newest: readonly AddonFolder[];
}

/** Reads which add-ons there are; `only` names some of them, or versions as `name-version`, or is empty. */
export async function readRepository(root: string, only: readonly string[]): Promise<Repository> {
  const { signal } = new AbortController();
  const { folders } = await findAddons(root, [], { signal });
  const isMeant = (one: AddonFolder): boolean =>
    only.length === 0 || only.includes(one.name) || only.includes(formatRef(one));
  const versions = folders.filter((one) => one.tree === 'addons' && isMeant(one));
  const newest = new Map(versions.map((one) => [one.name, one]));
  return { root, versions, newest: [...newest.values()] };
}

function byName(versions: readonly AddonFolder[]): ReadonlyMap<string, readonly AddonFolder[]> {
  const names = [...new Set(versions.map(({ name }) => name))];
  return new Map(names.map((name) => [name, versions.filter((one) => one.name === name)]));
}

/** `curlew lint` over all versions: an error is a failure. */
export async function lintAll({ root, versions }: Repository): Promise<readonly Outcome[]> {
  const names = [...byName(versions)];
  const paths = versions.map(({ name, version }) => join('addons', name, version));
  const { stdout, stderr } = await curlew(['lint', '--json', ...paths], { cwd: root, main });
  const { diagnostics } = readJson(stdout, stderr) as { readonly diagnostics: readonly Diagnostic[] };
  return names.map(([name, of]) => {
    const own = diagnostics.filter(
      ({ severity, place }) => severity === 'error' && place.file.startsWith(`addons/${name}/`),
    );
    const failures = own.map(({ code, place, message }) => `${place.file}:${place.line} ${code}: ${message}`);
    return { stage: 'lint', addon: name, count: of.length, failures, remarks: [] };
  });
}

function readJson(stdout: string, stderr: string): unknown {
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout);
}

/** `curlew build --dry-run` over all versions, an add-on at a time. */
export async function planAll({ root, versions }: Repository, box: string): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const [name, of] of byName(versions)) {
    const refs = of.map(({ version }) => `${name}/${version}`);
    const words = ['build', ...refs, '--dry-run', '--json', '--out', join(box, 'out')];
    const { exitCode, stdout, stderr } = await curlew(words, { cwd: root, main });
    const failures =
      exitCode === 0 && (JSON.parse(stdout) as BuildPlan).addons.length === of.length ? [] : errorsOf(stdout, stderr);
    outcomes.push({ stage: 'plan', addon: name, count: of.length, failures, remarks: [] });
  }
  return outcomes;
}

/** Lines of a refusal. */
export function errorsOf(stdout: string, stderr: string): readonly string[] {
  const lines = `${stderr}\n${stdout}`.split('\n').filter((line) => /^(?:error|\S+:\d+:\d+: error)/.test(line));
  return lines.length > 0 ? lines : [(stderr || stdout).trim().split('\n').slice(-5).join(' / ') || 'it says nothing'];
}

export interface Packages {
  /** Holds `addons/` of the versions alone, as they are, and the cluster's own. */
  readonly root: string;
  /** A store with a release of what could be built. */
  readonly store: string;
  /** Folder of the package files. */
  readonly out: string;
  readonly built: readonly AddonFolder[];
  readonly outcomes: readonly Outcome[];
}

export const KUBERNETES = '1.34.4';

/** An operator who moves over writes this one (docs/migrating.md): kURL has no add-on for Kubernetes itself. */
const CLUSTER = {
  Manifest: 'image pause registry.k8s.io/pause:3.10\n',
  'install.sh': `function kubernetes() {
    discover_pod_subnet
    discover_service_subnet
    kubeadm init --pod-network-cidr "$POD_CIDR"
    export KUBECONFIG=/etc/kubernetes/admin.conf
    kubectl get namespace kube-system
}
function kubernetes_join() {
    kubeadm join
}
function kubernetes_already_applied() {
    kubectl get namespace kube-system
}
`,
};

/** What a release has beside its add-ons: the image that `KURL_UTIL_IMAGE` names, stood in for like the others. */
const HELPER = {
  folder: 'packages/curlew-utils/1.0.0',
  manifest: 'image curlew-utils registry.example/curlew-utils:1.0.0\n',
};

/** Copies the versions into a repository of their own, so that nothing is written into theirs, and builds them there. */
export async function buildAll(
  { root: from }: Repository,
  versions: readonly AddonFolder[],
  box: string,
): Promise<Packages> {
  // Packages of an earlier run in the same place are looked at again; nothing else of it counts.
  for (const name of ['repository', 'stand-ins', 'store']) await rm(join(box, name), { recursive: true, force: true });
  const root = join(box, 'repository');
  for (const { name, version, folder } of versions) {
    await cp(folder, join(root, 'addons', name, version), { recursive: true, preserveTimestamps: true });
    for (const file of ['categories.json', 'versions.json', 'template']) {
      const beside = join(from, 'addons', name, file);
      if (existsSync(beside)) await cp(beside, join(root, 'addons', name, file), { recursive: true });
    }
  }
  for (const [file, text] of Object.entries(CLUSTER)) {
    const path = join(root, 'addons/kubernetes', KUBERNETES, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  await mkdir(join(root, HELPER.folder), { recursive: true });
  await writeFile(join(root, HELPER.folder, 'Manifest'), HELPER.manifest);
  const out = join(box, 'out');
  const planned = await curlew(['build', '--dry-run', '--json', '--out', out], { cwd: root, main });
  if (planned.exitCode !== 0) throw new Error(planned.stderr);
  const plan = JSON.parse(planned.stdout) as BuildPlan;
  const folder = join(box, 'stand-ins');
  await mkdir(folder, { recursive: true });
  await using standIns = await startStandIns(
    folder,
    root,
    plan.addons.flatMap(({ steps }) => steps),
  );
  const options = ['--out', out, ...standIns.words];
  const build = async (some: readonly AddonFolder[]): Promise<readonly string[]> => {
    const words = ['build', ...some.map(({ name, version }) => `${name}/${version}`), '--json', ...options];
    const { exitCode, stdout, stderr } = await curlew(words, { cwd: root, main, env: standIns.env });
    return exitCode === 0 ? [] : errorsOf(stdout, stderr);
  };
  // One by one only where something fails: then it is known which.
  const isWhole = (await build(versions)).length === 0;
  const built: AddonFolder[] = [];
  const outcomes: Outcome[] = [];
  for (const one of versions) {
    const failures = isWhole ? [] : await build([one]);
    if (failures.length === 0) built.push(one);
    const steps = plan.addons.find(({ ref }) => ref.name === one.name && ref.version === one.version)?.steps ?? [];
    outcomes.push({ stage: 'build', addon: formatRef(one), count: 1, failures, remarks: stoodInFor(steps) });
  }
  const store = join(box, 'store');
  const names = [...built.map(({ name, version }) => `${name}/${version}`), `kubernetes/${KUBERNETES}`, HELPER.folder];
  const words = ['publish', ...names, '--to', store, '--release', 'v1', ...options];
  const published = await curlew(words, { cwd: root, main, env: standIns.env });
  if (published.exitCode !== 0) throw new Error(published.stderr);
  return { root, store, out, built, outcomes };
}

function stoodInFor(steps: BuildPlan['addons'][number]['steps']): readonly string[] {
  const kinds = new Set(steps.map(({ kind }) => kind));
  const words = [
    ['image', 'images'],
    ['asset', 'downloads'],
    ['os-packages', 'host packages'],
    ['container-build', 'base images of containers'],
  ] as const;
  const found = words.filter(([kind]) => kinds.has(kind)).map(([, word]) => word);
  return found.length === 0 ? [] : [`stood in for: ${found.join(', ')}`];
}
