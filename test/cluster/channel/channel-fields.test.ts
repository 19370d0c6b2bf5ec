import { Ajv } from 'ajv';
import { readFile } from 'node:fs/promises';
import { CHANNEL_SCHEMA } from '../../../scripts/docs/channel-schema.ts';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/channel-fields');

const validate = new Ajv({ strict: true, allowUnionTypes: true }).compile(CHANNEL_SCHEMA);
const ENTRY = { name: 'web', version: '1.2.3', manifest: 'web.yaml' };
const CHART = { name: 'web', version: '1.2.3', chart: { repoURL: 'https://charts.example.com', name: 'web' } };

test('docs/schemas/channel.schema.json is what the fields make of it (npm run docs)', async () => {
  assert.equal(JSON.parse(await readFile('docs/schemas/channel.schema.json', 'utf8')), CHANNEL_SCHEMA);
});

for (const [title, entry, fits] of [
  ['a manifest', ENTRY, true],
  ['a package', { name: 'web', version: '1.2.3', package: 'web-1.2.3.tar.gz', requires: [{ name: 'a' }] }, true],
  ['a chart with values', { ...CHART, chart: { ...CHART.chart, values: { a: { b: [1] } }, wait: true } }, true],
  ['objects to prune', { ...ENTRY, prune: [{ kind: 'Pod', namespaces: ['a'] }] }, true],
  ['all objects of the add-on to prune', { ...ENTRY, prune: 'auto', drift: 'Revert' }, true],
  ['no version', { name: 'web', manifest: 'web.yaml' }, false],
  ['a version that is a number', { ...ENTRY, version: 1.2 }, false],
  ['a field that does not exist', { ...ENTRY, verison: '1' }, false],
  ['a field of an index of kops', { ...ENTRY, needsPKI: true }, false],
  ['another word for what must be one of some', { ...ENTRY, needsRollingUpdate: 'worker' }, false],
  ['a package of another name', { name: 'web', version: '1.2.3', package: 'web.zip' }, false],
  ['a repository with a login', { ...CHART, chart: { ...CHART.chart, repoURL: 'https://me:word@example.com' } }, false],
  ['a prune word that does not exist', { ...ENTRY, prune: 'all' }, false],
  ['a text instead of an entry', 'web', false],
] as const) {
  test(`${title}: schema and tool agree`, () => {
    const document = { apiVersion: 'fleet.curlew.dev/v1alpha1', kind: 'Channel', spec: { addons: [entry] } };
    const { channel, diagnostics } = readChannel('channel.yaml', JSON.stringify(document));
    assert.equal([validate(document), channel !== undefined], [fits, fits], JSON.stringify(diagnostics));
  });
}

test.run();
