import { headerMember, headerSize, paddingMember, paddingSize } from '../../../src/formats/archive/place.ts';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('places in archives');

test('headers and paddings have the sizes that are reckoned with, whatever names and sizes there are', () => {
  const lengths = [1, 98, 99, 100, 101, 154, 155, 156, 255, 256, 257, 400];
  const sizes = [0, 1, 511, 512, 513, 8 ** 11 - 1, 8 ** 11, 2 ** 40];
  const names = ['a', 'ü', 'a/'].flatMap((part) => lengths.map((length) => `${part.repeat(length).slice(0, length)}z`));
  const digest = digestOf('');
  for (const path of names) {
    for (const [at, size] of sizes.entries()) {
      const linkTo = at % 2 === 0 ? undefined : names[(path.length + at) % names.length];
      const entry = { path, size, mode: 0o644, digest, linkTo } as const;
      assert.is(headerSize(entry), headerMember(entry).byteLength, `${path} ${size} ${linkTo}`);
    }
  }
  for (const size of sizes.slice(0, 5)) assert.is(paddingSize(size), paddingMember(size).byteLength);
});

test.run();
