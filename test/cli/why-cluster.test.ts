/** `curlew why` on a node of a cluster, whose API server answers from files. */
import { existsSync, readFileSync } from 'node:fs';
import { cp, rm, writeFile } from 'node:fs/promises';
import { readRecords } from '../../src/runtime/node/records.ts';
import type { AppliedRecord } from '../../src/runtime/plan/records.ts';
import { whyAddon, type AddonHistory } from '../../src/runtime/history/why.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { never } from '../support/context.ts';
import { bundleOf } from '../support/node-bundles.ts';
import { kubeconfigText, startKubeServer, statusReply } from '../support/kube-server.ts';
import { packagesOf, run, tracer } from '../support/node-install.ts';
import { freePort } from '../support/ports.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('cli: why, in a cluster', { timeoutMs: 240_000 });

const CERTIFICATE = await makeCertificate();

/** The API server answers what is in `answers`; `away`, `refused` and `stuck` there are files that say how it fails. */
async function nodeWith(addons: readonly string[] = ['aaa', 'containerd']): Promise<Tree> {
  const box = await tree({ 'answers/kube-system': '{"metadata":{"uid":"u-1"}}' });
  const server = await startKubeServer(({ path }) => {
    const answer = box.at('answers', path.split('/').at(-1) ?? '');
    if (existsSync(box.at('answers/stuck'))) return { status: 200, sending: 'never' };
    if (existsSync(box.at('answers/refused'))) return statusReply(401, 'Unauthorized');
    return existsSync(answer) ? { status: 200, body: readFileSync(answer) } : statusReply(404, 'NotFound');
  }, CERTIFICATE);
  await writeFile(box.at('there.conf'), server.kubeconfig());
  await writeFile(box.at('away.conf'), kubeconfigText(`https://127.0.0.1:${await freePort()}`, {}, {}));
  await run(box, await packagesOf(bundleOf(addons.map((name) => tracer(name)))));
  return {
    ...box,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

/** What the cluster has noted: records by add-on. */
async function note(box: Tree, applied: Readonly<Record<string, AppliedRecord>>, cluster = 'u-1'): Promise<void> {
  const rows = Object.entries(applied).map(([name, record]) => [`addon.${name}`, JSON.stringify(record)]);
  const data = { format: '1', cluster, ...Object.fromEntries(rows) } as object;
  await writeFile(box.at('answers/curlew-records'), JSON.stringify({ metadata: {}, data }));
}

async function ask(box: Tree, name: string, ...more: readonly string[]): Promise<Outcome> {
  const config = existsSync(box.at('answers/away')) ? 'away.conf' : 'there.conf';
  const words = ['why', name, '--install-dir', box.at('node'), ...more];
  return runCommand(words, box.path, { KUBECONFIG: box.at(config) });
}

async function told(box: Tree, name: string, ...more: readonly string[]): Promise<AddonHistory> {
  const { stdout, stderr, exitCode } = await ask(box, name, '--json', '--quiet', ...more);
  assert.is(exitCode, 0, stderr);
  return JSON.parse(stdout) as AddonHistory;
}

async function ownRecord(box: Tree): Promise<AppliedRecord> {
  const record = (await readRecords(box.at('node'))).applied['aaa'];
  if (record === undefined) throw new Error('aaa is installed');
  return record;
}

test('records that agree are not worth a word, whichever node has written them', async () => {
  await using box = await nodeWith();
  const own = await ownRecord(box);
  await note(box, { aaa: { ...own, run: '20200101T000000Z-0000' } });
  const { cluster, next } = await told(box, 'aaa');
  assert.equal([cluster, next], [undefined, (await told(box, 'containerd')).next]);
});

test('what the cluster says otherwise is told, and decides what the next run does', async () => {
  await using box = await nodeWith();
  const own = await ownRecord(box);
  await note(box, { aaa: { ...own, run: '20200101T000000Z-0000', finished: false } });
  const { stdout } = await ask(box, 'aaa');
  assert.match(stdout, /^cluster {4}run 20200101T000000Z-0000 changed it and did not finish$/m);
  assert.match(stdout, /^next run {3}it is installed again: its last run did not finish$/m);
  await note(box, { aaa: { ...own, version: '2.0.0' }, ccc: own });
  assert.is((await told(box, 'aaa')).cluster, 'version 2.0.0 is applied');
  assert.match((await told(box, 'ccc')).cluster ?? '', /^version 1\.0\.0 is applied, by run /);
  await note(box, {});
  const { cluster, next } = await told(box, 'aaa');
  assert.is(cluster, 'has no record of it: it counts as not installed');
  assert.is(next, 'it is installed, because it is not installed now');
  assert.is((await told(box, 'containerd')).cluster, undefined, 'a container runtime is of this machine alone');
});

test('a cluster that does not answer, refuses or is damaged is told; the node answers all the same', async () => {
  await using box = await nodeWith();
  await writeFile(box.at('answers/away'), '');
  assert.is((await told(box, 'aaa')).cluster, undefined, 'this node was in no cluster so far');
  const path = box.at('node/records.json');
  await writeFile(path, JSON.stringify({ ...(await readRecords(box.at('node'))), cluster: 'u-1' }));
  assert.match((await told(box, 'aaa')).cluster ?? '', /^unknown: the API server .* does not respond$/);
  await rm(box.at('answers/away'));
  await writeFile(box.at('answers/refused'), '');
  assert.match((await told(box, 'aaa')).cluster ?? '', /^unknown: .*Unauthorized/);
  await rm(box.at('answers/refused'));
  await writeFile(box.at('answers/curlew-records'), '{"metadata":{},"data":{"format":"9"}}');
  assert.match((await told(box, 'aaa')).cluster ?? '', /^unknown: cannot read ConfigMap kurl\/curlew-records: damaged/);
  await writeFile(box.at('answers/stuck'), '');
  const stuck = await told(box, 'aaa');
  assert.match(stuck.cluster ?? '', /^unknown: /);
  assert.match(stuck.next, 'it is not installed again');
});

test('another cluster than before is told, and one of a trial is not asked', async () => {
  await using box = await nodeWith();
  const path = box.at('node/records.json');
  await writeFile(path, JSON.stringify({ ...(await readRecords(box.at('node'))), cluster: 'u-0' }));
  await note(box, { aaa: await ownRecord(box) });
  assert.match((await told(box, 'aaa')).cluster ?? '', /\(u-1\) is not the one before \(u-0\)/);
  const inTrial = box.at('trial', box.at('node'));
  await cp(box.at('node'), inTrial, { recursive: true });
  const trial = await told(box, 'aaa', '--root', box.at('trial'));
  assert.is(trial.cluster, 'not asked, since this is a trial');
  await rm(inTrial, { recursive: true });
  assert.is((await ask(box, 'aaa', '--root', box.at('trial'))).exitCode, 14);
});

test('what a node has only joined with runs its hooks in every join', async () => {
  await using box = await tree();
  await run(box, await packagesOf(bundleOf([tracer('aaa', 'aaa_join() { :; }')])), { kind: 'join' });
  const { next } = await whyAddon(box.at('node'), 'aaa', { signal: never });
  assert.is(next, 'it joins again: every join and upgrade of this node runs its hooks');
});

test.run();
