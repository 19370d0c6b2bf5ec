/** What a new add-on applies, as kustomize, which is in kubectl too, puts it together. */
import { execa } from 'execa';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { newIn, RESOURCES } from '../support/scaffold.ts';
import { suite } from '../support/suite.ts';
import { oracle } from './support/programs.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('new add-ons and kustomize');

const LIBRARY = join(import.meta.dirname, '../../scripts/lib');
const HOMELESS = RESOURCES.replaceAll('  namespace: web-system\n', '');

const KUSTOMIZE = oracle('kustomize');
const { failed } = await execa(KUSTOMIZE, ['version'], { reject: false });

/** Renders as a hook does, twice, and has kustomize put together what was rendered. */
async function rendered(box: Tree, name: string, variables: string): Promise<string> {
  const script = `set -e; DIR=$PWD
    for file in "$1"/*.sh; do . "$file"; done
    . "addons/$2/1.0.0/install.sh"; ${variables}
    "$2_render"; "$2_render"; "$3" build "kustomize/$2"`;
  const { stdout } = await execa('bash', ['-c', script, 'bash', LIBRARY, name, KUSTOMIZE], { cwd: box.path });
  return stdout;
}

for (const [title, files, from] of [
  ['with namespaces of its own', { 'web.yaml': RESOURCES }, 'web.yaml'],
  ['without namespaces', { 'web.yaml': HOMELESS }, 'web.yaml'],
  ['from nothing', {}, undefined],
] as const) {
  const name = `kustomize puts together an add-on ${title}`;
  if (failed) {
    test.skip(name, 'missing: scripts/tools kustomize');
    continue;
  }
  test(name, async () => {
    await using box = await tree(files);
    const { namespace } = await newIn(box, { from, hooks: ['all'] });
    const text = await rendered(box, 'web', 'WEB_REPLICAS=7');
    assert.match(text, `\n  namespace: ${namespace}\n`);
    assert.match(text, '\n  replicas: 7\n');
    assert.match(text, 'kind: Namespace');
    assert.match(text, 'support-bundle-spec');
    assert.not.match(await rendered(box, 'web', ''), 'replicas: 7');
  });
}

test.run();
