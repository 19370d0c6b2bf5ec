/** `curlew support-bundle FILE`: real SSH servers on hosts with files of their own; what curlew makes on them is put there by the test. */
import { writeFile } from 'node:fs/promises';
import { planSupportBundle, supportBundle } from '../../src/app/support-bundle.ts';
import { command } from '../../src/cli/commands/support-bundle.ts';
import { REMOTE } from '../../src/machine/run/look.ts';
import { writeSupportBundle } from '../../src/runtime/support/write-bundle.ts';
import type { CollectedPiece } from '../../src/runtime/support/collect.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { missing, unless } from '../support/needs.ts';
import { hostScene, type HostScene } from '../support/ssh-hosts.ts';
import { SSHD } from '../support/sshd.ts';
import { suite } from '../support/suite.ts';
import { readBundle } from '../support/support-bundles.ts';

const test = suite('components/support-ssh', { timeoutMs: 120_000 });
const isRoot = process.getuid?.() === 0;
const tests = unless(isRoot ? missing(SSHD, 'ssh', 'ssh-keygen', 'unshare', 'flock') : 'needs root', test);

const MACHINES = { p1: { role: 'control-plane' }, p2: { address: 'localhost' }, p3: { address: '127.0.0.2' } };

/** What curlew would make on a host, with a secret in a form that no curlew lets through. */
async function putBundle(at: HostScene, name: string, pieces: readonly CollectedPiece[]): Promise<void> {
  const item = { path: 'x', source: 'x', collect: async () => Promise.resolve(pieces) };
  const result = { verdict: 'warn', title: 'Disk', message: 'it is full', strict: false, spec: 'x' } as const;
  const verdicts = async () => Promise.resolve({ results: [result], notEvaluated: [] });
  const options = { about: name, tool: '1.0.0', report: noReport, signal: never };
  const untouched = { text: (text: string) => text, value: (value: unknown) => value };
  const { file } = await writeSupportBundle(
    at.at(`made-${name}.tgz`),
    { items: [item], verdicts, redactor: untouched },
    options,
  );
  const tasks = `#!/bin/sh
case "$*" in *--dry-run*) echo '{"files":[{"path":"a.txt","source":"a"}]}'; exit 0;; esac
while [ $# -gt 0 ]; do if [ "$1" = --out ]; then cp '${file}' "$2"; fi; shift; done
exit 2
`;
  await writeFile(at.at(`tasks-${name}`), tasks);
  await at.on(name, `cp '${at.at(`tasks-${name}`)}' ${REMOTE}/bundle/tasks.sh && chmod +x ${REMOTE}/bundle/tasks.sh`);
}

tests('each machine of a file gives its bundle, and what it does not give is listed', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ p1: MACHINES.p1, p2: MACHINES.p2 });
  assert.equal((await at.apply()).failed, []);
  await at.write(MACHINES);
  const cluster = { path: 'cluster-resources/nodes.json', value: { kind: 'NodeList', items: [] } };
  await putBundle(at, 'p1', [{ path: 'a.txt', text: 'password=c4n4ry9f8e7d\n' }, cluster]);
  await putBundle(at, 'p2', [{ path: 'a.txt', text: 'two' }, cluster, { path: 'b.txt', problem: 'took too long' }]);
  const request = { files: ['paris.yaml'], out: 'all.tar.gz' };
  const plan = await planSupportBundle(request, at.context);
  assert.equal(
    plan.files.map(({ path }) => path),
    ['hosts/p1/a.txt', 'hosts/p2/a.txt', 'hosts/p3/basics.txt'],
  );
  const result = await supportBundle(request, at.context);
  const { files, index } = await readBundle(at.at('all.tar.gz'));
  assert.is(files.get('hosts/p1/a.txt'), 'password=[secret]\n');
  assert.is(files.get('hosts/p2/a.txt'), 'two');
  assert.ok(files.has('cluster-resources/nodes.json'));
  const missed = index.files.filter(({ state }) => state === 'failed').map(({ path }) => path);
  assert.equal(missed.toSorted(), ['hosts/p2/b.txt', 'hosts/p3']);
  assert.equal(
    index.results.map(({ title, host }) => [title, host]),
    [['Disk', 'p1, p2']],
  );
  assert.is(index.about, 'paris');
  assert.is(command.exitCode?.(result), 2);
});

tests('a host without curlew gives what its own programs print, and a damaged bundle is refused', async () => {
  await using at = await hostScene('p1', 'p2');
  await at.write({ p1: MACHINES.p1, p2: MACHINES.p2 });
  await at.on(
    'p1',
    `mkdir -p ${REMOTE}/bundle && printf '#!/bin/sh\necho damaged >"$4"\n' >${REMOTE}/bundle/tasks.sh && chmod +x ${REMOTE}/bundle/tasks.sh`,
  );
  await supportBundle({ files: ['paris.yaml'], out: 'all.tar.gz' }, at.context);
  const { files, index } = await readBundle(at.at('all.tar.gz'));
  assert.match(files.get('hosts/p2/basics.txt') ?? '', /^== uname -a\nLinux /);
  const problems = new Map(index.files.map(({ path, problem }) => [path, problem ?? '']));
  assert.match(problems.get('hosts/p1') ?? '', /its support bundle cannot be read/);
  assert.match(problems.get('hosts/p2/bundle') ?? '', /no curlew is there/);
});

test.run();
