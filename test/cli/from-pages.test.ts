/** The folders in the pages for users of other programs. */
import { readFile } from 'node:fs/promises';
import { readFleet } from '../../src/fleet/read.ts';
import { differencesIn } from '../../src/fleet/differences.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/from-pages');

for (const [name, addon] of [
  ['from-open-cluster-management', 'hello'],
  ['from-helm-chart-proxy', 'calico'],
] as const) {
  test(`the folder in docs/${name}.md is a fleet without a mistake or a warning`, async () => {
    const page = await readFile(`docs/${name}.md`, 'utf8');
    const [, text = ''] = /^```yaml\n(.*?)^```$/ms.exec(page) ?? [];
    const { addons, clusters, diagnostics } = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
    assert.equal(diagnostics, []);
    assert.match(differencesIn(addons)[0]?.hint ?? '', `curlew help docs/${name}.md`);
    assert.equal([addons.map((one) => one.name), clusters.map((one) => one.name)], [[addon], ['paris']]);
  });
}

test.run();
