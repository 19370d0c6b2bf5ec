/** The folder store keeps what every store promises. */
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import { testStore } from '../../support/store-conformance.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/store/conformance');
let box: Tree;
let store: Store;

test.before(async () => {
  box = await tree();
  store = createFolderStore(box.path);
});
test.after(async () => {
  await box[Symbol.asyncDispose]();
});

testStore(test, { name: 'folder', store: () => store });

test.run();
