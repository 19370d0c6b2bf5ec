import { createHostCollector } from '../../../src/build/host-packages/host-collector.ts';
import type { Repository } from '../../../src/core/repositories.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('build/host-packages/host-collector');

const OWN: Repository = { id: 'own', url: 'https://example.org/', suites: ['stable'], components: ['main'], key: '/k' };

async function inputs(repository: Repository | undefined, signal: AbortSignal): Promise<string> {
  const repositories = repository === undefined ? {} : { 'ubuntu-22.04': [repository] };
  return createHostCollector({ scripts: '/', env: {}, repositories }).inputs('ubuntu-22.04', { signal });
}

test('inputs are the repositories: not their keys, nor secrets, nor their names', async ({ signal }) => {
  const own = await inputs(OWN, signal);
  assert.match(own, /^host sha256:[0-9a-f]{64}$/);
  assert.is(await inputs({ ...OWN, id: 'other', key: '/other' }, signal), own);
  assert.is(await inputs({ ...OWN, url: 'https://me:secret@example.org/?token=x' }, signal), own);
});

test('another address, suite or component, or the table, are other inputs', async ({ signal }) => {
  const all = await Promise.all(
    [OWN, { ...OWN, url: 'https://example.org/x/' }, { ...OWN, suites: ['next'] }, { ...OWN, components: [] }].map(
      async (repository) => inputs(repository, signal),
    ),
  );
  const both = new Set([...all, await inputs(undefined, signal)]);
  assert.is(both.size, 5);
});

test('without a bash it says so', async ({ signal }) => {
  await using box = await tree();
  const collector = createHostCollector({ scripts: '/', env: { PATH: box.path }, repositories: {} });
  const request = { id: 'x', task: 'collect', os: 'rhel-9', arch: 'amd64', names: ['jq'], known: undefined } as const;
  const folders = { folder: box.path, scratch: box.path };
  const collecting = collector.collect({ ...request, ...folders }, { report: () => undefined, signal });
  await assert.rejectsWith(collecting, 'UNSUPPORTED', /bash: it is not installed/);
});

test.run();
