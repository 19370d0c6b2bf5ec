import type { Digest } from '../../../src/core/digest.ts';
import type { ImageRuntime } from '../../../src/runtime/images/image-runtime.ts';
import { loadPackages } from '../../../src/runtime/images/load-packages.ts';
import * as assert from '../../support/assert.ts';
import { never, noReport } from '../../support/context.ts';
import { suite } from '../../support/suite.ts';

const test = suite('images of packages');
const digest: Digest = `sha256:${'a'.repeat(64)}`;

test('all images are protected once they are there, also those that an attempt before has loaded', async () => {
  const names = ['quay.io/shop/web:1', 'quay.io/shop/db:2'];
  const seen: string[] = [];
  const runtime = {
    name: 'containerd',
    width: 2,
    namesOf: async (image: { readonly names: readonly string[] }) => image.names,
    lookUp: async () => new Map(names.map((name) => [name, { id: digest, ready: true, complete: true }])),
    isImage: async () => true,
    protect: async (given: readonly string[]) => void seen.push(...given),
  } as unknown as ImageRuntime;
  const packages = names.map((name) => {
    const form = async (): Promise<never> => Promise.reject(new Error('not to be read'));
    return { id: name, title: name, images: [{ reference: name, names: [name], digest, form }] };
  });
  await loadPackages(runtime, packages, { report: noReport, signal: never });
  assert.equal(seen, names);
});

test.run();
