/** An add-on with everything that archives stumble over, and the images it names in a registry. */
import { digestOf } from '../../../src/core/digest.ts';
import { binaryLike, makeImage, makeLayer, pushImage, type Image } from '../../support/images.ts';
import type { Files } from '../../support/tree.ts';

export const NAME = 'sample';
export const VERSION = '1.2.3';
/** A host that no resolver knows: only the mirror leads anywhere. */
const HOST = 'registry.example';
export const PACKAGE = `${NAME}-${VERSION}.tar.gz`;

/** Two images that share a layer, one with a Docker and one with an OCI manifest, pushed into the registry. */
export async function pushSample(registry: string): Promise<ReadonlyMap<string, Image>> {
  const base = { 'usr/lib/base': binaryLike(3_000_000, 'base') };
  const shared = makeLayer(base, 'docker');
  const one = makeImage([shared, makeLayer({ one: 'one\n' }, 'docker')], 'docker', 'one');
  const two = makeImage([makeLayer(base), makeLayer({ two: binaryLike(200_000, 'two') })], 'oci', 'two');
  await pushImage(registry, 'sample/one', '1.0', one);
  await pushImage(registry, 'sample/two', '2.0', two);
  return new Map([
    [`${HOST}/sample/one:1.0`, one],
    [`${HOST}/sample/two:2.0`, two],
  ]);
}

const LONG = `${'d'.repeat(90)}/${'e'.repeat(90)}/${'f'.repeat(90)}/${'g'.repeat(90)}.yaml`;

/** The add-on's folder. Names: longer than 100 and than 255 bytes, not ASCII; sizes: nothing, a block, megabytes. */
export function sampleFiles(): Files {
  return {
    Manifest: `image one ${HOST}/sample/one:1.0\nimage two ${HOST}/sample/two:2.0\nasset tool ./bin/tool\n`,
    'install.sh': `# shellcheck shell=bash\n${NAME}() {\n  true\n}\n`,
    'bin/tool': '#!/bin/sh\necho tool\n',
    empty: '',
    block: 'b'.repeat(512),
    'yaml/übersicht.yaml': 'a: b\n',
    [`yaml/${'n'.repeat(110)}.yaml`]: 'a: b\n',
    [LONG]: 'a: b\n',
    text: 'the same line again and again\n'.repeat(40_000),
    noise: binaryLike(2_000_000, 'noise', 1),
  };
}

/** Digest of an image's manifest, as the registry answers it. */
export function manifestDigest(image: Image): string {
  return digestOf(image.manifest.data);
}
