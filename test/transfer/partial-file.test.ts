import { writeFile } from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import { lookAtLeft, pathsBeside, type Identity } from '../../src/transfer/partial-file.ts';
import * as assert from '../support/assert.ts';
import { noise } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('pull: what an earlier run has left');
const NAME = 'web.tar.gz';
const MIB = 1 << 20;

test('what is put aside gives no room to what comes, and what is used again does', async () => {
  await using box = await tree();
  const { partial, note, older } = pathsBeside(box.at(NAME));
  await writeFile(partial, noise(MIB, 1));
  const identity = { size: 2 * MIB, contents: digestOf('one'), from: 'x', etag: '"1"' };
  const left = async (wanted: Partial<Identity>): Promise<unknown> => {
    const { otherFrom, aside, bytes } = await lookAtLeft(box.at(NAME), { ...identity, ...wanted });
    return [otherFrom, aside, bytes];
  };
  assert.equal(await left({}), [undefined, false, MIB]);
  const noted = async (contents: string | undefined): Promise<void> =>
    writeFile(note, `${JSON.stringify({ format: 1, ...identity, contents, have: [[0, MIB]] })}\n`);
  await noted(identity.contents);
  assert.equal(await left({}), [undefined, false, MIB]);
  assert.equal(await left({ contents: digestOf('two') }), ['x', true, 0]);
  await writeFile(older, noise(MIB / 2, 2));
  assert.equal(await left({ contents: digestOf('two') }), ['x', true, MIB / 2]);
  await noted(undefined);
  assert.equal(await left({ etag: '"2"' }), ['x', false, MIB]);
});

test.run();
