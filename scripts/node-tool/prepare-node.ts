/**
 * Has everything at hand that an executable consists of and that changes only with Node itself: Node, and almost all of
 * it deflated. A process of its own, so that architectures are prepared side by side.
 * usage: tsx scripts/node-tool/prepare-node.ts FOLDER ARCH
 */
import { ARCHES } from '../../src/core/ref.ts';
import { keptPart } from './deflate.ts';
import { injectBlob } from './inject.ts';
import { pinnedNode } from './node-packages.ts';

const [, , folder = '', name = ''] = process.argv;
const arch = ARCHES.find((known) => known === name);
if (folder === '' || arch === undefined) throw new Error('usage: prepare-node.ts FOLDER ARCH');
try {
  const pinned = await pinnedNode(folder, arch, { signal: new AbortController().signal });
  await keptPart(injectBlob(pinned.node, new Uint8Array(0)).body, pinned.folder);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
