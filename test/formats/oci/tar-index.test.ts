import { open, writeFile } from 'node:fs/promises';
import { anyHeader, paddingOf } from '../../../src/formats/archive/header.ts';
import { indexTar, readTarEntry } from '../../../src/formats/oci/tar-index.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('registry/tar-index');

test('names that only an extended header can hold are found as they are, and so are links to them', async ({
  signal,
}) => {
  await using box = await tree();
  const long = `blobs/${'ü'.repeat(100)}/${'l'.repeat(120)}`;
  const link = anyHeader({ type: 'Link', path: 'first', mode: 0o644, linkpath: long });
  const header = anyHeader({ type: 'File', path: long, mode: 0o644, size: 4 });
  const data = Buffer.concat([link, header, Buffer.from('data'), Buffer.alloc(paddingOf(4)), Buffer.alloc(1024)]);
  await writeFile(box.at('tar'), data);
  await using file = await open(box.at('tar'));
  const find = await indexTar(file, data.byteLength, 'an archive', { signal });
  for (const path of [long, 'first']) {
    const place = find(path);
    assert.ok(place !== undefined, path);
    assert.is(Buffer.from(await readTarEntry(file, place ?? { offset: 0, size: 0 }, 10, path)).toString(), 'data');
  }
});

test.run();
