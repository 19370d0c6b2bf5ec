/** Values of a fleet's add-on beside the same layers given to helm by hand: a release and a dry run of a real helm. */
import { readFile, writeFile } from 'node:fs/promises';
import { applyFleet } from '../../src/app/fleet-apply.ts';
import { at, textAt } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { addon, channel, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { chartOf, helmsHere } from './support/chart-scene.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('components/fleet-values', { timeoutMs: 180_000 });
const opened = createOpened();

/** It has all values that a template sees. */
const SEEN = `apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data: {seen: {{ toJson .Values | quote }}}
`;
const DEFAULTS = `
gone: default
kept: default
replaced: {a: default, b: default}
nested: {gone: default, kept: default, deep: {gone: 1, kept: 1}}
list: [{gone: default, kept: default}, default]
emptied: {a: default}
number: 1000000
`;
/** Layers in the order in which they count: of the channel, `default`, those of two groups, and the template. */
const LAYERS: readonly [object, object, object, object, object] = [
  { gone: 'entry', nested: { kept: null, own: 'entry' }, replaced: null, number: 12_345_678_901 },
  {
    gone: null,
    nested: { gone: null, deep: { gone: null, none: null } },
    none: null,
    list: [{ gone: null, a: [null] }, null],
  },
  { nested: { kept: 'group', own: null }, replaced: { a: null, c: 'group' }, emptied: { a: null } },
  { none: { inner: null, text: '{{ raw }}' }, 'dotted.key': null },
  { kept: null, nested: { deep: { kept: 1.5 } }, late: { inner: null } },
];

let server: ApiServer;
test.before(async () => {
  if (cannotRun(...API_SERVER_PROGRAMS) !== undefined) return;
  const box = opened.keep(await tree());
  server = opened.keep(await startApiServer(box.at('server')));
});
test.after(opened.close);

for (const { major, helm } of helmsHere(test, 'values of a fleet')) {
  test(`nulls of all layers delete what helm deletes, at the top, in maps and in lists (helm ${major})`, async () => {
    await using box = await tree();
    const [entry, all, group, other, last] = LAYERS;
    const [own, hand] = [`fleet-${major}`, `hand-${major}`];
    await writeFile(box.at('web.tgz'), chartOf('1.0.0', { seen: SEEN, '../values': DEFAULTS }));
    await writeFile(box.at('paris.conf'), await readFile(server.kubeconfig));
    const chart = { package: 'web.tgz', values: entry, namespace: own };
    const config = {
      default: all,
      groups: [group, other].map((values) => ({ selector: { matchLabels: { env: 'prod' } }, values })),
    };
    const source = { channel: { name: 'stable', addon: 'web' } };
    const spec = { source, config, valuesTemplate: JSON.stringify(last) };
    const stable = channel('stable', { name: 'web', version: '1.0.0', chart });
    await writeFile(box.at('fleet.yaml'), documents(stable, cluster('paris', { env: 'prod' }), addon('web', spec)));
    const { done } = await applyFleet(
      { files: ['fleet.yaml'], timeout: 60_000, wait: 60_000, helm },
      { signal: never, report: noReport, env: { PATH: process.env['PATH'] }, cwd: box.path },
    );
    assert.equal(
      done.map(({ result }) => result),
      ['done'],
      JSON.stringify(done),
    );

    const files = await Promise.all(
      LAYERS.map(async (layer, order) => {
        await writeFile(box.at(`${order}.json`), JSON.stringify(layer));
        return ['-f', box.at(`${order}.json`)];
      }),
    );
    const about = async (namespace: string, ...args: readonly string[]): Promise<string> =>
      run(helm, [...args, '--namespace', namespace, '--kubeconfig', server.kubeconfig]);
    await about(hand, 'install', 'web', box.at('web.tgz'), '--create-namespace', ...files.flat());
    const values = async (namespace: string): Promise<unknown> =>
      JSON.parse(await about(namespace, 'get', 'values', 'web', '-o', 'json'));
    assert.equal(await values(own), await values(hand));
    const manifest = await about(own, 'get', 'manifest', 'web');
    assert.is(manifest, await about(hand, 'get', 'manifest', 'web'));
    const shown = await about(own, 'template', 'web', box.at('web.tgz'), ...files.flat());
    assert.is(manifest.trim(), shown.trim());
    const { body } = await server.client.get(`/api/v1/namespaces/${own}/configmaps/seen`);
    const seen = JSON.parse(textAt(body, 'data.seen')) as JsonObject;
    assert.equal(
      ['gone', 'kept'].filter((name) => name in seen),
      [],
    );
    assert.is(at(seen, 'nested.kept'), 'group');
  });
}

test.run();
