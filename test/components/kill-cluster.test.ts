/** Runs that are killed while they write to a cluster: a real API server must come to know the same in the end. */
import { suite } from '../support/suite.ts';
import { leftToOtherRuns } from '../support/sweep.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { boxOf, envOf } from './support/cluster-node.ts';
import { openScene, RUN_ID, smallAddon, type SceneKind, type State } from './support/kill-scene.ts';
import { tryPoints } from './support/kill-trial.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

// soak: every point
const test = suite('a run with a cluster that is killed', { timeoutMs: 1_200_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

interface ConfigMap {
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly data?: Readonly<Record<string, string>>;
}

async function configMaps({ kubectl }: ApiServer): Promise<readonly ConfigMap[]> {
  const list = JSON.parse(await kubectl(['-n', 'kurl', 'get', 'configmaps', '-o', 'json'])) as {
    readonly items: readonly ConfigMap[];
  };
  return list.items;
}

async function stateOf(server: ApiServer): Promise<State> {
  const rows = (await configMaps(server)).map(({ metadata: { name, labels }, data = {} }) => {
    const sorted = Object.entries(data).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return [`ConfigMap ${name}`, JSON.stringify([labels, sorted]).replaceAll(RUN_ID, 'RUN')] as const;
  });
  return Object.fromEntries(rows);
}

/** Puts ConfigMaps back to what they are now, whoever changes them meanwhile. */
async function restorer(server: ApiServer): Promise<() => Promise<void>> {
  const items = (await configMaps(server)).map(({ metadata: { name, labels }, data }) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'kurl', labels },
    data,
  }));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  return async () => {
    await server.kubectl(['replace', '-f', '-'], list);
  };
}

/** No namespace, as in a new cluster. Nobody else here does what ends one. */
async function forget({ kubectl }: ApiServer): Promise<void> {
  if ((await kubectl(['get', 'namespace', 'kurl', '--ignore-not-found', '-o', 'name'])) === '') return;
  await kubectl(['-n', 'kurl', 'delete', 'configmaps', '--all']);
  await kubectl(['delete', 'namespace', 'kurl', '--wait=false']);
  const ended = JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kurl' }, spec: {} });
  await kubectl(['replace', '--raw', '/api/v1/namespaces/kurl/finalize', '-f', '-'], ended);
}

const BEFORE = ['aaa', 'bbb'].map((name) => smallAddon(name, '1.0.0'));
const NOW = [smallAddon('aaa', '2.0.0'), smallAddon('bbb', '1.0.0'), smallAddon('ccc', '1.0.0')];
const INSTALLED = [[0, 'install', '--bundle', 'before']] as const;

/** Before a write all is as it was after the one before: of the node's own, its records are tried. */
const KINDS: readonly (readonly [title: string, kind: SceneKind, moments: RegExp])[] = [
  [
    'the first installation comes to the same end',
    { bundles: { before: BEFORE }, before: [], words: ['install', '--bundle', 'before'] },
    /^client create .* (?:given|after) /,
  ],
  [
    'an upgrade does so, too',
    { bundles: { before: BEFORE, now: NOW }, before: INSTALLED, words: ['install', '--bundle', 'now'] },
    /^client .* (?:given|after) |^journal done hook .* after |^rename .*records\.json.* after /,
  ],
  [
    'and a reset',
    { bundles: { before: BEFORE }, before: INSTALLED, words: ['reset', '--yes'] },
    /^client .* (?:given|after) |^journal done hook .* after |^rename .*records\.json.* after /,
  ],
  [
    'and what removes an add-on',
    { bundles: { before: BEFORE }, before: INSTALLED, words: ['uninstall', 'bbb', '--yes'] },
    /^client .* (?:given|after) |^journal done .* after |^(?:rename .*records\.json|rm (?!.*\/lock )).* after /,
  ],
];

if (reason === undefined) {
  let server: ApiServer;
  test.before(async () => {
    server = opened.keep(await startApiServer(opened.keep(await tree()).path));
  });
  test.after(opened.close);

  for (const [title, kind, moments] of KINDS) {
    const elsewhere = leftToOtherRuns(
      title,
      KINDS.map(([one]) => one),
    );
    if (elsewhere !== undefined) {
      test.skip(title, elsewhere);
      continue;
    }
    test(title, async ({ signal }) => {
      await using box = await boxOf(server);
      await forget(server);
      await using scene = await openScene({ ...kind, env: envOf(box, server.kubeconfig) });
      const restore = kind.before.length === 0 ? async (): Promise<void> => forget(server) : await restorer(server);
      const around = async (): Promise<State> => stateOf(server);
      await tryPoints({ scene, moments, restore, around, sweeps: KINDS.length }, { width: 1, signal });
    });
  }
} else test.skip('a run with a cluster that is killed', reason);

test.run();
