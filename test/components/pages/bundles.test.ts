/** The blocks of docs/bundles.md; each of the two media is too small for the whole bundle. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';
import { ROOT } from '../support/programs.ts';

const test = suite('components/pages/bundles', { timeoutMs: 300_000 });
const READER = 'docs/examples/read-bundle.py';

unless(noPageMachine('python3'), test)('a bundle is read without curlew, split, and joined', async () => {
  await using machine = await pageMachine('docs/bundles.md', {
    files: {
      ...plainAddons('web@1.0.0'),
      'installer.yaml': installerSpec('web: { version: latest }'),
      [READER]: await readFile(join(ROOT, READER)),
    },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz
for name in one two; do mkdir /media/$name && mount -t tmpfs -o size=40m tmpfs /media/$name; done`);
  const entries = (await machine.run('tar -tzf bundle.tar.gz')).split('\n');
  const tool = ['bin/curlew', 'bin/curlew.license', 'bin/curlew.sha256'];
  const first = ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh', ...tool, 'installer.yaml', 'bundle.json'];
  assert.equal(entries.slice(0, first.length), first);
  assert.ok(entries.slice(first.length, -1).every((name) => name.startsWith('addons/web/1.0.0/')));
  assert.is(entries.at(-1), 'stargz.index.json');
  await machine.run(`mkdir whole && tar -xzf bundle.tar.gz -C whole && cd whole
for name in join upgrade tasks; do cmp install.sh $name.sh; done
cd bin && sha256sum --check --strict curlew.sha256`);

  await machine.block('read-bundle.py');
  await machine.run('cmp installer.yaml whole/installer.yaml');

  const split = await machine.block('--split 4480M');
  for (const name of ['one', 'two']) {
    assert.match(split, `/media/${name}: 1 part, `);
    assert.match(split, 'and the head file are on disk: it can be unmounted and removed');
  }
  await machine.run(`mv bundle.tar.gz original.tar.gz
cat parts/bundle.tar.gz.part-* | cmp - original.tar.gz
cat /media/*/bundle.tar.gz.part-* | cmp - original.tar.gz
for folder in parts . /media/one /media/two; do
  (cd $folder && test -s bundle.tar.gz.parts.json && sha256sum --check --strict bundle.tar.gz.parts.sha256)
done`);
  assert.match(await machine.run('curlew verify parts/bundle.tar.gz.parts.json'), / ok/);

  assert.match(await machine.block('join-parts'), 'no signature was checked');
  await machine.run('cmp bundle.tar.gz original.tar.gz && cmp whole.tar.gz original.tar.gz');
  assert.equal(machine.left(), []);
});

test.run();
