/** The commands of docs/support-bundles.md, on a machine with an add-on and without a cluster. */
import * as assert from '../../support/assert.ts';
import { unless } from '../../support/needs.ts';
import { suite } from '../../support/suite.ts';
import { installerSpec, noPageMachine, pageMachine, plainAddons } from '../support/page-machine.ts';

const test = suite('components/pages/support-bundles', { timeoutMs: 300_000 });

unless(noPageMachine(), test)('a bundle is previewed, written and read', async () => {
  await using machine = await pageMachine('docs/support-bundles.md', {
    files: { ...plainAddons('web@1.0.0'), 'installer.yaml': installerSpec('web: { version: latest }') },
  });
  await machine.run(`curlew publish --to /srv/dist --release v1
curlew bundle installer.yaml --from /srv/dist -o bundle.tar.gz
curlew install --bundle bundle.tar.gz`);
  const shown = await machine.block('curlew support-bundle --dry-run');
  assert.match(shown, 'curlew/status.json: curlew status');
  assert.equal(machine.left(), []);
});

test.run();
