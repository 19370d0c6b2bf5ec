import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { containerd } from '../../../src/runtime/images/containerd.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('the client of containerd');

/** Shows the flags of an import as `ctr` does, and notes its words and what it is sent. */
function client(help: string): string {
  return `#!/bin/sh
echo "$*" >>"$NOTES"
case "$*" in
  *--help) printf '%s\\n' '${help}' ;;
  *import*) cat >>"$NOTES" ;;
esac
`;
}

async function* bytes(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(text);
}

for (const [title, help, words] of [
  [
    'that has another way passes its transfer service by',
    '   --local    Run import locally rather than through',
    '--local -',
  ],
  ['of before has one way', '   --no-unpack    skip unpacking, unlike --locally', '-'],
] as const) {
  test(`a ctr ${title}, and is asked once`, async () => {
    await using box = await tree({ 'bin/ctr': client(help) });
    const env = { PATH: `${box.at('bin')}:/usr/bin:/bin`, NOTES: box.at('notes') };
    const runtime = containerd(env, 2);
    await Promise.all(
      ['one\n', 'two\n'].map(async (text) => runtime.importTar('load', bytes(text), { signal: never })),
    );
    const lines = (await readFile(box.at('notes'), 'utf8')).split('\n').filter((line) => line !== '');
    const ctr = '--namespace k8s.io images import';
    assert.is(lines[0], `${ctr} --help`);
    assert.equal(lines.slice(1).toSorted(), [`${ctr} ${words}`, `${ctr} ${words}`, 'one', 'two'].toSorted());
  });
}

test('images are pinned where curlew has made a cluster, and elsewhere are not asked for', async () => {
  await using box = await tree({
    'bin/ctr': `#!/bin/sh
echo "$*" >>"$NOTES"
case "$*" in *' list '*) printf 'registry.k8s.io/pause:3.10\\ndocker.io/library/own:1\\n' ;; esac
`,
  });
  const env = { PATH: `${box.at('bin')}:/usr/bin:/bin`, NOTES: box.at('notes') };
  const names = ['registry.k8s.io/pause:3.10', 'registry.k8s.io/etcd:3.6', 'registry.k8s.io/pause:3.10'];
  await containerd(env, 2, box.at('none')).protect?.(names, { signal: never });
  assert.not.ok(existsSync(box.at('notes')));
  await containerd(env, 2, box.path).protect?.(names, { signal: never });
  const ctr = '--namespace k8s.io images';
  assert.equal((await readFile(box.at('notes'), 'utf8')).trim().split('\n'), [
    `${ctr} list --quiet labels."io.cri-containerd.pinned"!=pinned`,
    `${ctr} label registry.k8s.io/pause:3.10 io.cri-containerd.pinned=pinned`,
  ]);
});

test('an image that cannot be pinned is named, and those after it are pinned all the same', async () => {
  await using box = await tree({
    'bin/ctr': `#!/bin/sh
case "$*" in
  *' list '*) printf 'a:1\\nb:1\\nc:1\\n' ;;
  *'label b:1 '*) echo 'ctr: image "b:1": not found' >&2; exit 1 ;;
  *' label '*) echo "$5" >>"$NOTES" ;;
esac
`,
  });
  const env = { PATH: `${box.at('bin')}:/usr/bin:/bin`, NOTES: box.at('notes') };
  const pinned = containerd(env, 2, box.path).protect?.(['a:1', 'b:1', 'c:1'], { signal: never });
  const { message } = await assert.rejectsWith(pinned ?? Promise.resolve(), 'IMAGE_LOAD_FAILED');
  assert.is(message, 'cannot pin images of containerd: b:1: ctr: image "b:1": not found');
  assert.is(await readFile(box.at('notes'), 'utf8'), 'a:1\nc:1\n');
});

test.run();
