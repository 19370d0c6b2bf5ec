/** What is removed with an add-on while others of the node are there only in part. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import type { PackageImage } from '../../../src/core/package.ts';
import { uninstallRequest } from '../../../src/runtime/prepare/removal.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { bundleOfPackages } from '../../support/deltas.ts';
import { NODE_PLATFORM } from '../../support/image-packages.ts';
import { packagesOf, run, type Given } from '../../support/node-install.ts';
import { addon } from '../../support/omitted.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('removal beside packages in part');

const DOCKER = `#!/bin/sh
case "$*" in
version*) echo 28.2.2 ;;
'image list'*) for name in shared own; do
  printf '{"ID":"sha256:%064d","Repository":"%s","Tag":"1","Digest":"<none>"}\\n' "\${#name}" "$name"
done ;;
'image rm'*) echo "$3" >>"$TRACE" ;;
esac
`;

function image(name: string): PackageImage {
  return { id: name, reference: `${name}:1`, digest: digestOf(name), platform: NODE_PLATFORM };
}

/** A node with `db`, and with `web` without the files of some systems, which requires it. */
async function node(box: Tree): Promise<Given> {
  const db = { ...addon('db'), extra: { images: [image('shared'), image('own')] } };
  const web = { ...addon('web'), extra: { requires: ['db'], images: [image('shared')] } };
  await writeFile(box.at('os-release'), 'ID=ubuntu\nVERSION_ID="22.04"\n');
  const env = {
    PATH: `${box.at('bin')}:${process.env['PATH'] ?? ''}`,
    TRACE: box.at('trace'),
    CURLEW_OS_RELEASE: box.at('os-release'),
    CONTAINERD_ADDRESS: box.at('no.sock'),
  };
  await run(box, await packagesOf((await bundleOfPackages([db, web], { os: ['ubuntu-22.04'] })).bytes), { env });
  await rm(box.at('trace'));
  return { env };
}

const OPTIONS = { keepGoing: false, keepData: false, pruneImages: true };

test('what an add-on requires that is there in part stays', async () => {
  await using box = await tree({ 'bin/docker': DOCKER });
  await node(box);
  await assert.rejectsWith(
    uninstallRequest(box.at('node'), ['db'], OPTIONS, { report: noReport, signal: never }),
    'USAGE',
    /^uninstall db: web 1\.0\.0 requires it$/,
  );
});

test('images that an add-on has which is there in part stay', async () => {
  await using box = await tree({ 'bin/docker': DOCKER });
  const given = await node(box);
  const { removal } = await uninstallRequest(box.at('node'), ['db', 'web'], OPTIONS, {
    report: noReport,
    signal: never,
  });
  const only = { ...removal, ...OPTIONS, forgotten: [], packages: (removal?.packages ?? []).slice(0, 1) };
  assert.equal(
    only.packages.map(({ source }) => source.ref.name),
    ['db'],
  );
  const { images } = await run(box, [], { ...given, kind: 'uninstall', reapply: true, removal: only });
  assert.equal(images.removed, ['docker.io/library/own:1']);
  assert.is((await readFile(box.at('trace'), 'utf8')).trim(), 'docker.io/library/own:1');
});

test('no image is removed while it is not known what another add-on needs', async () => {
  await using box = await tree({ 'bin/docker': DOCKER });
  const given = await node(box);
  const { removal } = await uninstallRequest(box.at('node'), ['db', 'web'], OPTIONS, {
    report: noReport,
    signal: never,
  });
  await rm(box.at('node/placed/addons/web'), { recursive: true });
  const only = { ...removal, ...OPTIONS, forgotten: [], packages: (removal?.packages ?? []).slice(0, 1) };
  const events: NonNullable<Given['events']> = [];
  const { images } = await run(box, [], { ...given, kind: 'uninstall', reapply: true, removal: only, events });
  assert.equal(images.removed, []);
  assert.ok(events.some((event) => event.type === 'note' && /the images of web-1\.0\.0 are unknown/.test(event.text)));
});

test.run();
