/** What a plan of a fleet shows of changes in objects: dry runs, once for clusters that change in the same way. */
import { writeFile } from 'node:fs/promises';
import { planFleets, type FleetPlan } from '../../src/app/fleet-plan.ts';
import { plan as planCommand } from '../../src/cli/commands/fleet.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { addon, channel } from '../support/fleet-files.ts';
import { canaryAddon, openFleetScene, statesIn, type FleetScene } from '../support/fleet-scene.ts';
import { startHelm } from '../support/helm-stand-in.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-diff', { timeoutMs: 120_000 });
const PAGE = '/api/v1/namespaces/default/configmaps/page';

async function diff({ context }: FleetScene, more: object = {}): Promise<FleetPlan> {
  return planFleets({ files: ['fleet.yaml'], diff: true, ...more }, context);
}

/** The lines between the table and the sums. */
function shown(plan: FleetPlan): string {
  const text = planCommand.render(plan, { options: {} } as never, undefined as never);
  const lines = text.split('\n').slice(1 + plan.targets.filter(({ now }) => now !== 'none').length, -1);
  return lines.map((line) => `${line}\n`).join('');
}

const map = (name: string, data: object): object => {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
};

test('a diff shows fields of what begins now, once for clusters that change alike, hides Secrets, and writes nothing', async () => {
  const names = ['lyon', 'nice', 'paris'];
  await using scene = await openFleetScene(names);
  const secret = (word: string): object => {
    return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key', namespace: 'default' }, stringData: { word } };
  };
  await scene.fleet([addon('web')]);
  await scene.manifest('', map('page', { version: '1' }), map('gone', {}), secret('first-word'));
  const created = '  + Secret default/key\n  + ConfigMap default/page\n  + ConfigMap default/gone\n';
  assert.is(shown(await diff(scene)), `web on lyon, nice, paris:\n${created}`);
  await scene.apply();
  await scene.manifest('', map('page', { version: '2', more: 'x' }), map('new', {}), secret('second-word'));
  await scene.api('nice').merge(PAGE, { data: { more: 'x' } });
  const before = names.map((name) => scene.requests(name).length);
  const plan = await diff(scene);
  const writes = names.flatMap((name, at) => {
    const after = scene.requests(name).slice(before[at]);
    return after.filter((one) => !one.startsWith('GET ') && !one.includes('dryRun=All'));
  });
  assert.equal(writes, []);
  assert.not.match(JSON.stringify(plan), /first-word|second-word/);
  const changes = (more: string): string => `  ~ Secret default/key
      .data.word: (hidden) -> (hidden)
  ~ ConfigMap default/page
      .data.version: "1" -> "2"
${more}  + ConfigMap default/new
  - ConfigMap default/gone
`;
  const more = '      .data.more: "x"\n';
  assert.is(shown(plan), `web on lyon, paris:\n${changes(more)}web on nice:\n${changes('')}`);
  const { diffs } = await scene.plan();
  assert.is(diffs, undefined);
  await scene.fleet([canaryAddon()], { nice: { canary: 'true' } });
  const [only, other] = (await diff(scene)).diffs ?? [];
  assert.equal([only?.clusters, other], [['nice'], undefined]);
});

test('a diff shows what returns, what is removed, and why the cluster would refuse a change', async () => {
  await using scene = await openFleetScene(['lyon', 'nice']);
  await scene.fleet([addon('web', { drift: 'Revert' })]);
  await scene.manifest('1');
  await scene.apply();
  await scene.api('lyon').merge(PAGE, { data: { version: 'mine' } });
  const restored = '  ~ ConfigMap default/page\n      .data.version: "mine" -> "1"\n';
  assert.is(shown(await diff(scene)), `web on lyon:\n${restored}`);
  await scene.apply();
  await scene.fleet([addon('web')], { nice: { env: 'test' } });
  assert.is(shown(await diff(scene)), 'web on nice:\n  - ConfigMap default/page\n');
  await scene.fleet([addon('web')]);
  await scene.manifest('2');
  scene.before((name, request) => {
    if (name === 'nice' && request.includes('dryRun=All'))
      throw new StatusError(422, 'Invalid', 'a field is immutable');
  });
  const refused = await diff(scene);
  assert.equal(statesIn(refused), ['lyon ToApply update', 'nice ToApply update']);
  assert.match(refused.targets[1]?.message ?? '', /a field is immutable/);
  assert.equal(
    refused.diffs?.map(({ clusters }) => clusters),
    [['lyon']],
  );
  let isGone = false;
  scene.before((name, request) => {
    // It has answered when its records were read.
    isGone ||= name === 'nice' && request.includes('labelSelector');
    if (isGone && name === 'nice' && !request.includes('labelSelector'))
      throw new StatusError(401, 'Unauthorized', 'no');
  });
  const silent = await diff(scene);
  assert.equal(
    silent.diffs?.map(({ clusters }) => clusters),
    [['lyon']],
  );
  assert.match(silent.warnings.join('\n'), /^nice: its changes are not known: .*no/m);
});

test('a diff renders charts by helm, and compares what they make', async () => {
  await using scene = await openFleetScene(['lyon']);
  await using helm = await startHelm(scene.api('lyon'), scene.box);
  const env = { PATH: process.env['PATH'] };
  const chart = async (version: string): Promise<void> => {
    await writeFile(scene.box.at('web.tgz'), JSON.stringify([map('page', { version })]));
    const entry = { name: 'web', version: `${version}.0.0`, chart: { package: 'web.tgz', namespace: 'default' } };
    await scene.fleet([
      channel('stable', { ...entry, namespace: 'default' }),
      addon('web', { source: { channel: { name: 'stable' } } }),
    ]);
  };
  await chart('1');
  const planned = async () => diff({ ...scene, context: { ...scene.context, env } }, { helm: helm.program });
  assert.is(shown(await planned()), 'web on lyon:\n  + ConfigMap default/page\n');
  await scene.apply({ helm: helm.program }, { env });
  await chart('2');
  assert.is(shown(await planned()), 'web on lyon:\n  ~ ConfigMap default/page\n      .data.version: "1" -> "2"\n');
  const upgrades = helm.commands.filter((one) => one.startsWith('upgrade') && !one.includes('--dry-run'));
  assert.is(upgrades.length, 1);
});

test('the text of a diff is bounded', () => {
  const clusters = Array.from({ length: 200 }, (_, at) => `c${at}`);
  const objects = Array.from({ length: 60 }, (_, at) => {
    return { object: `ConfigMap default/m${at}`, change: 'create', fields: [] } as const;
  });
  const diffs = clusters.map((name) => ({ addon: 'web', clusters: name === 'c0' ? clusters : [name], objects }));
  const empty = { targets: [], addons: [], detached: [], clusters: [], warnings: [], differences: [], at: 0 };
  const plan = { ...empty, diffs } as FleetPlan;
  const lines = planCommand.render(plan, { options: {} } as never, undefined as never).split('\n');
  assert.is(lines[0], 'web on c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 190 more:');
  assert.equal([lines[51], lines[52]], ['  and 10 more objects', 'web on c1:']);
  assert.equal([lines.length, lines.at(-2)], [20 * 52 + 2, '180 more with other changes, which --json shows']);
});

test.run();
